"""Dual proximal point method, each step by semismooth Newton: the convex solver of linear functions with penalty l2.

    minimise  l2/2 ||W||^2 + sum_i cost_i g(u_i) + <tilt, F>        over W and free b,    F = X W' + 1 b'

The loss of a sample is a maximum over its dual block, cost_i g(u_i) = max_R gain_i(R) - <R, F_i>. A proximal term
delta_i/2 ||R - R0_i||^2 makes it smooth and piecewise quadratic (Rockafellar, Augmented Lagrangians and Applications of
the Proximal Point Algorithm in Convex Programming, 1976). Only the samples whose multipliers can move, a few near the
breakpoints of g, enter the Hessian, so a Newton step costs two products with X and one small Cholesky factor. At the
minimum W = sum_i (R_i - tilt_i) x_i / l2 and the intercepts' equation hold, and the duality gap is what smoothing
costs; R is then the next centre R0 and delta shrinks. Certified: the relative duality gap, recomputed.

Cost: 10 to 60 Newton steps of O(n m d + a d^2 + (m d)^3), a the number of samples that can move.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, cg

from ..core.capabilities import ANY_CLASSES, ANY_CONVEX, ANY_LINEAR, TILT, Takes
from ..core.problem import Problem
from ..core.result import Result, Status
from ..core.scaling import Scaling
from ..core.solving import Answer, Clock, Options, convex_result, uncertified
from ..core.spaces import LinearSpace

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

MAX_STEPS = 1000
#: Above this many unknowns the Newton equations are solved by conjugate gradients instead of a Cholesky factor.
DIRECT_LIMIT = 3000
#: The same for sparse data, whose products are cheap: at 2,000 features with 1% of entries not zero conjugate gradients
#: take a tenth of the time of the factors.
DIRECT_SPARSE = 500
#: So they are above this many functions, where almost every sample has a set of free coordinates of its own, and above
#: this many unknowns of several functions, where the Hessian is assembled from many Gram matrices.
DIRECT_CLASSES, DIRECT_BLOCKS = 10, 500
#: With more features than samples the samples are rotated into their span, if they fit in this many entries.
ROTATION_LIMIT = 1 << 26
#: A proximal step ends when the Newton residual costs less than this share of what smoothing costs.
BALANCE = 0.3
#: Width, in units of the margin, over which a breakpoint is smoothed at first (cold, warm) and at last.
COLD_WIDTH, WARM_WIDTH, LEAST_WIDTH = 1.0, 0.1, 1e-6
#: Curvature lent to every standardised coordinate, as a share of what all samples together could give: less after long
#: steps, more after short ones.
LEAST_DAMPING, FIRST_DAMPING, MOST_DAMPING = 1e-18, 1e-11, 1e-8
#: First multipliers, in units of what a single sample would have at the optimum: they grow or shrink from there.
FIRST_REACH = 100.0
MAX_TRIALS = 40
MAX_FAILURES = 20


TAKES = Takes(
    "newton",
    losses=ANY_CONVEX,
    spaces=ANY_LINEAR,
    classes=ANY_CLASSES,
    tilts=TILT,
    penalties=frozenset({"l2"}),
)


def solve(problem: Problem, options: Options, start: Result | None = None) -> Result:
    """Minimise the problem of the module's first lines.

    Parameters
    ----------
    problem : Problem
        Any convex loss, penalty l2, linear space, any tilt with rows that sum to zero (k > 2).
    options : Options
        ``tol`` is the relative duality gap, ``max_iter`` limits the Newton steps.
    start : Result, optional
        A result on the same samples; its coefficients and multipliers start the search whatever its C and tilt were.
    """
    TAKES.check(problem)
    clock = Clock(options.time_limit)
    space = _linear(problem)
    if not (space.dim > space.n and space.dim * space.n <= ROTATION_LIMIT):
        return _conduct(problem, problem, np.eye(0), options, start, clock)
    rotated, Q = space.rotated
    if start is not None:
        start = replace(start, coef=start.coef @ Q)
    return _conduct(problem, replace(problem, space=rotated), Q, options, start, clock)


def _conduct(
    problem: Problem, inner: Problem, Q: Array, options: Options, start: Result | None, clock: Clock
) -> Result:
    """Take Newton steps on ``inner`` (the problem in rotated coordinates) until the gap of ``problem`` is certified."""
    it = _Iterate(inner, start)

    def certify(W: Array, b: Array, R: Array, status: Status | None) -> Result:
        W = W @ Q.T if Q.size else W
        if W.shape[0] > 1:  # rounding of larger W on the way
            W, b = W - W.mean(axis=0), b - b.mean()
        if it.failures:
            W, b = _stretched(problem, W, b)
        if not options.certify:
            return uncertified(Answer(W, b, R, clock, it.steps, status, {}))
        return convex_result(problem, W, b, R, options, clock, it.steps, status)

    status = Status.STALLED
    try:
        while it.steps < (options.max_iter or MAX_STEPS) and it.failures < MAX_FAILURES:
            it.measure()
            if it.smoothing + it.residual <= 0.9 * options.tol * abs(it.primal + problem.offset) or it.is_spent:
                result = certify(it.W, it.b, it.R, None)
                if result.status is Status.OPTIMAL:
                    return result
                it.failures += 1  # rounding; a further Newton step refines R, a new centre is the second resort
            if clock.is_over:
                status = Status.TIME_LIMIT
                break
            if it.is_balanced and it.failures % 2 == 0:
                it.recentre()
            it.step()
        else:
            status = Status.ITERATION_LIMIT if it.steps == options.max_iter else Status.STALLED
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    return certify(*it.best_primal, it.best_dual, status)


def _linear(problem: Problem) -> LinearSpace:
    assert isinstance(problem.space, LinearSpace)  # TAKES sees to it
    return problem.space


def _stretched(problem: Problem, W: Array, b: Array) -> tuple[Array, Array]:
    """Return the best (1 + eta)(W, b): with a large C, margins just below a breakpoint cost more than eta."""
    F = problem.space.scores(W, b)
    growth = problem.penalty.l2 * float(np.sum(W**2))
    if problem.tilt is not None:
        growth += float(np.sum(problem.tilt * F))

    def change(eta: float) -> float:
        stretched = problem.loss.convex_value(problem.margins_of_scores((1.0 + eta) * F), problem.y)
        return float(problem.costs @ stretched) + eta * growth

    eta = min([0.0, *10.0 ** np.arange(-15.0, -8.0)], key=change)
    return (1.0 + eta) * W, (1.0 + eta) * b


class _Blocks:
    """The dual blocks of all samples: how multipliers R respond to scores F, near a centre R0."""

    def __init__(self, problem: Problem, R0: Array, width: float, reach: float) -> None:
        self.problem = problem
        self.top = problem.dual_limits
        self.breakpoints = np.array([t for _, t in problem.loss.hinges])
        self.recentre(R0, width, reach)

    def recentre(self, R0: Array, width: float, reach: float) -> None:
        """Smooth around R0; a hinge is spread over ``width`` units of the margin, with multipliers up to ``reach``."""
        self.R0, self.reach = R0, min(reach, float(self.top.max()))
        self.delta = width / np.minimum(self.top, reach)

    def respond(self, F: Array) -> tuple[Array, Mask]:
        """Return R = argmax gain(R) - <R, F> - delta/2 ||R - R0||^2 and the coordinates in which it can move."""
        p = self.problem
        if p.n_classes > 2:
            from ..core.chunks.response_jit import respond_k_class

            R, free = np.empty_like(F), np.empty(F.shape, dtype=np.bool_)
            respond_k_class(F, self.R0, p.y, p.prices, self.delta, self.breakpoints, R, free)
            return R, free
        wish = (self.R0[:, 0] - F[:, 0] / self.delta) * p.signs
        alpha, filled, moves = np.zeros(p.n), np.zeros(p.n), np.zeros(p.n, dtype=np.bool_)
        for room, t in zip(p.prices.T, self.breakpoints):
            part = wish + (t / self.delta - filled)
            inside = np.clip(part, 0.0, room)
            alpha += inside
            moves |= inside == part
            filled += room
        return (alpha * p.signs)[:, None], moves[:, None]


def _fall(free: Mask, delta: Array, dF: Array) -> Array:
    """Return -dR/dF applied to dF: the projection on the free coordinates (of zero sum for k > 2) over delta."""
    moved = free * dF
    if dF.shape[1] > 1:
        moved -= free * (moved.sum(axis=1) / np.maximum(free.sum(axis=1), 1))[:, None]
    return moved / delta[:, None]


def _size(problem: Problem, R: Array) -> float:
    """Return the size of multipliers to expect near R; on separable samples far below the costs."""
    return 2.0 * float(np.abs(R).max()) if problem.tilt is None else np.inf


class _Iterate:
    """Coefficients, scores and multipliers of the smoothed problem, and what they prove."""

    def __init__(self, problem: Problem, start: Result | None) -> None:
        self.problem = problem
        m, space = problem.n_functions, _linear(problem)
        self.W, self.b, R0, self.width = np.zeros((m, space.dim)), np.zeros(m), None, COLD_WIDTH
        if start is not None:
            self.W, self.b = start.coef, start.intercept
            if start.multipliers is not None:
                R0 = problem.clipped(start.multipliers)
                self.width = WARM_WIDTH
        if R0 is None or not R0.any():
            # Multipliers of the size one sample alone would have; from there they find their size in a few centres.
            reach = FIRST_REACH * problem.penalty.l2 / float(np.sum(space.moments[1] ** 2))
            self.blocks = _Blocks(problem, np.zeros((problem.n, m)), self.width, reach)
        else:
            self.blocks = _Blocks(problem, R0, self.width, _size(problem, R0))
        self.F = space.scores(self.W, self.b)
        self.R, self.free = self.blocks.respond(self.F)
        self.steps = self.effort = self.failures = 0
        self.damping = FIRST_DAMPING
        self.primal, self.smoothing, self.residual = np.inf, np.inf, np.inf
        self.best_primal, self.best_dual = (self.W, self.b), self.R
        self._least, self._most = np.inf, -np.inf

    def net(self, R: Array) -> Array:
        """Multipliers less the tilt."""
        return R if self.problem.tilt is None else R - self.problem.tilt

    def measure(self) -> None:
        """Evaluate the objective and split the duality gap into the cost of smoothing and the Newton residual.

            gap = sum_i [cost_i g(u_i) - gain_i(R_i) + <R_i, F_i>] + ||l2 W - sum_i (R_i - tilt_i) x_i||^2 / (2 l2)

        plus what it costs to repair the intercepts' equation, estimated here and recomputed in the certificate.
        """
        p, l2 = self.problem, self.problem.penalty.l2
        net = self.net(self.R)
        V = p.space.combine(net) if self.failures == 0 else _linear(p).sharp_sums(net)[0]
        self.gW, self.gb = l2 * self.W - V, -net.sum(axis=0)
        alpha = self.R[:, 0] * p.signs if p.n_classes == 2 else self.R[np.arange(p.n), p.y]
        loss = float(p.costs @ p.loss.convex_value(p.margins_of_scores(self.F), p.y))
        gain = float(np.sum(p.loss.dual_gain(alpha, p.costs, p.y)))
        repair = float(np.abs(self.gb).sum()) * (1.0 + float(np.abs(self.F).mean()))
        self.primal = 0.5 * l2 * float(np.sum(self.W**2)) + loss
        if p.tilt is not None:
            self.primal += float(np.sum(p.tilt * self.F))
        self.smoothing = max(loss - gain + float(np.sum(self.R * self.F)), 0.0)
        self.residual = float(np.sum(self.gW**2)) / (2.0 * l2) + repair
        dual = gain - float(np.sum(V**2)) / (2.0 * l2)
        self.is_balanced = self.residual <= BALANCE * min(self.smoothing, np.inf if p.tilt is not None else abs(dual))
        dual -= repair
        if self.primal < self._least:
            self._least, self.best_primal = self.primal, (self.W, self.b)
        if dual > self._most:
            self._most, self.best_dual = dual, self.R

    @property
    def is_spent(self) -> bool:
        """Whether smoothing less would only amplify rounding errors."""
        return self.is_balanced and self.width <= LEAST_WIDTH

    def recentre(self) -> None:
        """Make R the centre; smooth less, the more so the easier the last centre was."""
        old = self.blocks.reach
        reach = min(max(_size(self.problem, self.R), 0.01 * old), 100.0 * old, float(self.blocks.top.max()))
        if reach <= 3.0 * old:  # else a longer reach sharpens enough
            self.width *= 0.1 if self.effort <= 2 else 0.2 if self.effort <= 5 else 1.0
            self.width = max(self.width, LEAST_WIDTH)
        self.effort = 0
        self.blocks.recentre(self.R, self.width, reach)
        self.F = self.problem.space.scores(self.W, self.b)
        self.R, self.free = self.blocks.respond(self.F)
        net = self.net(self.R)
        self.gW, self.gb = self.problem.penalty.l2 * self.W - self.problem.space.combine(net), -net.sum(axis=0)

    def step(self) -> None:
        """Take one Newton step with an exact line search."""
        p = self.problem
        self.steps += 1
        self.effort += 1
        dW, db = _direction(p, self.free, self.blocks.delta, self.gW, self.gb, self.damping)
        dF = p.space.scores(dW, db)
        s = self._search(dF, p.penalty.l2 * float(np.sum(self.W * dW)), p.penalty.l2 * float(np.sum(dW**2)))
        self.W, self.b, self.F = self.W + s * dW, self.b + s * db, self.F + s * dF
        if s >= 0.5:
            self.damping = max(0.1 * self.damping, LEAST_DAMPING)
        elif s < 0.01:
            self.damping = min(10.0 * self.damping, MOST_DAMPING)

    def _search(self, dF: Array, linear: float, quadratic: float) -> float:
        """Set R at (nearly) the minimiser along dF and return its step length."""

        def slope(s: float, R: Array) -> float:
            return linear + s * quadratic - float(np.sum(self.net(R) * dF))

        R0, first = self.R, slope(0.0, self.R)
        s, low, high, f_low, f_high = 1.0, 0.0, np.inf, first, np.inf
        for trial in range(MAX_TRIALS):
            R, free = self.blocks.respond(self.F + s * dF)
            if trial == 0 and np.array_equal(free, self.free):
                # The minimiser of this quadratic piece. R by its derivative: free of the rounding errors of F/delta.
                exact = R0 - _fall(free, self.blocks.delta, dF)
                if np.all(np.abs(exact - R) <= 1e-6 * self.blocks.top[:, None]):
                    self.R = exact
                    return 1.0
            self.R, self.free = R, free
            f = slope(s, R)
            if abs(f) <= 0.1 * abs(first):
                break
            if f < 0:
                low, f_low, f_high = s, f, 0.5 * f_high
            else:
                high, f_high, f_low = s, f, 0.5 * f_low if low > 0 else f_low
            if np.isinf(high):
                s *= 4.0
            elif f_low < f_high:
                s = (low * f_high - high * f_low) / (f_high - f_low)
                s = min(max(s, low + 0.05 * (high - low)), high - 0.05 * (high - low))
            else:  # rounding makes the slope at 0 positive: no line through the ends has a root between them
                s = 0.5 * (low + high)
        return s


def _direction(problem: Problem, free: Mask, delta: Array, gW: Array, gb: Array, damping: float) -> tuple[Array, Array]:
    """Solve the Newton equations in standardised coordinates."""
    scaling = Scaling(*_linear(problem).moments)
    m = gW.shape[0]
    weights = 1.0 / delta
    if m > 1:  # a shift common to all functions is rounding
        gW, gb = gW - gW.mean(axis=0), gb - gb.mean()
    g = scaling.gradient(gW, gb)
    ridge = scaling.penalty(problem.penalty, m)[0] + damping * float(weights.sum())
    is_small = m == 1 or (m <= DIRECT_CLASSES and g.size <= DIRECT_BLOCKS)
    limit = DIRECT_SPARSE if _linear(problem).kind == "CSR" else DIRECT_LIMIT
    by = _cholesky_step if is_small and g.size <= limit else _gradient_step
    step = by(problem, free, delta, g, ridge)
    if m > 1:
        step -= step.mean(axis=0)
    return scaling.coefficients(step)


def _cholesky_step(problem: Problem, free: Mask, delta: Array, g: Array, ridge: Array) -> Array:
    H = _hessian(problem, free, 1.0 / delta)
    diagonal = np.diag_indices_from(H)
    H[diagonal] += ridge.ravel()
    if g.shape[0] > 1:  # a shift common to all intercepts changes nothing; give it some curvature
        H.reshape(g.shape * 2)[:, -1, :, -1] += float((1.0 / delta).mean())
    root = 1.0 / np.sqrt(H[diagonal])
    H *= root
    H *= root[:, None]
    boost = 1e-15
    while True:
        try:
            factor = sla.cho_factor(H, lower=True, check_finite=False)
            break
        except sla.LinAlgError:
            H[diagonal] += boost
            boost *= 10.0
    return -(root * sla.cho_solve(factor, root * g.ravel(), check_finite=False)).reshape(g.shape)


def _hessian(problem: Problem, free: Mask, weights: Array) -> Array:
    """Sum over samples of (projection on the free coordinates) kron weight z z', shape (m(d+1), m(d+1)).

    Samples with the same free set T share one Gram matrix; the projection is I_T - 1_T 1_T'/|T| for k > 2.
    """
    space, m = _linear(problem), free.shape[1]
    if m == 1:
        return space.standardised_gram(np.flatnonzero(free[:, 0]), weights)
    H = np.zeros((m, space.dim + 1, m, space.dim + 1))
    rows = np.flatnonzero(free.sum(axis=1) > 1)
    _, first, kind = np.unique(np.packbits(free[rows], axis=1), axis=0, return_index=True, return_inverse=True)
    for t, example in enumerate(rows[first]):
        T = np.flatnonzero(free[example])
        G = space.standardised_gram(rows[kind.ravel() == t], weights)
        for j in T:
            for l in T:
                H[j, :, l, :] += ((j == l) - 1.0 / T.size) * G
    return H.reshape(m * (space.dim + 1), -1)


def _gradient_step(problem: Problem, free: Mask, delta: Array, g: Array, ridge: Array) -> Array:
    """Solve the Newton equations to a tenth by conjugate gradients: only products with the moving samples."""
    rows = np.flatnonzero(free.sum(axis=1) > (free.shape[1] > 1))
    scaling = Scaling(*_linear(problem).moments)
    moving, free, delta = problem.space.subset(rows), free[rows], delta[rows]

    def product(v: Array) -> Array:
        back = _fall(free, delta, moving.scores(*scaling.coefficients(v)))
        return scaling.gradient(moving.combine(back), back.sum(axis=0)).ravel() + ridge.ravel() * v

    diagonal = (ridge + ((1.0 / delta) @ free)[:, None]).ravel()
    size = g.size
    operator = LinearOperator((size, size), matvec=product)
    jacobi = LinearOperator((size, size), matvec=lambda v: v / diagonal)
    return cg(operator, -g.ravel(), rtol=0.1, maxiter=200, M=jacobi)[0].reshape(g.shape)
