"""The inverse of a small matrix: a short loop compiles ten times faster than numba's call of LAPACK."""

from __future__ import annotations

from ..core._jit import inner


@inner
def invert(A, B):
    """Write the inverse of A (overwritten) by Gauss-Jordan steps with row pivots; zeros if singular to rounding."""
    m = A.shape[0]
    for j in range(m):
        for l in range(m):
            B[j, l] = 1.0 if j == l else 0.0
    for j in range(m):
        best = j
        for i in range(j + 1, m):
            if abs(A[i, j]) > abs(A[best, j]):
                best = i
        if abs(A[best, j]) < 1e-13:
            for i in range(m):
                for l in range(m):
                    B[i, l] = 0.0
            return
        for l in range(m):
            A[j, l], A[best, l] = A[best, l], A[j, l]
            B[j, l], B[best, l] = B[best, l], B[j, l]
        pivot = A[j, j]
        for l in range(m):
            A[j, l] /= pivot
            B[j, l] /= pivot
        for i in range(m):
            factor = A[i, j]
            if i != j and factor != 0.0:
                for l in range(m):
                    A[i, l] -= factor * A[j, l]
                    B[i, l] -= factor * B[j, l]
