"""
Which labels deserve a second look?
===================================

A tenth of the labels of the breast cancer data is flipped; the audit ranks all rows by the probability that their label
is wrong.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

from psilearn import find_label_issues

X, clean = load_breast_cancer(return_X_y=True)
X, clean = X[:300], clean[:300]
wrong = np.random.default_rng(0).choice(300, 30, replace=False)
y = clean.copy()
y[wrong] = 1 - y[wrong]
issues = find_label_issues(X, y, repeats=1)
hits = np.isin(issues["index"], wrong)
print(f"estimated share of wrong labels: {issues.attrs['share']:.1%} (it is 10%)")
print(f"of the first 30 rows {hits[:30].sum()} are wrong")

# %%
# How many wrong labels are found as one goes down the list.

figure, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
ax.plot(range(1, 301), np.cumsum(hits), label="audit")
ax.plot([1, 300], [0.1, 30], "k:", label="in random order")
ax.set(xlabel="rows looked at", ylabel="wrong labels found")
ax.legend()
