"""Where the l1 path starts: the largest C, or the smallest multiple of the l1 weights, at which W = 0 is optimal.

Cost: one linear program with a column per sample that the best constant leaves on a breakpoint, solved over a few
thousand of them at a time for two classes, and a row per feature.
"""

from __future__ import annotations

import copy

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from psilearn.core.problem import Problem
from psilearn.core.spaces import LinearSpace
from psilearn.engines.highs import HighsSession, ProgramError

Array = NDArray[np.float64]

_TIE = (
    1e-9  # margins of the best constant this close to a breakpoint are on it, prices of columns this close to 0 are 0
)
_MANY = 2000  # open multipliers from which a few at a time are tried,
_FEW, _PER_FEATURE = 200, 10  # and how many those are at least


def smallest_useful_C(problem: Problem) -> float:
    """Return the C up to which W = 0 is optimal, and above which coefficients appear: the first point of a grid of C.

    Parameters
    ----------
    problem : Problem
        Convex, on a linear space, with an l1 penalty and without tilt; its C does not matter.

    Returns
    -------
    float
        inf if no C makes a coefficient useful, 0 if W = 0 is optimal for none.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn.core.losses import Hinge
    >>> from psilearn.core.penalties import Penalty
    >>> X, y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([0, 0, 1, 1])
    >>> problem = Problem(LinearSpace(X), y, 2, Hinge(), Penalty(l1=1.0), 1.0, np.ones(4))
    >>> round(smallest_useful_C(problem), 6)
    0.166667
    """
    if problem.tilt is not None:
        raise ValueError("smallest_useful_C needs a problem without tilt: a linear term does not scale with C.")
    threshold = l1_threshold(problem)
    return problem.C / threshold if threshold > 0 else np.inf


def l1_threshold(problem: Problem) -> float:
    """Return the least s >= 0 such that W = 0 is optimal when the l1 weights are multiplied by s; inf if there is none.

    W = 0 is optimal iff multipliers of the best constant exist with |sum_i (R_ij - tilt_ij) x_id - nu_d| <= s l1_jd
    (nu = 0 for two classes, free where k functions must sum to zero): a linear program whose variables are the
    multipliers of the samples that the best constant leaves on a breakpoint, minimising s. In the scaling
    sum_i l(u_i) + lambda ||w||_1 of Choi, Kim, Han and Kang (2009), (2.1), with C = l1 = 1, this is lambda_max.

    Parameters
    ----------
    problem : Problem
        Convex, on a linear space, with an l1 penalty. An l2 part does not matter.
    """
    assert isinstance(problem.space, LinearSpace)
    pairs = _Pairs(problem, _best_constant(problem))
    if problem.n_classes == 2 and sum(members.size for members, *_ in pairs.open) > _MANY:
        return _sifted(pairs)
    return pairs.least_scale()[0]


