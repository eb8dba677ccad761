"""Sums over signed answers -1, 0, 1 of many classifiers, one byte each, columns stored one after another."""

from __future__ import annotations

import numpy as np

from ...core._jit import allocating_kernel


@allocating_kernel
def combine(answers, weight):
    """Return the weighted sum of the columns."""
    total = np.zeros(answers.shape[0])
    for u in range(weight.size):
        if weight[u] != 0.0:
            for i in range(total.size):
                total[i] += weight[u] * answers[i, u]
    return total


@allocating_kernel
def edges(answers, w, n_columns):
    """Return the sums of w times each column; four at a time, whose additions do not wait for each other."""
    total = np.zeros(n_columns + 3)
    for u in range(0, n_columns, 4):
        b, c, d = min(u + 1, n_columns - 1), min(u + 2, n_columns - 1), min(u + 3, n_columns - 1)
        first, second, third, fourth = 0.0, 0.0, 0.0, 0.0
        for i in range(w.size):
            first += w[i] * answers[i, u]
            second += w[i] * answers[i, b]
            third += w[i] * answers[i, c]
            fourth += w[i] * answers[i, d]
        total[u], total[u + 1], total[u + 2], total[u + 3] = first, second, third, fourth
    return total[:n_columns]
