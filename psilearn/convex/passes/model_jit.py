"""The quadratic model with an l1 part for k classes, whose functions sum to zero: descent along pairs of classes."""

from __future__ import annotations

import numpy as np

from ...core._jit import inner, kernel


@inner
def pair_step(h, r, a, b, la, lb):
    """Return t that minimises h t^2 / 2 + r t + la |a + t| + lb |b - t| over t, for h > 0."""
    low, high = min(-a, b), max(-a, b)
    best, value = 0.0, np.inf
    for case in range(5):
        if case == 0:
            t = low
        elif case == 1:
            t = high
        else:
            middle = low - 1.0 if case == 2 else (0.5 * (low + high) if case == 3 else high + 1.0)
            slope = (la if a + middle > 0.0 else -la) + (-lb if b - middle > 0.0 else lb)
            t = -(r + slope) / h
            if (case == 2 and t > low) or (case == 3 and not low < t < high) or (case == 4 and t < high):
                continue
        size = 0.5 * h * t * t + r * t + la * abs(a + t) + lb * abs(b - t)
        if size < value:
            best, value = t, size
    return best


@kernel
def minimise_pairs(H, l1, m, x, r, tol, max_sweeps):
    """Minimise r'd + d'Hd/2 + sum l1 |x + d| over d with columns that sum to zero; x and the slope r move in place.

    Entries are (function, coefficient), flat; a step raises one function's coefficient and lowers another's.
    """
    p = x.size // m
    scale = 1e-300
    for e in range(l1.size):
        scale = max(scale, l1[e], abs(r[e]) * 1e-3)
    for _ in range(max_sweeps):
        worst = 0.0
        for d in range(p):
            for j in range(m):
                for l in range(j + 1, m):
                    a, b = j * p + d, l * p + d
                    h = H[a, a] + H[b, b] - 2.0 * H[a, b]
                    if h <= 0.0:
                        continue
                    t = pair_step(h, r[a] - r[b], x[a], x[b], l1[a], l1[b])
                    if t != 0.0:
                        worst = max(worst, h * abs(t))
                        x[a] += t
                        x[b] -= t
                        for k in range(x.size):
                            r[k] += t * (H[a, k] - H[b, k])
        if worst <= tol * scale:
            break
