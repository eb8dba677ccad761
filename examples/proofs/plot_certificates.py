"""
What is claimed, method by method
=================================

The certificate of a fit says what is proved: a duality gap of a convex problem, the global optimum of one that is not
convex, or only that small changes do not help.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

import psilearn

X, y = load_breast_cancer(return_X_y=True)
rows = np.random.default_rng(0).choice(len(y), 150, replace=False)
X, y = StandardScaler().fit_transform(X[rows]), y[rows]
gaps = {}
for model in (
    psilearn.SVMClassifier(),
    psilearn.SVMClassifier(penalty="l1"),
    psilearn.RejectClassifier(),
    psilearn.TruncatedHingeClassifier(solver="dca"),
    psilearn.PsiClassifier(a=2.0, solver="mip"),
):
    model.fit(X, y)
    print(f"{type(model).__name__:26s} {model.certificate_.claim.value:22s} gap {model.gap_:.1e}")
    gaps[f"{type(model).__name__}, {model.penalty}"] = model.gap_

# %%
# The relative gaps, as far as there is one: how far the fit can be from the best one, at most.

figure, ax = plt.subplots(figsize=(6, 2.6), layout="constrained")
proved = {name: max(gap, 1e-16) for name, gap in gaps.items() if np.isfinite(gap)}
ax.barh(list(proved), list(proved.values()), left=1e-16, color="tab:blue")
ax.set(xscale="log", xlim=(1e-16, 1e-1), xlabel="relative gap (no bar: rounding size)")
