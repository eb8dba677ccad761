"""Draw docs/pictures/front.png: two wrong labels turn the support vector machine, and are flagged by psi-learning."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from psilearn import PsiClassifier, SVMClassifier

FITS = ((SVMClassifier(C=1.0), "support vector machine", "#b8500f", "--"),
        (PsiClassifier(a=2.0, C=1.0, solver="mip"), "psilearn (training optimum proved)", "#2d3fc0", "-"))  # fmt: skip


def data() -> tuple[np.ndarray, np.ndarray]:
    """Two clouds, and two points of the left one that are labelled as of the right one."""
    rng = np.random.default_rng(1)
    y = np.resize([0, 1], 40)
    X = rng.normal(scale=0.55, size=(40, 2)) + np.where(y == 1, 1.0, -1.0)[:, None] * [1.2, 0.0]
    return np.vstack([X, [[-3.0, 4.0], [-3.6, 3.4]]]), np.r_[y, 1, 1]


def main() -> None:
    """One panel, large enough letters for a narrow screen."""
    plt.rcParams["font.size"] = 14
    X, y = data()
    figure, ax = plt.subplots(figsize=(7.2, 5.2), layout="constrained")
    for label, colour, marker in ((0, "#0f7b63", "o"), (1, "#a3206f", "s")):
        ax.scatter(*X[y == label].T, c=colour, marker=marker, s=42, label=f"labelled {'AB'[label]}")
    x = np.linspace(-4.0, 4.0, 2)
    for model, name, colour, style in FITS:
        model.fit(X, y)
        (a, b), c = model.coef_[0], model.intercept_[0]
        ax.plot(x, -(a * x + c) / b, color=colour, linestyle=style, linewidth=2.6, label=name)
    suspects = FITS[1][0].suspects_
    ax.scatter(*X[suspects].T, s=330, facecolors="none", edgecolors="black", linewidths=1.8)
    ax.annotate("flagged as probably\nmislabelled", X[suspects[-1]], (-3.2, 2.1), ha="center", va="center",
                arrowprops={"arrowstyle": "-", "shrinkB": 11})  # fmt: skip
    ax.set(xlim=(-4.4, 3.4), ylim=(-2.2, 4.5), xticks=[], yticks=[])
    ax.legend(loc="upper right", fontsize=12, framealpha=1.0)
    figure.savefig(Path(__file__).parent / "pictures" / "front.png", dpi=110)


if __name__ == "__main__":
    main()
