"""Split, encode, tune, fit and test every method within one time budget."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import _safe_indexing

from ...engines.highs import ProgramError
from ...evaluation.rates import Paired, Rate, paired, rate
from ..encoding import TableEncoder
from ..tables import Understanding
from .abstain import abstentions
from .costs import Plan, plan
from .labels import audit_seconds, audited, is_audited
from .methods import METHODS, Context, Method
from .refusals import given_up
from .splits import folds, holdout
from .tuning import Tuning, thin, tuned_fit
from .warmup import warm_up


@dataclass(frozen=True)
class Settings:
    """What a comparison needs to be repeated.

    Attributes
    ----------
    budget : float
        Seconds for everything but compiling on first use.
    seed : int
        Of the split, the flips, the folds and the methods.
    test_share : float
        Share of the rows held out for the test, when ``outer_folds`` is 0.
    outer_folds : int
        0 for one split, else the number of test folds of a cross-validation.
    tuning_folds : int
        Folds for tuning, inside the training rows.
    flip : float
        Share of the training labels changed to another class, to see what wrong labels do.
    methods : tuple of str
        Keys of the methods to run; empty for all.
    d : float
        Price of an abstention, for the methods that may abstain.
    everyone_abstains : bool
        Whether every method may, by a threshold on its scores or probabilities if it has no rule of its own.
    """

    budget: float = 60.0
    seed: int = 0
    test_share: float = 0.3
    outer_folds: int = 0
    tuning_folds: int = 3
    flip: float = 0.0
    methods: tuple[str, ...] = ()
    d: float = 0.2
    everyone_abstains: bool = False


@dataclass(frozen=True)
class Split:
    """One division of the rows: positions, encoded matrices, and the training labels after flipping."""

    train: NDArray[np.intp]
    test: NDArray[np.intp]
    X_train: NDArray[np.float64]
    X_test: NDArray[np.float64]
    y_train: NDArray
    y_test: NDArray
    flipped: NDArray[np.intp]
    encoder: TableEncoder
    frame: pd.DataFrame
    groups: NDArray[np.intp] | None = None

    @property
    def majority(self) -> str:
        """The commonest training label."""
        labels, counts = np.unique(self.y_train, return_counts=True)
        return str(labels[counts.argmax()])

    def training(self, method: Method) -> Any:
        """Return the training rows as the method reads them."""
        return self.frame.iloc[self.train] if method.on_table else self.X_train

    def testing(self, method: Method) -> Any:
        """Return the test rows as the method reads them."""
        return self.frame.iloc[self.test] if method.on_table else self.X_test


@dataclass
class Outcome:
    """What one method did.

    Attributes
    ----------
    method, model, tuning : Method, classifier, Tuning
        Of the first split.
    wrong, predicted : ndarray
        Misclassified test rows, and their predicted labels, pooled over the splits.
    scores : ndarray or None
        How far the test rows lean towards the second class, pooled; two classes only.
    probabilities : ndarray or None
        Probability of the second class, where the method knows it.
    suspects : ndarray or None
        Training rows the first fit refused to believe.
    n_train, seconds, notes : int, float, list of str
        Rows trained on, time taken, what a reader should know.
    abstained : ndarray or None
        Test rows on which the method would not answer.
    """

    method: Method
    model: Any
    tuning: Tuning
    seconds: float
    wrong: NDArray[np.bool_]
    predicted: NDArray
    suspects: NDArray[np.intp] | None
    n_train: int
    notes: list[str] = field(default_factory=list)
    scores: NDArray[np.float64] | None = None
    probabilities: NDArray[np.float64] | None = None
    abstained: NDArray[np.bool_] | None = None

    @property
    def error(self) -> float:
        """Share of the test rows that are misclassified."""
        return float(self.wrong.mean())

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95% interval of the error."""
        return rate(self.wrong)[1:]

    @property
    def is_constant(self) -> bool:
        """Whether every test row got the same answer."""
        return np.unique(self.predicted).size == 1


