"""The claim of a proof file: the problem as it was given, in numbers that are meant exactly, and the coefficients."""

from __future__ import annotations

import math
import platform
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.losses import JUMP_TOLERANCE
from ..core.problem import Problem
from ..core.spaces import KernelSpace, LinearSpace
from . import check as checker
from .repair import quantum_for
from .table import ProofError, Table, rounded_up

Array = NDArray[np.float64]
#: Limits of margins are multiples of 2^-24, rounded outward: 6e-8 of a margin costs nothing, and digits cost space.
MARGIN_QUANTUM = 24
#: Largest part of its largest diagonal entry that is added to a Gram matrix to prove it positive semidefinite.
_MOST_RIDGE = 1e-6


class Statement:
    """A fitted estimator's problem and point, for the checker (``exact``) and for the solvers (``problem``).

    Both have the same samples in the same order: those of positive weight, equal rows of a class merged.
    """

    def __init__(self, estimator: Any, table: Table, X: Any, y: Any, sample_weight: Any) -> None:
        self.estimator = estimator
        given, self.sample = estimator._prepare(X, y, sample_weight)
        if not given.penalty.is_convex:
            raise ProofError("Proofs are for the penalties l2, l1 and elastic net, not for folded ones.")
        is_data = isinstance(estimator.kernel, str) and estimator.kernel == "precomputed"
        self.space_kind = "features" if not given.is_kernel else "gram is data" if is_data else "gram in proof"
        self.claim = self._stated(table, given)
        self.exact: Any = checker.Problem(self.claim, table.rows, table.labels, table.weights)
        self.place = self._places(table)
        self.matrices: list[dict] = []
        self._state_space(given)
        self.problem = self._ordered(given)
        self._state_point(given)

    def _stated(self, table: Table, given: Problem) -> dict[str, Any]:
        """Return the claim without penalty and point."""
        k, loss = given.n_classes, given.loss
        codes = np.arange(k)
        slopes = [np.broadcast_to(np.asarray(c, dtype=np.float64), (k,)).tolist() for c in loss.slopes(codes)]
        hinges = [[float(t), c] for c, (_, t) in zip(slopes, loss.hinges)]
        caps = np.broadcast_to(np.asarray(loss.cap_of(codes), dtype=np.float64), (k,)).tolist()
        first = [int(np.flatnonzero(given.y == c)[0]) if np.any(given.y == c) else -1 for c in range(k)]
        factor = [float(given.weights[i] / self.sample.sample_weight[i]) if i >= 0 else 1.0 for i in first]
        return {
            "format": checker.FORMAT,
            "version": checker.VERSION,
            "kind": "convex" if loss.is_convex else "global",
            "data": table.about,
            "classes": [checker.label_text(label) for label in self.estimator.classes_.tolist()],
            "class_weight": factor,
            "C": float(given.C),
            "loss": {"hinges": hinges, "t": None, "cap": None, "tolerance": 0.0}
            if loss.is_convex
            else {"hinges": hinges, "t": float(loss.t), "cap": caps, "tolerance": 0.0},
            "space": self.space_kind,
            "ridge": 0.0,
            "quantum": quantum_for(given.costs * max(1.0, loss.max_slope)),
            "margin_quantum": MARGIN_QUANTUM,
            "made_by": _made_by(self.estimator),
        }

    def _places(self, table: Table) -> NDArray[np.intp]:
        """Return for every row of the table its sample, -1 for rows that are left out."""
        if self.space_kind == "gram is data":
            return np.arange(len(table.rows))
        where = {(y, *row): i for i, (y, row) in enumerate(zip(self.exact.y, self.exact.rows))}
        classes = {label: code for code, label in enumerate(self.claim["classes"])}
        keys = ((classes[label], *row) for label, row in zip(table.labels, table.rows))
        return np.array([where.get(key, -1) for key in keys])

    def _state_space(self, given: Problem) -> None:
        shape = (given.n_functions, given.space.dim if self.space_kind == "features" else self.exact.n)
        l1 = given.penalty.l1_array((given.n_functions, given.space.dim)) if given.penalty.has_l1 else np.zeros(shape)
        weights = [[None if math.isinf(v) else v for v in row] for row in l1.tolist()]
        self.claim["penalty"] = {"l2": float(given.penalty.l2), "l1": weights}
        if self.space_kind != "features":
            self.gram = self._gram()
            self.claim["ridge"], factor = semidefinite(self.gram)
            rows = [] if self.space_kind == "gram is data" else self.gram.tolist()
            self.matrices = [{"gram": row} for row in rows] + [{"factor": row} for row in factor.tolist()]
        checker.attach_space(self.exact, self.claim, iter(self.matrices))

    def _gram(self) -> Array:
        rows = np.array(self.exact.rows)
        if self.space_kind == "gram is data":
            if not np.array_equal(rows, rows.T):
                raise ProofError("A proof needs a Gram matrix that is symmetric to the last digit.")
            return rows
        K = np.asarray(self.estimator.kernel_.space(rows).K, dtype=np.float64)
        return 0.5 * (K + K.T)

    def _ordered(self, given: Problem) -> Problem:
        """Return the solvers' problem on the checker's samples."""
        space: Any
        if self.space_kind == "features":
            space = LinearSpace(np.array(self.exact.rows))
        else:
            space = KernelSpace(self.gram + self.claim["ridge"] * np.eye(self.exact.n), known_psd=True)
        weights = np.array([float(c / Fraction(self.claim["C"])) for c in self.exact.costs])
        return replace(given, space=space, y=np.array(self.exact.y, dtype=np.intp), weights=weights, tilt=None)

    def _state_point(self, given: Problem) -> None:
        """State the coefficients, the tolerance they need, and the objective they reach."""
        estimator = self.estimator
        stated = 1 if given.n_classes == 2 else given.n_classes - 1
        if self.space_kind == "features":
            coef = np.array(estimator.coef_, dtype=np.float64)
        else:
            coef = np.zeros((given.n_functions, self.exact.n))
            np.add.at(coef.T, self.place[estimator.dual_support_], estimator.dual_coef_.T)
        self.claim["coef"] = coef[:stated].tolist()
        self.claim["intercept"] = np.asarray(estimator.intercept_, dtype=np.float64)[:stated].tolist()
        W = [[Fraction(v) for v in row] for row in self.claim["coef"]]
        b = [Fraction(v) for v in self.claim["intercept"]]
        if given.n_classes > 2:
            W, b = [*W, [-sum(column) for column in zip(*W)]], [*b, -sum(b, Fraction(0))]
        if not given.loss.is_continuous:
            self._state_tolerance(W, b)
        self.point = W, b
        self.claim["objective"] = rounded_up(self.exact.value(W, b))

    def _state_tolerance(self, W: list, b: list) -> None:
        """State the least tolerance at the jump that counts all margins as the solvers' rule does."""
        scores = self.exact.space.scores(W[0])
        margins = [(s + b[0]) * (1 if y == 1 else -1) for s, y in zip(scores, self.exact.y)]
        short = [self.exact.t - u for u in margins]
        most = max((s for s in short if 0 < s <= Fraction(JUMP_TOLERANCE)), default=Fraction(0))
        self.claim["loss"]["tolerance"] = min(rounded_up(most), JUMP_TOLERANCE)
        space = self.exact.space
        self.exact.read_loss(self.claim)
        self.exact.set_scales(self.claim)
        self.exact.space = space

    def carried(self, R: Array) -> Array:
        """Carry multipliers R of the estimator's samples over to the samples of the proof."""
        out = np.zeros((self.exact.n, R.shape[1]))
        rows = np.flatnonzero((self.sample.position >= 0) & (self.place >= 0))
        position, first = np.unique(self.sample.position[rows], return_index=True)
        np.add.at(out, self.place[rows[first]], R[position])
        return out


