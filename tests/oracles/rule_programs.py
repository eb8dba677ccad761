"""Boosting programs over all monomials, written out in full."""

import itertools

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

from psilearn.rules.pricing.data import Monomial


def all_monomials(N, K):
    """Every conjunction of at most K literals over N attributes."""
    for pattern in itertools.product((None, 1, 0), repeat=N):
        literals = tuple(sorted(j if bit else j + N for j, bit in enumerate(pattern) if bit is not None))
        if len(literals) <= K:
            yield literals


def all_columns(A, K):
    """H over all monomials of order <= K with both signs."""
    cover = np.array([Monomial(l, 1).covers(A) for l in all_monomials(A.shape[1], K)], dtype=float).T
    return np.hstack([cover, -cover])


def random_data(rng):
    M, N = int(rng.integers(2, 30)), int(rng.integers(1, 6))
    weight = rng.integers(0, 3, M) if rng.random() < 0.5 else np.ones(M)
    weight[0] = 1
    return rng.integers(0, 2, (M, N)), rng.choice([-1, 1], M), weight


def in_cut(H, y, i, j, cuts):
    """S of the pair (i positive, j negative) as (17) prints it, or with the pair taken in both orders."""
    printed = (H[i] == y[i]) & (H[j] != H[i])
    return printed if cuts == "paper" else printed | ((H[j] == y[j]) & (H[i] != H[j]))


def program(data, H, c, rho, cuts):
    """Costs and rows (A x >= b, sum lambda = 1) of (18) in the variables xi, lambda, mu with all pairs."""
    m, U = H.shape
    cost = np.r_[data.weight, np.zeros(U), c]
    margin = np.c_[(1 + rho) * np.eye(m), data.y[:, None] * H, np.zeros((m, U))]
    link = np.c_[np.zeros((U, m)), -np.eye(U), np.eye(U)]
    rows, right = [margin, link], [np.full(m, rho), np.zeros(U)]
    for i, j in itertools.product(np.flatnonzero(data.y > 0), np.flatnonzero(data.y < 0)):
        ends = np.zeros(m)
        ends[[i, j]] = 1
        rows.append(np.r_[ends, np.zeros(U), in_cut(H, data.y, i, j, cuts)][None])
        right.append([1.0])
    total = np.r_[np.zeros(m), np.ones(U), np.zeros(U)]
    return cost, np.vstack(rows), np.concatenate(right), total


def relaxation(data, H, c, rho, cuts="valid"):
    cost, A, b, total = program(data, H, c, rho, cuts)
    return linprog(cost, A_ub=-A, b_ub=-b, A_eq=[total], b_eq=[1.0]).fun


def integer_optimum(data, H, c, rho):
    """(15) itself, without any cut."""
    m, U = H.shape
    cost, A, b, total = program(data, H, c, rho, "valid")
    constraints = [LinearConstraint(A[: m + U], b[: m + U], np.inf), LinearConstraint(total[None], 1, 1)]
    whole = np.r_[np.ones(m), np.zeros(U), np.ones(U)]
    return milp(cost, constraints=constraints, integrality=whole, bounds=Bounds(0, 1)).fun
