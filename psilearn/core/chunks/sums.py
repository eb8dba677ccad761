"""What a fit needs of the samples, as sums over rows: every function here maps one block to numbers that are added up.

Nothing that comes back has the size of a block. Multipliers are functions of a point and a width, so a block makes them
anew when they are needed (:class:`Query`), and the tilt of a d.c. step is one of the point where the loss was
linearised (``anchor``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..bounds.rounding import sum_error
from ..losses import Loss
from ..penalties import Penalty
from ..problem import Problem
from ..spaces import LinearSpace, LowRank
from .blocks import Block

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Form:
    """What every block has to know to turn its rows into samples of the problem.

    Attributes
    ----------
    classes : ndarray
        The labels in order; a label's place is its code.
    factors : ndarray of float64
        Class weights.
    mean, scale : ndarray of float64
        Centred and scaled coordinates z = (x - mean) / scale.
    low_rank : LowRank or None
        Landmarks of a kernel, whose features take the place of x.
    """

    classes: NDArray[Any]
    factors: Array
    mean: Array
    scale: Array
    low_rank: LowRank | None = None

    def features(self, X: Array) -> Array:
        """Return the features of rows: the rows themselves, or those of a kernel on landmarks."""
        return X if self.low_rank is None else self.low_rank.features(X.astype(np.float64, copy=False))

    @property
    def n_functions(self) -> int:
        """Functions of the classifier: one for two classes, else one per class."""
        return 1 if self.classes.size == 2 else self.classes.size

    def samples(self, block: Block, loss: Loss, C: float) -> Iterator[Problem]:
        """Return the samples of a block, part by part, as small problems on the rows x - mean."""
        for part in block.parts():
            if part.X.shape[0] == 0:
                continue
            assert part.y is not None
            codes = self.codes(part.y)
            weights = self.factors[codes]
            if part.weights is not None:
                weights = weights * part.weights
            used = weights > 0
            X = self.features(part.X) - self.mean  # float64, and no other copy
            if not used.all():
                X, codes, weights = X[used], codes[used], weights[used]
            yield Problem(LinearSpace(X), codes, self.classes.size, loss, Penalty(), C, weights)

    def codes(self, y: NDArray[Any]) -> NDArray[np.intp]:
        """Return the places of labels among the classes."""
        codes = np.minimum(np.searchsorted(self.classes, y), self.classes.size - 1)
        if not np.all(self.classes[codes] == y):
            raise ValueError("y holds labels that were not there when the classes were counted.")
        return codes.astype(np.intp, copy=False)

    def scores(self, problem: Problem, V: Array) -> Array:
        """Scores of the samples at a point V (m, p + 1) in scaled coordinates."""
        assert isinstance(problem.space, LinearSpace)
        return np.asarray(problem.space.X @ (V[:, :-1] / self.scale).T) + V[:, -1]


class Smoothing(NamedTuple):
    """A point, and how hinges are bent there.

    Attributes
    ----------
    V : ndarray (m, p + 1)
        The point, in scaled coordinates.
    width : float
        Width of the margin over which a hinge bends.
    reach : float
        Size of multipliers that makes a whole bend; larger ones are bent over less.
    """

    V: Array
    width: float
    reach: float = np.inf


class Query(NamedTuple):
    """A point at which blocks are asked for their sums.

    Attributes
    ----------
    at : Smoothing
        The point; width 0 asks for the value alone.
    C, loss
        Price of a unit of loss, and the loss.
    centres : tuple of Smoothing
        Multipliers are near those of the last of these, which are near those of the one before, and so on from 0.
    anchor : ndarray or None
        The point where the concave part of ``truncated`` was linearised.
    truncated : Loss or None
        The loss that was linearised there.
    every : int
        Of the samples that can move, one in so many tells the second derivatives.
    """

    at: Smoothing
    C: float
    loss: Loss
    centres: tuple[Smoothing, ...] = ()
    anchor: Array | None = None
    truncated: Loss | None = None
    every: int = 1


class Sums(NamedTuple):
    """Sums over samples at a query; all of them are added, but for ``peak``, of which the largest counts.

    Attributes
    ----------
    risk : float
        C sum_i weight_i l(u_i) + <tilt, F>.
    smooth : float
        The same with smoothed hinges.
    gain, tilt_gain : float
        Gains of the multipliers R, and of the tilt taken as multipliers.
    net : ndarray (m, p + 1)
        sum_i (R - tilt)_i (z_i, 1).
    hessian : ndarray or None
        Second derivatives of the smoothed risk.
    near : int
        Samples whose multipliers can move.
    excess : float
        What is between g and the cap, and the tilt's value: the offset of a majorant at this point is minus this.
    digest : int
        Tells which samples are capped.
    peak : float
        Largest multiplier.
    """

    risk: float = 0.0
    smooth: float = 0.0
    gain: float = 0.0
    tilt_gain: float = 0.0
    net: Array | float = 0.0
    hessian: Array | float = 0.0
    near: int = 0
    excess: float = 0.0
    digest: int = 0
    peak: float = 0.0

    def plus(self, other: Sums) -> Sums:
        """Add the sums over other samples."""
        added: list[Any] = [a + b for a, b in zip(self, other)]
        total = Sums(*added)
        return total._replace(peak=max(self.peak, other.peak), digest=total.digest % (1 << 64))


def add_all(left: list[Sums], right: list[Sums]) -> list[Sums]:
    """Add the answers to the same queries."""
    return [a.plus(b) for a, b in zip(left, right)]


def evaluate(index: int, block: Block, form: Form, queries: list[Query]) -> list[Sums]:
    """Return a block's sums at every query; the rows are read once, and multiplied with all points at once."""
    totals = [Sums() for _ in queries]
    for at, rows in enumerate(form.samples(block, queries[0].loss, 1.0)):
        scores = Scores.of(rows, form, queries)
        answers = [
            _values(rows.priced(query.loss, query.C), query, scores, (index, at))
            if query.at.width == 0
            else _smoothed(rows.priced(query.loss, 1.0), form, query, scores)
            for query in queries
        ]
        nets = [answer.net for answer in answers if not isinstance(answer.net, float)]
        sums = iter(scores.net_sums(rows, form, nets))
        totals = [
            total.plus(part if isinstance(part.net, float) else part._replace(net=next(sums)))
            for total, part in zip(totals, answers)
        ]
    return totals


