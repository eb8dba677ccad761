"""Losses: one normal form in the functional margin u, from which everything else is derived.

    l(u) = g(u)   if u >= t          g(u) = sum_k c_k (t_k - u)_+     (convex, non-increasing, >= 0)
           cap    if u <  t          cap >= g(t)

A loss is convex iff ``cap`` is infinite, continuous iff ``cap = g(t)``. A jump (psi with a < 2, the hard margin)
can be handled by exact methods only. Solvers read these numbers and nothing else. The slopes c_k may depend on the
class of the sample (:class:`ByClass`), the breakpoints t_k and t may not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: A margin this little below the jump still counts as on it. Optima of psi-learning often sit exactly at u = t, where a
#: rounding error of 1e-12 would otherwise change the loss from g(t) to cap.
JUMP_TOLERANCE = 1e-6


class NormalForm(NamedTuple):
    """The numbers that define a loss."""

    hinges: tuple[tuple[float, float], ...]
    t: float = -math.inf
    cap: float = math.inf


class Loss:
    """Base of all losses; a subclass only states its :meth:`normal_form`."""

    def normal_form(self) -> NormalForm:
        """Return ``(hinges, t, cap)``, hinges as pairs ``(c_k, t_k)``."""
        raise NotImplementedError(f"{type(self).__name__} must define normal_form()")

    @property
    def hinges(self) -> tuple[tuple[float, float], ...]:
        """Pairs (c_k, t_k) with c_k > 0, largest t_k first: the order in which a falling margin meets them."""
        return tuple(sorted((p for p in self.normal_form().hinges if p[0] > 0), key=lambda p: -p[1]))

    def slopes(self, y: NDArray[np.intp] | None = None) -> Sequence[Any]:
        """Return c_k for every hinge: numbers, or arrays over samples of class codes ``y`` if they differ by class."""
        return [c for c, _ in self.hinges]

    @property
    def varies_by_class(self) -> bool:
        """True iff the slopes depend on the class of a sample."""
        return False

    @property
    def t(self) -> float:
        """Below this margin the loss is flat at its cap."""
        return self.normal_form().t

    @property
    def cap(self) -> float:
        """Value of the loss below t."""
        return self.normal_form().cap

    @property
    def is_convex(self) -> bool:
        """True iff nothing is truncated."""
        return math.isinf(self.cap)

    @property
    def jump(self) -> float:
        """Height cap - g(t) of the jump at t (0 if continuous)."""
        return 0.0 if self.is_convex else max(0.0, self.cap - float(self.convex_value(self.t)))

    @property
    def is_continuous(self) -> bool:
        """True iff the loss does not jump at t."""
        return self.jump <= 1e-12 * max(1.0, self.cap) if not self.is_convex else True

    @property
    def traits(self) -> frozenset[str]:
        """What a solver must be able to handle; solvers declare which of these they take."""
        traits = {
            "convex": self.is_convex,
            "truncated": not self.is_convex,
            "jump": not self.is_continuous,
            "slopes by class": self.varies_by_class,
            "truncated elsewhere than 0": not self.is_convex and self.t != 0.0,
            "no hinge": not self.hinges,
        }
        return frozenset(name for name, holds in traits.items() if holds)

    @property
    def max_slope(self) -> float:
        """Steepest slope sum_k c_k of g, of any class: the upper end of the dual box per unit of cost."""
        return float(sum(c for c, _ in self.hinges))

    @property
    def convex_part(self) -> Loss:
        """The same hinges without truncation."""
        return self if self.is_convex else ConvexHinges(self.hinges)

    @property
    def continuous_surrogate(self) -> Loss:
        """A continuous loss with the same cap: hinges made steeper until they meet it (psi becomes psi with a = 2)."""
        if self.is_continuous:
            return self
        if not self.hinges:
            return Truncated(((self.cap, self.t),), self.t - 1.0, self.cap)
        factor = self.cap / float(self.convex_value(self.t))
        return Truncated(tuple((factor * c, t) for c, t in self.hinges), self.t, self.cap)

    def convex_value(self, u: ArrayLike, y: NDArray[np.intp] | None = None) -> NDArray[np.float64]:
        """Evaluate g(u) = sum_k c_k (t_k - u)_+ at margins of samples of class codes ``y``."""
        u = np.asarray(u, dtype=np.float64)
        out = np.zeros_like(u)
        for c, (_, t) in zip(self.slopes(y), self.hinges):
            excess = np.asarray(t - u)
            np.maximum(excess, 0.0, out=excess)
            excess *= c
            out += excess
        return out

    def cap_of(self, y: NDArray[np.intp] | None = None) -> Any:
        """Return the cap: a number, or one per sample if the slopes differ by class."""
        return self.cap

    def value(self, u: ArrayLike, y: NDArray[np.intp] | None = None) -> NDArray[np.float64]:
        """Evaluate l(u), with :data:`JUMP_TOLERANCE` at the jump."""
        u = np.asarray(u, dtype=np.float64)
        if self.is_convex:
            return self.convex_value(u, y)
        if self.is_continuous:
            return np.minimum(self.convex_value(u, y), self.cap_of(y))
        return np.where(u >= self.t - JUMP_TOLERANCE, self.convex_value(np.maximum(u, self.t), y), self.cap)

    def convex_slope(self, u: ArrayLike, y: NDArray[np.intp] | None = None) -> NDArray[np.float64]:
        """Return the steepness -g'(u) >= 0, the right derivative at a breakpoint (a valid subgradient)."""
        u = np.asarray(u, dtype=np.float64)
        out = np.zeros_like(u)
        for c, (_, t) in zip(self.slopes(y), self.hinges):
            out += c * (u < t)
        return out

    def is_capped(self, u: ArrayLike) -> NDArray[np.bool_]:
        """Whether the margin lies strictly where the loss is flat at its cap (a suspect)."""
        u = np.asarray(u, dtype=np.float64)
        return u < self.t - JUMP_TOLERANCE

    def dual_gain(self, alpha: ArrayLike, cost: ArrayLike, y: NDArray[np.intp] | None = None) -> NDArray[np.float64]:
        """Return max{sum_k t_k a_k : sum_k a_k = alpha, 0 <= a_k <= cost c_k}, minus the conjugate of cost * g.

        Concave and piecewise linear in ``alpha`` on [0, cost * max_slope]; the hinges with the largest t_k fill first.
        """
        rest = np.array(alpha, dtype=np.float64)
        out = np.zeros_like(rest)
        used = max((k + 1 for k, (_, t) in enumerate(self.hinges) if t != 0), default=0)
        for c, (_, t) in zip(self.slopes(y)[:used], self.hinges):
            part = np.minimum(rest, np.multiply(cost, c))
            rest -= part
            out += t * part
        return out


