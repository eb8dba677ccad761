"""A linear, quadratic or mixed-integer program in HiGHS that grows by rows and columns and stays warm.

minimise  c'x + 1/2 x'Qx   subject to   L <= A x <= U,   l <= x <= u,   some x integer
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import highspy
import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

INF = highspy.kHighsInf
_INT = highspy.HighsVarType.kInteger
_DUAL, _PRIMAL = 1, 4  # values of the option simplex_strategy
_BASIC, _NONBASIC = highspy.HighsBasisStatus.kBasic, highspy.HighsBasisStatus.kNonbasic


class ProgramError(RuntimeError):
    """The engine ended without a usable answer; the message carries its status."""


@dataclass(frozen=True)
class Answer:
    """Values, duals and bound of one solve (the engine's own numbers; callers recompute what they report)."""

    x: NDArray[np.float64]
    row_dual: NDArray[np.float64]
    reduced_cost: NDArray[np.float64]
    value: float
    bound: float
    is_optimal: bool
    status: str
    iterations: int


class HighsSession:
    """One HiGHS model kept alive: every change starts the next solve from the last basis."""

    def __init__(self, threads: int = 1, **options: float | int | str | bool) -> None:
        self.model = highspy.Highs()
        self.set(output_flag=False, threads=threads, **options)
        self._is_mip = False

    def set(self, **options: float | int | str | bool) -> None:
        """Set engine options by their HiGHS names; an unknown name raises ValueError."""
        for name, value in options.items():
            if self.model.setOptionValue(name, value) == highspy.HighsStatus.kError:
                raise ValueError(f"HiGHS has no option {name!r} that accepts {value!r}.")

    @property
    def n_cols(self) -> int:
        """Number of variables."""
        return self.model.getNumCol()

    @property
    def n_rows(self) -> int:
        """Number of constraints."""
        return self.model.getNumRow()

    def add_columns(
        self,
        cost: ArrayLike,
        lower: ArrayLike = 0.0,
        upper: ArrayLike = math.inf,
        entries: sp.spmatrix | NDArray[Any] | None = None,
        integer: bool = False,
    ) -> NDArray[np.intp]:
        """Add variables; ``entries`` (n_rows, new) are their coefficients in the present rows. Returns the indices."""
        cost = np.atleast_1d(np.asarray(cost, dtype=np.float64))
        count, first = cost.size, self.n_cols
        lower, upper = _spread(lower, count), _spread(upper, count)
        columns = sp.csc_matrix((self.n_rows, count) if entries is None else entries)
        columns.eliminate_zeros()
        self.model.addCols(
            count, cost, lower, upper, columns.nnz,
            columns.indptr[:-1].astype(np.int32), columns.indices.astype(np.int32), columns.data.astype(np.float64),
        )  # fmt: skip
        index = np.arange(first, first + count)
        if integer:
            self._is_mip = True
            self.model.changeColsIntegrality(count, index.astype(np.int32), np.array([_INT] * count))
        return index

    def add_rows(self, entries: sp.spmatrix | NDArray[Any], lower: ArrayLike, upper: ArrayLike) -> NDArray[np.intp]:
        """Add constraints lower <= entries x <= upper, ``entries`` (new, n_cols). Returns their indices."""
        rows = sp.csr_matrix(np.atleast_2d(entries) if not sp.issparse(entries) else entries)
        rows.eliminate_zeros()
        count, first = rows.shape[0], self.n_rows
        self.model.addRows(
            count, _spread(lower, count), _spread(upper, count), rows.nnz,
            rows.indptr[:-1].astype(np.int32), rows.indices.astype(np.int32), rows.data.astype(np.float64),
        )  # fmt: skip
        return np.arange(first, first + count)

    def delete_rows(self, rows: ArrayLike) -> None:
        """Delete constraints; later ones move up."""
        index = np.sort(np.asarray(rows, dtype=np.int32))
        if index.size:
            self.model.deleteRows(index.size, index)

    def delete_columns(self, columns: ArrayLike) -> None:
        """Delete variables; later ones move up."""
        index = np.sort(np.asarray(columns, dtype=np.int32))
        if index.size:
            self.model.deleteCols(index.size, index)

    def change_costs(self, columns: ArrayLike, cost: ArrayLike) -> None:
        """Change the linear objective of some variables."""
        index = np.atleast_1d(np.asarray(columns, dtype=np.int32))
        self.model.changeColsCost(index.size, index, _spread(cost, index.size))

    def change_column_bounds(self, columns: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> None:
        """Change the bounds of some variables."""
        index = np.atleast_1d(np.asarray(columns, dtype=np.int32))
        self.model.changeColsBounds(index.size, index, _spread(lower, index.size), _spread(upper, index.size))

    def change_row_bounds(self, rows: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> None:
        """Change the bounds of some constraints."""
        index = np.atleast_1d(np.asarray(rows, dtype=np.int32))
        lows, highs = _spread(lower, index.size), _spread(upper, index.size)
        for row, low, high in zip(index, lows, highs):  # the call for many rows is not in every version
            self.model.changeRowBounds(int(row), float(low), float(high))

    def set_quadratic(self, Q: sp.spmatrix | NDArray[Any]) -> None:
        """Set the convex quadratic term 1/2 x'Qx (symmetric Q over all present columns)."""
        lower = sp.csc_matrix(sp.tril(sp.csc_matrix(Q)))
        lower.sort_indices()
        hessian = highspy.HighsHessian()
        hessian.dim_ = lower.shape[0]
        hessian.format_ = highspy.HessianFormat.kTriangular
        hessian.start_ = lower.indptr.astype(np.int32)
        hessian.index_ = lower.indices.astype(np.int32)
        hessian.value_ = lower.data.astype(np.float64)
        self.model.passHessian(hessian)

    def set_start(self, x: ArrayLike) -> None:
        """Hand in a feasible point (a MIP start)."""
        solution = highspy.HighsSolution()
        solution.col_value = np.asarray(x, dtype=np.float64)
        self.model.setSolution(solution)

    def set_basis(self, columns: NDArray[np.bool_], rows: NDArray[np.bool_]) -> None:
        """Start the next solve from the basis of these variables and slacks, as many in all as there are rows."""
        basis = highspy.HighsBasis()
        basis.col_status, basis.row_status = ([_BASIC if b else _NONBASIC for b in part] for part in (columns, rows))
        basis.valid = True
        if self.model.setBasis(basis) == highspy.HighsStatus.kError:
            raise ProgramError("HiGHS does not accept the basis.")

    def forget_basis(self) -> None:
        """Start the next solve from scratch."""
        self.model.clearSolver()

    def solve(self, time_limit: float = math.inf, primal: bool = False) -> Answer:
        """Solve from the present basis; :class:`ProgramError` if there is neither a solution nor a reached limit.

        ``primal`` asks for the primal simplex method, which keeps the feasibility that new columns leave; the dual one
        keeps what new rows leave.
        """
        self.set(simplex_strategy=_PRIMAL if primal else _DUAL)
        # HiGHS counts its limit from the birth of the model, not of the call.
        self.set(time_limit=float(min(self.model.getRunTime() + max(time_limit, 0.0), 1e30)))
        self.model.run()
        status = self.model.getModelStatus()
        info = self.model.getInfo()
        name = self.model.modelStatusToString(status)
        optimal = status == highspy.HighsModelStatus.kOptimal
        has_point = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
        if not optimal and not has_point and status not in _LIMITS:
            raise ProgramError(f"HiGHS stopped with status {name!r}.")
        solution = self.model.getSolution()
        value = info.objective_function_value if has_point or optimal else math.inf
        bound = info.mip_dual_bound if self._is_mip else (value if optimal else -math.inf)
        iterations = info.mip_node_count if self._is_mip else info.simplex_iteration_count
        return Answer(
            np.array(solution.col_value), np.array(solution.row_dual), np.array(solution.col_dual),
            value, bound, optimal, name, int(iterations),
        )  # fmt: skip


_LIMITS = (
    highspy.HighsModelStatus.kTimeLimit,
    highspy.HighsModelStatus.kIterationLimit,
    highspy.HighsModelStatus.kSolutionLimit,
    highspy.HighsModelStatus.kInterrupt,
)


def _spread(values: ArrayLike, count: int) -> NDArray[np.float64]:
    out = np.ascontiguousarray(np.broadcast_to(np.asarray(values, dtype=np.float64), (count,)))
    return np.clip(out, -INF, INF)
