"""
One outlier turns the SVM
=========================

One point with a wrong label moves away from its class. The boundary of the support vector machine follows it; that of
the truncated hinge does so for a while and then stops believing the label.
"""

import matplotlib.pyplot as plt
import numpy as np

from psilearn import SVMClassifier, TruncatedHingeClassifier

rng = np.random.default_rng(0)
y = np.resize([0, 1], 40)
X = rng.normal(scale=0.6, size=(40, 2)) + np.where(y == 1, 1.0, -1.0)[:, None] * [1.0, 0.0]
distances = np.linspace(0.0, 12.0, 13)
angles = {"SVM": [], "truncated hinge": []}
for distance in distances:
    X_out, y_out = np.vstack([X, [[-1.0 - distance, 4.0]]]), np.r_[y, 1]
    for name, model in (("SVM", SVMClassifier(C=1.0)), ("truncated hinge", TruncatedHingeClassifier(C=1.0))):
        w = model.fit(X_out, y_out).coef_[0]
        angles[name].append(np.degrees(np.arccos(abs(w[0]) / np.linalg.norm(w))))

# %%
# The right boundary is at 0 degrees. Further away the outlier has no influence on the robust fit at all.

figure, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
for name, values in angles.items():
    ax.plot(distances, values, "o-", label=name)
ax.set(xlabel="distance of the mislabelled point", ylabel="angle to the right boundary (degrees)")
ax.legend()
