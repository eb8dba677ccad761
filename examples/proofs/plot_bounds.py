"""
A search closes its gap
=======================

The objective of psi-learning has many local minima. The exact search holds the best fit found and a bound that no fit
is below; where they meet, the training optimum is proved. Here it is stopped after more and more nodes.
"""

import warnings

import matplotlib.pyplot as plt

from psilearn import PsiClassifier
from psilearn.datasets import make_quadratic

warnings.simplefilter("ignore")  # each stopped search warns that it was stopped
X, y = make_quadratic(80, case=3, random_state=1)
nodes, objectives, bounds = [], [], []
limit, gap = 1, 1.0
while gap > 1e-4 and limit < 100_000:
    model = PsiClassifier(a=2.0, C=1.0, solver="mip", max_iter=limit).fit(X, y)
    nodes.append(model.n_iter_)
    objectives.append(model.objective_)
    bounds.append(model.lower_bound_)
    limit, gap = 2 * limit + 1, model.gap_

figure, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
ax.step(nodes, objectives, where="post", label="best fit found")
ax.step(nodes, bounds, where="post", label="no fit is below")
ax.fill_between(nodes, bounds, objectives, step="post", alpha=0.15)
ax.set(xscale="log", xlabel="nodes of the search", ylabel="objective", ylim=(0, None))
ax.legend(loc="lower right")
print(f"after {nodes[-1]} nodes the relative gap is {gap:.1e}")
