"""Level-stabilised bundle method for convex losses with l2, l1 and elastic-net penalties on linear spaces."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..problem import Problem
from ..programs.cutting import CuttingModel
from ..result import Result, Status, relative_gap
from .base import Clock, Options, Solve, convex_result
from .risk import Coordinates, Look, Risk, risk_of

Array = NDArray[np.float64]


def refuses(problem: Problem) -> str | None:
    """Say why the bundle cannot take the problem, None if it can."""
    if problem.is_kernel:
        return "The bundle method needs a linear space, not a kernel."
    if not problem.is_convex:
        return "The bundle method needs a convex loss and a penalty without l0."
    if problem.penalty.l2 == 0 and not problem.penalty.has_l1:
        return "The bundle method needs a penalty."
    return None


@dataclass
class Incumbent:
    v: Array
    objective: float
    scores: Array


class Bundle:
    """The level method on one risk."""

    def __init__(self, problem: Problem, risk: Risk, clock: Clock) -> None:
        self.risk, self.clock = risk, clock
        x = risk.coordinates
        self.total = float(problem.weights.sum())
        self.unit = problem.C * self.total
        shape = (x.m, x.sd.size)
        zero = np.zeros((x.m, 1))
        l1 = np.hstack([problem.penalty.l1_array(shape) / x.sd, zero]).ravel() / self.unit
        q = np.hstack([np.broadcast_to(problem.penalty.l2 / x.sd**2, shape), zero]).ravel() / self.unit
        c = np.zeros(q.size)
        if problem.tilt is not None:
            c = x.gradient(problem.space.combine(problem.tilt), problem.tilt.sum(axis=0)) / self.unit
        self.model = CuttingModel(q, c, l1, 1.0, x.m)
        self.codes: list[NDArray] = []
        self.best: Incumbent | None = None

    def look(self, v: Array) -> Look:
        look = self.risk.look(v)
        g = look.gradient / self.total
        self.model.add(g, look.value / self.total - float(g @ v))
        self.codes.append(look.code)
        return look

    def objective(self, v: Array, risk: float) -> float:
        return self.model.penalty(v) + risk / self.total

    def run(self, v: Array, tol: float, max_passes: int = 1000, kappa: float = 0.5) -> tuple[float, Array]:
        look = self.look(v)
        best = self.best = Incumbent(v, self.objective(v, look.value), look.scores)
        bound = -np.inf
        for _ in range(max_passes):
            low, v_low, shares = self.model.minimum(best.v, abs(best.objective))
            if low > bound:
                bound, self.shares = low, shares
            gap = best.objective - bound
            self.clock.note(best.objective * self.unit, bound * self.unit)
            if gap <= tol * abs(best.objective) or self.clock.is_over:
                break
            v = self.model.level_point(best.v, bound + kappa * gap, 0.1 * gap, abs(best.objective))
            look = self.look(v)
            best = self.best = self.line_search(best, v, look)
        return bound, self.shares

    def line_search(self, best: Incumbent, v: Array, look: Look) -> Incumbent:
        """Minimise on the half line from the incumbent through v."""
        def at(tau: float) -> tuple[float, float]:
            point = best.v + tau * (v - best.v)
            risk, slope = self.risk.along(best.scores, look.scores, tau)
            direction = v - best.v
            sign = np.where(point != 0, np.sign(point) * direction, np.abs(direction))
            q = np.where(self.model.forbidden, 0.0, self.model.q)
            slope = slope / self.total + float((q * point + self.model.c) @ direction) + float(self.model.l1 @ sign)
            return self.objective(point, risk), slope
        low, high = 0.0, 1.0
        f_low, s_low = best.objective, None
        f, s = at(1.0)
        best_tau, best_f = (1.0, f) if f < best.objective else (0.0, best.objective)
        steps = 0
        while s < 0 and steps < 3:
            low, f_low, s_low = high, f, s
            high *= 2.0
            f, s = at(high); steps += 1
            if f < best_f: best_tau, best_f = high, f
        f_high, s_high = f, s
        if s_low is None:
            f_low, s_low = at(0.0)
            if s_low >= 0: 
                high = low
        for _ in range(6):
            if high - low < 1e-3: break
            # intersection of tangents
            tau = (f_low - f_high + s_high * high - s_low * low) / (s_high - s_low) if s_high > s_low else 0.5*(low+high)
            tau = min(max(tau, low + 0.05 * (high - low)), high - 0.05 * (high - low))
            f, s = at(tau)
            if f < best_f: best_tau, best_f = tau, f
            if s < 0: low, f_low, s_low = tau, f, s
            else: high, f_high, s_high = tau, f, s
        if best_tau == 0.0:
            return best
        return Incumbent(best.v + best_tau * (v - best.v), best_f, best.scores + best_tau * (look.scores - best.scores))


def solve(problem: Problem, options: Options, start: Result | None = None) -> Result:
    clock = Clock(options.time_limit)
    risk = risk_of(problem)
    bundle = Bundle(problem, risk, clock)
    v = np.zeros(bundle.model.c.size) if start is None else risk.coordinates.flat(start.coef, start.intercept)
    bound, shares = bundle.run(v, 0.9 * options.tol, kappa=options.extra.get("kappa", 0.5))
    W, b = risk.coordinates.coefficients(bundle.best.v)
    R = problem.C * risk.mixed(bundle.codes[: shares.size], shares)
    return convex_result(problem, W, b, R, options, clock, len(bundle.codes), passes=risk.passes)
