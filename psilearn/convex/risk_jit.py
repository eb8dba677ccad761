"""The parts of a pass over the data of two-class problems: scores, risk and multipliers, adjoint; the risk on a line.

A loss g(u) = sum_k c_k (t_k - u)_+ with falling ``breakpoints`` t is read from tables over the number
h = #{k : u < t_k} of hinges in force, one after the other for the two classes: g(u) = offsets[code] - slopes[code] u
with code = h for the first class and h + (number of hinges + 1) for the second. The code of every sample is all one
needs to keep of a cut.

Sums may be reassociated, which lets the compiler use vector instructions and changes results by rounding errors only;
bounds are recomputed elsewhere from the multipliers.
"""

from __future__ import annotations

import numpy as np
from numba import njit

_SUMS = {"reassoc", "contract", "nsz"}


@njit(cache=True, nogil=True, fastmath=_SUMS)
def score_rows(X, w, out):
    """Write X w."""
    for i in range(X.shape[0]):
        score = 0.0
        for j in range(X.shape[1]):
            score += X[i, j] * w[j]
        out[i] = score


@njit(cache=True, nogil=True, fastmath=_SUMS)
def score_rows_few(X, features, w, out):
    """Write X[:, features] w, which reads little of long rows."""
    for i in range(X.shape[0]):
        score = 0.0
        for e in range(features.size):
            score += X[i, features[e]] * w[e]
        out[i] = score


@njit(cache=True, nogil=True, fastmath=_SUMS)
def add_rows(X, r, out):
    """Add X'r; to leave out the rows of weight zero would cost more than it saves."""
    for i in range(X.shape[0]):
        weight = r[i]
        for j in range(X.shape[1]):
            out[j] += weight * X[i, j]


@njit(cache=True, nogil=True, fastmath=_SUMS)
def add_rows_few(X, features, r, out):
    """Add X[:, features]'r, which reads little of long rows."""
    for i in range(X.shape[0]):
        for e in range(features.size):
            out[e] += r[i] * X[i, features[e]]


@njit(cache=True, nogil=True, fastmath=_SUMS)
def hinge_codes(b, signs, weights, breakpoints, slopes, offsets, margins, code, multipliers):
    """Turn scores without intercept into margins, in place; fill codes and slopes in the scores; return the risk."""
    risk = 0.0
    for i in range(margins.size):
        u = signs[i] * (margins[i] + b)
        margins[i] = u
        h = breakpoints.size + 1 if signs[i] > 0.0 else 0
        for k in range(breakpoints.size):
            h += u < breakpoints[k]
        code[i] = h
        slope = weights[i] * slopes[h]
        risk += weights[i] * offsets[h] - slope * u
        multipliers[i] = -slope * signs[i]
    return risk


@njit(cache=True, nogil=True, fastmath=_SUMS)
def risk_along(start, end, tau, prices, breakpoints):
    """Return risk and its slope in tau at the margins start + tau (end - start); ``prices`` are (hinges, samples)."""
    risk, slope = 0.0, 0.0
    for h in range(breakpoints.size):
        t, price = breakpoints[h], prices[h]
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
