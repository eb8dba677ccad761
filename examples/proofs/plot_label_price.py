"""
The price of believing a label
==============================

For each suspect: how much worse must every fit be that does not give it up? If the price is 5%, the label is wrong in
every fit within 5% of the optimum. That is proved, not estimated.
"""

import matplotlib.pyplot as plt
import numpy as np

from psilearn import PsiClassifier, certify_labels


def clouds(n=60, wrong=5, seed=1):
    """Two clouds, the first few labels of which are wrong."""
    rng = np.random.default_rng(seed)
    y = np.resize([0, 1], n)
    X = rng.normal(scale=0.8, size=(n, 2)) + np.where(y == 1, 1.0, -1.0)[:, None]
    y[:wrong] = 1 - y[:wrong]
    return X, y


X, y = clouds()
model = PsiClassifier(a=2.0, C=1.0, solver="mip").fit(X, y)
prices = certify_labels(model, X, y, time_limit=10.0)
print(prices)

figure, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
colours = ["tab:red" if index < 5 else "tab:grey" for index in prices["index"]]
ax.bar(prices["index"].astype(str), 100.0 * prices["price"], color=colours)
ax.set(xlabel="suspect (red: the label is wrong)", ylabel="price in %")
