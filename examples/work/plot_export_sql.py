"""
A model as one SQL statement
============================

A linear model is a sum, so a database can compute it. Here SQLite answers, and every answer is the model's own.
"""

import sqlite3
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

import psilearn
from psilearn.datasets import make_quadratic

X, y = make_quadratic(200, random_state=0)
frame = pd.DataFrame(X, columns=["first", "second"])
model = psilearn.SVMClassifier().fit(frame, y)
path = Path(tempfile.mkdtemp()) / "model.sql"
psilearn.export(model, path)
print(path.read_text())

connection = sqlite3.connect(":memory:")
frame.to_sql("data", connection, index=False)
answers = pd.read_sql(path.read_text(), connection)
print("equal:", (answers["prediction"] == model.predict(frame)).all())

# %%
# The answers of the database.

figure, ax = plt.subplots(figsize=(5, 4), layout="constrained")
ax.scatter(answers["first"], answers["second"], c=answers["prediction"], cmap="coolwarm", s=18)
ax.set(xlabel="first", ylabel="second", title="predicted by SQLite")
