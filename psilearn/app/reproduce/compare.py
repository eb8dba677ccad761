"""Published against ours: z-scores per figure, and a verdict per table that is computed, not typed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from scipy import stats

from .experiment import Experiment, Published
from .summary import Cell, Difference, Summary

LIMIT = 3.0
"""A figure differs from the published one when it lies more than this many standard errors away."""

EXCEPTIONS = 0.1
"""Up to this share of differing figures a table still counts as reproduced, with exceptions."""

BLIND = 0.5
"""A run shorter than the paper's has no verdict when half of the figures could differ by more than this unseen."""

_ROUNDING = 1e-12
"""A relative spread up to this is none."""

ENOUGH = 9
"""With fewer degrees of freedom, replications that are all equal do not prove that there is no spread."""


FEW_MEASURES = 3
"""So many measures that agree are named, more are counted."""


@dataclass(frozen=True)
class Row:
    """One figure of a table, published and ours.

    ``z`` is the difference in standard errors of both sides together, None where it cannot be judged; ``unseen`` is
    the difference at which the figure would count as differing.
    """

    settings: dict[str, Any]
    measure: str
    published: float | None
    ours: float | None
    se: float | None
    z: float | None
    unseen: float | None
    n: int

    @property
    def differs(self) -> bool:
        """Whether ours lies more than `LIMIT` standard errors from the published figure."""
        return self.z is not None and abs(self.z) > LIMIT


def compare(experiment: Experiment, summary: Summary) -> list[Row]:
    """Return one row per published figure, in the paper's order; those that were not computed have ours None."""
    return [
        _row(published, summary.get(published.settings, published.measure), experiment)
        for published in experiment.published
    ]


def _row(published: Published, cell: Cell | None, experiment: Experiment) -> Row:
    settings = dict(published.settings)
    if cell is None or cell.mean is None:
        return Row(settings, published.measure, published.value, None, None, None, None, 0)
    se = None if cell.sd is None else cell.sd / math.sqrt(cell.n)
    z, unseen = _distance(published, cell, experiment)
    return Row(settings, published.measure, published.value, cell.mean, se, z, unseen, cell.n)


def _distance(published: Published, cell: Cell, experiment: Experiment) -> tuple[float | None, float | None]:
    """Return z and the difference at which |z| would be `LIMIT`.

    z is the two-sample t statistic with the spreads of both sides pooled, as the normal deviate of the same
    probability. The rounding of the printed figure counts as an error of its own.
    Where the paper prints no spread, ours stands in for it; with few replications the t distribution then has few
    degrees of freedom and even a large statistic says little.
    """
    if published.value is None:
        return None, None
    gap, unit = cell.mean - published.value, printed_unit(experiment, published.measure)
    if experiment.deterministic:
        return _constant(gap, unit), unit / 2.0
    printed_n = experiment.printed_from or experiment.replications
    printed_sd = published.sd if published.se is None else published.se * math.sqrt(printed_n)
    weights = [(cell.n - 1, cell.sd), (printed_n - 1, printed_sd)]
    known = [(df, sd) for df, sd in weights if df > 0 and sd is not None]
    df = sum(df for df, _ in known)
    if df == 0:
        return None, None
    pooled = math.sqrt(sum(df * sd**2 for df, sd in known) / df)
    if pooled <= _ROUNDING * max(abs(cell.mean), unit):
        is_telling = abs(gap) <= unit / 2.0 or (df >= ENOUGH and abs(gap) > _unseen_share(df))
        return (_constant(gap, unit) if is_telling else None), None
    rounding = unit / math.sqrt(12.0)
    scale = math.hypot(pooled * math.sqrt(1.0 / cell.n + 1.0 / printed_n), rounding)
    return normal_deviate(gap / scale, df), scale * float(stats.t.isf(stats.norm.sf(LIMIT), df))


def _unseen_share(df: int) -> float:
    """Return the share of deviating replications at which df + 1 equal ones would still be no surprise.

    Measures are counts and shares, so a printed average may lie that far from ours by rare deviations of one.
    """
    return 1.0 - float(stats.norm.sf(LIMIT)) ** (1.0 / (df + 1))


def _constant(gap: float, unit: float) -> float:
    """Two constants are equal to the printed digits or infinitely far apart."""
    return 0.0 if abs(gap) <= unit / 2.0 else math.copysign(math.inf, gap)


def printed_unit(experiment: Experiment, measure: str) -> float:
    """Return the unit of the last digit that the table prints for a measure, such as 0.001 for .963 and .95(0)."""
    values = [p.value for p in experiment.published if p.measure == measure and p.value is not None]
    decimals = [-int(Decimal(repr(value)).normalize().as_tuple().exponent) for value in values]
    return 10.0 ** -max([0, *decimals])


def normal_deviate(t: float, df: int) -> float:
    """Return the normal deviate that is exceeded with the same probability as t with df degrees of freedom."""
    return math.copysign(float(stats.norm.isf(stats.t.sf(abs(t), df))), t)