@dataclass(frozen=True)
class ConvexHinges(Loss):
    """Any g(u) = sum_k c_k (t_k - u)_+: the convex part of a truncated loss."""

    pieces: tuple[tuple[float, float], ...]

    def normal_form(self) -> NormalForm:
        """State the numbers."""
        return NormalForm(tuple(self.pieces))


@dataclass(frozen=True)
class Truncated(Loss):
    """Any member of the normal form, by its numbers."""

    pieces: tuple[tuple[float, float], ...]
    at: float
    height: float

    def normal_form(self) -> NormalForm:
        """State the numbers."""
        return NormalForm(tuple(self.pieces), self.at, self.height)


@dataclass(frozen=True)
class Hinge(Loss):
    """The support vector machine's (1 - u)_+."""

    def normal_form(self) -> NormalForm:
        """State the numbers."""
        return NormalForm(((1.0, 1.0),))


@dataclass(frozen=True)
class TruncatedHinge(Loss):
    """T_s(u) = min((1 - u)_+, 1 - s), s <= 1 (Liu and Wu, Robust Truncated-Hinge-Loss SVM, 2006).

    Parameters
    ----------
    s : float, default=0.0
        Margin below which the loss is flat, less than 1.
    """

    s: float = 0.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.s) and self.s < 1):
            raise ValueError(f"s must be a finite number below 1, got {self.s!r}.")

    def normal_form(self) -> NormalForm:
        """State the numbers."""
        return NormalForm(((1.0, 1.0),), self.s, 1.0 - self.s)


@dataclass(frozen=True)
class Psi(Loss):
    """The loss psi(u) = 2 if u < 0, a (1 - u) on [0, 1], 0 above (Liu and Wu, Optimizing psi-learning via MIP, 2006).

    Parameters
    ----------
    a : float, default=1.0
        Height just inside the margin, in (0, 2]; below 2 the loss jumps at 0.
    """

    a: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.a <= 2:
            raise ValueError(f"a must lie in (0, 2], got {self.a!r}.")

    def normal_form(self) -> NormalForm:
        """State the numbers."""
        return NormalForm(((float(self.a), 1.0),), 0.0, 2.0)


def _check_d(d: float) -> None:
    if not 0 < d <= 0.5:
        raise ValueError(f"d must lie in (0, 1/2], got {d!r}.")


@dataclass(frozen=True)
class RejectHinge(Loss):
    """Reject hinge (1 - u)_+ + (1 - 2d)/d (-u)_+ (Bartlett and Wegkamp 2008; Choi, Kim, Han and Kang 2009, (1.2)).

    Parameters
    ----------
    d : float, default=0.2
        Cost of an abstention when a wrong answer costs 1, in (0, 1/2).
    """

    d: float = 0.2

    def __post_init__(self) -> None:
        _check_d(self.d)

    def normal_form(self) -> NormalForm:
        """State the numbers."""
        return NormalForm(((1.0, 1.0), ((1.0 - 2.0 * self.d) / self.d, 0.0)))


@dataclass(frozen=True)
class TruncatedReject(Loss):
    """Reject hinge of d, capped at its value in s: robust and abstaining.

    Parameters
    ----------
    d : float, default=0.2
        As in :class:`RejectHinge`.
    s : float, default=-1.0
        Margin below which the loss is flat, less than 1.
    """

    d: float = 0.2
    s: float = -1.0

    def __post_init__(self) -> None:
        _check_d(self.d)
        if not (math.isfinite(self.s) and self.s < 1):
            raise ValueError(f"s must be a finite number below 1, got {self.s!r}.")

    def normal_form(self) -> NormalForm:
        """State the numbers."""
        hinges = RejectHinge(self.d).normal_form().hinges
        return NormalForm(hinges, self.s, sum(c * max(t - self.s, 0.0) for c, t in hinges))


