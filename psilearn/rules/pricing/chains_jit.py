"""The best conjunctions of at most two literals, valued outright from histograms over chains of attributes.

The attributes x > t_1, x > t_2, ... of one feature are a *chain*: each holds only where the one before holds. A point
is then described by one number per chain, how many of its attributes hold, and the sums that value all conjunctions of
literals of two chains are sums over rectangles of a two-dimensional histogram of those numbers. That takes a step per
point and pair of chains, whatever the number of cut points, and a step per pair of literals.
"""

from __future__ import annotations

import numpy as np

from ...core._jit import allocating_kernel, inner


@inner
def _fill(table, rows, columns, first, second, value):
    """Write, for each pair of numbers, the sum over the points whose codes are at least as large."""
    table[:rows, :columns] = 0.0
    for i in range(value.size):
        table[first[i], second[i]] += value[i]
    for k in range(rows):
        for l in range(columns - 2, -1, -1):
            table[k, l] += table[k, l + 1]
    for k in range(rows - 2, -1, -1):
        for l in range(columns):
            table[k, l] += table[k + 1, l]


@inner
def _widest(start):
    """Largest number of codes of a chain."""
    widest = 1
    for g in range(start.size - 1):
        widest = max(widest, start[g + 1] - start[g] + 1)
    return widest


@inner
def _record(best, which, place, value, first, second):
    """Keep the larger value and its literals."""
    if value > best[place]:
        best[place] = value
        which[place, 0] = first
        which[place, 1] = second


@allocating_kernel
def best_singles(codes, start, value, sign, best, which):
    """Write the best literal of each chain: its value sign * (sum over the points that satisfy it), and the literal."""
    n_chains, m = codes.shape
    N = start[n_chains]
    total = value.sum()
    for g in range(n_chains):
        size = start[g + 1] - start[g]
        held = np.zeros(size + 1)
        for i in range(m):
            held[codes[g, i]] += value[i]
        above = 0.0
        for k in range(size, 0, -1):
            above += held[k]
            l = start[g] + k - 1
            _record(best, which, g, sign * above, l, -1)
            _record(best, which, g, sign * (total - above), l + N, -1)


@allocating_kernel
def best_pairs(codes, start, value, redundant, sign, best, which):
    """Write the best conjunction of two literals for each pair of chains (g, h), g <= h, at place g * n_chains + h.

    Pairs of literals that are ``redundant`` (one implies the other, or they exclude each other) are left out.
    """
    n_chains = codes.shape[0]
    N = start[n_chains]
    total = value.sum()
    widest = _widest(start)
    table = np.empty((widest, widest))
    for g in range(n_chains):
        rows = start[g + 1] - start[g] + 1
        for h in range(g, n_chains):
            columns = start[h + 1] - start[h] + 1
            _fill(table, rows, columns, codes[g], codes[h], value)
            place = g * n_chains + h
            for k in range(rows - 1):
                a = start[g] + k
                for l in range(k + 1 if g == h else 0, columns - 1):
                    b = start[h] + l
                    both, first, second = table[k + 1, l + 1], table[k + 1, 0], table[0, l + 1]
                    largest = max(
                        max(sign * both, sign * (first - both)),
                        max(sign * (second - both), sign * (total - first - second + both)),
                    )
                    if largest <= best[place]:
                        continue
                    if not redundant[a, b]:
                        _record(best, which, place, sign * both, a, b)
                    if not redundant[a, b + N]:
                        _record(best, which, place, sign * (first - both), a, b + N)
                    if not redundant[a + N, b]:
                        _record(best, which, place, sign * (second - both), a + N, b)
                    if not redundant[a + N, b + N]:
                        _record(best, which, place, sign * (total - first - second + both), a + N, b + N)


@allocating_kernel
def sums_of_pairs(codes, start, value, out):
    """Write the sums over the points that have both of two attributes, for all pairs of attributes."""
    n_chains = codes.shape[0]
    widest = _widest(start)
    table = np.empty((widest, widest))
    for g in range(n_chains):
        rows = start[g + 1] - start[g] + 1
        for h in range(g, n_chains):
            columns = start[h + 1] - start[h] + 1
            _fill(table, rows, columns, codes[g], codes[h], value)
            for k in range(1, rows):
                for l in range(1, columns):
                    out[start[g] + k - 1, start[h] + l - 1] = table[k, l]
                    out[start[h] + l - 1, start[g] + k - 1] = table[k, l]