def judge(difference: Difference) -> str:
    """Say in words whether a claimed ordering shows: by the paired difference over its standard error."""
    if difference.se is None:
        return "not judged: one replication"
    noun = f"difference {difference.mean:+.4f}, standard error {difference.se:.4f}, {difference.n} replications"
    if difference.se == 0.0:
        return f"{'holds' if difference.mean > 0 else 'no difference'}: {noun}"
    z = normal_deviate(difference.mean / difference.se, difference.n - 1)
    if z > 2.0:
        return f"holds: {noun}"
    if z < -2.0:
        return f"the opposite holds: {noun}"
    return f"not decided: {noun}"


def verdict(experiment: Experiment, summary: Summary, rows: list[Row]) -> list[str]:
    """Return the verdict in sentences: the judgement, its power, the reasons where figures differ, the claims."""
    sentences = [_headline(experiment, summary, rows)]
    missing = sum(row.ours is None for row in rows)
    if missing and len(rows) > missing:
        sentences.append(f"{missing} of the {len(rows)} printed figures were not computed.")
    unseen = blind_spot(rows)
    if unseen is not None and not experiment.deterministic:
        sentences.append(
            f"Computed with {summary.replications} of {experiment.replications} replications: in half of "
            f"the figures a difference of less than {unseen:.0%} would go unseen."
        )
    sentences += [f"A known reason: {text}" for text in reasons(experiment, rows)]
    sentences += [f"{difference.text}: {judge(difference)}." for difference in summary.differences]
    if summary.n_failed:
        sentences.append(f"{summary.n_failed} of {summary.n_tasks} tasks failed and are missing from the averages.")
    return sentences


def reasons(experiment: Experiment, rows: list[Row]) -> list[str]:
    """Return the known reasons that apply to a figure that differs."""
    return [
        reason.text
        for reason in experiment.reasons
        if any(row.differs and reason.applies(row.settings, row.measure) for row in rows)
    ]


def blind_spot(rows: list[Row]) -> float | None:
    """Return the relative difference that would go unseen in half of the judged figures."""
    unseen = [row.unseen / abs(row.published) for row in rows if row.unseen is not None and row.published]
    return float(np.median(unseen)) if unseen else None


def level(judged: list[Row]) -> str:
    """Return how many of the judged figures differ, as a word."""
    differing = sum(row.differs for row in judged)
    if not differing:
        return "Reproduces"
    if differing <= EXCEPTIONS * len(judged):
        return "Reproduces with exceptions"
    errors = [row for row in judged if is_test_error(row.measure)]
    agrees = bool(errors) and not any(row.differs for row in errors)
    return "Test errors reproduce" if agrees else "Does not reproduce"


def is_test_error(measure: str) -> bool:
    """Whether a measure is an error (or accuracy) on new data, which is what the papers are about."""
    return measure.startswith("C=") or bool({"testing", "accuracy", "total", "error", "errors"} & set(measure.split()))


def _headline(experiment: Experiment, summary: Summary, rows: list[Row]) -> str:
    judged = [row for row in rows if row.z is not None]
    if not summary.cells:
        return "Not computed: no task has finished."
    if not rows:
        return "Computed; the paper prints no number to compare with."
    if all(row.ours is None for row in rows):
        return "No verdict: none of the printed figures could be computed."
    if not judged:
        return "No verdict: one replication, as shown here, has no standard error."
    differing = [row for row in judged if row.differs]
    total = len(judged)
    unseen = blind_spot(rows)
    is_short = summary.replications < experiment.replications
    if is_short and len(differing) <= EXCEPTIONS * total and unseen is not None and unseen > BLIND:
        return f"No verdict: too few replications, half of the figures could differ by {unseen:.0%} unseen."
    if not differing:
        if experiment.deterministic:
            return f"Reproduces: all {total} figures equal the published ones."
        some = f" computed, of {len(rows)} printed," if any(row.ours is None for row in rows) else ""
        return f"Reproduces: all {total} figures{some} lie within {LIMIT:g} standard errors of the published ones."
    worst = max(differing, key=lambda row: abs(row.z or 0.0))
    cell = f"{describe(worst.settings)} {worst.measure}".strip()
    far = f"the farthest is {cell}: {worst.published:g} published, {worst.ours:.4g} ours"
    return f"{level(judged)}: {len(differing)} of {total} figures differ ({by_measure(judged)}); {far}."


def by_measure(judged: list[Row]) -> str:
    """Say how many figures of which measures differ, so that a differing side measure does not hide agreeing errors."""
    measures = dict.fromkeys(row.measure for row in judged)
    of = {measure: [row for row in judged if row.measure == measure] for measure in measures}
    differing = {measure: sum(row.differs for row in some) for measure, some in of.items()}
    said = ", ".join(f"{measure} {n} of {len(of[measure])}" for measure, n in differing.items() if n)
    agreeing = [measure for measure, n in differing.items() if not n]
    if len(agreeing) > FEW_MEASURES:
        return f"{said}; all of {len(agreeing)} other measures agree"
    return f"{said}; all of {', '.join(agreeing)} agree" if agreeing else said


def describe(settings: dict[str, Any]) -> str:
    """Return the settings as words."""
    return ", ".join(f"{name} {value}" for name, value in settings.items())
