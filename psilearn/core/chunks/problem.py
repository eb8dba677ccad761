"""The objective on samples that lie in blocks: what :class:`psilearn.core.problem.Problem` is for arrays.

Nothing of the size of the sample is kept. Multipliers are those of a point and a width (:class:`Implied`), a tilt is
that of the point where a truncated loss was linearised.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..losses import Loss
from ..penalties import Penalty
from ..scaling import Scaling
from .grid import exponent_of
from .proof import Bound, Claim, Evidence, all_of, bound_of, collect, join_evidence, wanted_of
from .sums import Form, Query, Smoothing, Sums, add_all, evaluate
from .workers import Workers

Array = NDArray[np.float64]

#: Blocks that stand ready to balance the multipliers of all others; what they prove is kept apart meanwhile.
_RESERVE = 64


class Implied(NamedTuple):
    """Multipliers of every sample: those of a smoothed point near those of the centres, the largest being ``peak``."""

    at: Smoothing
    centres: tuple[Smoothing, ...]
    peak: float


@dataclass(frozen=True)
class ChunkedSpace:
    """Linear functions on rows that lie in blocks."""

    n: int
    dim: int
    kind: str = "chunked"
    is_psd: bool = True

    def inner(self, W: Array, V: Array) -> float:
        """Inner product of two sets of functions, intercepts left out."""
        return float(np.sum(W * V))


@dataclass(frozen=True, eq=False)
class ChunkedProblem:
    """Data in blocks, loss, penalty and scaling of one learning problem.

    Parameters
    ----------
    workers : Workers
        The blocks, and who works on them.
    form : Form
        Classes, class weights, coordinates.
    space : ChunkedSpace
        Numbers of samples and features.
    loss, penalty, C
        As for :class:`psilearn.core.problem.Problem`.
    total_weight : float
        Sum of all sample weights, class weights included.
    anchor : tuple of ndarray or None
        (W, b) where ``truncated`` was linearised; the tilt follows from it.
    truncated : Loss or None
        The loss that was linearised.
    offset : float
        Constant term.
    """

    workers: Workers
    form: Form
    space: ChunkedSpace
    loss: Loss
    penalty: Penalty
    C: float
    total_weight: float
    anchor: tuple[Array, Array] | None = None
    truncated: Loss | None = None
    offset: float = 0.0
    digest: int = 0
    _known: dict[bytes, Sums] = field(default_factory=dict, init=False, repr=False)

    is_kernel = False

    @property
    def n(self) -> int:
        """Number of samples."""
        return self.space.n

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.form.classes.size)

    @property
    def n_functions(self) -> int:
        """Rows m of W: 1 for two classes, k otherwise."""
        return self.form.n_functions

    @property
    def is_convex(self) -> bool:
        """True if loss and penalty are convex."""
        return self.loss.is_convex and self.penalty.is_convex

    @property
    def tilt(self) -> NDArray[np.uint64] | None:
        """What tells one tilt from another (not the tilt, which has the size of the sample); None if there is none."""
        return None if self.anchor is None else np.array([self.digest], dtype=np.uint64)

    @property
    def scaling(self) -> Scaling:
        """The coordinates in which blocks work."""
        return Scaling(self.form.mean, self.form.scale)

    @property
    def zero_value(self) -> float:
        """An upper bound on the objective of f = 0: it sets the scale of rounding errors."""
        return self.C * self.total_weight * float(max(self.loss.value(np.zeros(1)).max(), 0.0))

    @cached_property
    def _anchor(self) -> Array | None:
        return None if self.anchor is None else self.scaling.from_coefficients(*self.anchor)

    def query(self, at: Smoothing, centres: tuple[Smoothing, ...] = ()) -> Query:
        """Return the query of a smoothed point."""
        return Query(at, self.C, self.loss, centres, self._anchor, self.truncated)

    def query_of(self, W: Array, b: Array) -> Query:
        """Return the query of the objective at a point."""
        return self.query(Smoothing(self.scaling.from_coefficients(W, b), 0.0))

    def sums(self, queries: list[Query]) -> list[Sums]:
        """Answer queries in one pass over the data."""
        answers: list[Sums] = self.workers.sum(evaluate, add_all, self.form, queries)
        return answers

    def value(self, W: Array, b: Array) -> float:
        """Evaluate the objective in one pass, unless it was asked for this point before."""
        return self._penalty_value(W) + self._at(W, b).risk + self.offset

    def _penalty_value(self, W: Array) -> float:
        return self.penalty.value(W, float(np.sum(W * W)))

    def _at(self, W: Array, b: Array) -> Sums:
        key = W.tobytes() + b.tobytes()
        if key not in self._known:
            self._known.clear()
            self._known[key] = self.sums([self.query_of(W, b)])[0]
        return self._known[key]

    def values(self, points: list[tuple[Array, Array]]) -> list[float]:
        """Evaluate the objective at several points (W, b) in one pass."""
        found = self.sums([self.query_of(W, b) for W, b in points])
        return [self._penalty_value(W) + sums.risk + self.offset for (W, _), sums in zip(points, found)]

    def majorant(self, W: Array, b: Array) -> ChunkedProblem:
        """Return the convex problem of a d.c. step (see :meth:`psilearn.core.problem.Problem.majorant`)."""
        here = self._at(W, b)
        penalty, offset = self.penalty.majorant(W)
        return replace(
            self, loss=self.loss.convex_part, penalty=penalty, anchor=(W, b), truncated=self.loss,
            offset=offset + self.offset - here.excess, digest=here.digest,
        )  # fmt: skip

    def bound(self, R: Implied, W: Array, b: Array) -> Bound | None:
        """Return what the multipliers prove, and the objective at (W, b), in one pass and a few blocks more."""
        exponent = exponent_of(R.peak, self.n_classes, self.anchor is not None)
        value, at = self.query_of(W, b), R.at
        if np.allclose(value.at.V, at.V, rtol=1e-12, atol=0.0):  # the same but for rounding: scores serve both
            at = at._replace(V=value.at.V)
        claim = Claim(self.query(at, R.centres), value, exponent)
        n = self.workers.n_blocks
        for most in sorted({min(_RESERVE, n), n}):
            found = self._proved(claim._replace(reserve=tuple(np.linspace(0, n - 1, most).astype(int).tolist())))
            wanted = wanted_of(found)
            if wanted is not None:
                again = self._proved(claim._replace(wanted=wanted), sorted(wanted)) if wanted else None
                return bound_of(all_of(found, again, wanted), self.penalty, self.offset)
        return None

    def _proved(self, claim: Claim, only: list[int] | None = None) -> Evidence:
        return self.workers.sum(collect, join_evidence, self.form, [claim], only=only)[0]

    def accepts(self, R: Any) -> bool:
        """Whether R are multipliers said by points of the right shape."""
        if not isinstance(R, Implied):
            return False
        shape = (self.n_functions, self.space.dim + 1)
        return all(
            at.V.shape == shape and bool(np.all(np.isfinite(at.V))) and at.width > 0 for at in (R.at, *R.centres)
        )

    def dual_bound(self, R: Any) -> float:
        """Return a lower bound on the convex optimum that the multipliers prove; -inf if they prove nothing."""
        if not isinstance(R, Implied):
            return -math.inf
        found = self.bound(R, *self.scaling.coefficients(R.at.V))
        return -math.inf if found is None else found.bound