class Scores:
    """Scores of some samples at all points that queries name: one product of matrices.

    Attributes
    ----------
    F : ndarray (rows, n)
        The scores, a row for every function of every point.
    first : dict
        First row of a point, by its identity.
    """

    def __init__(self, F: Array, first: dict[int, int], m: int) -> None:
        self.F, self.first, self.m = F, first, m

    @classmethod
    def of(cls, problem: Problem, form: Form, queries: list[Query]) -> Scores:
        """Compute the scores at every point of some queries."""
        points: dict[int, Array] = {}
        for query in queries:
            for V in (query.at.V, query.anchor, *(centre.V for centre in query.centres)):
                if V is not None:
                    points[id(V)] = V
        stacked = np.vstack(list(points.values()))
        assert isinstance(problem.space, LinearSpace)
        F = (stacked[:, :-1] / form.scale) @ problem.space.X.T
        F += stacked[:, -1:]
        return cls(F, {key: i * form.n_functions for i, key in enumerate(points)}, form.n_functions)

    def at(self, V: Array) -> Array:
        """Return the scores (n, functions) at a point."""
        first = self.first[id(V)]
        return self.F[first : first + self.m].T

    def chain(self, query: Query) -> NDArray[np.intp]:
        """Return the rows of a two-class query's centres, and at the end that of its point."""
        return np.array([self.first[id(at.V)] for at in (*query.centres, query.at)], dtype=np.intp)

    def net_sums(self, problem: Problem, form: Form, nets: list[Array]) -> list[Array]:
        """Return sum_i net_i (z_i, 1) of several multipliers."""
        if not nets:
            return []
        assert isinstance(problem.space, LinearSpace)
        together = np.vstack([net.T for net in nets])
        total = np.column_stack([(together @ problem.space.X) / form.scale, together.sum(axis=1)])
        return [total[i * self.m : (i + 1) * self.m] for i in range(len(nets))]


