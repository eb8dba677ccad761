"""Which sample divides a node, and how far below t a margin can be at all.

Dividing by the sample whose two children have the best bounds keeps the tree small (Achterberg, Koch and Martin,
Branching rules revisited, 2005: reliability branching). Trials solve both children of a few promising samples; their
rises, relative to a cheap estimate, are remembered per sample and replace trials once there are enough of them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ....core._jit import inner
from ...envelope_jit import convex_value, loss_value
from ...sample_state_jit import FREE, IN, OUT, TILTED
from ..node.active_set_jit import copy
from ..node.node_jit import Model, NodeWorkspace, solve_node
from ..node.pieces_jit import piece_value

#: Samples tried per node, and the number of trials after which a sample's history is trusted. Trials are cheap, since
#: children start from their parent's multipliers: far more of them pay than in general mixed-integer solvers.
_TRIED, _TRUSTED = 12, 400
#: Rows of the history: rises of the trials and their estimates, for OUT and IN; the number of trials; scores.
_OUT, _IN, _OUT_GUESS, _IN_GUESS, _TRIALS, _SCORE = 0, 1, 2, 3, 4, 5


def make_history(n: int) -> np.ndarray:
    """Allocate an empty history of n samples."""
    return np.zeros((6, n))


@inner
def _estimates(model, work, i):
    """Guessed rises of the bound with free sample i IN and OUT, and how far its envelope is below its loss.

    OUT raises the sample's cost to the cap. IN raises it to g, and where u < t the margin must also move, which costs
    about half the square of the distance (samples have unit size).
    """
    u = work.u[i]
    paid = piece_value(i, u, work.terms)
    gap = model.cost[i] * loss_value(u, model.breakpoints, model.slopes, model.t, model.cap, 0.0) - paid
    out_rise = max(0.0, model.cost[i] * model.cap - paid)
    in_rise = max(0.0, model.cost[i] * convex_value(max(u, model.t), model.breakpoints, model.slopes) - paid)
    if u < model.t:
        in_rise += 0.5 * (model.t - u) * (model.t - u)
    return in_rise, out_rise, gap


@inner
def _copy_node(work, trial):
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
        history[_SCORE, i] = -1.0
        if work.state[i] == FREE:
            in_rise, out_rise, gap = _estimates(model, work, i)
            if gap > least:
                if history[_TRIALS, i] > 0.0:
                    out_rise *= history[_OUT, i] / history[_OUT_GUESS, i]
                    in_rise *= history[_IN, i] / history[_IN_GUESS, i]
                history[_SCORE, i] = out_rise * in_rise
    most, who, trials = -1.0, n, 0
    for _ in range(_TRIED):
        score, c = -1.0, n
        for i in range(n):
            if history[_SCORE, i] > score:
                score, c = history[_SCORE, i], i
        if c == n:
            break
        history[_SCORE, c] = -1.0
        if history[_TRIALS, c] < _TRUSTED:
            trials += 1
            in_guess, out_guess, _ = _estimates(model, work, c)
            out_rise, in_rise = 0.0, 0.0
            for fate in range(OUT, IN - 1, -1):  # one place of call, because it compiles to much code
                _copy_node(work, trial)
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


def tighten_lows(
    model: Model, work: NodeWorkspace, trial: NodeWorkspace, price: NDArray[np.float64], upper: float, bound: float
) -> None:
    """Raise ``work.low`` of the free samples: how far below t can a margin be where the objective is below ``upper``?

    Let sample i be OUT and add s u_i to the objective of the node, s > 0 (state TILTED). A dual feasible point of that
    problem, of value D(s), proves upper > F(w, b) >= D(s) - s u_i for every better solution in which i is OUT, hence
    u_i > (D(s) - upper) / s. The best s is where the relaxed F equals ``upper``; F grows about quadratically in s, so
    ``price`` (s per sample, updated) is corrected by a square root. For the 2-norm only. Not compiled: nearly all of
    the time goes into the nodes.
    """
    for i in range(model.y.size):
        if work.state[i] != FREE:
            continue
        for _ in range(2):
            for name in ("b", "state", "low", "high", "alpha"):
                getattr(trial, name)[:] = getattr(work, name)
            trial.state[i], trial.low[i] = TILTED, price[i]
            value, _ = solve_node(model, trial, upper * (1.0 + 1e-9) + price[i] * model.t)
            s = -trial.alpha[i]
            if not 0.5 * price[i] < s < 2.0 * price[i]:
                break
            work.low[i] = max(work.low[i], (value - upper) / s)
            if work.low[i] >= model.t:
                work.state[i] = IN
                break
            relaxed = value - s * trial.u[i] - bound
            price[i] = s * min(max(np.sqrt((upper - bound) / max(relaxed, 1e-300)), 0.1), 10.0)
