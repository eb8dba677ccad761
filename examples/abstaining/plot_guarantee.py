"""
A promise about the answers
===========================

`calibrate` chooses the threshold on samples that were not used for the fit, such that at most a given share of the
answers is wrong, with 95% confidence. Here the promise is checked on 200 new samples of calibration data: it may fail
in at most one of twenty.
"""

import matplotlib.pyplot as plt
import numpy as np

from psilearn import RejectClassifier
from psilearn.datasets import make_gaussian_ar

X, y = make_gaussian_ar(200, n_features=10, random_state=0)
X_test, y_test = make_gaussian_ar(40_000, n_features=10, random_state=1)
model = RejectClassifier(d=0.2, C=0.1).fit(X, y)
right = model.predict(X_test) == y_test
size = np.abs(model.decision_function(X_test))
errors = []
for seed in range(200):
    X_new, y_new = make_gaussian_ar(500, n_features=10, random_state=100 + seed)
    model.calibrate(X_new, y_new, risk=0.1)
    answered = size > model.threshold_
    errors.append(1.0 - right[answered].mean() if answered.any() else 0.0)

print(f"broken in {np.mean(np.array(errors) > 0.1):.1%} of 200 calibrations")
figure, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
ax.hist(100.0 * np.array(errors), bins=25, color="tab:blue", edgecolor="white")
ax.axvline(10.0, color="black", linestyle=":", label="promised: at most 10%")
ax.set(xlabel="true error among answers, %", ylabel="calibrations")
ax.legend()