def tilt_of(problem: Problem, query: Query, scores: Scores) -> Array | None:
    """Return the tilt that linearising the truncated loss at the anchor makes, None if there is none."""
    if query.anchor is None or query.truncated is None:
        return None
    return problem.priced(query.truncated, query.C).linearised(scores.at(query.anchor))[0]


def _values(problem: Problem, query: Query, scores: Scores, place: tuple[int, int]) -> Sums:
    F = scores.at(query.at.V)
    u = problem.margins_of_scores(F)
    risk = float(problem.costs @ problem.loss.value(u, problem.y))
    tilt = tilt_of(problem, query, scores)
    if tilt is not None:
        risk += float(np.sum(tilt * F))
    if problem.loss.is_convex:
        return Sums(risk=risk)
    _, excess = problem.linearised(F)
    capped = np.packbits(problem.loss.is_capped(u)).tobytes()
    digest = hashlib.blake2b(repr(place).encode() + capped, digest_size=8).digest()
    return Sums(risk=risk, excess=excess, digest=int.from_bytes(digest))


def _smoothed(problem: Problem, form: Form, query: Query, scores: Scores) -> Sums:
    """Return the sums at a smoothed point, ``net`` still being the multipliers of the samples."""
    found = respond(problem, query, scores)
    risk, smooth, tilt_gain, net = found.risk, found.smooth, 0.0, found.R
    tilt = tilt_of(problem, query, scores)
    if tilt is not None:
        linear = float(np.sum(tilt * scores.at(query.at.V)))
        risk, smooth, net = risk + linear, smooth + linear, found.R - tilt
        costs = query.C * problem.costs
        tilt_gain = float(np.sum(problem.loss.dual_gain(own_entries(problem, tilt), costs, problem.y)))
    assert isinstance(problem.space, LinearSpace)
    some = slice(None, None, query.every)
    told = found.moving[some], found.free[some], query.every * found.curvature[some]
    hessian = _hessian(problem.space.X, *told, form.scale)
    return Sums(risk, smooth, found.gain, tilt_gain, net, hessian, found.moving.size, peak=found.peak)


def own_entries(problem: Problem, R: Array) -> Array:
    """Return the multipliers alpha_i of the margins in multipliers R of the scores."""
    return R[:, 0] * problem.signs if problem.n_classes == 2 else R[np.arange(problem.n), problem.y]


class Response(NamedTuple):
    """Multipliers R (n, m), the samples where they can move and in which entries, the curvature there, and sums.

    ``gain`` is that of R, ``risk`` the loss C sum_i weight_i g(u_i), ``smooth`` the same with smoothed hinges, ``peak``
    the largest multiplier of a margin.
    """

    R: Array
    moving: NDArray[np.intp]
    free: NDArray[np.bool_]
    curvature: Array
    gain: float
    risk: float
    smooth: float
    peak: float


