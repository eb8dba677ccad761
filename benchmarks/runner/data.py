"""Data and problems that several benchmarks share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from psilearn.core.losses import Loss
from psilearn.core.penalties import Penalty
from psilearn.core.problem import Problem
from psilearn.core.spaces import LinearSpace

from .rows import LeftOutError

Array = NDArray[np.float64]
L1, L2 = Penalty(l1=1.0), Penalty(l2=1.0)


def folder(*inside: str) -> Path:
    """The folder of real data, named by PSILEARN_DATA."""
    path = Path(os.environ.get("PSILEARN_DATA", "data"), *inside)
    if not path.is_dir():
        raise LeftOutError(f"needs real data in {path}; set PSILEARN_DATA to the folder that holds it")
    return path


def table(name: str) -> tuple[pd.DataFrame, NDArray[Any]]:
    """A real table and its labels; columns of bookkeeping are dropped."""
    frame = pd.read_csv(folder() / f"{name}.csv.gz", keep_default_na=False, na_values=[""])
    target = frame.pop("target")
    y = (target > 0).to_numpy() if name == "clvheart" else target.to_numpy()
    return frame[[c for c in frame if not c.startswith("meta_")]], y


def linear_problem(X: Any, y: NDArray[Any], loss: Loss, penalty: Penalty, C: float, k: int = 2) -> Problem:
    """A problem over the linear functions of X, all weights one."""
    return Problem(LinearSpace(X), np.asarray(y).astype(np.intp), k, loss, penalty, float(C), np.ones(len(y)))


def standardized(X: Array) -> Array:
    """Columns with mean 0 and deviation 1."""
    return (X - X.mean(axis=0)) / X.std(axis=0)


def clouds(n: int, d: int, k: int, spread: float = 0.5, seed: int = 0) -> tuple[Array, NDArray[np.intp]]:
    """Gaussian classes, a tenth of the labels redrawn, standardised."""
    rng = np.random.default_rng(seed)
    centres = spread * rng.normal(size=(k, d))
    y = rng.integers(0, k, n)
    X = centres[y] + rng.normal(size=(n, d))
    return standardized(X), np.where(rng.random(n) < 0.1, rng.integers(0, k, n), y)


def additive(n: int, d: int, seed: int = 0, noise: float = 0.1) -> tuple[NDArray[np.uint8], NDArray[np.intp]]:
    """Binary data whose label is a noisy linear threshold with two interactions."""
    rng = np.random.default_rng(seed)
    A = (rng.random((n, d)) < rng.uniform(0.2, 0.8, d)).astype(np.uint8)
    score = A[:, :10] @ rng.normal(size=10) + 1.5 * (A[:, 0] & A[:, 11]) - 1.5 * (A[:, 3] & A[:, 12])
    return A, np.where((score > np.median(score)) ^ (rng.random(n) < noise), 1, -1)


def flipped_cancer(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Training and test data of breast cancer; every tenth training label is flipped."""
    X, y = load_breast_cancer(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, stratify=y, random_state=seed)
    flipped = np.random.default_rng(seed).choice(y_train.size, y_train.size // 10, replace=False)
    y_train[flipped] = 1 - y_train[flipped]
    scaler = StandardScaler().fit(X_train)
    return scaler.transform(X_train), scaler.transform(X_test), y_train, y_test
