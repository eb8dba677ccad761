"""
What truncation changes along s
===============================

At s = -infinity the truncated hinge is the hinge. As s rises, fewer samples carry the boundary and more are given up.
"""

import matplotlib.pyplot as plt
import numpy as np

from psilearn import TruncatedHingeClassifier
from psilearn.datasets import make_sectors

X, y = make_sectors(150, n_classes=2, flip=0.15, random_state=0)
levels = [-5.0, -3.0, -2.0, -1.0, -0.5, 0.0]
models = [TruncatedHingeClassifier(s=s, C=1.0).fit(X, y) for s in levels]
figure, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
ax.plot(levels, [len(model.support_) for model in models], "o-", label="samples that carry the boundary")
ax.plot(levels, [len(model.suspects_) for model in models], "s-", label="suspects")
ax.axhline(np.round(0.15 * 150), color="black", linestyle=":", label="labels that are wrong")
ax.set(xlabel="truncation s", ylabel="samples")
ax.legend()
