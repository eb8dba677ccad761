"""Small data sets, fits and proof files for the tests of proofs."""

import gzip
import json
import math

import numpy as np

from psilearn import (
    HardMargin,
    MarginClassifier,
    PsiClassifier,
    RejectClassifier,
    SVMClassifier,
    TruncatedHingeClassifier,
    TruncatedReject,
)


def two_classes(n=24, d=3, seed=0, noise=0.7):
    """Gaussian features, two equal rows, labels that depend on the first feature, and weights of which one is zero."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = (X[:, 0] + noise * rng.normal(size=n) > 0).astype(int)
    X[5], y[5] = X[6], y[6]
    y[:2] = 0, 1
    weights = rng.uniform(0.2, 3.0, n)
    weights[3] = 0.0
    return X, y, weights


def three_classes(n=24, seed=0):
    """The same with three classes."""
    X, _, weights = two_classes(n, 3, seed)
    y = np.digitize(X[:, 0] + 0.3 * np.random.default_rng(seed).normal(size=n), [-0.4, 0.4])
    y[:3] = 0, 1, 2
    return X, y, weights


CONVEX = [
    (SVMClassifier(C=0.7), two_classes),
    (SVMClassifier(class_weight="balanced"), two_classes),
    (SVMClassifier(C=1e6), two_classes),
    (SVMClassifier(penalty="l1"), two_classes),
    (SVMClassifier(penalty="elastic-net", l1_ratio=0.3), two_classes),
    (SVMClassifier(penalty="adaptive-l1"), two_classes),
    (RejectClassifier(d=0.2), two_classes),
    (RejectClassifier(d=(0.2, 0.3), penalty="l2"), two_classes),
    (SVMClassifier(kernel="rbf"), two_classes),
    (SVMClassifier(kernel="poly", degree=2, coef0=1.0), two_classes),
    (SVMClassifier(C=0.7), three_classes),
    (SVMClassifier(penalty="l1"), three_classes),
    (SVMClassifier(penalty="elastic-net"), three_classes),
    (RejectClassifier(d=0.3), three_classes),
    (SVMClassifier(kernel="rbf"), three_classes),
]
TRUNCATED = [
    (PsiClassifier(C=2.0, solver="mip"), two_classes),
    (PsiClassifier(C=2.0, penalty="l1", solver="mip"), two_classes),
    (PsiClassifier(kernel="rbf", solver="mip"), two_classes),
    (TruncatedHingeClassifier(s=-0.5, solver="mip"), two_classes),
    (MarginClassifier(HardMargin(), C=3.0, solver="mip"), two_classes),
    (MarginClassifier(TruncatedReject(0.2, -1.0), penalty="l1", solver="mip"), two_classes),
]


def name_of(case):
    """Return a readable name of a case."""
    estimator, data = case
    loss = getattr(estimator, "loss", None) or ""
    return f"{type(estimator).__name__}{loss}-{estimator.penalty}-{estimator.kernel}-{data.__name__}"


def read_records(path):
    """Return the lines of a proof file as objects."""
    with gzip.open(path, "rt") as file:
        return [json.loads(line) for line in file]


def write_records(path, records):
    """Write objects as a proof file; NaN and infinities are written as Python does."""
    with gzip.open(path, "wt") as file:
        file.writelines(json.dumps(record) + "\n" for record in records)


def write_csv(path, X, y, weights):
    """Write data as the checker reads them."""
    names = [f"x{j}" for j in range(X.shape[1])]
    lines = [",".join([*names, "label", "weight"])]
    lines += [",".join([*map(repr, map(float, row)), str(c), repr(float(w))]) for row, c, w in zip(X, y, weights)]
    path.write_text("\n".join(lines) + "\n")


def stated_value(claim, X, y, weights, w, b):
    """Evaluate the objective of a two-class claim on features at (w, b), from format.md, in floating point."""
    signs = np.where(np.array([str(label) for label in y]) == claim["classes"][1], 1.0, -1.0)
    codes = (signs > 0).astype(int)
    loss, penalty = claim["loss"], claim["penalty"]
    u = signs * (X @ w + b)
    top = u if loss["t"] is None else np.maximum(u, loss["t"])
    paid = sum(np.array(s)[codes] * np.maximum(t - top, 0.0) for t, s in loss["hinges"]) + np.zeros(len(u))
    if loss["t"] is not None:
        paid = np.where(u >= loss["t"] - loss["tolerance"], paid, np.array(loss["cap"])[codes])
    l1 = np.array([math.inf if v is None else v for v in penalty["l1"][0]])
    size = float(np.sum((l1 * np.abs(w))[w != 0]))
    cost = claim["C"] * weights * np.array(claim["class_weight"])[codes]
    return 0.5 * penalty["l2"] * float(w @ w) + size + float(cost @ paid)
