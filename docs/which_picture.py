"""Draw docs/pictures/which.png: which estimator for which need."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

QUESTIONS = [
    ("May it answer\n\"I don't know\"?", "RejectClassifier\n(and s=... where\nlabels are wrong)"),
    ("Must people read it\nas rules?", "LPBoostClassifier\nL0BoostClassifier\nfor fewer rules"),
    ("Are the labels\nclean?", "SVMClassifier"),
    ("Must the training\noptimum be proved?", "PsiClassifier\n(solver=\"mip\"),\nsome hundred rows"),
]  # fmt: skip
LAST = "TruncatedHingeClassifier"


def main() -> None:
    """Questions run down, answers stand on the right."""
    plt.rcParams["font.size"] = 13
    figure, ax = plt.subplots(figsize=(6.4, 7.6), layout="constrained")
    question = {"boxstyle": "round,pad=0.5", "fc": "#e8f0fa", "ec": "#3b6ea5"}
    answer = {"boxstyle": "square,pad=0.5", "fc": "#eef7ea", "ec": "#4c8b3b"}
    arrow = {"arrowstyle": "->", "color": "#555555"}
    for at, (asked, use) in enumerate(QUESTIONS):
        y = -1.5 * at
        ax.text(0.0, y, asked, ha="center", va="center", bbox=question)
        ax.text(3.2, y, use, ha="center", va="center", bbox=answer, family="monospace", fontsize=12)
        ax.annotate("yes", (1.95, y), (1.35, y), arrowprops=arrow, va="center", ha="center")
        ax.annotate("no", (0.0, y - 1.12), (0.0, y - 0.55), arrowprops=arrow, ha="center", va="center")
    y = -1.5 * len(QUESTIONS)
    ax.text(0.0, y, LAST, ha="center", va="center", bbox=answer, family="monospace", fontsize=12)
    ax.text(3.2, y, "C, gamma, nu unknown?\nTunedClassifier\naround any of them", ha="center", va="center", fontsize=12)
    ax.set(xlim=(-1.45, 4.7), ylim=(y - 0.6, 0.7))
    ax.axis("off")
    figure.savefig(Path(__file__).parent / "pictures" / "which.png", dpi=110)


if __name__ == "__main__":
    main()
