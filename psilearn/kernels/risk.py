"""Risk and subgradient of two-class problems in one pass over the data, and the risk along a line.

A loss g(u) = sum_k c_k (t_k - u)_+ with falling ``knots`` t is read from tables over the number h = #{k : u < t_k} of
hinges in force, one after the other for the two classes: g(u) = offsets[code] - slopes[code] u with code = h for the
first class and h + (number of hinges + 1) for the second. The code of every sample is all one needs to keep of a cut.

Sums may be reassociated, which lets the compiler use vector instructions and changes results by rounding errors only;
bounds are recomputed elsewhere from the multipliers.
"""

from __future__ import annotations

import numpy as np
from numba import njit

_SUMS = {"reassoc", "contract", "nsz"}


@njit(cache=True, nogil=True, fastmath=_SUMS)
def risk_dense(X, w, b, signs, weights, knots, slopes, offsets, margins, code, gradient):
    """Fill margins, codes and the gradient (p + 1, intercept last) of sum_i weight_i g(u_i); return the risk."""
    n, p = X.shape
    gradient[:] = 0.0
    risk = 0.0
    for i in range(n):
        score = 0.0
        for j in range(p):
            score += X[i, j] * w[j]
        u = signs[i] * (score + b)
        margins[i] = u
        h = 0
        while h < knots.size and u < knots[h]:
            h += 1
        active = h > 0
        h += knots.size + 1 if signs[i] > 0.0 else 0
        code[i] = h
        if active:
            risk += weights[i] * (offsets[h] - slopes[h] * u)
            r = -weights[i] * slopes[h] * signs[i]
            for j in range(p):
                gradient[j] += r * X[i, j]
            gradient[p] += r
    return risk


@njit(cache=True, nogil=True, fastmath=_SUMS)
def risk_csr(data, indices, indptr, w, b, signs, weights, knots, slopes, offsets, margins, code, gradient):
    """Do what :func:`risk_dense` does on the rows of a CSR matrix."""
    p = w.size
    gradient[:] = 0.0
    risk = 0.0
    for i in range(indptr.size - 1):
        score = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            score += data[e] * w[indices[e]]
        u = signs[i] * (score + b)
        margins[i] = u
        h = 0
        while h < knots.size and u < knots[h]:
            h += 1
        active = h > 0
        h += knots.size + 1 if signs[i] > 0.0 else 0
        code[i] = h
        if active:
            risk += weights[i] * (offsets[h] - slopes[h] * u)
            r = -weights[i] * slopes[h] * signs[i]
            for e in range(indptr[i], indptr[i + 1]):
                gradient[indices[e]] += r * data[e]
            gradient[p] += r
    return risk


@njit(cache=True, nogil=True, fastmath=_SUMS)
def risk_along(start, end, tau, prices, knots):
    """Return risk and its slope in tau at the margins start + tau (end - start); ``prices`` are (hinges, samples)."""
    risk, slope = 0.0, 0.0
    for h in range(knots.size):
        t, price = knots[h], prices[h]
        value, fall = 0.0, 0.0
        for i in range(start.size):
            du = end[i] - start[i]
            excess = t - start[i] - tau * du
            value += price[i] * max(excess, 0.0)
            fall += price[i] * du if excess > 0.0 else 0.0
        risk += value
        slope -= fall
    return risk, slope


@njit(cache=True, nogil=True)
def mix_codes(codes, shares, weights, slopes):
    """Return the multipliers weight_i sum_c shares_c slopes[codes_ci] of a combination of cuts."""
    out = np.zeros(weights.size)
    for c in range(shares.size):
        if shares[c] > 0.0:
            table = shares[c] * slopes
            row = codes[c]
            for i in range(out.size):
                out[i] += table[row[i]]
    return out * weights