def _sifted(pairs: _Pairs) -> float:
    """Minimise s over few open multipliers at a time, two classes.

    The program has as few rows as there are features, so nearly all of its columns end at a bound, and prices of the
    rows tell at which. The first prices come from a sample of the columns. Columns whose price is near zero stay open,
    the others are put at their bound; those whose price then has the wrong sign are opened, until there are none.
    """
    size = max(_FEW, _PER_FEATURE * pairs.problem.space.dim)
    every = max(1, sum(members.size for members, *_ in pairs.open) // (2 * size))
    _, prices = pairs.sampled(every).least_scale()
    reduced = pairs.reduced_costs(prices)
    stays_open = [np.abs(r) <= np.partition(np.abs(r), min(size, r.size - 1))[min(size, r.size - 1)] for r in reduced]
    at_top = [r < 0 for r in reduced]
    while True:
        scale, prices = pairs.restricted(stays_open, at_top).least_scale()
        reduced = pairs.reduced_costs(prices)
        wrong = [~is_open & np.where(top, r > _TIE, r < -_TIE) for is_open, top, r in zip(stays_open, at_top, reduced)]
        if np.isinf(scale):  # what is open cannot balance the rest
            wrong = [~is_open for is_open in stays_open]
        if not any(w.any() for w in wrong):
            return scale
        stays_open = [is_open | w for is_open, w in zip(stays_open, wrong)]


def _class_margins(k: int) -> list[tuple[int, list[int]]]:
    """Return for every class code its own function and its rivals; two classes share the single function 0."""
    if k == 2:
        return [(0, [0]), (0, [0])]
    return [(c, [j for j in range(k) if j != c]) for c in range(k)]


def _margin_row(problem: Problem, c: int, j: int) -> Array:
    """Return du/df of the margin of class c against rival j."""
    row = np.zeros(problem.n_functions)
    if problem.n_classes == 2:
        row[0] = 1.0 if c == 1 else -1.0
    else:
        row[c], row[j] = 1.0, -1.0
    return row


def _best_constant(problem: Problem) -> Array:
    """Return optimal intercepts of f = b: a linear program over the classes."""
    m, k = problem.n_functions, problem.n_classes
    prices = [np.bincount(problem.y, weights=price, minlength=k) for price in problem.prices.T]
    target = np.zeros(m) if problem.tilt is None else problem.tilt.sum(axis=0)
    session = HighsSession()
    session.add_columns(target, -np.inf, np.inf)
    if m > 1:
        session.add_rows(np.ones((1, m)), 0.0, 0.0)
    for c, (_, rivals) in enumerate(_class_margins(k)):
        for price, (_, t) in zip(prices, problem.loss.hinges):
            session.add_columns(price[c])
            rows = np.zeros((len(rivals), session.n_cols))
            rows[:, :m] = [_margin_row(problem, c, j) for j in rivals]
            rows[:, -1] = 1.0
            session.add_rows(rows, t, np.inf)
    return session.solve().x[:m]


class _Pairs:
    """Multipliers a_i of (class, hinge, rival) that complementary slackness with the best constant leaves open."""

    def __init__(self, problem: Problem, b: Array) -> None:
        self.problem = problem
        self.fixed = np.zeros((problem.n, problem.n_functions))  # multipliers R of the pairs that are not open
        self.open: list[tuple[NDArray[np.intp], Array, Array, int]] = []  # samples, du/df, prices, group of rivals
        self.is_full: list[bool] = []  # per group: must the rivals' multipliers add up to the price?
        for c, (_, rivals) in enumerate(_class_margins(problem.n_classes)):
            members = np.flatnonzero(problem.y == c)
            rows = np.array([_margin_row(problem, c, j) for j in rivals])
            for price, (_, t) in zip(problem.prices.T, problem.loss.hinges):
                self._add(members, rows, price[members], t - rows @ b)

    def _add(self, members: NDArray[np.intp], rows: Array, price: Array, excess: Array) -> None:
        top = float(excess.max())
        if top < -_TIE or members.size == 0:
            return
        tied = rows[excess >= top - _TIE]
        if top > _TIE and len(tied) == 1:
            self.fixed[members] += price[:, None] * tied[0]
            return
        self.is_full.append(top > _TIE)
        for row in tied:
            self.open.append((members, row, price, len(self.is_full) - 1))

    def restricted(self, stays_open: list[NDArray[np.bool_]], at_top: list[NDArray[np.bool_]]) -> _Pairs:
        """Return the pairs with only some multipliers open, per open pair; the others are at their price or at zero."""
        part = copy.copy(self)
        part.fixed, part.open = self.fixed.copy(), []
        for (members, row, price, group), is_open, top in zip(self.open, stays_open, at_top):
            full = ~is_open & top
            part.fixed[members[full]] += price[full, None] * row
            part.open.append((members[is_open], row, price[is_open], group))
        return part

    def sampled(self, every: int) -> _Pairs:
        """Return the pairs with one open multiplier in so many, at so many times its price."""
        part = copy.copy(self)
        part.open = [(members[::every], row, every * price[::every], group) for members, row, price, group in self.open]
        return part

    def reduced_costs(self, prices: Array) -> list[Array]:
        """Return the reduced costs of the open multipliers of two classes at prices of (balance, features)."""
        F = self.problem.space.scores(prices[None, 1:], prices[:1])[:, 0]
        return [-row[0] * F[members] for members, row, _, _ in self.open]

    def least_scale(self) -> tuple[float, Array]:
        """Minimise s; also return, for two classes, the prices of the balance and of the features."""
        p = self.problem
        m, dim = p.n_functions, p.space.dim
        fixed = self.fixed if p.tilt is None else self.fixed - p.tilt
        session = HighsSession()
        session.add_columns(1.0)
        session.add_columns(np.zeros(dim if m > 1 else 0), -np.inf, np.inf)  # nu
        for members, _, price, _ in self.open:
            session.add_columns(np.zeros(members.size), 0.0, price)
        offset = session.n_cols - sum(members.size for members, *_ in self.open)
        for j in range(m):
            self._balance(session, j, fixed)
            self._box(session, j, p.space.combine(fixed)[j], p.penalty.l1_array((m, dim))[j])
        self._groups(session, offset)
        try:
            answer = session.solve()
        except ProgramError:
            return np.inf, np.zeros(dim + 1)
        prices = np.zeros(dim + 1)
        if m == 1:
            use = np.flatnonzero(np.isfinite(p.penalty.l1_array((m, dim))[0]))
            prices[0] = answer.row_dual[0]
            prices[1 + use] = answer.row_dual[1 : 1 + use.size] + answer.row_dual[1 + use.size : 1 + 2 * use.size]
        return answer.value, prices

    def _open_block(self, j: int, X: NDArray | sp.csr_matrix | None) -> sp.csc_matrix:
        """Return the columns of the open multipliers in sum_i R_ij x_i, or in sum_i R_ij if X is None."""
        height = 1 if X is None else X.shape[1]
        blocks = [sp.csc_matrix((height, 0))]
        for members, row, _, _ in self.open:
            part = np.ones((members.size, 1)) if X is None else X[members]
            blocks.append(sp.csc_matrix(part.T) * row[j])
        return sp.hstack(blocks, format="csc")

    def _balance(self, session: HighsSession, j: int, fixed: Array) -> None:
        ahead = sp.csc_matrix((1, session.n_cols - sum(members.size for members, *_ in self.open)))
        rest = -float(fixed[:, j].sum())
        session.add_rows(sp.hstack([ahead, self._open_block(j, None)]), rest, rest)

    def _box(self, session: HighsSession, j: int, centre: Array, l1: Array) -> None:
        """Add -s l1 <= centre + V(open) - nu <= s l1 for the coefficients that are not forbidden."""
        assert isinstance(self.problem.space, LinearSpace)
        use = np.flatnonzero(np.isfinite(l1))
        V = self._open_block(j, self.problem.space.X).tocsr()[use]
        nu = sp.identity(l1.size, format="csr")[use] if self.problem.n_functions > 1 else sp.csr_matrix((use.size, 0))
        weight = sp.csr_matrix(l1[use, None])
        session.add_rows(sp.hstack([-weight, -nu, V]), -np.inf, -centre[use])
        session.add_rows(sp.hstack([weight, -nu, V]), -centre[use], np.inf)

    def _groups(self, session: HighsSession, offset: int) -> None:
        """Add sum over tied rivals a_i <= price_i, or = above the breakpoint."""
        column = offset
        starts = []
        for members, *_ in self.open:
            starts.append(column)
            column += members.size
        for group, full in enumerate(self.is_full):
            mine = [s for s, pair in zip(starts, self.open) if pair[3] == group]
            members, _, limit, _ = next(pair for pair in self.open if pair[3] == group)
            if len(mine) == 1 and not full:
                continue  # the column's own bound says it
            rows = np.tile(np.arange(members.size), len(mine))
            columns = np.concatenate([s + np.arange(members.size) for s in mine])
            A = sp.csr_matrix((np.ones(rows.size), (rows, columns)), shape=(members.size, session.n_cols))
            session.add_rows(A, limit if full else -np.inf, limit)
