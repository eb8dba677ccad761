"""How far below t can the margin of a free sample be, in solutions of a node that are better than the incumbent?

The envelope of a sample's loss on [low, high] is the closer to the loss the larger ``low`` is, so raising it raises
the bound of the node (optimisation-based bound tightening; Gleixner, Berthold, Müller and Weltge, Three enhancements
for optimization-based bound tightening, 2017). Let sample i be OUT and add s u_i to the objective of the node, s > 0
(state TILTED). A dual feasible point of that problem, of value D(s), proves upper > F(w, b) >= D(s) - s u_i for every
solution below ``upper`` in which i is OUT, hence

    u_i > (D(s) - upper) / s.

The best s is where the relaxed F equals ``upper``. F grows about quadratically in s, so s = sqrt(2 (upper - bound)) /
reach_i, where the reach of a sample, a length, is learned from one tilted problem to the next. For the 2-norm only.
"""

from __future__ import annotations

import numpy as np

from ....core._jit import inner, kernel
from ...sample_state_jit import FREE, IN, TILTED
from ..node.pointers_jit import by_pointer
from .branching_jit import copy_node, envelope_gap

#: Part by which the value of a tilted problem is pushed beyond what makes its sample IN, because of rounding.
_BEYOND = 1e-9
#: Factor by which one tilted problem may change a reach, and that by which its multiplier may miss the price.
_MOST_CHANGE, _MOST_MISS = 10.0, 2.0
#: Power of relaxed / slack by which a reach changes: 1/2 were F quadratic in s. It grows faster, and 1/2 oscillates.
_POWER = 0.3
#: Tilted problems between two solutions of the node that uses the new margins. Anything from 8 to 1000 does as well.
_BATCH = 16
#: Part of the bound's distance to the target by which an envelope must be below its loss for its sample to be tried;
#: from 0 to .02 it makes no difference (breast cancer with flipped labels, the quadratic case, Gaussian classes).
_LEAST_GAP = 0.005


@inner
def _raise_low(solve, model, work, trial, reach, i, upper, bound):
    """Raise ``work.low[i]`` by one tilted problem, or set i IN, and update its reach."""
    slack = max(upper - bound, 1e-300)
    price = np.sqrt(2.0 * slack) / reach[i]
    copy_node(work, trial)
    trial.state[i], trial.low[i] = TILTED, price
    value, _ = solve(model, trial, upper * (1.0 + _BEYOND) + price * model.t)
    s = -trial.alpha[i]
    if not price / _MOST_MISS < s < price * _MOST_MISS:
        return
    work.low[i] = max(work.low[i], (value - upper) / s)
    if work.low[i] >= model.t:
        work.state[i] = IN
        return
    relaxed = value - s * trial.u[i] - bound
    change = (max(relaxed, 1e-300) / slack) ** _POWER
    reach[i] *= min(max(change, 1.0 / _MOST_CHANGE), _MOST_CHANGE)


@inner
def tighten_lows(solve, model, work, trial, reach, scores, upper, bound, target, least, most_problems):
    """Tighten the free samples of the node at hand, which is solved, those farthest above their envelope first.

    Solves the node again after every few of them, and stops when its bound reaches ``target`` or after about
    ``most_problems``. Returns (bound, number of problems solved).
    """
    n, solved = model.y.size, 0
    for i in range(n):
        scores[i] = 0.0
    while True:
        for i in range(n):
            if scores[i] >= 0.0:
                scores[i] = envelope_gap(model, work, i) if work.state[i] == FREE else -1.0
        tried = 0
        for _ in range(_BATCH):
            most, c = max(least, _LEAST_GAP * (target - bound)), n
            for i in range(n):
                if scores[i] > most:
                    most, c = scores[i], i
            if c == n:
                break
            scores[c] = -1.0
            _raise_low(solve, model, work, trial, reach, c, upper, bound)
            tried += 1
        if tried == 0:
            return bound, solved
        value, _ = solve(model, work, target)
        solved += tried + 1
        bound = max(bound, value)
        if bound >= target or solved >= most_problems:
            return bound, solved


@by_pointer
@kernel
def tighten_all(solve, model, work, trial, reach, upper, bound, first, last):
    """Tighten free samples of the node at hand, ``first`` to before ``last``, once, at the multipliers it has."""
    for i in range(first, last):
        if work.state[i] == FREE:
            _raise_low(solve, model, work, trial, reach, i, upper, bound)
