"""Outcomes in words: what is proved, how large the model is, whether it is better than chance, and what to do."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core.result import Certificate, Claim
from ...evaluation.rates import difference, paired, rate
from ...evaluation.selective import Guarantee, confidence_of, guaranteed_threshold
from ..audit.story import answer, is_refused, worth_a_look
from ..words import shown
from .job import Comparison, Outcome

#: The promise that is looked for: at most this share of the answers wrong, with this confidence.
RISK, LEVEL = 0.05, 0.95


def proof(model: Any) -> str:
    """Say in a few words what is proved about the training optimum of a fit."""
    certificate = getattr(model, "certificate_", None)
    if hasattr(model, "rules_"):
        return f"{'relaxation' if certificate else 'proved'}, {_gap(model.gap_)}"
    if not isinstance(certificate, Certificate):
        return "no claim"
    if certificate.claim is Claim.CRITICAL:
        return "local optimum"
    if certificate.claim is Claim.CONVEX or certificate.claim is Claim.GLOBAL:
        gap = model.gap_
        if not math.isfinite(gap):
            return "no bound"
        tolerance = model.tol if certificate.claim is Claim.CONVEX else model.gap_tol
        return f"proved, {_gap(gap)}" if gap <= tolerance else f"not proved, {_gap(gap)}"
    return str(certificate.claim.value)


def standing(comparison: Comparison, outcome: Outcome) -> str:
    """Return what is proved about a fit that is of use, and otherwise why it is not."""
    if outcome.method.key == "majority":
        return ""
    if outcome.is_constant:
        return "a constant"
    if not comparison.is_useful(outcome):
        return "no better than majority"
    return proof(outcome.model)


def _gap(gap: float) -> str:
    if gap < 1e-3:
        return f"gap {gap:.0e}" if gap > 0 else "gap 0"
    return f"gap {100 * gap:.2g}%" if gap < 0.0995 else f"gap {100 * gap:.0f}%"


def n_nonzero(model: Any) -> int | None:
    """Return the number of features with a coefficient that is not zero, or of rules; None for other methods."""
    if hasattr(model, "rules_"):
        return int(model.n_rules_)
    coef = None if hasattr(model, "dual_coef_") else getattr(model, "coef_", None)
    return None if coef is None else int(used_features(coef).sum())


def used_features(coef: Any) -> np.ndarray:
    """Return which features have a coefficient that is not zero up to rounding."""
    coef = np.atleast_2d(coef)
    return np.any(np.abs(coef) > 1e-9 * np.abs(coef).max(initial=0.0), axis=0)


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


# -- the story --------------------------------------------------------------------------------------------------------


def story(comparison: Comparison) -> dict[str, str]:
    """Say what to do, by question: labels, rows to look at, model, rivals, promise."""
    if not comparison.outcomes:
        return {"Model": "No method finished within the budget."}
    return labels_story(comparison) | _model_story(comparison)


def labels_story(comparison: Comparison) -> dict[str, str]:
    """Say whether the labels can be trusted and which rows to look at, as the audit found."""
    issues = comparison.issues
    if issues is None:
        return {}
    model, labels, *rows = answer(issues)
    if is_refused(issues):
        return {"Labels": f"{model} {labels}"}
    suspects = worth_a_look(issues)
    told = [" ".join(rows)]
    if issues["flipped"].any() and len(suspects):
        hits, flips = int(suspects["flipped"].sum()), int(issues["flipped"].sum())
        told.append(f"{hits} of them are among the {flips} flipped ones.")
    first = "id" if "id" in issues else "row"
    if len(suspects):
        told.append(f"Begin with {first} " + ", ".join(shown(v, 30) for v in suspects[first].head(5)) + ".")
    return {"Labels": labels, "Rows": " ".join(told)}


def _model_story(comparison: Comparison) -> dict[str, str]:
    if not any(comparison.is_useful(o) for o in comparison.outcomes):
        return {"Model": _nothing_works(comparison)}
    chosen = comparison.recommended
    if chosen is None or not comparison.is_useful(chosen):
        best = comparison.best
        words = f"Smallest test error: {best.method.label}, {rate(best.wrong)}; {_chance(comparison)}."
        if chosen is not None:
            words += f" {chosen.method.label}, best in the tuning, is not clearly better than that."
        return {"Model": words}
    parts = {"Model": _recommendation(comparison, chosen)}
    if rivals := _rivals(comparison, chosen):
        parts["Rivals"] = " ".join(rivals)
    if promised := promise(comparison, chosen):
        parts["Promise"] = promised[0]
    return parts


def _chance(comparison: Comparison) -> str:
    label = shown(comparison.splits[0].majority, 40)
    return f"always answering '{label}' is wrong in {100 * comparison.chance.value:.1f}%"


def _nothing_works(comparison: Comparison) -> str:
    target, least = shown(comparison.data.target, 40), 100 * comparison.best.error
    return (
        f"No method predicts '{target}' clearly better than chance: {_chance(comparison)}, the best of "
        f"{len(comparison.outcomes)} methods in {least:.1f}%. Use none of these models: the columns tell little about "
        "the label, or there are too few rows to see it."
    )


def _recommendation(comparison: Comparison, chosen: Outcome) -> str:
    return (
        f"Use {chosen.method.label} (psilearn fit --method {chosen.method.key}), chosen on the training rows alone. On "
        f"the {len(chosen.wrong)} test rows it is wrong in {rate(chosen.wrong)}; {_chance(comparison)}."
    )


def _rivals(comparison: Comparison, chosen: Outcome) -> list[str]:
    parts = []
    for key in ("boosting", "svm-l2"):
        rival = comparison.outcome(key)
        if rival is not None and rival is not chosen:
            parts.append(f"{_versus(rival, chosen)}.")
    return parts


def _versus(rival: Outcome, chosen: Outcome) -> str:
    """Say how a rival compares with the chosen method."""
    versus, gain = paired(chosen.wrong, rival.wrong), difference(chosen.wrong, rival.wrong)
    name = f"{rival.method.label} is wrong in {100 * rival.error:.1f}%"
    if not versus.is_clear:
        return f"{name}, a difference that chance alone can explain (p = {versus.p:.2g})"
    word = "more" if gain.value > 0 else "less"
    low, high = sorted((abs(gain.low), abs(gain.high)))
    return f"{name}, {100 * abs(gain.value):.1f} points {word} (95% interval {100 * low:.1f} to {100 * high:.1f})"


def promise(comparison: Comparison, chosen: Outcome) -> tuple[str, Guarantee] | None:
    """Return the promise that can be made if the chosen model answers only where it is sure; None if it has no scores.

    The thresholds come from the training rows and the choice of the model too, so the test rows are a calibration
    sample (:func:`psilearn.evaluation.selective.guaranteed_threshold`).
    """
    split = comparison.splits[0]
    if comparison.settings.outer_folds or not hasattr(chosen.model, "decision_function"):
        return None
    training = confidence_of(chosen.model.decision_function(split.training(chosen.method)))
    candidates = np.unique(np.r_[0.0, np.quantile(training, np.linspace(0.0, 0.99, 100))])
    confidence = confidence_of(chosen.model.decision_function(split.testing(chosen.method)))
    made = guaranteed_threshold(confidence, ~chosen.wrong, candidates, RISK, LEVEL)
    if math.isinf(made.threshold):
        return (
            f"A promise of at most {100 * RISK:g}% wrong answers with {100 * LEVEL:g}% confidence cannot be made with "
            f"{len(chosen.wrong)} test rows, even if it answers only where it is sure.",
            made,
        )
    if made.coverage == 1.0:
        words = f"It can answer every row: at most {100 * RISK:g}% of its answers are wrong"
    else:
        words = (
            f"Silent where its margin is {made.threshold:.3g} or less, it answers {100 * made.coverage:.0f}%; at most "
            f"{100 * RISK:g}% of answers wrong"
        )
    return f"{words}, with {100 * LEVEL:g}% confidence.", made
