"""Light conflicts: sets of samples with a large hard-margin penalty and small weight, by the lifted problem.

With weights v_i of the elastic variable the multipliers of the lifted problem
(:mod:`psilearn.exact.two_class.violations.lifted_jit`) maximise

    t sum_i alpha_i - 1/2 ||sum_i alpha_i a_i||^2     subject to   sum_i v_i alpha_i <= M,  sum_i y_i alpha_i = 0.

Where M binds, they spend it on samples with small v_i: with v_i = z_i + something small the tight samples S have a
large conv(S) and a small sum_{i in S} v_i alpha_i. What is wanted small is sum_{i in S} z_i, whatever alpha_i, so the
problem is solved again with v_i / (alpha_i + something), whose sum over alpha nearly counts every member once.
"""

from __future__ import annotations

from ....core._jit import kernel
from ..node.active_set_jit import clear
from ..violations.lifted_jit import descend, lift, proved_value, reset

#: What is added to multipliers, as part of the largest one, so that samples without one can enter.
_COUNTED_FROM = 0.05


@kernel
def light_conflicts(lifted, iterate, weight, cutoff, alpha, w, members, sizes):
    """Write conflicts with small weight into the rows of ``members``, at most one per row, and their ``sizes``.

    A conflict is a set S with conv(S) >= ``cutoff``, proved by a dual feasible point. ``lifted`` has v = 1 and M for
    values up to the cutoff; ``weight`` > 0. Size 0 means that this round found none; a round begins where the last one
    ended.
    """
    n, width = weight.size, iterate.x.size
    reset(iterate)
    for i in range(n):
        alpha[i] = 1.0
    for c in range(sizes.size):
        sizes[c] = 0
    for c in range(sizes.size):
        most = 0.0
        for i in range(n):
            iterate.elasticity[i] = weight[i] / (alpha[i] + _COUNTED_FROM)
            most = max(most, iterate.elasticity[i])
            alpha[i] = 0.0
        for i in range(n):
            iterate.elasticity[i] /= most
        lift(lifted, iterate)
        if not descend(lifted, iterate, 100 * width):
            clear(iterate.x)
            return
        is_conflict, most = proved_value(lifted, iterate, w) >= cutoff, 0.0
        for k in range(iterate.size[0]):
            i, share = iterate.members[k], iterate.multiplier[k]
            if i < n and share > 0.0:
                alpha[i] = share
                most = max(most, share)
                if is_conflict:
                    members[c, sizes[c]] = i
                    sizes[c] += 1
        if most == 0.0:
            return
        for i in range(n):
            alpha[i] /= most
