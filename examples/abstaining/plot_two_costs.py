"""
Abstaining costs more on one class
==================================

To send a healthy patient to a second examination is cheap, to send a sick one away without an answer is not: ``d`` may
be given by class.
"""

import matplotlib.pyplot as plt
import numpy as np

from psilearn import RejectClassifier
from psilearn.datasets import make_gaussian_ar

X, codes = make_gaussian_ar(400, n_features=5, random_state=0)
y = np.where(codes > 0, "sick", "healthy")
equal = RejectClassifier(d=0.2, C=0.1, penalty="l2").fit(X, y)
unequal = RejectClassifier(d={"healthy": 0.1, "sick": 0.4}, C=0.1, penalty="l2").fit(X, y)

figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained", sharex=True)
for ax, model, title in zip(axes, (equal, unequal), ("one cost", "0.1 for healthy, 0.4 for sick")):
    f = model.decision_function(X)
    for name in ("healthy", "sick"):
        ax.hist(f[y == name], bins=30, alpha=0.6, label=name)
    ax.axvspan(-model.threshold_, model.threshold_, color="grey", alpha=0.3, label="abstains")
    ax.set(title=title, xlabel="f(x)")
axes[0].legend()
