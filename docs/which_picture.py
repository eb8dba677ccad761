"""Draw docs/pictures/which.png: which estimator for which need."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

QUESTIONS = [
    ("May it answer\n\"I don't know\"?", "RejectClassifier\n(s=... against wrong labels)"),
    ("Must people read it\nas rules?", "LPBoostClassifier, or\nL0BoostClassifier for fewer rules"),
    ("Are the labels\nclean?", "SVMClassifier"),
    ("Must the training optimum\nbe proved?", "PsiClassifier(solver=\"mip\")\nsome hundred rows"),
]  # fmt: skip
LAST = "TruncatedHingeClassifier"


def main() -> None:
    """Questions run down, answers stand on the right."""
    figure, ax = plt.subplots(figsize=(7.2, 6.0), layout="constrained")
    question = {"boxstyle": "round,pad=0.5", "fc": "#e8f0fa", "ec": "#3b6ea5"}
    answer = {"boxstyle": "square,pad=0.5", "fc": "#eef7ea", "ec": "#4c8b3b"}
    arrow = {"arrowstyle": "->", "color": "#555555"}
    for at, (asked, use) in enumerate(QUESTIONS):
        y = -1.5 * at
        ax.text(0.0, y, asked, ha="center", va="center", bbox=question)
        ax.text(3.2, y, use, ha="center", va="center", bbox=answer, family="monospace", fontsize=9)
        ax.annotate("yes", (2.0, y), (1.05, y), arrowprops=arrow, va="center", ha="center")
        ax.annotate("no", (0.0, y - 1.12), (0.0, y - 0.55), arrowprops=arrow, ha="center", va="center")
    y = -1.5 * len(QUESTIONS)
    ax.text(0.0, y, LAST, ha="center", va="center", bbox=answer, family="monospace", fontsize=9)
    ax.text(3.2, y, "C, gamma, nu unknown?\nTunedClassifier around any of them", ha="center", va="center", fontsize=9)
    ax.set(xlim=(-1.4, 4.8), ylim=(y - 0.6, 0.7))
    ax.axis("off")
    figure.savefig(Path(__file__).parent / "pictures" / "which.png", dpi=110)


if __name__ == "__main__":
    main()
