"""
A proof somebody else can check
===============================

`prove` fits and writes a file; `check` reads it in exact rational arithmetic, with Python's standard library alone. A
proof is about these data: change one cell, and it is rejected.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import psilearn

rng = np.random.default_rng(0)
y = np.resize([0, 1], 20)
X = rng.normal(size=(20, 2)) + np.where(y == 1, 1.0, -1.0)[:, None]
path = Path(tempfile.mkdtemp()) / "fit.proof"
model = psilearn.prove(psilearn.PsiClassifier(C=1.0, solver="mip"), X, y, path)
print(psilearn.check(path, X, y).message)
other = X.copy()
other[0, 0] += 1e-12
print(psilearn.check(path, other, y).message)

# %%
# What the proof says, drawn: no function has an objective in the shaded part.

figure, ax = plt.subplots(figsize=(6, 1.6), layout="constrained")
ax.axvspan(0.0, model.lower_bound_, alpha=0.2)
ax.axvline(model.objective_, color="black", label="the fit")
ax.set(xlim=(0, 1.2 * model.objective_), yticks=[], xlabel="objective")
ax.legend(loc="upper left")