def semidefinite(K: Array) -> tuple[float, Array]:
    """Return (ridge, G) such that K + ridge I - G G' is diagonally dominant; the checker looks again."""
    n, size = len(K), float(np.diagonal(K).max())
    step = 1e-16 * n * n * max(size, 1e-300)
    for ridge in (0.0, *(2.0 * step * 10.0**p for p in range(12))):
        inner = max(step, 0.5 * ridge)
        if ridge > _MOST_RIDGE * size:
            break
        try:
            G = np.linalg.cholesky(K + (ridge - inner) * np.eye(n))
        except np.linalg.LinAlgError:
            continue
        long = G.astype(np.longdouble)
        rest = K.astype(np.longdouble) + np.longdouble(ridge) * np.eye(n) - long @ long.T
        if np.all(2.0 * np.diagonal(rest) > np.abs(rest).sum(axis=1) + 0.1 * inner):
            return float(ridge), np.asarray(G, dtype=np.float64)
    raise ProofError("The Gram matrix is not positive semidefinite, so no bound holds.")


def _made_by(estimator: Any) -> dict[str, Any]:
    from .. import __version__

    parameters = {name: _plain(value) for name, value in sorted(estimator.get_params(deep=False).items())}
    name = type(estimator).__name__
    return {"psilearn": __version__, "python": platform.python_version(), "estimator": name, "options": parameters}


def _plain(value: Any) -> Any:
    """Return what JSON can hold as it is, everything else as text."""
    is_number = isinstance(value, int | float) and math.isfinite(value)
    return value if value is None or is_number or isinstance(value, str) else repr(value)


def records_of(statement: Statement, bound: float, evidence: list[dict]) -> Iterator[dict]:
    """Yield the lines of the proof file."""
    yield statement.claim | {"bound": bound}
    yield from statement.matrices
    yield from evidence
