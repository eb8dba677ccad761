"""
When robustness pays
====================

The test error of the support vector machine and of the truncated hinge as more and more training labels are flipped,
over five samples, C chosen on a second sample with the same share of wrong labels. Without flips there is nothing to
gain; beyond 40% nothing can be learnt by anybody.
"""

import matplotlib.pyplot as plt
import numpy as np

from psilearn import SVMClassifier, TruncatedHingeClassifier
from psilearn.datasets import make_sectors

shares = [0.0, 0.1, 0.2, 0.3, 0.4]
errors = {SVMClassifier: [], TruncatedHingeClassifier: []}
for share in shares:
    for kind, means in errors.items():
        found = []
        for seed in range(5):
            X, y = make_sectors(100, n_classes=3, flip=share, random_state=seed)
            X_tune, y_tune = make_sectors(100, n_classes=3, flip=share, random_state=100 + seed)
            X_test, y_test = make_sectors(4000, n_classes=3, flip=0.0, random_state=200 + seed)
            fits = [kind(C=C, max_iter=200).fit(X, y) for C in (0.1, 1.0)]
            best = max(fits, key=lambda fit: fit.score(X_tune, y_tune))
            found.append(1.0 - best.score(X_test, y_test))
        means.append((np.mean(found), np.std(found, ddof=1) / np.sqrt(len(found))))

figure, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
for kind, means in errors.items():
    mean, se = np.array(means).T
    ax.errorbar(shares, mean, se, marker="o", capsize=3, label=kind.__name__)
ax.set(xlabel="share of flipped training labels", ylabel="error on clean test labels")
ax.legend()
