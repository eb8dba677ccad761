"""Split, encode, tune, fit and test every method within one time budget."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import _safe_indexing

from ...engines.highs import ProgramError
from ..encoding import TableEncoder
from ..tables import Understanding
from .abstain import abstentions
from .methods import METHODS, Context, Method
from .refusals import given_up
from .splits import folds, holdout
from .tuning import Tuning, thin, tune
from .warmup import warm_up

#: Rows of the fit that tells how long a method without a time limit will take.
PILOT_ROWS = 2000


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

    def training(self, method: Method) -> Any:
        """Return the training rows as the method reads them."""
        return self.frame.iloc[self.train] if method.on_table else self.X_train

    def testing(self, method: Method) -> Any:
        """Return the test rows as the method reads them."""
        return self.frame.iloc[self.test] if method.on_table else self.X_test


@dataclass
class Outcome:
    """What one method did.

    ``wrong`` marks the misclassified test rows, pooled over the splits, ``abstained`` those on which the method would
    not answer; the model, suspects and tuning are those of the first split.
    """

    method: Method
    model: Any
    tuning: Tuning
    seconds: float
    wrong: NDArray[np.bool_]
    suspects: NDArray[np.intp] | None
    n_train: int
    notes: list[str] = field(default_factory=list)
    abstained: NDArray[np.bool_] | None = None

    @property
    def error(self) -> float:
        """Share of the test rows that are misclassified."""
        return float(self.wrong.mean())

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95% interval of the error."""
        return wilson(int(self.wrong.sum()), self.wrong.size)


@dataclass
class Comparison:
    """All outcomes, the methods that were not run and why, and the splits they share."""

    data: Understanding
    settings: Settings
    splits: list[Split]
    outcomes: list[Outcome]
    not_run: list[tuple[Method, str]]
    seconds: float

    @property
    def best(self) -> Outcome:
        """The outcome with the smallest test error; the earlier one of equals."""
        return min(self.outcomes, key=lambda o: o.error)

    def outcome(self, key: str) -> Outcome | None:
        """Return the outcome of a method, None if it was not run."""
        return next((o for o in self.outcomes if o.method.key == key), None)


def abstention(wrong: NDArray[np.bool_], abstains: NDArray[np.bool_], d: float) -> str:
    """Say what a method that may abstain would have answered, and how well."""
    answered = ~abstains
    share = 100 * answered.mean()
    error = 100 * wrong[answered].mean() if answered.any() else 0.0
    return f"with abstentions at d = {d:g} it answers {share:.1f}% of the test rows, {error:.1f}% of the answers wrong"


def wilson(hits: int, n: int, z: float = 1.959964) -> tuple[float, float]:
    """Return Wilson's score interval of a share."""
    centre = (hits + z * z / 2) / (n + z * z)
    half = z / (n + z * z) * math.sqrt(hits * (n - hits) / n + z * z / 4)
    return max(0.0, centre - half), min(1.0, centre + half)


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
    deadline = start + settings.budget
    progress("splitting and encoding", 0.0)
    splits = make_splits(data, settings)
    outcomes: list[Outcome] = []
    not_run: list[tuple[Method, str]] = []
    # Cheap methods first: one that overruns its share must not starve them.
    wanted.sort(key=lambda m: m.share)
    for at, method in enumerate(wanted):
        left = deadline - time.perf_counter()
        if left <= 0:
            not_run.append((method, "no time was left."))
            continue
        share = left * method.share / sum(m.share for m in wanted[at:])
        progress(method.label, at / len(wanted))
        outcome = run_method(method, splits, settings, share)
        if isinstance(outcome, Outcome):
            outcomes.append(outcome)
        else:
            not_run.append((method, outcome))
    progress("done", 1.0)
    outcomes.sort(key=lambda o: methods.index(o.method))
    return Comparison(data, settings, splits, outcomes, not_run, time.perf_counter() - start)


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


def run_method(method: Method, splits: list[Split], settings: Settings, share: float) -> Outcome | str:
    """Tune, fit and test one method on all splits within ``share`` seconds, or say why it could not be done."""
    wrong, abstained = [], []
    first: Outcome | None = None
    start = time.perf_counter()
    with warnings.catch_warnings():
        # A limit that was reached is part of the outcome, which the table shows; a warning would say it twice.
        warnings.simplefilter("ignore", ConvergenceWarning)
        for split in splits:
            try:
                outcome = _run_split(method, split, settings, share / len(splits))
            except (ValueError, ProgramError) as error:
                return str(error)
            wrong.append(outcome.wrong)
            if outcome.abstained is not None:
                abstained.append(outcome.abstained)
            first = first or outcome
    assert first is not None
    first.wrong = np.concatenate(wrong)
    first.abstained = np.concatenate(abstained) if abstained else None
    first.seconds = time.perf_counter() - start
    return first


def _affordable(method: Method, split: Split, settings: Settings, share: float) -> int:
    """Return how many rows a method that takes no time limit can be trained on, by the time of a small fit."""
    n = min(len(split.y_train), method.max_rows)
    if method.is_ours or n <= 2 * PILOT_ROWS:
        return n
    rows = thin(split.y_train, PILOT_ROWS, settings.seed)[0]
    y = split.y_train[rows]
    context = Context(share, settings.seed, np.unique(y).size, len(rows), settings.d)
    start = time.perf_counter()
    method.build(method.grid[-1], context).fit(_safe_indexing(split.training(method), rows), y)
    seconds = time.perf_counter() - start
    fits = 1 + (settings.tuning_folds if len(method.grid) > 1 else 0)
    return max(PILOT_ROWS, int(PILOT_ROWS * share / max(fits * seconds, 1e-9)))


def _run_split(method: Method, split: Split, settings: Settings, share: float) -> Outcome:
    start = time.perf_counter()
    most = min(method.max_rows, _affordable(method, split, settings, share))
    rows, notes = thin(split.y_train, most, settings.seed)
    X, y = _safe_indexing(split.training(method), rows), split.y_train[rows]
    context = Context(share, settings.seed, np.unique(y).size, len(rows), settings.d)
    groups = None if split.groups is None else split.groups[rows]
    tuning = tune(method, X, y, settings.tuning_folds, context, 0.5 * share, groups)
    if tuning.skipped:
        notes.append(f"time allowed {len(tuning.values)} of {len(method.grid)} values of {method.parameter}")
    limit = max(0.5, share - (time.perf_counter() - start))
    model = method.build(tuning.best, replace(context, limit=limit)).fit(X, y)
    testing = split.testing(method)
    wrong = model.predict(testing) != split.y_test
    suspects = rows[model.suspects_] if method.is_robust else None
    if suspects is not None:
        notes += given_up(split.y_train, suspects)
    if hasattr(model, "abstains"):
        notes.append(abstention(wrong, model.abstains(testing), settings.d))
    outcome = Outcome(method, model, tuning, 0.0, wrong, suspects, len(rows), notes)
    if settings.everyone_abstains:
        limit = max(0.5, share - (time.perf_counter() - start))
        fresh = (method.tuned_by or method.build)(tuning.best, replace(context, limit=limit))
        outcome.abstained = abstentions(model, fresh, X, y, testing, settings.d, settings.seed)
    outcome.seconds = time.perf_counter() - start
    return outcome
