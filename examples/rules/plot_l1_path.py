"""
Coefficients appear one by one
==============================

With the 1-norm penalty most coefficients are exactly zero for small C. The whole path is computed warm, and every point
of it carries its duality gap.
"""

from sklearn.datasets import load_breast_cancer

from psilearn import SVMClassifier
from psilearn.estimators.plots import PathDisplay

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X = (X - X.mean()) / X.std()
PathDisplay.from_estimator(SVMClassifier(penalty="l1"), X, y)
