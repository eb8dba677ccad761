"""
A boundary, and the labels it does not believe
==============================================

Five labels are wrong. Circled points carry the boundary, crosses are the suspects: samples whose loss sits at its cap.
Of five wrong labels it finds those that contradict the others; two lie where the other class lives, too.
"""

import numpy as np

from psilearn import TruncatedHingeClassifier
from psilearn.estimators.plots import BoundaryDisplay


def clouds(n=60, wrong=5, seed=1):
    """Two clouds, the first few labels of which are wrong."""
    rng = np.random.default_rng(seed)
    y = np.resize([0, 1], n)
    X = rng.normal(scale=0.8, size=(n, 2)) + np.where(y == 1, 1.0, -1.0)[:, None]
    y[:wrong] = 1 - y[:wrong]
    return X, y


X, y = clouds()
model = TruncatedHingeClassifier().fit(X, y)
display = BoundaryDisplay.from_estimator(model, X, y)
display.ax_.set_title(f"{len(model.suspects_)} labels are not believed")
print("suspects:", model.suspects_.tolist(), "- wrong are 0 to 4")
