"""
A classifier one can read
=========================

L0-RBoost chooses few rules; their weights are drawn.
"""

from sklearn.datasets import load_breast_cancer

from psilearn import L0BoostClassifier
from psilearn.estimators.plots import RulesDisplay

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X, y = X.iloc[:250], y.iloc[:250].map({0: "malignant", 1: "benign"})
model = L0BoostClassifier(binarizer="support").fit(X, y)
RulesDisplay.from_estimator(model)
print(model.export_text())
