"""All ways a line can divide samples in the plane, for losses truncated at margin 0, two classes.

A solution with w != 0 gives up the samples with y_i f(x_i) < 0, so which ones these are is known from the side of the
line f = 0 each sample is on. Let P and Q be the samples with f > 0 and f < 0, and let samples on the line itself join
the side of their label, where they are not given up (one or two samples on a line can be moved to any sides by a small
turn). If both are not empty, two lines touch P and Q from inside, and one of them goes from a sample i of P to a sample
j of Q with the rest of P on its left and the rest of Q on its right. So the ordered pairs (i, j) name all divisions,
once each if no three samples are on a line. If P or Q is empty, a whole class is given up, and a constant does as well.

More samples on one line: they cannot be moved to any sides, but a sample that is strictly on the wrong side of the line
through two of them is given up by every solution on this line and by every division that it names. (If all of them are
at one place, turn the line about it until it meets another sample: the strictly wrong ones are given up all the same.)
If their cost reaches the target, nothing is lost; if it does not, the enumeration is stuck.
"""

from __future__ import annotations

import numpy as np

from ....core._jit import kernel
from ...sample_state_jit import GONE, IN
from ..incumbent_jit import offer, target_value
from ..node.ascent_jit import SOLVED
from ..node.pointers_jit import by_pointer

#: A sample this close to a line may be on either side (data have unit size).
_ON_LINE = 1e-9
#: What an enumeration says: all divisions are dealt with, samples on one line leave one open, there are more.
DONE, DEGENERATE, MORE = 0, 1, 2


@by_pointer
@kernel
def enumerate_lines(solve, model, work, best, place, floor, n_pairs, gap_tol):
    """Solve the convex rest of the next ``n_pairs`` divisions that could be better than the incumbent.

    ``place`` holds the pair to begin with, and the number of convex problems so far; ``floor`` the least bound of
    what was discarded. Returns DONE, MORE, or DEGENERATE: samples on one line or rounding errors leave a division open.
    """
    n = model.y.size
    for _ in range(n_pairs):
        i, j = place[0] // n, place[0] % n
        if i == n:
            return DONE
        place[0] += 1
        along0 = model.a[j, 0] * model.y[j] - model.a[i, 0] * model.y[i]
        along1 = model.a[j, 1] * model.y[j] - model.a[i, 1] * model.y[i]
        length = np.hypot(along0, along1)
        if i == j or length <= _ON_LINE:
            continue
        target = target_value(model, best, gap_tol)
        cost, touching = 0.0, 0
        for k in range(n):
            if k in (i, j):
                continue
            side = along0 * (model.a[k, 1] * model.y[k] - model.a[i, 1] * model.y[i])
            side -= along1 * (model.a[k, 0] * model.y[k] - model.a[i, 0] * model.y[i])
            if abs(side) <= _ON_LINE * length:
                touching += 1
            elif side * model.y[k] > 0.0:
                work.state[k] = IN
            else:
                work.state[k] = GONE
                cost += model.cost[k] * model.cap
                if cost >= target:
                    break
        if cost < target and touching > 0:
            return DEGENERATE
        work.state[i] = IN if model.y[i] > 0.0 else GONE
        work.state[j] = IN if model.y[j] < 0.0 else GONE
        if cost < target:
            cost += model.cap * ((work.state[i] == GONE) * model.cost[i] + (work.state[j] == GONE) * model.cost[j])
        if cost >= target:
            floor[0] = min(floor[0], cost)
            continue
        place[1] += 1
        bound, flag = solve(model, work, target)
        if flag == SOLVED:
            offer(model, best, work.w, work.b[0], work.u)
        elif bound < target:
            return DEGENERATE
        floor[0] = min(floor[0], bound)
    return MORE
