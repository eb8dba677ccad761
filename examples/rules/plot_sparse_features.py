"""
Which features matter
=====================

Five features of 50 carry the classes (Choi and others, 2009). The 1-norm finds them; the adaptive 1-norm, which
penalises what the 2-norm fit finds small, keeps fewer of the others.
"""

import matplotlib.pyplot as plt
import numpy as np

from psilearn import SVMClassifier
from psilearn.datasets import make_gaussian_ar

X, y = make_gaussian_ar(200, n_features=50, random_state=0)
figure, axes = plt.subplots(3, 1, figsize=(7, 5), layout="constrained", sharex=True)
for ax, penalty, C in zip(axes, ("l2", "l1", "adaptive-l1"), (0.01, 0.05, 0.05)):
    w = SVMClassifier(penalty=penalty, C=C).fit(X, y).coef_[0]
    ax.bar(range(50), np.abs(w), color=np.where(np.arange(50) < 5, "tab:blue", "tab:grey"))
    ax.set_title(f"{penalty}: {np.count_nonzero(w)} coefficients that are not zero", fontsize=9)
axes[-1].set_xlabel("feature (the first five matter)")
