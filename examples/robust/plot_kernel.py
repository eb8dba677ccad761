"""
A curved boundary
=================

The same loss with a Gaussian kernel: two half moons, a tenth of the labels flipped.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from psilearn import SVMClassifier, TruncatedHingeClassifier
from psilearn.estimators.plots import BoundaryDisplay

X, clean = make_moons(200, noise=0.15, random_state=0)
wrong = np.random.default_rng(0).choice(200, 20, replace=False)
y = clean.copy()
y[wrong] = 1 - y[wrong]
figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained", sharey=True)
for ax, kind in zip(axes, (SVMClassifier, TruncatedHingeClassifier)):
    model = kind(kernel="rbf", gamma=2.0, C=10.0).fit(X, y)
    BoundaryDisplay.from_estimator(model, X, y, ax=ax)
    ax.set_title(f"{kind.__name__}\n{(model.predict(X) != clean).mean():.1%} wrong on clean labels", fontsize=9)
