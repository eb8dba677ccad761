"""Incumbents by a walk over the sets of samples given up, the convex rest solved anew at every step.

A step calls back a sample that is given up, or gives up one that presses on the fit. If a sample cannot be called back
at a bearable price, somebody who presses against it is given up in exchange. Steps that are worse by a fraction of one
price are taken, too; samples that were moved rest for some steps, so the walk does not turn back at once.
"""

from __future__ import annotations

import numpy as np
from numba.extending import overload

from ...core._jit import inner, kernel
from .node.active_set_jit import Basis, copy, copy_basis
from .node.ascent_jit import SOLVED
from .node.envelope_jit import FREE, GONE, IN
from .node.pointers_jit import by_pointer
from .tree.tree_jit import FEASIBLE, offer, true_value

#: Part of the steps that call back, samples tried at most in exchange for one, and the steps that samples rest. Many
#: hasty steps are worth more than few thorough ones: with 30 tried, walks end higher after ten times as long.
_CALLS, _TRIED, _REST = 0.7, 2, 3


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
def _copy_place(source, target, is_start):
    """Copy a solved place; the next solve of ``target`` starts from its active set if ``is_start`` is 1."""
    target.b[0] = source.b[0]
    copy(source.w, target.w)
    copy(source.u, target.u)
    copy(source.state, target.state)
    copy(source.alpha, target.alpha)
    _copy_active(source.basis, target.basis, is_start)


@inner
def _may_move(model, here, rest, now, i, to_call):
    if model.given[i] != FREE or rest[i] >= now:
        return False
    return here.state[i] == GONE if to_call else here.state[i] == IN and here.alpha[i] > 0.0


@inner
def _pick(model, here, rest, now, to_call, draw):
    """Draw one of the samples that may move; n if there is none."""
    n = model.y.size
    count = 0
    for i in range(n):
        count += _may_move(model, here, rest, now, i, to_call)
    left = int(draw * count)
    for i in range(n):
        if _may_move(model, here, rest, now, i, to_call):
            if left == 0:
                return i
            left -= 1
    return n


@inner
def _exchange(solve, model, here, trial, rest, now, pressure, i, limit):
    """Call back i and give up somebody else, those that press hardest first: (value, whom, n if nobody helps)."""
    n = model.y.size
    for _ in range(_TRIED):
        most, j = 0.0, n
        for k in range(n):
            if pressure[k] > most and k != i and here.state[k] == IN and model.given[k] == FREE and rest[k] < now:
                most, j = pressure[k], k
        if j == n:
            break
        pressure[j] = 0.0
        _copy_place(here, trial, 1)
        trial.state[i], trial.state[j] = IN, GONE
        _, flag = solve(model, trial, limit)
        value = true_value(model, trial.w, trial.u)
        if flag == SOLVED and value < limit:
            return value, j
    return np.inf, n


@by_pointer
@kernel
def walk(solve, model, here, trial, best, rest, steps, pressure, draws, heat):
    """Take a step for every row of ``draws`` (five numbers in (0, 1)); offers every place.

    ``here`` is a solved place, all samples IN or GONE; ``heat`` is the mean rise of a step, in prices, that is taken;
    ``rest`` and ``steps`` are the steps until which samples rest and the number of steps so far.
    """
    n = model.y.size
    value = true_value(model, here.w, here.u)
    for s in range(draws.shape[0]):
        steps[0] += 1
        now = steps[0]
        to_call = draws[s, 0] < _CALLS
        i = _pick(model, here, rest, now, to_call, draws[s, 1])
        if i == n:
            continue
        if to_call:
            other = _pick(model, here, rest, now, True, draws[s, 2])
            i = other if here.u[other] > here.u[i] else i
        toll = model.cost[i] * model.cap
        limit = value - heat * toll * np.log(draws[s, 3])
        _copy_place(here, trial, 1)
        trial.state[i] = IN if to_call else GONE
        _, flag = solve(model, trial, limit + 2.0 * toll)
        found, who = true_value(model, trial.w, trial.u), n
        if flag != SOLVED or found >= limit:
            found = np.inf
            if to_call:
                copy(trial.alpha, pressure)
                found, who = _exchange(solve, model, here, trial, rest, now, pressure, i, limit)
        if found < limit:
            for k in range(n):
                if trial.state[k] == GONE and model.given[k] == FREE and trial.u[k] >= model.t - FEASIBLE:
                    trial.state[k] = IN
            _copy_place(trial, here, 0)
            value = found
            rest[i] = now + _REST + int(10.0 * draws[s, 4])
            if who < n:
                rest[who] = rest[i]
            offer(model, best, here.w, here.b[0], here.u)