@dataclass
class Comparison:
    """All outcomes, the methods that were not run and why, the splits they share, and the audit of the labels."""

    data: Understanding
    settings: Settings
    splits: list[Split]
    outcomes: list[Outcome]
    not_run: list[tuple[Method, str]]
    seconds: float
    issues: pd.DataFrame | None = None

    @property
    def best(self) -> Outcome:
        """The outcome with the smallest test error; the earlier one of equals."""
        return min(self.outcomes, key=lambda o: o.error)

    @property
    def y_test(self) -> NDArray:
        """Labels of the test rows, pooled over the splits."""
        return np.concatenate([split.y_test for split in self.splits])

    @property
    def majority_wrong(self) -> NDArray[np.bool_]:
        """Test rows that are not of the training rows' commonest class."""
        return np.concatenate([split.y_test != split.majority for split in self.splits])

    @property
    def chance(self) -> Rate:
        """Share of errors of always answering the commonest class."""
        return rate(self.majority_wrong)

    def against_majority(self, outcome: Outcome) -> Paired:
        """Compare a method with always answering the commonest class."""
        return paired(outcome.wrong, self.majority_wrong)

    def is_useful(self, outcome: Outcome) -> bool:
        """Whether a method makes clearly fewer errors than always answering the commonest class."""
        versus = self.against_majority(outcome)
        return versus.gained > versus.lost and versus.is_clear

    @property
    def recommended(self) -> Outcome | None:
        """Our method with the smallest error in the tuning, before any test row was seen; None if none was tuned."""
        ours = [o for o in self.outcomes if o.method.is_ours and o.tuning.error is not None]
        return min(ours, key=lambda o: o.tuning.error or 0.0, default=None)

    def outcome(self, key: str) -> Outcome | None:
        """Return the outcome of a method, None if it was not run."""
        return next((o for o in self.outcomes if o.method.key == key), None)


def abstention(wrong: NDArray[np.bool_], abstains: NDArray[np.bool_], d: float) -> str:
    """Say what a method that may abstain would have answered, and how well."""
    answered = ~abstains
    share = 100 * answered.mean()
    error = 100 * wrong[answered].mean() if answered.any() else 0.0
    return f"with abstentions at d = {d:g} it answers {share:.1f}% of the test rows, {error:.1f}% of the answers wrong"


def compare(
    data: Understanding,
    settings: Settings | None = None,
    progress: Callable[[str, float], None] = lambda text, done: None,
    methods: Sequence[Method] = METHODS,
) -> Comparison:
    """Run every method on the same splits.

    Parameters
    ----------
    data : Understanding
        The table, from :func:`psilearn.app.tables.understand`.
    settings : Settings
        Budget, seed and the rest.
    progress : callable
        Called with a text and the share done.
    methods : sequence of Method
        The registry.
    """
    settings = settings or Settings()
    wanted = [m for m in methods if not settings.methods or m.key in settings.methods]
    warm_up(wanted, len(data.class_counts), progress)
    start = time.perf_counter()
    progress("splitting and encoding", 0.0)
    splits = make_splits(data, settings)
    issues = _issues(data, splits[0], settings, progress)
    outcomes: list[Outcome] = []
    not_run: list[tuple[Method, str]] = []
    plans = _plans(wanted, splits, settings)
    # Cheap methods first: one that overruns its share must not starve them.
    wanted.sort(key=lambda m: plans[m.key].seconds)
    for at, method in enumerate(wanted):
        left = settings.budget - (time.perf_counter() - start)
        if left <= 0:
            not_run.append((method, "no time was left."))
            continue
        progress(method.label, at / len(wanted))
        outcome = run_method(method, splits, settings, plans[method.key], left)
        if isinstance(outcome, Outcome):
            outcomes.append(outcome)
        else:
            not_run.append((method, outcome))
    progress("done", 1.0)
    outcomes.sort(key=lambda o: methods.index(o.method))
    return Comparison(data, settings, splits, outcomes, not_run, time.perf_counter() - start, issues)


def _is_audited(rows: int, classes: int, settings: Settings) -> bool:
    """Whether the labels are audited too: with all methods, and if there is time for it."""
    return not settings.methods and is_audited(rows, classes, settings.budget)


def _issues(
    data: Understanding, split: Split, settings: Settings, progress: Callable[[str, float], None]
) -> pd.DataFrame | None:
    y = data.labels.to_numpy(dtype=str).copy()
    if not _is_audited(len(y), np.unique(y).size, settings):
        return None
    y[split.train] = split.y_train
    return audited(data, y, split.train[split.flipped], settings.seed, progress)


def _plans(methods: Sequence[Method], splits: Sequence[Split], settings: Settings) -> dict[str, Plan]:
    rows, features = splits[0].X_train.shape
    classes = np.unique(splits[0].y_train).size
    total = len(splits[0].train) + len(splits[0].test)
    seconds = settings.budget - (audit_seconds(total, classes) if _is_audited(total, classes, settings) else 0.0)
    found = plan([m.cost for m in methods], rows, features, classes, seconds / len(splits))
    return {m.key: p for m, p in zip(methods, found)}


