"""Which labels are wrong? Rows whose label is contradicted by fits made without them and without doubtful ones."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.validation import check_consistent_length

from ...core.extras import optional
from ...estimators.chunked import is_chunked
from . import machines
from .annotators import consensus
from .noise import Array, Noise, fit_noise, log_mixture, log_odds, stretched

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class AuditSettings:
    """Rounds of the audit and when it refuses to estimate a share.

    Attributes
    ----------
    rounds : int
        How often the fits are made; all but the first leave out the labels the ones before made doubtful.
    least_skill : float
        A model that removes less than this part of the error of guessing is near chance.
    least_z : float
        So is one whose gain over guessing is less than this many standard deviations.
    repeats, few_rows : int
        How often the rows are divided anew where there are so few that it matters which rows fall together, and the
        most rows for which that is done unasked. On 60 lines of eight sets that :class:`.machines.MachineSettings` was
        tuned on, 300 rows each, three divisions have an average precision of 0.636, two 0.629 and one 0.622.
    """

    rounds: int = 2
    least_skill: float = 0.1
    least_z: float = 2.5
    repeats: int = 3
    few_rows: int = 1000


SETTINGS = AuditSettings()


class Held(NamedTuple):
    """Held-out scores (n, k), those of the first round, agreement with the labels, and the model in words."""

    scores: Array
    first: Array
    agreement: Array
    model: str


def find_label_issues(
    X: Any,
    y: Any,
    estimator: Any = None,
    pred_probs: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    annotators: Any = None,
    *,
    known: ArrayLike | None = None,
    corrected: ArrayLike | None = None,
    cv: int = 5,
    repeats: int | None = None,
    random_state: int = 0,
    progress: Callable[[str, float], None] = lambda text, done: None,
) -> pd.DataFrame:
    """Rank the rows by the probability that their label is wrong, and estimate how many labels are.

    Support vector machines with linear, Gaussian and Laplace kernels, on the features and on their ranks, logistic
    regression, randomised and boosted trees are fitted to the other folds. Their held-out scores are read as
    probabilities by a model in which a share of the labels was changed,

        P(label | x) = (1 - e) p + e (1 - p) / (k - 1),

    whose held-out likelihood weighs them. Labels that are more probably wrong than right are left out of the
    training and the fits are repeated, so that wrong labels stop misleading them; models, rounds and divisions are
    averaged.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Features; they are standardised here. With ``estimator``, whatever that takes. Data in blocks (dask, memmap,
        RowBlocks) are read block by block: linear functions and a Gaussian kernel on landmarks compete on some of the
        rows, or ``estimator`` is a classifier of margins; the best one judges all rows.
    y : array-like of shape (n,)
        The labels in doubt.
    estimator : classifier, optional
        Fit this one to the folds instead; it needs ``decision_function`` or ``predict_proba``.
    pred_probs : array-like of shape (n, k), optional
        Held-out probabilities of the classes, in sorted order; nothing is fitted then.
    groups : array-like of shape (n,), optional
        Rows of a group (a patient, say) are held out together.
    annotators : array-like of shape (n, m), optional
        Further labels of the same rows, one column per annotator, missing where there is none.
    known : array-like of bool, optional
        Rows whose label has been confirmed: it counts as right.
    corrected : array-like of bool, optional
        Which of these had another label before; the share of wrong labels is that of those that remain.
    cv : int
        Folds.
    repeats : int, optional
        How often the rows are divided anew: by default 3 times up to 1,000 rows, where chance matters most, else once.
    random_state : int
        Seed of the divisions.
    progress : callable
        Called with a text and the share done.

    Returns
    -------
    DataFrame
        One row per sample, most suspicious first (of data in blocks only those whose label is contradicted, at most
        100,000): ``index``, ``given``, ``suggested`` (the most probable class),
        ``score`` (probability that the label is wrong), ``margin`` (log odds of the label against the best other
        class; negative if another class is suggested) and ``agreement`` (share of the held-out fits that agree).

        ``attrs`` holds ``share`` (of wrong labels; nan where the model is near chance), ``share_interval`` (90%),
        ``noise_matrix`` (P(given | true), a DataFrame), ``p_clean`` (p-value of "no label is wrong"),
        ``held_out_error``, ``chance_error`` (of always guessing the largest class), ``model`` and, with ``annotators``,
        ``annotators`` (labels given and quality of each).

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn import find_label_issues
    >>> x = np.linspace(-1, 1, 60)
    >>> y = np.where(x > 0, "well", "sick")
    >>> y[50] = "sick"
    >>> issues = find_label_issues(x[:, None], y)
    >>> int(issues["index"][0]), str(issues["suggested"][0])
    (50, 'well')
    """
    pd = optional("pandas", "cli", "find_label_issues")
    if is_chunked(X):
        extras = {"pred_probs": pred_probs, "groups": groups, "annotators": annotators, "known": known}
        return _in_blocks(pd, X, y, estimator, extras, (cv, repeats, random_state), progress)
    y = column_or_1d(y)
    classes, codes, order = _by_appearance(y)
    folds = _folds(classes, codes, cv)
    if repeats is None:
        repeats = SETTINGS.repeats if codes.size <= SETTINGS.few_rows else 1
    settled = _settled(known, corrected, codes.size)
    check_consistent_length(X, y, *settled, groups)
    of_group = None if groups is None else np.asarray(groups)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        if pred_probs is not None:
            held = _given(pred_probs, codes, classes, order)
        elif estimator is not None:
            parts = [machines.divisions(codes, of_group, folds, random_state + at) for at in range(repeats)]
            held = _of_estimator(estimator, X, codes, parts)
        else:
            matrix = check_array(X, dtype=np.float64)
            held = _of_machines(matrix, codes, of_group, settled, folds, repeats, random_state, progress)
    noise = fit_noise(held.scores, codes, *settled)
    quality = None
    if annotators is not None:
        noise, quality = _with_annotators(noise, codes, annotators, classes)
    table = _ranked(pd, y, classes, codes, settled[0], noise, held.agreement)
    error = float(np.mean(held.first.argmax(axis=1) != codes))
    chance = 1.0 - float(np.bincount(codes).max()) / codes.size
    table.attrs.update(_facts(error, chance, noise, codes, classes, held.model, pd, quality))
    progress("done", 1.0)
    return table


def _in_blocks(
    pd: Any, X: Any, y: Any, estimator: Any, extras: dict[str, Any], how: tuple[int, int | None, int], progress: Any
) -> pd.DataFrame:
    """Return the contradicted rows of data in blocks."""
    from .blocks import audit_blocks

    cv, repeats, seed = how
    unknown = [name for name, value in extras.items() if value is not None] + ["repeats"] * (repeats not in (None, 1))
    if unknown:
        raise ValueError(f"{unknown[0]} does not go with data in blocks; hand in an array of a part of the rows.")
    found = audit_blocks(X, y, estimator, cv, seed, progress)
    table = pd.DataFrame(
        {
            "index": found.rows, "given": found.classes[found.given], "suggested": found.classes[found.suggested],
            "score": found.wrong, "margin": found.margin, "agreement": found.agreement,
        }
    )  # fmt: skip
    table.attrs.update(
        _facts(found.error, found.chance, found.noise, found.codes, found.classes, found.model, pd, None)
    )
    progress("done", 1.0)
    return table


def _ranked(
    pd: Any, y: NDArray, classes: NDArray, codes: NDArray, known: NDArray, noise: Noise, agreement: Array
) -> pd.DataFrame:
    """Return the table of all rows, most suspicious first."""
    columns = {
        "index": np.arange(codes.size),
        "given": y,
        "suggested": classes[np.where(known, codes, noise.scores.argmax(axis=1))],
        "score": noise.wrong,
        "margin": _margins(noise.scores, codes),
        "agreement": agreement,
    }
    order = np.lexsort((columns["index"], log_odds(noise.scores, codes), -noise.wrong))
    return pd.DataFrame(columns).iloc[order].reset_index(drop=True)


def near_chance(error: float, chance: float, n: int) -> bool:
    """Whether a held-out error is no reliable improvement on always guessing the largest class."""
    deviation = np.sqrt(chance * (1.0 - chance) / n)
    return bool(error > (1.0 - SETTINGS.least_skill) * chance or error > chance - SETTINGS.least_z * deviation)


def _folds(classes: NDArray, codes: NDArray, cv: int) -> int:
    if classes.size < 2:
        raise ValueError(f"y must contain at least two classes, got only one class: {classes.tolist()}.")
    folds = min(cv, int(np.bincount(codes).min()))
    if folds < 2:
        raise ValueError("Every class needs at least two samples.")
    return folds


def _settled(known: ArrayLike | None, corrected: ArrayLike | None, n: int) -> tuple[NDArray, NDArray]:
    """Return which labels a person has confirmed, and which of them were changed."""
    first, second = (np.zeros(n, dtype=bool) if rows is None else np.asarray(rows, bool) for rows in (known, corrected))
    return first, second


def _by_appearance(y: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """Return the classes as they appear first, the labels as codes, and the order: other names change nothing then."""
    classes, first, codes = np.unique(y, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return classes[order], np.argsort(order)[codes], order


def _given(pred_probs: ArrayLike, codes: NDArray, classes: NDArray, order: NDArray) -> Held:
    """Read probabilities that the user brings."""
    p = check_array(pred_probs, dtype=np.float64, input_name="pred_probs")
    if p.shape != (codes.size, classes.size):
        raise ValueError(
            f"pred_probs must have a row per label and a column per class, {(codes.size, classes.size)}, got {p.shape}."
        )
    if p.min() < 0 or not np.allclose(p.sum(axis=1), 1.0, atol=1e-3):
        raise ValueError("Every row of pred_probs must hold probabilities that add up to 1.")
    scores = np.log(np.clip(p[:, order], 1e-6, None))
    return Held(scores, scores, (scores.argmax(axis=1) == codes).astype(float), "the given probabilities")


def _of_estimator(estimator: Any, X: Any, codes: NDArray, divisions: Sequence[machines.Parts]) -> Held:
    keep = np.ones(codes.size, dtype=bool)
    found = [machines.cross_fitted(estimator, X, codes, parts, keep) for parts in divisions]
    scores = np.mean([stretched(one) for one in found], axis=0)
    agreement = np.mean([one.argmax(axis=1) == codes for one in found], axis=0)
    return Held(scores, found[0], agreement, type(estimator).__name__)


def _of_machines(
    X: Array,
    codes: NDArray,
    groups: NDArray | None,
    settled: tuple[NDArray, NDArray],
    folds: int,
    repeats: int,
    seed: int,
    progress: Callable[[str, float], None],
) -> Held:
    """Let the models compete, then cross-fit the best ones in rounds that leave doubtful labels out."""
    views = machines.views_of(X)
    rows = machines.competition_rows(codes, groups, seed)
    few = {view: Z[rows] for view, Z in views.items()}
    parts = machines.divisions(codes[rows], None if groups is None else groups[rows], folds, seed)
    panel = machines.chosen(few, codes[rows], parts, codes.size, seed, lambda text, done: progress(text, 0.7 * done))
    scores, agreement = [], []
    for repeat in range(repeats):
        parts = machines.divisions(codes, groups, folds, seed + 1 + repeat)
        keep = np.ones(codes.size, dtype=bool)
        for at in range(SETTINGS.rounds):
            held, agrees = panel.held_out(views, codes, parts, keep)
            scores.append(held)
            agreement.append(agrees)
            keep = _kept(fit_noise(scores[-1], codes, *settled).wrong, codes)
            progress("held-out fits", 0.7 + 0.29 * (repeat * SETTINGS.rounds + at + 1) / (repeats * SETTINGS.rounds))
    together = log_mixture([np.exp(one) for one in scores], [1.0] * len(scores))
    return Held(together, scores[0], np.mean(agreement, axis=0), str(panel))


def _with_annotators(noise: Noise, codes: NDArray, annotators: Any, classes: NDArray) -> tuple[Noise, Any]:
    """Let the labels of several annotators speak, too; also return how good each of them is."""
    p = np.exp(log_softmax(noise.scores, axis=1))
    belief, quality = consensus(p, codes, annotators, classes)
    wrong = 1.0 - belief[np.arange(codes.size), codes]
    spread = 1.645 * float(np.sqrt(np.sum(wrong * (1.0 - wrong)))) / codes.size
    share = float(wrong.mean())
    interval = max(0.0, share - spread), min(1.0, share + spread)
    scores = np.log(np.maximum(belief, 1e-12))
    return noise._replace(wrong=wrong, share=share, interval=interval, scores=scores), quality


def _kept(wrong: Array, codes: NDArray) -> NDArray:
    """Return which rows are trained on: not those more probably wrong than right, but at least half of every class."""
    keep = np.ones(codes.size, dtype=bool)
    for code in range(int(codes.max()) + 1):
        mine = codes == code
        keep[mine] = wrong[mine] <= max(0.5, float(np.median(wrong[mine])))
    return keep


def _margins(scores: Array, codes: NDArray) -> Array:
    """Return min_j (f_y - f_j)."""
    rows = np.arange(codes.size)
    others = scores.copy()
    others[rows, codes] = -np.inf
    return scores[rows, codes] - others.max(axis=1)


def _facts(
    error: float, chance: float, noise: Noise, codes: NDArray, classes: NDArray, model: str, pd: Any, quality: Any
) -> dict[str, Any]:
    nowhere = quality is None and near_chance(error, chance, codes.size)
    matrix = noise.matrix * np.nan if nowhere else noise.matrix
    true, given = pd.Index(classes, name="true"), pd.Index(classes, name="given")
    return {
        "share": float("nan") if nowhere else noise.share,
        "share_interval": (float("nan"), float("nan")) if nowhere else noise.interval,
        "noise_matrix": pd.DataFrame(matrix, index=true, columns=given).sort_index().sort_index(axis=1),
        "p_clean": float("nan") if nowhere else noise.clean,
        "held_out_error": error,
        "chance_error": chance,
        "model": model,
        **({} if quality is None else {"annotators": quality}),
    }
