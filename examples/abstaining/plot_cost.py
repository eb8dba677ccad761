"""
The cost of an abstention decides how often
===========================================

``d`` is what an abstention costs, beside 1 for an error. Near 1/2 the classifier nearly always answers.
"""

import matplotlib.pyplot as plt

from psilearn import RejectClassifier
from psilearn.datasets import make_gaussian_ar

X, y = make_gaussian_ar(300, n_features=10, random_state=0)
X_test, y_test = make_gaussian_ar(10_000, n_features=10, random_state=1)
costs = [0.05, 0.1, 0.2, 0.3, 0.4, 0.45]
shares, errors = [], []
for d in costs:
    model = RejectClassifier(d=d, C=0.1, threshold="auto").fit(X, y)
    out = model.abstains(X_test)
    shares.append(out.mean())
    errors.append((model.predict(X_test) != y_test)[~out].mean())

figure, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
ax.plot(costs, shares, "o-", label="share of abstentions")
ax.plot(costs, errors, "s-", label="error among answers")
ax.set(xlabel="cost d of an abstention", ylim=(0, None))
ax.legend()
