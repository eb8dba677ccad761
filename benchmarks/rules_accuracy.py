"""Test error of the rule learners against boosted trees and other rule learners.

* **Ten tables**: five times twofold cross-validation of at most 600 rows, clean and with a fifth of the training labels
  flipped; the figure is the mean over the tables, whose own figures are in the note.
* **Ten folds** of each of the five data sets of Goldberg and Eckstein (Tightened L0-relaxation penalties for
  classification, 2009).

* **SLIPPER as printed**: ours on ten folds against the figures of that paper and of Cohen and Singer (1999).

All are at their defaults, or as the row says, on the same folds. Both figures are test errors in percent; the note has
rules, conditions and CPU seconds per fit of both, ours first. Rivals beyond scikit-learn are compared where they are
installed: imodels, wittgenstein, aix360 with cvxpy, interpret-core. A rival that fails on a table is told, and has no
mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedKFold

from benchmarks.runner.data import additive, table
from benchmarks.runner.rows import LeftOutError, Plan, Row, timed
from benchmarks.runner.rule_rivals import RIVALS, ada, conditions_of, is_here, missing, size_of
from psilearn.estimators.rules import L0BoostClassifier, LPBoostClassifier, SlipperClassifier

TABLES = (
    "pima", "banknote", "german_credit", "bcw", "clvheart", "huheart", "sonar", "vote", "phoneme", "spambase",
)  # fmt: skip
GOLDBERG = ("bcw", "vote", "clvheart", "huheart", "sonar")
#: Accuracies of SLIPPER as Goldberg and Eckstein print them: their own runs, and those of Cohen and Singer (1999).
SLIPPER = {
    "bcw": (0.959, 0.958), "vote": (0.952, np.nan), "clvheart": (0.802, 0.752), "huheart": (0.802, 0.806),
    "sonar": (0.674, 0.745),
}  # fmt: skip
Models = dict[str, Callable[[], Any]]


@dataclass(frozen=True)
class Study:
    """Tables, how they are divided, what is fitted on them."""

    name: str
    tables: tuple[str, ...]
    folds: Any
    ours: Models
    rivals: Models
    most: int | None = None
    flips: float = 0.0


@dataclass(frozen=True)
class Score:
    """One learner on one table: test error in percent, rules, conditions, CPU seconds per fit; or why there is none."""

    error: float = np.nan
    deviation: float = np.nan
    rules: float = np.nan
    conditions: float = np.nan
    seconds: float = np.nan
    failure: str = ""


def learners(limit: float) -> Models:
    """Every row of ours on the ten tables by its name."""
    return {
        "lp-1": lambda: LPBoostClassifier(nu="auto", time_limit=limit),
        "lp-2": lambda: LPBoostClassifier(nu="auto", max_order=2, time_limit=limit),
        "lp-auto": lambda: LPBoostClassifier(nu="auto", max_order="auto", time_limit=limit),
        "lp-bare": lambda: LPBoostClassifier(time_limit=limit),
        "lp-short": lambda: LPBoostClassifier(nu="auto", max_order=2, max_rules=8, time_limit=limit),
        "lp-card": lambda: LPBoostClassifier(nu="auto", max_rules=8, points=10, time_limit=limit),
        "l0": lambda: L0BoostClassifier(time_limit=limit),
        "l0-cv": lambda: L0BoostClassifier(rho="cv", time_limit=limit),
        "slipper": SlipperClassifier,
    }


def defaults() -> Models:
    """Every row of ours on ten folds by its name."""
    return {
        "l0": L0BoostClassifier,
        "l0-cv": lambda: L0BoostClassifier(rho="cv"),
        "lp-1": lambda: LPBoostClassifier(nu="auto"),
        "lp-auto": lambda: LPBoostClassifier(nu="auto", max_order="auto"),
        "slipper": SlipperClassifier,
    }


def studies(plan: Plan) -> Iterator[Study]:
    """What is measured."""
    repeats = 1 if plan.quick else 5
    ours = learners(plan.seconds(60.0, 10.0))
    halves = RepeatedStratifiedKFold(n_splits=2, n_repeats=repeats, random_state=0)
    tens = StratifiedKFold(10, shuffle=True, random_state=0)
    stumps = {"ada-50": lambda: ada(50)} | {name: RIVALS[name] for name in ("boosted", "rulefit")}
    if plan.quick:
        few = {name: ours[name] for name in ("lp-1", "lp-auto", "l0", "slipper")}
        for flips in (0.0, 0.2):
            yield Study(f"two tables, {flips:.0%} flips", ("clvheart", "vote"), halves, few, RIVALS, 300, flips)
        few = {name: make for name, make in defaults().items() if name in ("l0", "slipper")}
        yield Study("clvheart, ten folds", ("clvheart",), tens, few, stumps)
        return
    for flips in (0.0, 0.2):
        yield Study(f"ten tables, {flips:.0%} flips", TABLES, halves, ours, RIVALS, 600, flips)
    for name in GOLDBERG:
        yield Study(f"{name}, ten folds", (name,), tens, defaults(), stumps)


def load(name: str, most: int | None) -> tuple[Any, NDArray[np.intp]]:
    """A table and its labels as numbers, sampled down to ``most`` rows."""
    X, y = table(name)
    codes = np.unique(y, return_inverse=True)[1]
    if most is None:
        return X, codes
    kept = np.random.default_rng(0).permutation(len(y))[:most]
    return X.iloc[kept].reset_index(drop=True), codes[kept]


def cross_validate(make: Callable[[], Any], study: Study, name: str) -> Score:
    X, y = load(name, study.most)
    errors, sizes, lengths, spent = [], [], [], []
    for train, test in study.folds.split(X, y):
        given = y[train].copy()
        flipped = np.random.default_rng(1).random(given.size) < study.flips
        given[flipped] = 1 - given[flipped]
        seconds, model = timed(lambda: make().fit(X.iloc[train], given))  # noqa: B023
        errors.append(100.0 * (1.0 - model.score(X.iloc[test], y[test])))
        sizes.append(size_of(model))
        lengths.append(conditions_of(model))
        spent.append(seconds)
    deviation = np.std(errors, ddof=1) / np.sqrt(len(errors))
    means = (float(np.mean(values)) for values in (sizes, lengths, spent))
    return Score(float(np.mean(errors)), float(deviation), *means)


def score_of_rival(make: Callable[[], Any], study: Study, name: str) -> Score:
    try:
        return cross_validate(make, study, name)
    except Exception as error:  # the row tells it, and the other tables go on
        return Score(failure=f"theirs failed on {name}: {type(error).__name__}: {str(error)[:80]}")


def study_rows(plan: Plan, study: Study) -> Iterator[Row]:
    """A row for each of ours and each rival; what a learner reaches is computed once."""
    known: dict[str, list[Score]] = {}

    def scores(learner: str) -> list[Score]:
        if learner not in known:
            is_ours = learner in study.ours
            make, score = (study.ours[learner], cross_validate) if is_ours else (study.rivals[learner], score_of_rival)
            if is_ours:
                make().fit(*additive(100, 15))  # compile
            known[learner] = [score(make, study, name) for name in study.tables]
        return known[learner]

    for ours in study.ours:
        for rival in filter(is_here, study.rivals):
            if plan.wants(name := f"{study.name}, {ours}, {rival}"):
                yield compared(name, study, scores(ours), scores(rival))


def published_rows(plan: Plan) -> Iterator[Row]:
    """Our SLIPPER against the printed figures of others, whose folds and cut points are not known."""
    tens = StratifiedKFold(10, shuffle=True, random_state=0)
    for name, printed in SLIPPER.items():
        if plan.wants(row := f"{name}, SLIPPER as printed"):
            study = Study(name, (name,), tens, {}, {})
            ours = cross_validate(SlipperClassifier, study, name)
            theirs = [100.0 * (1.0 - accuracy) for accuracy in printed]
            note = f"se {ours.deviation:.1f}; {figures([ours])}; Cohen and Singer {theirs[1]:.1f}"
            yield Row(row, ours.error, theirs[0], note=note, unit="%")


def compared(name: str, study: Study, ours: list[Score], theirs: list[Score]) -> Row:
    """Mean errors of two learners over the tables of a study."""
    mean, rival = (float(np.mean([score.error for score in scores])) for scores in (ours, theirs))
    failures = [score.failure for score in theirs if score.failure]
    note = "; ".join([figures(ours), figures(theirs), *single_tables(study, ours, theirs), *failures])
    return Row(name, mean, rival, {"ahead": mean < rival}, note=note, unit="%")


def figures(scores: list[Score]) -> str:
    """Means of rules, of their conditions and of seconds."""
    rules, conditions, seconds = (
        np.mean([getattr(score, what) for score in scores]) for what in ("rules", "conditions", "seconds")
    )
    sizes = [f"{size:.0f} {what}" for size, what in ((rules, "rules"), (conditions, "conditions")) if size == size]
    return " ".join([*sizes, f"{seconds:.2f} s"])


def single_tables(study: Study, ours: list[Score], theirs: list[Score]) -> list[str]:
    """Errors on each table, or the standard errors where there is one table."""
    if len(ours) == 1:
        return [f"se {ours[0].deviation:.1f} and {theirs[0].deviation:.1f}"]
    return [f"{name} {a.error:.1f} and {b.error:.1f}" for name, a, b in zip(study.tables, ours, theirs)]


def rows(plan: Plan) -> Iterator[Row]:
    """Twofold on many tables, ten folds on few."""
    for study in studies(plan):
        yield from study_rows(plan, study)
    if not plan.quick:
        yield from published_rows(plan)
    if missing():
        raise LeftOutError(f"comparisons that need {', '.join(missing())}")
