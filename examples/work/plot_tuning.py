"""
Tuning in one line
==================

`TunedClassifier` does what a grid search does, but follows the path along C and shares kernel matrices among folds.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from psilearn import TruncatedHingeClassifier, TunedClassifier

X, y = make_moons(150, noise=0.2, random_state=0)
flipped = np.random.default_rng(0).choice(150, 15, replace=False)
y[flipped] = 1 - y[flipped]
grid = {"C": [0.1, 1.0, 10.0, 100.0], "gamma": [0.1, 1.0, 10.0]}
model = TunedClassifier(TruncatedHingeClassifier(kernel="rbf"), grid).fit(X, y)
print(model.best_params_)

figure, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
results = model.cv_results_
for gamma in grid["gamma"]:
    chosen = [at for at, p in enumerate(results["params"]) if p["gamma"] == gamma]
    ax.plot(
        [results["params"][at]["C"] for at in chosen], results["mean_test_score"][chosen], "o-", label=f"{gamma=:g}"
    )
ax.set(xscale="log", xlabel="C", ylabel="cross-validated accuracy")
ax.legend()
