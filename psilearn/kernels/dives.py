"""Incumbents for the hard margin by ruin and recreate on the lifted problem of :mod:`.lifted`.

Some samples that are left out are put back, which raises s; then, greedily, the tight sample whose absence lowers f
most is left out, until s = 0 and two more leave the best value of the dive unbeaten.
"""

from __future__ import annotations

import numpy as np

from .compiling import kernel
from .lifted import ABSENT, WATCHED, copy_spot, descend, lift, remove
from .pieces import FREE
from .violations import offer_point

_PATIENCE = 2


@kernel
def dive(model, lifted, best, spot, child, better, desk):
    """Leave out one tight sample after the other, always the one whose absence lowers f most; offers every point.

    ``spot`` holds a point with its roles; its samples that are not absent are brought in first. Returns the best value.
    """
    n, d = model.a.shape
    paid = 0.0
    for i in range(n):
        if spot.role[i] == ABSENT:
            paid += model.cost[i] * model.cap
    lift(lifted, spot)
    lowest, patience = np.inf, _PATIENCE
    if not descend(lifted, spot, 1000 * (d + 2)):
        return lowest
    while True:
        value = offer_point(model, lifted, spot, best, desk)
        if value < lowest:
            lowest, patience = value, _PATIENCE
        elif spot.x[d + 1] <= 1e-12:
            patience -= 1
        if patience == 0 or paid >= best.value[0]:
            return lowest
        least, who = np.inf, -1
        for position in range(spot.size[0]):
            h = spot.members[position]
            if h == n or model.given[h] != FREE:
                continue
            copy_spot(spot, child)
            remove(child, position, ABSENT)
            if descend(lifted, child, 50 * (d + 2)):
                f = lifted.price * child.x[d + 1] + model.cost[h] * model.cap
                for k in range(d):
                    f += 0.5 * child.x[k] * child.x[k]
                if f < least:
                    least, who = f, h
                    copy_spot(child, better)
        if who < 0:
            return lowest
        paid += model.cost[who] * model.cap
        copy_spot(better, spot)
        for i in range(n):  # whoever fits again is believed again
            if spot.role[i] == ABSENT and spot.slack[i] >= 0.0:
                spot.role[i] = WATCHED
                paid -= model.cost[i] * model.cap


@kernel
def ruin(model, best, spot, draws):
    """Put the incumbent into ``spot`` and call back about a number of its absent samples; ``draws`` are in (0, 1)."""
    n, d = model.a.shape
    for f in range(d):
        spot.x[f] = best.w[f]
    spot.x[d] = best.b[0]
    spot.size[0] = 0
    for i in range(n + 1):
        spot.role[i] = WATCHED
    for i in range(n):
        if best.u[i] < model.t - 1e-7 and draws[i] < draws[n]:
            spot.role[i] = ABSENT
