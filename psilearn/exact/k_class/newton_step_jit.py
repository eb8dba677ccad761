"""The Newton step of :mod:`.hinge_qp_jit`: predictor, corrector, and how far one may go.

The variables are theta, the slacks s_r and multipliers alpha_r of the rows, the slacks xi_g of the groups and what is
left of their prices, beta_g = c_g - sum_{r in g} alpha_r. Eliminating all but theta leaves a system with the matrix

    H = diag(q) + sum_r d_r a_r a_r' - sum_g kappa_g (sum_{r in g} d_r a_r)(sum_{r in g} d_r a_r)',

d_r = alpha_r / s_r, kappa_g = xi_g / (beta_g + xi_g sum_{r in g} d_r), and no last term for a hard group (c_g = inf).
Cost: O(rows * p^2).
"""

from __future__ import annotations

import numpy as np

from ...core._jit import inner


@inner
def factor(A, first, c, q, alpha, s, xi, beta, pooled, H):
    """Cholesky factor of the Newton system, small pivots lifted; also writes pooled_g = sum_r d_r a_r."""
    p = q.size
    for l in range(p):
        for m in range(l + 1):
            H[l, m] = 0.0
        H[l, l] = q[l]
    for g in range(first.size - 1):
        for l in range(p):
            pooled[g, l] = 0.0
        weight = 0.0
        for r in range(first[g], first[g + 1]):
            d = alpha[r] / s[r]
            weight += d
            for l in range(p):
                a = d * A[r, l]
                pooled[g, l] += a
                for m in range(l + 1):
                    H[l, m] += a * A[r, m]
        if c[g] != np.inf:
            kappa = xi[g] / (beta[g] + xi[g] * weight)
            for l in range(p):
                a = kappa * pooled[g, l]
                for m in range(l + 1):
                    H[l, m] -= a * pooled[g, m]
    biggest = 0.0
    for j in range(p):
        biggest = max(biggest, H[j, j])
    for j in range(p):
        d = H[j, j]
        for m in range(j):
            d -= H[j, m] * H[j, m]
        d = np.sqrt(max(d, 1e-14 * biggest + 1e-300))
        H[j, j] = d
        for i in range(j + 1, p):
            t = H[i, j]
            for m in range(j):
                t -= H[i, m] * H[j, m]
            H[i, j] = t / d


@inner
def direction(A, first, c, H, pooled, alpha, s, xi, beta, gap, residual, target_r, target_g, dtheta, dalpha, ds, dxi):
    """Newton step towards s_r alpha_r = target_r, xi_g beta_g = target_g; gap_r is how far s_r is from its row."""
    p = residual.size
    for l in range(p):
        dtheta[l] = -residual[l]
    for g in range(first.size - 1):
        weight = 0.0
        push = 0.0
        for r in range(first[g], first[g + 1]):
            d = alpha[r] / s[r]
            e = target_r[r] / s[r] - alpha[r] - d * gap[r]
            weight += d
            push += e
            for l in range(p):
                dtheta[l] += e * A[r, l]
        if c[g] != np.inf:
            shift = xi[g] / (beta[g] + xi[g] * weight) * (target_g[g] / xi[g] - beta[g] + push)
            for l in range(p):
                dtheta[l] -= shift * pooled[g, l]
    for j in range(p):
        for m in range(j):
            dtheta[j] -= H[j, m] * dtheta[m]
        dtheta[j] /= H[j, j]
    for j in range(p - 1, -1, -1):
        for m in range(j + 1, p):
            dtheta[j] -= H[m, j] * dtheta[m]
        dtheta[j] /= H[j, j]
    for g in range(first.size - 1):
        weight = 0.0
        push = 0.0
        for r in range(first[g], first[g + 1]):
            ds[r] = gap[r]
            for l in range(p):
                ds[r] += A[r, l] * dtheta[l]
            d = alpha[r] / s[r]
            weight += d
            push += target_r[r] / s[r] - alpha[r] - d * ds[r]
        dxi[g] = 0.0
        if c[g] != np.inf:
            dxi[g] = xi[g] / (beta[g] + xi[g] * weight) * (target_g[g] / xi[g] - beta[g] + push)
        for r in range(first[g], first[g + 1]):
            ds[r] += dxi[g]
            dalpha[r] = target_r[r] / s[r] - alpha[r] - alpha[r] / s[r] * ds[r]


@inner
def step_lengths(first, c, alpha, s, xi, beta, dalpha, ds, dxi):
    """Largest primal and dual steps in (0, 1] that keep everything positive."""
    primal = 1.0
    dual = 1.0
    for g in range(first.size - 1):
        dbeta = 0.0
        for r in range(first[g], first[g + 1]):
            dbeta -= dalpha[r]
            if ds[r] < 0.0:
                primal = min(primal, -s[r] / ds[r])
            if dalpha[r] < 0.0:
                dual = min(dual, -alpha[r] / dalpha[r])
        if c[g] != np.inf:
            if dxi[g] < 0.0:
                primal = min(primal, -xi[g] / dxi[g])
            if dbeta < 0.0:
                dual = min(dual, -beta[g] / dbeta)
    return primal, dual


@inner
def aim(first, c, alpha, s, xi, beta, dalpha, ds, dxi, primal, dual, mu, count, target_r, target_g):
    """Write the targets of the corrector: what the predictor would reach, cubed, and its second-order error."""
    affine = 0.0
    for g in range(first.size - 1):
        dbeta = 0.0
        for r in range(first[g], first[g + 1]):
            affine += (s[r] + primal * ds[r]) * (alpha[r] + dual * dalpha[r])
            dbeta -= dalpha[r]
        if c[g] != np.inf:
            affine += (xi[g] + primal * dxi[g]) * (beta[g] + dual * dbeta)
    ratio = affine / max(count, 1) / mu if mu > 0.0 else 0.0
    sigma = ratio * ratio * ratio
    for g in range(first.size - 1):
        dbeta = 0.0
        for r in range(first[g], first[g + 1]):
            target_r[r] = sigma * mu - ds[r] * dalpha[r]
            dbeta -= dalpha[r]
        target_g[g] = sigma * mu - dxi[g] * dbeta
