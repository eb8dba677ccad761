"""Outcomes in words: what is certified, how many coefficients, what the comparison teaches."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.stats import binomtest

from ...core.result import Certificate, Claim
from .job import Comparison, Outcome


def certified(model: Any) -> str:
    """Say in a few words what is proved about a fit."""
    certificate = getattr(model, "certificate_", None)
    if hasattr(model, "rules_"):
        return f"{'relaxation' if certificate else 'optimum'}, {_gap(model.gap_)}"
    if not isinstance(certificate, Certificate):
        return "no claim"
    if certificate.claim is Claim.CRITICAL:
        return "local optimum"
    if certificate.claim is Claim.CONVEX or certificate.claim is Claim.GLOBAL:
        kind = "optimum" if certificate.claim is Claim.CONVEX else "global optimum"
        gap = model.gap_
        if not math.isfinite(gap):
            return "no bound"
        tolerance = model.tol if certificate.claim is Claim.CONVEX else model.gap_tol
        return f"{kind}, {_gap(gap)}" if gap <= tolerance else f"not proved, {_gap(gap)}"
    return str(certificate.claim.value)


def _gap(gap: float) -> str:
    if gap < 1e-3:
        return f"gap {gap:.0e}" if gap > 0 else "gap 0"
    return f"gap {100 * gap:.2g}%" if gap < 0.0995 else f"gap {100 * gap:.0f}%"


def n_nonzero(model: Any) -> int | None:
    """Return the number of features with a coefficient that is not zero, or of rules; None for other methods."""
    if hasattr(model, "rules_"):
        return int(model.n_rules_)
    coef = getattr(model, "coef_", None)
    if coef is None:
        return None
    coef = np.atleast_2d(coef)
    return int(np.sum(np.any(np.abs(coef) > 1e-9 * np.abs(coef).max(initial=0.0), axis=0)))


def n_support(model: Any) -> int | None:
    """Return the number of samples the fit depends on."""
    support = getattr(model, "support_", None)
    return None if support is None else len(support)


def flips_found(comparison: Comparison, outcome: Outcome) -> tuple[int, int, int] | None:
    """Return (flipped labels among the suspects, suspects, flipped labels) of the first split; None without flips."""
    if outcome.suspects is None or not comparison.settings.flip:
        return None
    flipped = comparison.splits[0].flipped
    return int(np.isin(outcome.suspects, flipped).sum()), len(outcome.suspects), len(flipped)


def against(outcome: Outcome, other: Outcome) -> tuple[int, int, float]:
    """Return test rows only ``other`` got wrong, rows only ``outcome`` got wrong, and McNemar's exact p value."""
    gained = int(np.sum(other.wrong & ~outcome.wrong))
    lost = int(np.sum(outcome.wrong & ~other.wrong))
    p = binomtest(gained, gained + lost).pvalue if gained + lost else 1.0
    return gained, lost, float(p)


def verdict(comparison: Comparison) -> str:
    """Say in a few sentences whether robustness pays on this table."""
    if not comparison.outcomes:
        return "No method finished within the budget."
    best = [o for o in comparison.outcomes if o.error == comparison.best.error]
    names = ", ".join(o.method.label for o in best[:3]) + (" and others" if len(best) > 3 else "")
    parts = [f"Smallest test error: {names}, {100 * best[0].error:.1f}% of {_rows(best[0].wrong.size)}."]
    robust = [o for o in comparison.outcomes if o.method.is_robust]
    svm = comparison.outcome("svm-l2")
    if robust and svm is not None:
        parts.append(_against_the_svm(min(robust, key=lambda o: o.error), svm))
    found = [(counts, o) for o in robust if (counts := flips_found(comparison, o)) is not None]
    if found:
        (hits, refused, flips), outcome = max(found, key=lambda f: f[0][0] / max(f[0][1], f[0][2]))
        parts.append(f"{outcome.method.label} refused {refused} labels, {hits} of them among the {flips} flipped ones.")
    return " ".join(parts)


def _against_the_svm(robust: Outcome, svm: Outcome) -> str:
    gained, lost, p = against(robust, svm)
    if gained == lost:
        return f"{robust.method.label} and the SVM make equally many errors."
    size = "a difference chance alone can explain" if p > 0.05 else "more than chance explains"
    return (
        f"Against the SVM, {robust.method.label} gets {_rows(abs(gained - lost))} "
        f"{'more' if gained > lost else 'fewer'} right ({size}, p = {p:.2g})."
    )


def _rows(n: int) -> str:
    return "1 test row" if n == 1 else f"{n} test rows"
