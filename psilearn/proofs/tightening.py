"""Which limits of margins follow from the bound of a case, in floating point; the checker's rule decides."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .repair import best_leaf
from .statement import MARGIN_QUANTUM

if TYPE_CHECKING:
    from .replay import Node, Replay

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

#: Part by which the slack is taken larger, and limits wider, than computed, so that they hold exactly.
_SAFETY = 1e-6
#: Part of the distance from t by which a limit must move to be worth a place in the proof.
_WORTHWHILE = 0.2
#: Most anchors of a tightening.
_ANCHORS = 6


def tightening(replay: Replay, node: Node) -> dict | None:
    """Return the line that narrows limits of a case by anchors among the solver's active samples; None if none does.

    Everything is in the solver's scaled coordinates, where margins are the same and the penalty is 1/2 ||w||^2.
    """
    exact, model, place, group = replay.exact, replay.model, replay.place, replay.reduction.group
    found = best_leaf(exact, replay.reduction.multipliers(node.alpha)[:, 0] * replay.signs, node.regions)
    if found is None:
        return None
    slack = (replay.target - float(found[0])) * (1.0 + _SAFETY) + 1e-12 * replay.target
    alpha = found[1]["leaf"]
    scores = (model.a @ node.w)[group]  # y_i <w0, x_i>
    signs, n = replay.signs, exact.n
    low, high = np.full(n, -math.inf), np.full(n, math.inf)
    by_low, by_high = np.zeros(n, np.intp), np.zeros(n, np.intp)
    anchors: dict[int, list[int]] = {}
    for j in (int(place[m]) for m in node.members[:_ANCHORS]):
        p, r = level_set(node.regions[j], alpha[j], slack, exact)
        if not (math.isfinite(p) and math.isfinite(r)):
            continue
        anchors[j] = [j, math.floor(math.ldexp(p, MARGIN_QUANTUM)) - 1, math.ceil(math.ldexp(r, MARGIN_QUANTUM)) + 1]
        same = signs == signs[j]
        centre = scores - signs * signs[j] * scores[j]
        reach = math.sqrt(2.0 * slack / replay.reduction.unit) * model.dist[group, group[j]] * (1.0 + _SAFETY)
        reach += _SAFETY * (reach + 1e-3 * (r - p))
        least, most = centre + np.where(same, p, -r) - reach, centre + np.where(same, r, -p) + reach
        by_low[least > low], by_high[most < high] = j, j
        low, high = np.maximum(low, least), np.minimum(high, most)
    limits = _limits(node, model.t, low, high, by_low, by_high)
    used = {entry[1] for entry in limits}
    return {"tighten": alpha, "anchors": [anchors[j] for j in sorted(used)], "limits": limits} if limits else None


def _limits(node: Node, t: float, low: Array, high: Array, by_low: Indices, by_high: Indices) -> list[list[Any]]:
    """Return the limits that are worth stating, one entry per sample (two anchors for one sample: the lower wins)."""
    limits = []
    for i in range(low.size):
        if i in node.sides:
            continue
        better_low = node.low[i] < t and _is_closer(t, float(low[i]), float(node.low[i]))
        is_bounded = math.isfinite(node.high[i])
        better_high = (high[i] < t + 1.0 or not is_bounded) and _is_closer(-t, -float(high[i]), -float(node.high[i]))
        if not (better_low or better_high):
            continue
        j = int(by_low[i] if better_low else by_high[i])
        least = math.floor(math.ldexp(low[i], MARGIN_QUANTUM)) - 1 if better_low else None
        most = math.ceil(math.ldexp(high[i], MARGIN_QUANTUM)) + 1 if better_high and by_high[i] == j else None
        limits.append([i, j, least, most])
    return limits


def _is_closer(t: float, new: float, old: float) -> bool:
    """Whether a lower limit has moved up by a worthwhile part of its distance from t."""
    if not math.isfinite(old):
        return math.isfinite(new)
    return new > old + _WORTHWHILE * abs(t - old)


def level_set(region: Any, alpha: int, slack: float, exact: Any) -> tuple[float, float]:
    """Return (p, r) such that cost(u) + alpha u exceeds its least value by the slack or more for u <= p and u >= r.

    Between the points of the region the function is at least its chord (it jumps down at T only). Infinite where the
    region is unbounded and the function does not grow; just at an end of the region where that end is inside.
    """
    a = math.ldexp(float(alpha), -exact.q)
    costs = sorted((float(Fraction(u, 1 << exact.U)), float(Fraction(cost, 1 << exact.M))) for u, cost in region.points)
    points = [(u, cost + a * u) for u, cost in costs]
    level = min(value for _, value in points) + slack * (1.0 + _SAFETY)
    inside = [at for at, (_, value) in enumerate(points) if value < level]
    first, last = inside[0], inside[-1]
    p = points[first][0]
    if first > 0:
        p = _crossing(points[first], points[first - 1], level)
    elif region.low is None and region.side <= 0:
        p = -math.inf
    r = points[last][0]
    if last < len(points) - 1:
        r = _crossing(points[last], points[last + 1], level)
    elif region.high is None and region.side >= 0:
        r = r + (level - points[last][1]) / a if a > 0 else math.inf
    return p, r


def _crossing(inside: tuple[float, float], outside: tuple[float, float], level: float) -> float:
    """Return where the chord from a point below the level to one above it reaches the level, a little further out."""
    share = (level - inside[1]) / (outside[1] - inside[1])
    return inside[0] + min(1.0, share * (1.0 + _SAFETY)) * (outside[0] - inside[0])