@dataclass(frozen=True)
class ByClass(Loss):
    """One loss per class code, all convex or all truncated at the same t without a jump.

    Written in the normal form with the hinges of all of them; a hinge that a class does not have has slope 0 there.
    """

    losses: tuple[Loss, ...]

    def __post_init__(self) -> None:
        if len({loss.t for loss in self.losses}) != 1 or not all(loss.is_continuous for loss in self.losses):
            raise ValueError("Losses of the classes must be truncated at the same t, without a jump, or not at all.")

    def normal_form(self) -> NormalForm:
        """State the numbers, with the largest slope of any class."""
        breakpoints = sorted({t for loss in self.losses for _, t in loss.hinges})
        hinges = tuple((max(_slope_at(loss, t) for loss in self.losses), t) for t in breakpoints)
        return NormalForm(hinges, self.losses[0].t, max(loss.cap for loss in self.losses))

    def slopes(self, y: NDArray[np.intp] | None = None) -> Sequence[Any]:
        """Return c_k for every hinge, arrays over the samples of class codes ``y``."""
        if y is None:
            raise ValueError("A loss that differs by class needs the classes of the samples.")
        return [np.array([_slope_at(loss, t) for loss in self.losses])[y] for _, t in self.hinges]

    def cap_of(self, y: NDArray[np.intp] | None = None) -> Any:
        """Return the caps of the samples."""
        return np.array([loss.cap for loss in self.losses])[y]

    @property
    def jump(self) -> float:
        """There is none."""
        return 0.0

    @property
    def varies_by_class(self) -> bool:
        """True: that is what it is for."""
        return True

    @property
    def convex_part(self) -> Loss:
        """The same hinges without truncation."""
        return self if self.is_convex else ByClass(tuple(loss.convex_part for loss in self.losses))


def _slope_at(loss: Loss, breakpoint: float) -> float:
    return float(sum(c for c, t in loss.hinges if t == breakpoint))


def reject_by_class(costs: tuple[float, float], s: float | None = None) -> ByClass:
    """Return the reject hinge for abstentions that cost r- on the negative and r+ on the positive class, an error 1.

    With eta = P(Y = + | x), answering + costs 1 - eta, answering - costs eta, abstaining eta r+ + (1 - eta) r-. So the
    best rule (Chow's, with two costs) answers

        + iff 1 - eta < d-,  d- = r+ / (1 - r- + r+),      - iff eta < d+,  d+ = r- / (1 - r+ + r-),

    and abstains between; some eta is left to abstain iff r- + r+ < 1, which is also what makes d-, d+ < 1/2. Take
    phi_d(u) = (1 - u)_+ + (1 - 2d)/d (-u)_+ = max(0, 1 - u, 1 - u (1 - d)/d) with d = d+ on the positive and d = d- on
    the negative class. The conditional risk eta phi_{d+}(f) + (1 - eta) phi_{d-}(-f) is convex and piecewise linear in
    f with breakpoints at -1, 0, 1, and grows outside, so it is least at one of them:

        f = 0: 1,      f = 1: (1 - eta)/d-  (below 1 iff 1 - eta < d-),      f = -1: eta/d+  (below 1 iff eta < d+).

    At most one of the last two is below 1, because d- + d+ < 1. Hence the minimiser is the best rule with 0 for
    "abstain": the surrogate is Fisher consistent, as Bartlett and Wegkamp (2008) show for r- = r+ = d = d- = d+.

    Parameters
    ----------
    costs : tuple of float
        (r-, r+), positive, with sum below 1: the costs of the class codes 0 and 1.
    s : float, optional
        Cap the losses at their values in s.
    """
    low, high = (float(r) for r in costs)
    if not (low > 0 and high > 0 and low + high < 1):
        raise ValueError(f"The costs of abstaining must be positive and add up to less than 1, got {costs!r}.")
    thresholds = (high / (1.0 - low + high), low / (1.0 - high + low))
    return ByClass(tuple(RejectHinge(d) if s is None else TruncatedReject(d, s) for d in thresholds))


@dataclass(frozen=True)
class HardMargin(Loss):
    """The 0/1 loss with margin one: 1 if u < 1 (Goldberg and Eckstein 2009; Brooks 2011)."""

    def normal_form(self) -> NormalForm:
        """State the numbers."""
        return NormalForm((), 1.0, 1.0)


#: One example of every loss; tests enumerate it, so a newcomer is tested unasked.
LOSSES: tuple[Loss, ...] = (
    Hinge(),
    RejectHinge(0.2),
    TruncatedHinge(-0.5),
    Psi(0.5),
    Psi(1.0),
    Psi(2.0),
    TruncatedReject(0.2, -1.0),
    HardMargin(),
)
