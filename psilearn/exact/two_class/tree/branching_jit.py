"""Which sample divides a node.

Dividing by the sample whose two children have the best bounds keeps the tree small (Achterberg, Koch and Martin,
Branching rules revisited, 2005: reliability branching). Trials solve both children of a few promising samples; their
rises, relative to a cheap estimate, are remembered per sample and replace trials once there are enough of them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ....core._jit import inner
from ...envelope_jit import convex_value, loss_value
from ...sample_state_jit import FREE, IN, OUT
from ..node.active_set_jit import copy
from ..node.pieces_jit import piece_value

#: Samples tried per node, and the number of trials after which a sample's history is trusted. Trials are cheap, since
#: children start from their parent's multipliers: far more of them pay than in general mixed-integer solvers.
_TRIED, _TRUSTED = 12, 400
#: Rows of the history: rises of the trials and their estimates, for OUT and IN; the number of trials; scratch memory;
#: and the reach of :mod:`.tightening_jit`.
_OUT, _IN, _OUT_GUESS, _IN_GUESS, _TRIALS, SCORE, REACH = 0, 1, 2, 3, 4, 5, 6


def make_history(distance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Allocate an empty history of samples with these distances."""
    history = np.zeros((7, len(distance)))
    history[REACH] = np.maximum(np.median(distance, axis=1), 1e-9)
    return history


@inner
def _estimates(model, work, i):
    """Guessed rises of the bound with free sample i IN and OUT.

    OUT raises the sample's cost to the cap. IN raises it to g, and where u < t the margin must also move, which costs
    about half the square of the distance (samples have unit size).
    """
    u = work.u[i]
    paid = piece_value(i, u, work.terms)
    out_rise = max(0.0, model.cost[i] * model.cap - paid)
    in_rise = max(0.0, model.cost[i] * convex_value(max(u, model.t), model.breakpoints, model.slopes) - paid)
    if u < model.t:
        in_rise += 0.5 * (model.t - u) * (model.t - u)
    return in_rise, out_rise


@inner
def envelope_gap(model, work, i):
    """How far the envelope of sample i is below its loss at the solution of the node."""
    u = work.u[i]
    loss = loss_value(u, model.breakpoints, model.slopes, model.t, model.cap, 0.0)
    return model.cost[i] * loss - piece_value(i, u, work.terms)


@inner
def copy_node(work, trial):
    """Copy a node with its multipliers, which the solution of the copy starts from."""
    trial.b[0] = work.b[0]
    copy(work.state, trial.state)
    copy(work.low, trial.low)
    copy(work.high, trial.high)
    copy(work.alpha, trial.alpha)


@inner
def branching_sample(solve, model, work, trial, history, bound, target, least):
    """Return (sample, is_decided, number of trials): which one divides the node, n if all gaps are at most ``least``.

    A sample is decided if a trial shows that one child holds nothing better than ``target``; its state is then set to
    the other.
    """
    n = model.y.size
    for i in range(n):
        history[SCORE, i] = -1.0
        if work.state[i] == FREE and envelope_gap(model, work, i) > least:
            in_rise, out_rise = _estimates(model, work, i)
            if history[_TRIALS, i] > 0.0:
                out_rise *= history[_OUT, i] / history[_OUT_GUESS, i]
                in_rise *= history[_IN, i] / history[_IN_GUESS, i]
            history[SCORE, i] = out_rise * in_rise
    most, who, trials = -1.0, n, 0
    for _ in range(_TRIED):
        score, c = -1.0, n
        for i in range(n):
            if history[SCORE, i] > score:
                score, c = history[SCORE, i], i
        if c == n:
            break
        history[SCORE, c] = -1.0
        if history[_TRIALS, c] < _TRUSTED:
            trials += 1
            in_guess, out_guess = _estimates(model, work, c)
            out_rise, in_rise = 0.0, 0.0
            for fate in range(OUT, IN - 1, -1):  # one place of call, because it compiles to much code
                copy_node(work, trial)
                trial.state[c] = fate
                value, _ = solve(model, trial, target)
                out_rise, in_rise = in_rise, max(0.0, min(value, target) - bound)
            if bound + out_rise >= target or bound + in_rise >= target:
                work.state[c] = IN if bound + out_rise >= target else OUT
                return c, True, trials
            history[_OUT, c] += out_rise
            history[_IN, c] += in_rise
            history[_OUT_GUESS, c] += out_guess + 1e-300
            history[_IN_GUESS, c] += in_guess + 1e-300
            history[_TRIALS, c] += 1.0
            score = max(out_rise, 1e-9 * (target - bound)) * max(in_rise, 1e-9 * (target - bound))
        if score > most:
            most, who = score, c
    return who, False, trials