def make_splits(data: Understanding, settings: Settings) -> list[Split]:
    """Divide, encode on the training rows, and flip training labels if asked."""
    y = data.labels.to_numpy(dtype=str)
    if settings.outer_folds:
        parts = folds(y, data.groups, settings.outer_folds, settings.seed)
    else:
        parts = [holdout(y, data.groups, settings.test_share, settings.seed)]
    return [_split(data, y, train, test, settings) for train, test in parts]


def _split(
    data: Understanding, y: NDArray, train: NDArray[np.intp], test: NDArray[np.intp], settings: Settings
) -> Split:
    frame, groups = data.frame, None if data.groups is None else data.groups[train]
    encoder = TableEncoder(numbers=data.numbers).fit(frame.iloc[train])
    y_train, flipped = flip_labels(y[train], settings.flip, settings.seed)
    return Split(
        train, test, encoder.transform(frame.iloc[train]), encoder.transform(frame.iloc[test]),
        y_train, y[test], flipped, encoder, frame, groups,
    )  # fmt: skip


def flip_labels(y: NDArray, share: float, seed: int) -> tuple[NDArray, NDArray[np.intp]]:
    """Return labels of which the share was changed to another class, and the changed positions, sorted."""
    rng = np.random.default_rng(seed)
    classes, codes = np.unique(y, return_inverse=True)
    rows = np.sort(rng.choice(len(y), size=round(share * len(y)), replace=False))
    codes = codes.copy()
    codes[rows] = (codes[rows] + rng.integers(1, len(classes), size=len(rows))) % len(classes)
    return classes[codes], rows


def run_method(method: Method, splits: list[Split], settings: Settings, planned: Plan, left: float) -> Outcome | str:
    """Tune, fit and test one method on all splits, or say why it could not be done."""
    parts: list[Outcome] = []
    start = time.perf_counter()
    with warnings.catch_warnings():
        # A limit that was reached is part of the outcome, which the table shows; a warning would say it twice.
        warnings.simplefilter("ignore", ConvergenceWarning)
        # So is a model that is constant.
        warnings.filterwarnings("ignore", message=".*constant")
        for split in splits:
            try:
                parts.append(_run_split(method, split, settings, planned, left / len(splits)))
            except (ValueError, ProgramError, MemoryError) as error:
                return str(error)
    first = parts[0]
    first.wrong = np.concatenate([part.wrong for part in parts])
    first.predicted = np.concatenate([part.predicted for part in parts])
    for name in ("scores", "probabilities", "abstained"):
        pieces = [getattr(part, name) for part in parts]
        setattr(first, name, None if any(piece is None for piece in pieces) else np.concatenate(pieces))
    first.seconds = time.perf_counter() - start
    return first


def _run_split(method: Method, split: Split, settings: Settings, planned: Plan, left: float) -> Outcome:
    rows, notes = thin(split.y_train, planned.fit_rows, settings.seed)
    X, y = _safe_indexing(split.training(method), rows), split.y_train[rows]
    budget = settings.budget / max(1, settings.outer_folds)
    context = Context(left, settings.seed, np.unique(y).size, len(rows), split.X_train.shape[1], settings.d, budget)
    groups = None if split.groups is None else split.groups[rows]
    model, tuning, more = tuned_fit(method, X, y, groups, context, planned, settings.tuning_folds)
    testing = split.testing(method)
    predicted = model.predict(testing)
    wrong = predicted != split.y_test
    outcome = Outcome(method, model, tuning, 0.0, wrong, predicted, None, len(rows), notes + more)
    if method.is_robust:
        outcome.suspects = rows[model.suspects_]
        outcome.notes += given_up(split.y_train, outcome.suspects)
    if context.n_classes == 2:
        outcome.scores, outcome.probabilities = _leanings(model, testing)
    if hasattr(model, "abstains"):
        outcome.notes.append(abstention(wrong, model.abstains(testing), settings.d))
    if settings.everyone_abstains:
        fresh = (method.tuned_by or method.build)(context).set_params(**tuning.best)
        outcome.abstained = abstentions(model, fresh, X, y, testing, settings.d, settings.seed)
    return outcome


def _leanings(model: Any, X: Any) -> tuple[NDArray[np.float64] | None, NDArray[np.float64] | None]:
    """Return how far rows lean towards the second class, and its probability, as far as the model knows them."""
    if hasattr(model, "predict_proba"):
        p = np.asarray(model.predict_proba(X))[:, 1]
        return p, p
    return (model.decision_function(X) if hasattr(model, "decision_function") else None), None
