"""
A kernel for many samples
=========================

With ``n_components`` a kernel fit is restricted to the functions that a few landmarks span. Time and memory then
grow in proportion to the number of samples, and the certificate is about the restricted problem.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons

from psilearn import SVMClassifier

X, y = make_moons(3000, noise=0.25, random_state=0)
X_test, y_test = make_moons(10_000, noise=0.25, random_state=1)
sizes = [5, 10, 20, 50, 100]
errors = [1.0 - SVMClassifier(kernel="rbf", gamma=2.0, n_components=p).fit(X, y).score(X_test, y_test) for p in sizes]
exact = 1.0 - SVMClassifier(kernel="rbf", gamma=2.0).fit(X, y).score(X_test, y_test)

figure, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
ax.plot(sizes, errors, "o-", label="landmarks")
ax.axhline(exact, color="black", linestyle=":", label="the kernel itself")
ax.set(xlabel="landmarks", ylabel="test error", xscale="log")
ax.legend()
