"""Vertices of a simple polyhedron that is cut again and again: the double description method, incrementally.

The polyhedron lives in R^D, coordinates (z_0 .. z_{D-1}), unbounded in the direction +z_0 and only there; its
inequalities are h'z >= h_0 with h[0] in {0, 1}. It is kept *simple*: every vertex lies on exactly D facets and has D
edges, the d-th of which leaves facet ``tight[v, d]`` and ends in vertex ``neighbour[v, d]`` (-1: the ray +z_0). A cut
that would pass through a vertex, or too near, must be relaxed by the caller before it is applied.

A cut removes the vertices on its wrong side; every edge from a removed to a kept vertex yields a new vertex, and two
new vertices are neighbours iff they share all facets but one, which a hash of their facets finds.
"""

import numpy as np

from ...core._jit import inner, kernel


@kernel
def slacks(points, alive, top, h, h0, out):
    """Write h'z_v - h_0 of the live vertices to ``out``, +inf for dead ones."""
    D = points.shape[1]
    for v in range(top):
        if alive[v]:
            total = -h0
            for l in range(D):
                total += h[l] * points[v, l]
            out[v] = total
        else:
            out[v] = np.inf


@kernel
def safe_relaxation(points, slack, top, h, h0, step, tries):
    """Return the least of ``step, 2 step, ...`` by which to relax a cut so that no vertex lies within step/2 of it.

    ``step`` is also raised, vertex by vertex, to the rounding error of its slack. Returns -1 if no try succeeds.
    """
    D = points.shape[1]
    delta = 0.0
    for _ in range(tries):
        delta += step
        clear = True
        for v in range(top):
            near = abs(slack[v] + delta)
            if near < step:
                size = abs(h0)
                for l in range(D):
                    size += abs(h[l] * points[v, l])
                if near < max(0.5 * step, 1e-13 * size):
                    clear = False
                    break
        if clear:
            return delta
    return -1.0


@kernel
def count_crossings(neighbour, alive, slack, top):
    """Number of edges a cut crosses: the number of vertices it creates."""
    count = 0
    for v in range(top):
        if alive[v] and slack[v] < 0.0:
            for d in range(neighbour.shape[1]):
                w = neighbour[v, d]
                if w < 0 or slack[w] >= 0.0:
                    count += 1
    return count


@inner
def _same_ridge(tight, v, drop_v, w, drop_w):
    """Whether the sorted facet lists of two vertices agree once one facet is dropped from each."""
    i = 0
    j = 0
    D = tight.shape[1]
    while True:
        if i == drop_v:
            i += 1
        if j == drop_w:
            j += 1
        if i >= D or j >= D:
            return i >= D and j >= D
        if tight[v, i] != tight[w, j]:
            return False
        i += 1
        j += 1


@inner
def _link(tight, neighbour, fresh, n_fresh, codes, table):
    """Join the new vertices to one another along the new facet (the last, in sorted order). False on a contradiction.

    Each ridge must be shared by exactly two new vertices, or, if it consists of vertical facets only, end in the ray.
    """
    D = tight.shape[1]
    mask = table.shape[0] - 1
    for slot in range(table.shape[0]):
        table[slot] = -1
    for index in range(n_fresh):
        v = fresh[index]
        code = np.uint64(0)
        for d in range(D):
            code ^= codes[tight[v, d]]
        for d in range(D - 1):
            key = code ^ codes[tight[v, d]]
            place = np.int64(key & np.uint64(mask))
            while table[place] >= 0:
                w, e = table[place] // D, table[place] % D
                if _same_ridge(tight, v, d, w, e):
                    if neighbour[w, e] != -2:
                        return False
                    neighbour[w, e] = v
                    neighbour[v, d] = w
                    break
                place = (place + 1) & mask
            if neighbour[v, d] == -2:
                table[place] = v * D + d
    return True