def respond(problem: Problem, query: Query, scores: Scores) -> Response:
    """Return R = argmax gain(R) - <R, F> - delta/2 ||R - R0||^2, the centre R0 being such a response itself.

    ``problem`` states the samples at unit C.
    """
    from .response_jit import BEND, GAIN, LINEAR, PEAK, RISK, respond_k_class, respond_two_class  # numba loads slowly

    breakpoints = np.array([t for _, t in problem.loss.hinges])
    chain = (*query.centres, query.at)
    if problem.n_classes == 2:
        R, moving, curvature = np.empty((1, problem.n)), np.empty(problem.n, dtype=np.intp), np.empty(problem.n)
        totals = np.zeros(5)
        inverse_widths, reaches = np.array([1.0 / at.width for at in chain]), np.array([at.reach for at in chain])
        count = respond_two_class(
            scores.F, scores.chain(query), inverse_widths, reaches, query.C, problem.signs,
            np.ascontiguousarray(problem.prices), breakpoints, R[0], moving, curvature, totals,
        )  # fmt: skip
        gain, risk = float(totals[GAIN]), float(totals[RISK])
        smooth = gain - float(totals[LINEAR] + totals[BEND])
        free = np.ones((count, 1), dtype=np.bool_)
        return Response(R.T, moving[:count], free, curvature[:count], gain, risk, smooth, float(totals[PEAK]))
    problem = problem.priced(query.loss, query.C)
    R0 = R = np.zeros((problem.n, problem.n_classes))
    for at in chain:
        F, R0 = np.ascontiguousarray(scores.at(at.V)), R
        R, free = np.empty_like(F), np.empty(F.shape, dtype=np.bool_)
        delta = at.width / np.minimum(problem.dual_limits, at.reach)
        respond_k_class(F, R0, problem.y, problem.prices, delta, breakpoints, R, free)
    own = own_entries(problem, R)
    gain = float(np.sum(problem.loss.dual_gain(own, problem.costs, problem.y)))
    risk = float(problem.costs @ problem.loss.convex_value(problem.margins_of_scores(F), problem.y))
    smooth = gain - float(np.sum(R * F)) - 0.5 * float(delta @ np.sum((R - R0) ** 2, axis=1))
    moving = np.flatnonzero(free.sum(axis=1) > 1)
    peak = float(np.abs(own).max(initial=0.0))
    return Response(R, moving, free[moving], 1.0 / delta[moving], gain, risk, smooth, peak)


def _hessian(X: Array, moving: NDArray[np.intp], free: NDArray[np.bool_], curvature: Array, scale: Array) -> Array:
    """Sum over moving samples of (projection on the free coordinates) kron curvature (z, 1)(z, 1)'."""
    p, m = X.shape[1], free.shape[1]
    if m == 1:
        return _gram(X[moving], curvature, scale)
    H = np.zeros((m, p + 1, m, p + 1))
    _, first, kind = np.unique(np.packbits(free, axis=1), axis=0, return_index=True, return_inverse=True)
    for t, example in enumerate(first):
        mine = kind.ravel() == t
        G = _gram(X[moving[mine]], curvature[mine], scale)
        coordinates = np.flatnonzero(free[example])
        for j in coordinates:
            for l in coordinates:
                H[j, :, l, :] += ((j == l) - 1.0 / coordinates.size) * G
    return H.reshape(m * (p + 1), -1)


def _gram(X: Array, weights: Array, scale: Array) -> Array:
    """Return sum_i weight_i (z_i, 1)(z_i, 1)' for z = x / scale; X is overwritten."""
    p = X.shape[1]
    G = np.empty((p + 1, p + 1))
    G[:p, p] = G[p, :p] = (weights @ X) / scale
    X *= np.sqrt(weights)[:, None]
    G[:p, :p] = X.T @ X
    G[:p, :p] /= scale
    G[:p, :p] /= scale[:, None]
    G[p, p] = weights.sum()
    return G


class Compensated(NamedTuple):
    """A sum of arrays kept as high + low (Neumaier), the sum of the absolute values, and the number of terms."""

    high: Array
    low: Array
    size: Array
    terms: int = 1

    @classmethod
    def of(cls, x: Any, size: Any = None) -> Compensated:
        """Return a sum of one term."""
        x = np.asarray(x, dtype=np.float64)
        return cls(x, np.zeros_like(x), np.abs(x) if size is None else np.asarray(size))

    def plus(self, other: Compensated) -> Compensated:
        """Add another sum."""
        high = self.high + other.high
        low = self.low + other.low + sum_error(self.high, other.high, high)
        return Compensated(high, low, self.size + other.size, self.terms + other.terms)
