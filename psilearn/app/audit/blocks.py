"""The audit of labels of data in blocks: held-out scores by folds, and a table of the contradicted rows alone.

Every row belongs to a fold; a fit on the other folds gives it weight zero. Of the size of the sample are kept: labels,
folds, and held-out scores in float32. The noise model is fitted to some rows and read off for the others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from ...core.chunks.blocks import Block, RowBlocks
from ...core.chunks.opening import is_dask, rows_in_blocks
from ...core.chunks.sums import Form
from ...estimators.base import MarginEstimator
from ...estimators.chunked import chunked_problem, sampled_rows
from ...estimators.margin import SVMClassifier
from . import machines
from .noise import Array, Noise, fit_noise, fit_quality, log_odds, reader_of

Progress = Callable[[str, float], None]


@dataclass(frozen=True)
class BlockSettings:
    """How data in blocks are audited.

    Attributes
    ----------
    rounds : int
        How often the fits are made; all but the first leave out the labels that the one before made doubtful.
    noise_rows : int
        Rows that the noise model is fitted to.
    most : int
        Rows of the table at most.
    """

    rounds: int = 2
    noise_rows: int = 20_000
    most: int = 100_000


SETTINGS = BlockSettings()


@dataclass(frozen=True)
class Audited:
    """What was found: contradicted rows, the most suspicious first, and the noise model of some rows.

    Attributes
    ----------
    classes : ndarray
        The labels, sorted.
    rows, given, suggested : ndarray of intp
        Places of the contradicted rows, and codes of their labels and of the likelier ones.
    wrong, margin, agreement : ndarray
        As the columns of the table.
    noise, codes : Noise and ndarray
        The noise model, and the labels of the rows that it was fitted to.
    error : float
        Share of all rows that held-out fits contradict.
    chance : float
        That of always guessing the largest class.
    model : str
        Who judged.
    """

    classes: NDArray[Any]
    rows: NDArray[np.intp]
    given: NDArray[np.intp]
    suggested: NDArray[np.intp]
    wrong: Array
    margin: Array
    agreement: Array
    noise: Noise
    codes: NDArray[np.intp]
    error: float
    chance: float
    model: str


def audit_blocks(X: Any, y: Any, estimator: Any, folds: int, seed: int, progress: Progress) -> Audited:
    """Audit labels of data in blocks.

    Parameters
    ----------
    X, y : data in blocks, and their labels
        As for ``fit`` of a classifier of margins.
    estimator : MarginEstimator or None
        Who judges; None chooses between linear functions and a Gaussian kernel on landmarks by some rows.
    folds, seed : int
        Number of folds, and seed of the division.
    progress : callable
        Called with a text and the share done.
    """
    if estimator is not None and not isinstance(estimator, MarginEstimator):
        raise ValueError(
            f"{type(estimator).__name__} needs its data in memory; for data in blocks give a classifier of margins "
            "such as SVMClassifier, or audit an array of a part of the rows."
        )
    X, y = (v.to_dask_array(lengths=True) if hasattr(v, "to_dask_array") else v for v in (X, y))
    problem, seen = chunked_problem(SVMClassifier(), X, y, None)
    classes = problem.form.classes
    codes = np.concatenate(problem.workers.map(_codes, problem.form))
    counts = np.bincount(codes, minlength=classes.size)
    if counts.min() < 2:
        raise ValueError("Every class needs at least two samples.")
    name = type(estimator).__name__
    if estimator is None:
        some, labels, _ = sampled_rows(seen)
        chosen = _chosen(some, np.searchsorted(classes, labels), min(folds, int(counts.min())), seed)
        estimator, name = _classifier(chosen, codes.size, X.shape[1] if hasattr(X, "shape") else X.width), str(chosen)
        X = _standardised(X, seen.mean, np.sqrt(seen.spread / seen.n))
    fold_of = _folds(codes, min(folds, int(counts.min())), seed)
    keep, scores = np.ones(codes.size, dtype=bool), []
    for at in range(SETTINGS.rounds):
        scores.append(_held_out(estimator, X, y, fold_of, keep, classes.size, at, progress))
        keep = ~_doubted(scores[-1], codes, seed)
    held = np.zeros_like(scores[0])
    for one in scores:
        held += one / (len(scores) * np.abs(one).mean())
    against = np.flatnonzero(held.argmax(axis=1) != codes)
    few = _few(codes.size, seed)
    noise = fit_noise(held[few].astype(np.float64), codes[few])
    wrong = reader_of(held[few].astype(np.float64), codes[few])(held[against], codes[against])
    order = np.lexsort((against, -wrong))[: SETTINGS.most]
    rows = against[order]
    scaled = held[rows].astype(np.float64) * (np.abs(noise.scores).mean() / np.abs(held).mean())
    agreement = np.mean([one[rows].argmax(axis=1) == codes[rows] for one in scores], axis=0)
    return Audited(
        classes, rows, codes[rows].astype(np.intp), held[rows].argmax(axis=1), wrong[order],
        log_odds(scaled, codes[rows].astype(np.intp)), agreement, noise, codes[few].astype(np.intp),
        float(np.mean(scores[0].argmax(axis=1) != codes)), 1.0 - float(counts.max()) / codes.size, name,
    )  # fmt: skip


def _codes(index: int, block: Block, form: Form) -> NDArray[np.intp]:
    assert block.y is not None
    return form.codes(block.y).astype(np.min_scalar_type(form.classes.size))


def _folds(codes: NDArray, folds: int, seed: int) -> NDArray[np.uint8]:
    """Return the fold of every row; every class is spread evenly."""
    rng = np.random.default_rng(seed)
    found = np.empty(codes.size, dtype=np.uint8)
    for code in range(int(codes.max()) + 1):
        mine = np.flatnonzero(codes == code)
        found[rng.permutation(mine)] = np.arange(mine.size) % folds
    return found


def _few(n: int, seed: int) -> NDArray[np.intp]:
    rng = np.random.default_rng(seed)
    return np.arange(n) if n <= SETTINGS.noise_rows else np.sort(rng.choice(n, SETTINGS.noise_rows, replace=False))


def _held_out(
    estimator: Any, X: Any, y: Any, fold_of: NDArray, keep: NDArray, k: int, at: int, progress: Progress
) -> NDArray[np.float32]:
    """Return scores (n, k) of every row by a fit on the kept rows of the other folds."""
    folds = int(fold_of.max()) + 1
    scores = np.empty((fold_of.size, k), dtype=np.float32)
    for fold in range(folds):
        mine = fold_of == fold
        model = clone(estimator).fit(X, y, sample_weight=(~mine & keep).astype(np.float32))
        F = np.asarray(model.decision_function(X), dtype=np.float32)[mine]
        scores[mine] = np.c_[-F, F] / 2 if k == 2 else F
        progress("held-out fits", (at * folds + fold + 1) / (SETTINGS.rounds * folds))
    return scores


def _doubted(scores: NDArray, codes: NDArray, seed: int) -> NDArray[np.bool_]:
    """Return which labels are more probably wrong than right, the less doubtful ones of a class if it is most of it."""
    few = _few(codes.size, seed)
    against = np.flatnonzero(scores.argmax(axis=1) != codes)
    wrong = reader_of(scores[few].astype(np.float64), codes[few])(scores[against], codes[against])
    doubted = np.zeros(codes.size, dtype=bool)
    for code in range(int(codes.max()) + 1):
        mine = codes[against] == code
        most = int(np.count_nonzero(codes == code)) // 2
        rows, belief = against[mine], wrong[mine]
        worst = np.argsort(-belief, kind="stable")[:most]
        doubted[rows[worst[belief[worst] > 0.5]]] = True
    return doubted


def _chosen(X: Array, codes: NDArray, folds: int, seed: int) -> machines.Machine:
    """Return the machine that explains held-out labels of some rows best: linear, or a Gaussian kernel."""
    rows = machines.competition_rows(codes, None, seed)
    views, few, keep = {"values": machines.standardised(X[rows])}, codes[rows], np.ones(rows.size, dtype=bool)
    parts = machines.divisions(few, None, max(2, min(folds, int(np.bincount(few).min()))), seed)
    use = machines.SETTINGS
    panel = [machines.Machine("values", "linear", C) for C in use.linear_Cs]
    panel += [machines.Machine("values", "rbf", C, gamma) for gamma in use.gammas for C in use.Cs]
    return max(panel, key=lambda machine: fit_quality(machine.held_out(views, few, parts, keep), few))


def _classifier(machine: machines.Machine, n: int, p: int) -> SVMClassifier:
    """Return the classifier for all rows: as much loss against penalty as on the rows that it was chosen on."""
    C = machine.C * min(1.0, machines.SETTINGS.rows / n)
    if machine.kernel == "linear":
        return SVMClassifier(C=C, tol=machines.SETTINGS.tol)
    landmarks = min(machines.SETTINGS.landmarks, n // 4)
    return SVMClassifier(
        C=C, kernel="rbf", gamma=machine.gamma / p, n_components=landmarks, tol=machines.SETTINGS.tol
    )  # fmt: skip


def _standardised(X: Any, mean: Array, spread: Array) -> Any:
    """Return the features less their mean, in units of their deviation, made when they are read."""
    scale = np.where(spread > 1e-12 * np.maximum(1.0, np.abs(mean)), spread, np.inf)

    def standard(rows: Any) -> NDArray[np.float32]:
        dense = rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows)
        return ((dense - mean) / scale).astype(np.float32)

    if is_dask(X):
        return X.rechunk({1: -1}).map_blocks(standard, dtype=np.float32)
    blocks = rows_in_blocks(X)
    return RowBlocks([lambda i=i: standard(blocks.load(i)) for i in range(blocks.n_blocks)], blocks.width)
