"""A loss in normal form, and the tangent that makes its convex envelope.

    l(u) = min(cap, g(u)) for u >= t, cap below,      g(u) = sum_k c_k (t_k - u)_+

with slopes c_k at breakpoints t_k, the largest first. On low <= u <= high with low < t <= high the largest convex
function below l is the steepest line from (low, cap) that touches the graph of g at v >= t, and g from v on (Liu and
Wu, Optimizing psi-learning via mixed integer programming, 2006, replace it by big-M constraints, which are weaker).
"""

from __future__ import annotations

from ..core._jit import inner

#: A margin this little below t satisfies u >= t (data have unit size). Whatever leaves a sample OUT must exceed it: the
#: loss jumps at t, so a rounding error there would charge the cap to samples that every optimum holds exactly at t.
FEASIBLE = 1e-7


@inner
def convex_value(u, breakpoints, slopes):
    """Evaluate g(u) = sum_k c_k (t_k - u)_+."""
    total = 0.0
    for k in range(breakpoints.size):
        if breakpoints[k] > u:
            total += slopes[k] * (breakpoints[k] - u)
    return total


@inner
def loss_value(u, breakpoints, slopes, t, cap, tolerance):
    """Evaluate the loss; a margin less than ``tolerance`` below t counts as t."""
    if u < t - tolerance:
        return cap
    return min(cap, convex_value(max(u, t), breakpoints, slopes))


@inner
def top_margin(breakpoints, t):
    """Margin from which on nothing is paid."""
    return max(breakpoints[0], t) if breakpoints.size > 0 else t


@inner
def tangent(low, high, breakpoints, slopes, t, cap):
    """Return (v, steepness) of the steepest line from (low, cap) to (v, g(v)), v in {t, breakpoints above t, high}.

    If v is ``high`` and below all breakpoints, the line alone is the envelope.
    """
    v, steepest = t, -1.0
    if t > low:
        steepest = (cap - convex_value(t, breakpoints, slopes)) / (t - low)
    for k in range(breakpoints.size):
        if t < breakpoints[k] <= high:
            steepness = (cap - convex_value(breakpoints[k], breakpoints, slopes)) / (breakpoints[k] - low)
            if steepness >= steepest:
                v, steepest = breakpoints[k], steepness
    if breakpoints.size > 0 and high < breakpoints[0]:
        steepness = (cap - convex_value(high, breakpoints, slopes)) / (high - low)
        if steepness >= steepest:
            v, steepest = high, steepness
    return v, steepest
