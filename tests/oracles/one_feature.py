"""The global optimum of a continuous two-class problem with one feature, in exact rational arithmetic.

    minimise over (w, b)   l2/2 w^2 + l1 |w| + sum_i cost_i l(u_i),   u_i = s_i (w x_i + b)

The objective is piecewise quadratic in (w, b) and, for fixed w, piecewise linear and bounded below in b, so some
minimiser has a margin at a breakpoint of the loss: b = s_i tau - w x_i. On such a line the objective is piecewise
quadratic in w alone: a minimiser is a breakpoint of it or the stationary point of a piece.
"""

from fractions import Fraction

import numpy as np


def exact_optimum(problem):
    """Return the optimum as a Fraction; no solver and no rounding is involved."""
    x = [Fraction(float(v)) for v in problem.space.X[:, 0]]
    signs = [Fraction(float(s)) for s in problem.signs]
    costs = [Fraction(float(c)) for c in problem.costs]
    l2, l1 = Fraction(float(problem.penalty.l2)), Fraction(float(np.max(problem.penalty.l1)))
    hinges = [(Fraction(float(c)), Fraction(float(t))) for c, t in problem.loss.hinges]
    cap = Fraction(float(problem.loss.cap))
    # The loss's own t is the float next to where g meets the cap; the objective is min(g, cap), as evaluated.
    breakpoints = sorted({t for _, t in hinges} | {_meets(hinges, cap)})

    def value(w, b):
        total = l2 / 2 * w * w + l1 * abs(w)
        for s, xi, c in zip(signs, x, costs):
            u = s * (w * xi + b)
            total += c * min(cap, sum(h * max(t - u, 0) for h, t in hinges))
        return total

    best = value(Fraction(0), Fraction(0))
    for i in range(len(x)):
        for tau in breakpoints:
            places = {Fraction(0)}  # where another margin passes a breakpoint on the line b = s_i tau - w x_i
            for j in range(len(x)):
                if x[j] != x[i]:
                    places |= {(signs[j] * other - signs[i] * tau) / (x[j] - x[i]) for other in breakpoints}
            best = min(best, _least_on_line(value, sorted(places), signs[i] * tau, x[i]))
    return best


def _meets(hinges, cap):
    """Where g falls to the cap: g is decreasing and linear between breakpoints."""
    for low in sorted({t for _, t in hinges}, reverse=True):
        g = sum(c * max(t - low, 0) for c, t in hinges)
        steep = sum(c for c, t in hinges if t >= low)
        below = [t for _, t in hinges if t < low]
        u = low - (cap - g) / steep
        if not below or u >= max(below):
            return u
    raise AssertionError("a truncated loss has a place where it is truncated")


def _least_on_line(value, places, intercept, x):
    """Minimise a piecewise quadratic function of w with these breakpoints: three values determine a piece."""
    far = max(abs(places[0]), abs(places[-1])) + 1
    ends = [-2 * far, *places, 2 * far]
    best = min(value(w, intercept - w * x) for w in places)
    for k in range(len(ends) - 1):
        a, c = ends[k], ends[k + 1]
        m = (a + c) / 2
        fa, fm, fc = (value(w, intercept - w * x) for w in (a, m, c))
        curvature = 2 * (fa - 2 * fm + fc) / (c - a) ** 2  # of f = curvature w^2 + ...
        if curvature > 0:
            w = m - (fc - fa) / (c - a) / (2 * curvature)
            if k in (0, len(ends) - 2) or a <= w <= c:
                best = min(best, value(w, intercept - w * x))
    return best
