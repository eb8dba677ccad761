"""
A search closes its gap
=======================

The objective of psi-learning has many local minima. The exact search holds the best fit found and a bound that no fit
is below; where they meet, the training optimum is proved.
"""

import numpy as np

from psilearn import PsiClassifier
from psilearn.estimators.plots import BoundsDisplay

rng = np.random.default_rng(3)
y = np.resize([0, 1], 50)
X = rng.normal(size=(50, 3)) + np.where(y == 1, 0.7, -0.7)[:, None]
model = PsiClassifier(C=2.0, solver="mip", time_limit=10).fit(X, y)
BoundsDisplay.from_estimator(model)
print(model.certificate_.claim, "relative gap", model.gap_)
