"""Local search over the sets of samples given up, the convex rest solved anew at every step.

A step readmits a sample that is given up, or gives up one with a positive multiplier. If a sample cannot be readmitted
at an acceptable price, one that holds against it (the largest multipliers first) is given up in exchange. Steps that
are worse by a fraction of one price are accepted at random (simulated annealing at a fixed temperature), and samples
that were moved are tabu for some steps, so that the search does not turn back at once.
"""

from __future__ import annotations

import numpy as np
from numba.extending import overload

from ...core._jit import inner, kernel
from ..envelope_jit import FEASIBLE
from ..sample_state_jit import FREE, GONE, IN
from .incumbent_jit import offer, true_value
from .node.active_set_jit import Basis, copy, copy_basis
from .node.ascent_jit import SOLVED
from .node.pointers_jit import by_pointer

#: Part of the steps that readmit a sample.
_READMISSIONS = 0.7
#: Samples tried at most in exchange for one. Many quick steps are worth more than few thorough ones: with 30 tried,
#: local searches on the data of ``benchmarks/hard_margin.py`` end higher after ten times as long.
_TRIED = 2
#: Steps for which a moved sample is tabu: at least, and how many more at random.
_TABU, _MORE_TABU = 3, 10.0


def _copy_l2(source, target, is_start):
    copy_basis(source, target)
    target.size[1] = is_start


def _copy_l1(source, target, is_start):
    return


def _copy_active(source, target, is_start):
    (_copy_l2 if isinstance(source, Basis) else _copy_l1)(source, target, is_start)


@overload(_copy_active, jit_options={"error_model": "numpy"})
def _typed_copy_active(source, target, is_start):
    return _copy_l2 if source.instance_class is Basis else _copy_l1


@inner
def _copy_solution(source, target, is_start):
    """Copy a solution; the next solve of ``target`` starts from its active set if ``is_start`` is 1."""
    target.b[0] = source.b[0]
    copy(source.w, target.w)
    copy(source.u, target.u)
    copy(source.state, target.state)
    copy(source.alpha, target.alpha)
    _copy_active(source.basis, target.basis, is_start)


@inner
def _may_move(model, here, tabu, now, i, readmits):
    if model.given[i] != FREE or tabu[i] >= now:
        return False
    return here.state[i] == GONE if readmits else here.state[i] == IN and here.alpha[i] > 0.0


@inner
def _pick(model, here, tabu, now, readmits, draw):
    """Draw one of the samples that may move; n if there is none."""
    n = model.y.size
    count = 0
    for i in range(n):
        count += _may_move(model, here, tabu, now, i, readmits)
    left = int(draw * count)
    for i in range(n):
        if _may_move(model, here, tabu, now, i, readmits):
            if left == 0:
                return i
            left -= 1
    return n


@inner
def _exchange(solve, model, here, trial, tabu, now, pressure, i, limit):
    """Readmit i and give up another one, large multipliers first: (value, which one, n if none helps)."""
    n = model.y.size
    for _ in range(_TRIED):
        most, j = 0.0, n
        for k in range(n):
            if pressure[k] > most and k != i and here.state[k] == IN and model.given[k] == FREE and tabu[k] < now:
                most, j = pressure[k], k
        if j == n:
            break
        pressure[j] = 0.0
        _copy_solution(here, trial, 1)
        trial.state[i], trial.state[j] = IN, GONE
        _, flag = solve(model, trial, limit)
        value = true_value(model, trial.w, trial.u)
        if flag == SOLVED and value < limit:
            return value, j
    return np.inf, n


@by_pointer
@kernel
def take_steps(solve, model, here, trial, best, tabu, steps, pressure, draws, temperature):
    """Take a step for every row of ``draws`` (five numbers in (0, 1)); offers every solution.

    ``here`` is a solution, all samples IN or GONE; ``temperature`` is the mean rise of a step, in prices, that is
    accepted; ``tabu`` holds the steps up to which samples may not move, ``steps`` the number of steps so far.
    """
    n = model.y.size
    value = true_value(model, here.w, here.u)
    for s in range(draws.shape[0]):
        steps[0] += 1
        now = steps[0]
        readmits = draws[s, 0] < _READMISSIONS
        i = _pick(model, here, tabu, now, readmits, draws[s, 1])
        if i == n:
            continue
        if readmits:
            other = _pick(model, here, tabu, now, True, draws[s, 2])
            i = other if here.u[other] > here.u[i] else i
        price = model.cost[i] * model.cap
        limit = value - temperature * price * np.log(draws[s, 3])
        _copy_solution(here, trial, 1)
        trial.state[i] = IN if readmits else GONE
        _, flag = solve(model, trial, limit + 2.0 * price)
        found, who = true_value(model, trial.w, trial.u), n
        if flag != SOLVED or found >= limit:
            found = np.inf
            if readmits:
                copy(trial.alpha, pressure)
                found, who = _exchange(solve, model, here, trial, tabu, now, pressure, i, limit)
        if found < limit:
            for k in range(n):
                if trial.state[k] == GONE and model.given[k] == FREE and trial.u[k] >= model.t - FEASIBLE:
                    trial.state[k] = IN
            _copy_solution(trial, here, 0)
            value = found
            tabu[i] = now + _TABU + int(_MORE_TABU * draws[s, 4])
            if who < n:
                tabu[who] = tabu[i]
            offer(model, best, here.w, here.b[0], here.u)
