"""Draw docs/pictures/architecture.png: the rooms of the package, and which may import which."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

#: Room: place, what lives there.
ROOMS = {
    "app": (1.5, 5, "the command, audit,\nreport, reproduction"),
    "estimators": (1.5, 4, "faces for scikit-learn"),
    "proofs": (0, 3, "files, and a checker\nthat imports nothing"),
    "solve": (1.5, 3, "which solver\ntakes a problem"),
    "rules": (3, 3, "binarize, price,\nboost"),
    "convex": (0.75, 2, "convex solvers,\nthe d.c. loop"),
    "exact": (2.25, 2, "searches that\nprove an optimum"),
    "engines": (3, 1, "HiGHS, SCIP,\nGurobi"),
    "core": (1.5, 0, "losses, penalties, the objective,\nits dual, claims"),
}
ARROWS = [
    ("app", "estimators"), ("estimators", "proofs"), ("estimators", "solve"), ("estimators", "rules"),
    ("solve", "convex"), ("solve", "exact"), ("proofs", "exact"), ("rules", "engines"), ("convex", "engines"),
    ("exact", "engines"), ("convex", "core"), ("exact", "core"), ("engines", "core"),
]  # fmt: skip


def main() -> None:
    """Rooms from the user down to the mathematics; arrows point down only."""
    figure, ax = plt.subplots(figsize=(7.0, 7.6), layout="constrained")
    texts = {}
    for room, (x, y, holds) in ROOMS.items():
        box = {"boxstyle": "round,pad=0.45", "fc": "#e8f0fa", "ec": "#3b6ea5"}
        name = rf"$\bf{{{room}}}$"
        texts[room] = ax.text(x, y, f"{name}\n{holds}", ha="center", va="center", fontsize=12, bbox=box, zorder=2)
    for start, end in ARROWS:
        (x, y, _), (to_x, to_y, _) = ROOMS[start], ROOMS[end]
        ax.annotate("", (to_x, to_y), (x, y), zorder=1,
                    arrowprops={"arrowstyle": "-|>", "color": "#555555", "patchA": texts[start].get_bbox_patch(),
                                "patchB": texts[end].get_bbox_patch(), "shrinkA": 0, "shrinkB": 2})  # fmt: skip
    ax.set(xlim=(-0.75, 3.75), ylim=(-0.45, 5.4))
    ax.axis("off")
    figure.savefig(Path(__file__).parent / "pictures" / "architecture.png", dpi=110)


if __name__ == "__main__":
    main()
