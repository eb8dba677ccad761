"""The gallery: one picture of every display, written to ``docs/pictures`` (or the folder named on the command line)."""

import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import psilearn
from psilearn.estimators.plots import (
    BoundaryDisplay,
    BoundsDisplay,
    LossDisplay,
    PathDisplay,
    RiskCoverageDisplay,
    RulesDisplay,
)
from psilearn.estimators.rules import L0BoostClassifier


def noisy_clouds(seed=1, n=60):
    """Two clouds, and five labels that are wrong."""
    rng = np.random.default_rng(seed)
    y = np.resize([0, 1], n)
    X = rng.normal(scale=0.8, size=(n, 2)) + np.where(y == 1, 1.0, -1.0)[:, None]
    y[:5] = 1 - y[:5]
    return X, y


def losses():
    """Every loss of the normal form."""
    names = [psilearn.Hinge(), psilearn.Psi(1.0), psilearn.TruncatedHinge(-1.0), psilearn.RejectHinge(0.2)]
    return LossDisplay.from_losses(names)


def boundary():
    """A robust boundary: circles carry it, crosses are not believed."""
    X, y = noisy_clouds()
    return BoundaryDisplay.from_estimator(psilearn.TruncatedHingeClassifier().fit(X, y), X, y)


def path():
    """Coefficients appear one by one as C grows."""
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X = (X - X.mean()) / X.std()
    return PathDisplay.from_estimator(psilearn.SVMClassifier(penalty="l1"), X, y)


def risk_coverage():
    """Fewer answers, fewer errors."""
    X, y = load_breast_cancer(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.4, random_state=0, stratify=y)
    scaler = StandardScaler().fit(X)
    model = psilearn.RejectClassifier(d=0.1, C=0.1).fit(scaler.transform(X), y)
    return RiskCoverageDisplay.from_estimator(model, scaler.transform(X_test), y_test)


def bounds():
    """A search that proves its solution."""
    X, y = noisy_clouds()
    return BoundsDisplay.from_estimator(psilearn.PsiClassifier(C=2.0, solver="mip", time_limit=20).fit(X, y))


def rules():
    """A classifier one can read."""
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    return RulesDisplay.from_estimator(L0BoostClassifier().fit(X, y.map({0: "malignant", 1: "benign"})))


def main(folder):
    """Draw everything."""
    folder.mkdir(parents=True, exist_ok=True)
    for draw in (losses, boundary, path, risk_coverage, bounds, rules):
        display = draw()
        display.ax_.set_title(draw.__doc__.rstrip("."))
        display.figure_.savefig(folder / f"{draw.__name__}.png", dpi=110, bbox_inches="tight")
        plt.close(display.figure_)
        print(folder / f"{draw.__name__}.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent / "docs" / "pictures")