@kernel
def apply_cut(points, tight, neighbour, alive, slack, top, free, n_free, facet, vertical, codes, table, fresh):
    """Cut by the new facet number ``facet`` given the slacks of all vertices.

    ``free[:n_free]`` lists dead slots; capacity for the new vertices is the caller's duty. ``vertical[f]`` tells
    which facets have h[0] = 0. Returns (top, n_free, n_fresh, ok); ``fresh[:n_fresh]`` are the new vertices.
    """
    D = points.shape[1]
    n_fresh = 0
    old_top = top
    for v in range(old_top):
        if not alive[v] or slack[v] >= 0.0:
            continue
        for d in range(D):
            w = neighbour[v, d]
            if w >= 0 and slack[w] < 0.0:
                continue
            if w < 0 and vertical[facet]:
                continue  # the ray goes with its vertex
            if n_free > 0:
                n_free -= 1
                u = free[n_free]
            else:
                u = top
                top += 1
            fresh[n_fresh] = u
            n_fresh += 1
            if w < 0:
                for l in range(D):
                    points[u, l] = points[v, l]
                points[u, 0] -= slack[v]
            else:
                share = slack[v] / (slack[v] - slack[w])
                for l in range(D):
                    points[u, l] = points[v, l] + share * (points[w, l] - points[v, l])
                for e in range(D):
                    if neighbour[w, e] == v:
                        neighbour[w, e] = u
            place = 0
            for e in range(D):
                if e != d:
                    tight[u, place] = tight[v, e]
                    neighbour[u, place] = -2
                    place += 1
            tight[u, D - 1] = facet
            neighbour[u, D - 1] = w
    for index in range(n_fresh):
        alive[fresh[index]] = True
        slack[fresh[index]] = 0.0
    ok = _link(tight, neighbour, fresh, n_fresh, codes, table)
    for v in range(old_top):
        if alive[v] and slack[v] < 0.0:
            alive[v] = False
            free[n_free] = v
            n_free += 1
    for index in range(n_fresh):
        u = fresh[index]
        for d in range(D - 1):
            if neighbour[u, d] == -2:
                for e in range(D):
                    if e != d and not vertical[tight[u, e]]:
                        ok = False
                neighbour[u, d] = -1
    return top, n_free, n_fresh, ok


@inner
def _distance(points, v, H, h0, f, scale):
    """Signed distance of a vertex from a facet, relative to the size of the terms, at least that of a scale-sized z."""
    total, size, floor = -h0[f], abs(h0[f]), 0.0
    for l in range(points.shape[1]):
        part = H[f, l] * points[v, l]
        total += part
        size += abs(part)
        if l == 0 or H[f, 0] == 0.0:
            floor += abs(H[f, l]) * scale[l]
    return total / max(size, floor)


@kernel
def is_complete(points, tight, neighbour, alive, top, H, h0, used, scale):
    """Re-check a list of vertices: feasible, on their facets, and closed under edges.

    ``used`` lists the facets with a vertex: the others could only make the polyhedron smaller. The graph of a
    polyhedron is connected, so vertices each of whose D edges ends in a listed vertex (or is the ray) are *all*
    vertices. Returns (largest relative violation of an inequality, largest relative distance from an own facet,
    closed).
    """
    D = points.shape[1]
    broken, off = 0.0, 0.0
    for v in range(top):
        if not alive[v]:
            continue
        for index in range(used.size):
            broken = max(broken, -_distance(points, v, H, h0, used[index], scale))
        for d in range(D):
            off = max(off, abs(_distance(points, v, H, h0, tight[v, d], scale)))
            w = neighbour[v, d]
            if w < 0:
                for e in range(D):
                    if e != d and H[tight[v, e], 0] != 0.0:
                        return broken, off, False
                continue
            if w >= top or not alive[w]:
                return broken, off, False
            back = -1
            for e in range(D):
                if neighbour[w, e] == v:
                    back = e
            if back < 0 or not _same_ridge(tight, v, d, w, back):
                return broken, off, False
    return broken, off, True
