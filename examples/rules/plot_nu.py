"""
How many rules
==============

The larger nu, the more errors LP-Boost tolerates for a larger margin, and the fewer rules it needs. ``nu="auto"``
chooses by cross-validation.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from psilearn import LPBoostClassifier

X, y = load_breast_cancer(return_X_y=True)
X, X_test, y, y_test = train_test_split(X, y, random_state=0, stratify=y)
nus = [0.05, 0.1, 0.2, 0.3, 0.5]
models = [LPBoostClassifier(nu=nu).fit(X, y) for nu in nus]
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
left.plot(nus, [model.n_rules_ for model in models], "o-")
left.set(xlabel="nu", ylabel="rules", ylim=(0, None))
right.plot(nus, [1.0 - model.score(X_test, y_test) for model in models], "o-", color="tab:orange")
right.set(xlabel="nu", ylabel="test error", ylim=(0, None))
