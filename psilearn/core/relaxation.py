"""A convex problem below a truncated one: a lower bound on the optimum of any robust fit, for one convex solve.

Let a solution cost less than a value that is attained, ``upper``. What its samples at the cap cost together is less
than that, and so is its penalty, which bounds the size of w. Choose samples of one class, nearest to a place first,
until together they would cost ``upper`` at the cap: one of them is not at the cap, so it has a margin of at least t.
The margin of any sample of that class differs from it by at most the size of w times their distance, which the way
through the place bounds. So every margin has a floor, and on [floor, inf) the line

    m (top - u)_+,     m = min(c, cap / (top - floor)),

lies below the loss, where ``top`` is its largest breakpoint (t if it has none above t) and c the slope there. With all
losses replaced by these lines the problem is a support vector machine with weights: convex, and its optimum is a lower
bound. It is weak where much is paid at the cap, but it costs only about a tenth of the fit.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .losses import JUMP_TOLERANCE, ConvexHinges, Loss
from .spaces import KernelSpace, LinearSpace

if TYPE_CHECKING:
    from .problem import Problem

Array = NDArray[np.float64]

#: Places per class through which distances are bounded.
_PLACES = 4
#: Steps of the rough solution: after 6 it has 80 to 100% of the bound (breast cancer with flipped labels, C from .01 to
#: 1), at a tenth of the time of a fit by the d.c. algorithm or less.
_STEPS = 6
#: The same for kernels, where each step is a product with the whole kernel matrix.
_KERNEL_STEPS = 2
#: Parts of all limits that are tried as multipliers where these steps do not apply.
_SHARES = (0.5, 0.1)
#: Part of distances, costs and weights by which rounding errors are allowed for: far more than there are.
_ROUNDING = 1e-9


def relaxation(problem: Problem, upper: float) -> tuple[Problem, NDArray[np.intp], float] | None:
    """Return a convex problem, its samples, and a value: the first is below the truncated one where that costs less.

    The value is just below ``upper``, and below what always answering the same class costs at most; it and a bound on
    the convex optimum, whichever is smaller, bound the truncated one. None if nothing is known: of problems with tilts
    or penalties that are not convex, of data in blocks, of samples that all may be at the cap.
    """
    loss, space = problem.loss, problem.space
    is_known = isinstance(space, LinearSpace) or (isinstance(space, KernelSpace) and space.is_psd)
    if problem.tilt is not None or problem.is_convex or not problem.penalty.is_convex or not is_known:
        return None
    prices = np.bincount(problem.y, problem.costs * loss.cap_of(problem.y), problem.n_classes)
    value = min(upper, float(prices.sum() - prices.max())) * (1.0 - _ROUNDING)
    if not value > 0.0:
        return None
    steepness = _steepness(problem, value)
    rows = np.flatnonzero(steepness > 0.0)
    if rows.size == 0 or np.ptp(problem.y[rows]) == 0:
        return None
    part = problem if rows.size == problem.n else problem.subset(rows)
    lines = ConvexHinges(((1.0, _top(loss)),))
    return replace(part, loss=lines, weights=part.weights * steepness[rows]), rows, value


def relaxed_bound(problem: Problem, upper: float, R: Array) -> float:
    """Return what multipliers of the relaxation, 0 for samples that it has not, prove of a truncated problem."""
    found = relaxation(problem, upper)
    if found is None or R.shape != (problem.n, problem.n_functions):
        return -np.inf
    relaxed, rows, value = found
    return min(relaxed.dual_bound(R[rows]), value) if relaxed.accepts(R[rows]) else -np.inf


def rough_bound(relaxed: Problem, hint: Array | None) -> tuple[float, Array]:
    """Return the best bound that a few cheap multipliers R of the relaxation prove, and these.

    ``hint`` are multipliers of a fit to the truncated problem: where little is given up they are nearly the best.
    """
    known = [] if hint is None else [relaxed.clipped(hint)]
    if relaxed.n_classes == 2 and relaxed.penalty.l2 > 0 and not relaxed.penalty.has_l1:
        R = _conditional_gradient(relaxed, known[0] if known else None)  # one bound, since proving it takes longest
        return relaxed.dual_bound(R), R
    most = relaxed.loss_multipliers(np.zeros((relaxed.n, relaxed.n_functions)))
    known += [share * most for share in _SHARES]
    bounds = [relaxed.dual_bound(R) for R in known]
    best = int(np.argmax(bounds))
    return bounds[best], known[best]


def _conditional_gradient(relaxed: Problem, hint: Array | None) -> Array:
    """Take a few steps of the conditional gradient method on the dual, two classes and an l2 penalty.

    It is max top sum_i alpha_i - |sum_i alpha_i y_i x_i|^2 / (2 l2): steps go towards the balanced alpha within the
    limits that is best for the slope of the dual, which sorting finds. The first step starts at a part of the hint.
    """
    y, top = relaxed.signs, relaxed.loss.hinges[0][1]
    alpha, f = np.zeros(relaxed.n), np.zeros(relaxed.n)
    for step in range(_KERNEL_STEPS if relaxed.is_kernel else _STEPS):
        slope = top - y * f
        best = _balanced_hint(hint, y) if step == 0 and hint is not None else _best_balanced(slope, y, relaxed.costs)
        change = best - alpha
        W = relaxed.space.combine((change * y)[:, None]) / relaxed.penalty.l2
        turn = relaxed.space.scores(W, np.zeros(1))[:, 0]
        rise, curvature = float(change @ slope), float(change @ (y * turn))
        length = 1.0 if curvature <= rise else max(rise, 0.0) / curvature
        alpha, f = alpha + length * change, f + length * turn
    return (alpha * y)[:, None]


def _balanced_hint(hint: Array, y: Array) -> Array:
    """Return the multipliers of the hint, those of the class with the larger sum made smaller."""
    alpha = np.maximum(hint[:, 0] * y, 0.0)
    sums = float(alpha[y > 0].sum()), float(alpha[y < 0].sum())
    least = min(sums)
    return alpha * np.where(y > 0, *(least / max(total, 1e-300) for total in sums))


def _best_balanced(slope: Array, y: Array, limit: Array) -> Array:
    """Maximise slope' alpha over 0 <= alpha <= limit with equal sums in both classes: the best of each class first."""
    orders = [own[np.argsort(-slope[own], kind="stable")] for own in (np.flatnonzero(y > 0), np.flatnonzero(y < 0))]
    filled = [np.cumsum(limit[order]) for order in orders]
    sums = np.union1d(*filled)
    sums = sums[sums <= min(filled[0][-1], filled[1][-1])]
    middle = 0.5 * (np.concatenate([[0.0], sums[:-1]]) + sums)  # of the pieces between which the slopes do not change
    pay = sum(slope[order[np.searchsorted(fill, middle)]] for order, fill in zip(orders, filled))
    count = int(np.searchsorted(-np.asarray(pay), 0.0))
    total, alpha = float(sums[count - 1]) if count else 0.0, np.zeros(y.size)
    for order, fill in zip(orders, filled):
        alpha[order] = np.clip(total - (fill - limit[order]), 0.0, limit[order])
    return alpha


