"""The checker's samples as the exact solvers see them: centred, scaled, and the way back to coefficients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...exact.sample_state_jit import FREE, GONE, IN
from ...exact.two_class.model import make_workspace, model_of, solve_fixed
from ...exact.two_class.node.node_jit import Model
from ...exact.two_class.reduction import kernel_coordinates, scale_samples

Array = NDArray[np.float64]


@dataclass
class Scaled:
    """The checker's samples in the scaled coordinates of the exact solvers, and the way back."""

    model: Model
    unit_value: float
    basis: Array | None
    centre: Array
    K: Array | None
    l2: float
    X: Array

    @property
    def stretch(self) -> float:
        """Size of the largest entry of the map from given to scaled coordinates."""
        return 1.0 if self.basis is None else float(np.abs(self.basis).max(initial=0.0))

    def allow(self, tolerance: float) -> None:
        """Move breakpoints and jump down by the tolerance of the claim."""
        model = self.model
        self.model = model._replace(breakpoints=model.breakpoints - tolerance, t=model.t - tolerance)

    def margins(self, W: Array, b: Array) -> Array:
        """Margins of coefficients."""
        return self.model.y * ((self.X if self.K is None else self.K) @ W[0] + b[0])

    def moved_point(self, W: Array, b: Array, move: float) -> tuple[Array, Array]:
        """Coefficients of the best function that believes the same samples and holds them at t + ``move`` or more."""
        model, u = self.model, self.margins(W, b)
        paid = np.maximum(model.breakpoints - np.maximum(u, model.t)[:, None], 0.0) @ model.slopes
        state = np.where((u >= model.t - 2e-6) & (paid < model.cap), IN, GONE).astype(np.int8)
        lifted = model._replace(t=model.t + move)
        work = make_workspace(lifted)
        solve_fixed(lifted, work, state, 2.0 * float(model.cost.sum()) * model.cap + 1.0)
        if self.basis is None:
            W = (self.unit_value * work.alpha * model.y / self.l2)[None, :]
            # Rounding of the coordinates moves the scores a little; the intercept takes the mean of that.
            scores = (self.K if self.K is not None else self.X) @ W[0]
            return W, np.array([float(np.mean(model.y * work.u - scores))])
        v = self.basis @ work.w
        return v[None, :], np.array([work.b[0] - float(self.centre @ v)])


def make_model(statement: Any) -> Scaled:
    """Centre and scale the samples of a statement as the exact solvers do; samples stay in the checker's order."""
    stated, problem = statement.exact, statement.problem
    y = np.array(stated.sign, dtype=np.float64)
    cost = np.array([float(c) for c in stated.cost])
    K = None
    if problem.is_kernel:
        K = np.array(stated.space.K, dtype=np.float64) * 2.0**stated.space.e
        X = kernel_coordinates(K)
    else:
        X = np.array(stated.rows, dtype=np.float64)
    scaling, norm = scale_samples(X, problem.penalty), 2 if problem.penalty.l2 > 0 else 1
    model = model_of(scaling.z, y, cost / scaling.unit, norm, problem.loss, np.full(y.size, FREE, np.int8))
    basis = None if K is not None else scaling.basis
    return Scaled(model, scaling.unit, basis, scaling.centre, K, float(problem.penalty.l2), X)