def _tolerance(loss: Loss) -> float:
    """By how much a margin may miss t and count as t."""
    return 0.0 if loss.is_continuous else JUMP_TOLERANCE


def _top(loss: Loss) -> float:
    """Margin from which on the lines are 0."""
    return max([loss.t, *(t for _, t in loss.hinges)]) - _tolerance(loss)


def _steepness(problem: Problem, upper: float) -> Array:
    """Return m of every sample, 0 where a margin has no floor."""
    loss = problem.loss
    top, cap = _top(loss), np.broadcast_to(loss.cap_of(problem.y), problem.n)
    steepest = np.full(problem.n, np.inf)
    for c, (_, t) in zip(loss.slopes(problem.y), loss.hinges):
        if t > loss.t and t == loss.hinges[0][1]:
            steepest = np.where(np.isinf(steepest), 0.0, steepest) + c
    radius = problem.norm_bound(upper) * (1.0 + _ROUNDING) * (1.0 if problem.n_classes == 2 else np.sqrt(2.0))
    below = np.full(problem.n, np.inf)
    if np.isfinite(radius):
        for code in range(problem.n_classes):
            own = np.flatnonzero(problem.y == code)
            below[own] = radius * _reach(problem, own, problem.costs[own] * cap[own], upper)
    length = np.maximum(top - (loss.t - _tolerance(loss)) + below, _ROUNDING)
    return (1.0 - _ROUNDING) * np.minimum(steepest, cap / length)


def _reach(problem: Problem, own: NDArray[np.intp], price: Array, upper: float) -> Array:
    """Return for each sample of a class the farthest that one with a margin of at least t may be; inf if none need."""
    reach = np.full(own.size, np.inf)
    if own.size == 0:
        return reach
    for place in own[np.unique(np.linspace(0, own.size - 1, _PLACES).astype(np.intp))]:
        distance = _distances(problem, int(place), own)
        order = np.argsort(distance, kind="stable")
        spent = np.cumsum(price[order])
        last = int(np.searchsorted(spent, upper * (1.0 + 0.1 * _ROUNDING)))
        if last < own.size:
            reach = np.minimum(reach, distance + distance[order[last]])
    return reach


def _distances(problem: Problem, place: int, own: NDArray[np.intp]) -> Array:
    """Return distances in the norm dual to that of w, rounded up, from a place: a sample (sparse data: the origin)."""
    space = problem.space
    if isinstance(space, KernelSpace):
        size = space.squared_norms
        error = (4.0 * space.entry_error + _ROUNDING) * (np.abs(size[own]) + abs(size[place])) + 4.0 * space.psd_shift
        squares = size[own] + size[place] - 2.0 * space.block(np.array([place]), own)[0]
        return np.sqrt(np.maximum(squares, 0.0) + error)
    assert isinstance(space, LinearSpace)
    if space.is_sparse:
        rows = sp.csr_matrix(space.X)[own]
        sizes = np.sqrt(rows.multiply(rows).sum(axis=1)) if problem.penalty.l2 > 0 else abs(rows).max(axis=1).toarray()
        return np.asarray(sizes, dtype=np.float64).ravel() * (1.0 + _ROUNDING)
    away = np.asarray(space.X)[own] - np.asarray(space.X)[place]
    sizes = np.sqrt(np.einsum("ij,ij->i", away, away)) if problem.penalty.l2 > 0 else np.abs(away).max(axis=1)
    return np.asarray(sizes, dtype=np.float64) * (1.0 + _ROUNDING)
