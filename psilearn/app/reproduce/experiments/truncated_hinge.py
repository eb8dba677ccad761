"""Liu and Wu, Robust truncated-hinge-loss SVM (2006): Tables 1-3 and Figure 1."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....datasets import make_folded_sectors, make_sectors
from ..experiment import Experiment, Ordering, Published, Reason, Settings, experiment, grid
from ..published.truncated_hinge import PAPER, PENALTIES, TABLE1, TABLE2, TABLE3
from ..summary import Summary
from . import _common as c
from . import _draw as d

LOSSES = ("hinge", "psi", "auto")
"""H_1, T_0 and T_{-1/(k-1)}."""

SIZES = (100, 100, 10_000)

TABLE1_SETTINGS = grid(flip=[0.1], k=[4], d=[2, 6], loss=LOSSES, penalty=PENALTIES)
TABLE2_SETTINGS = grid(flip=[0.2], k=[3, 4], d=[2, 6], loss=LOSSES, penalty=PENALTIES)

ABOUT = (
    "Sectors of the disk with flipped labels and, for d = 6, four noise variables; 100 training, 100 tuning and 10,000 "
    "test points. C is one of 1e-3, ..., 1e3 in half decades with the smallest tuning error. The slides do not state "
    "their replications; the printed averages are multiples of 1/50 (Tables 1 and 2) and 1/20 (Table 3). 'support' "
    "counts s <= u <= 1 as the slides define it, 'support (u <= 1)' every margin up to 1; 'auto' is s = -1/(k-1)."
)

REASONS = [
    Reason(
        "the slides print no zero coefficient for the L1 hinge at all; a vertex of the exact linear program has some.",
        lambda settings, measure: measure == "zeros" and settings["loss"] == "hinge",
    ),
    Reason(
        "the d.c. algorithm stops at a critical point that depends on its start and on ties, and the number of support "
        "vectors depends on which of several C with the same tuning error is taken; the grid and the rule are ours.",
        lambda settings, measure: measure != "zeros" or settings["loss"] != "hinge",
    ),
]


def model(loss: str, C: float, **options: Any) -> Any:
    """Return the SVM or the truncated SVM by the d.c. algorithm."""
    from psilearn import SVMClassifier, TruncatedHingeClassifier

    if loss == "hinge":
        return SVMClassifier(C=C, **options)
    return TruncatedHingeClassifier(C=C, s=0.0 if loss == "psi" else "auto", solver="dca", **options)


def truncation(loss: str, k: int) -> float:
    """Return s of a loss, -inf for the hinge."""
    return {"hinge": -np.inf, "psi": 0.0, "auto": -1.0 / (k - 1)}[loss]


def support(u: np.ndarray, s: float) -> np.ndarray:
    """Return which margins lie where the loss is not flat."""
    return (u >= s - 1e-6) & (u <= 1.0 + 1e-6)


def tuned(loss: str, k: int, data: list[c.Sample], **options: Any) -> dict[str, float]:
    """Tune C and measure the chosen model."""
    train, tune, test = data
    chosen = c.best(c.fits(lambda C: model(loss, C, **options), train), tune)
    u = c.margins(chosen, train)
    return {
        "testing": c.error(chosen, test),
        "support": support(u, truncation(loss, k)).sum(),
        "support (u <= 1)": support(u, -np.inf).sum(),
        "zeros": c.count_zeros(chosen) if options.get("kernel", "linear") == "linear" else np.nan,
    }


def orderings(settings: list[dict[str, Any]]) -> list[Ordering]:
    """Return the slides' claims: each truncated loss tests better than the SVM."""

    def claim(setting: Settings) -> Ordering:
        where = ", ".join(f"{name} {value}" for name, value in setting.items() if name != "loss")
        better, worse = ({**setting, "loss": loss} for loss in ("auto", "hinge"))
        return Ordering(f"{where}: truncation tests better than the SVM", (better, "testing"), (worse, "testing"))

    return [claim(setting) for setting in settings if setting["loss"] == "hinge"]


def _sectors(number: int, title: str, settings: list[dict[str, Any]], published: list[Published]) -> Experiment:
    def run(seed: int, *, flip: float, k: int, d: int, loss: str, penalty: str) -> dict[str, float]:
        data = c.samples(make_sectors, SIZES, seed, n_classes=k, n_features=d, flip=flip)
        return tuned(loss, k, data, penalty=penalty)

    run.__name__ = f"table{number}"  # workers find the experiment by this name
    return experiment(
        f"truncated-hinge/table{number}", title=title, paper=PAPER, settings=settings, replications=50, small=4,
        published=published, orderings=orderings(settings), reasons=REASONS, about=ABOUT,
    )(run)  # fmt: skip


table1 = _sectors(
    1, "four sectors, 10% flipped labels: errors, support vectors and zero coefficients", TABLE1_SETTINGS, TABLE1
)
table2 = _sectors(2, "three and four sectors, 20% flipped labels", TABLE2_SETTINGS, TABLE2)
TABLE3_SETTINGS = grid(flip=[0.1, 0.2], loss=LOSSES)


@experiment(
    "truncated-hinge/table3",
    title="nonlinear example with the Gaussian kernel",
    paper=PAPER,
    settings=TABLE3_SETTINGS,
    replications=20,
    small=10,
    published=TABLE3,
    orderings=orderings(TABLE3_SETTINGS),
    reasons=[
        Reason("the slides do not state the design of this example; ours is the one that fits best."),
        *REASONS[1:],
    ],
    about=(
        "The design is not stated. Six sectors folded into three classes {1,4}, {2,3}, {5,6} fit the printed figures, "
        f"three sectors do not. Kernel exp(-|x - z|^2). {ABOUT}"
    ),
)
def table3(seed: int, *, flip: float, loss: str) -> dict[str, float]:
    """One loss on one sample, Gaussian kernel with sigma = 1."""
    return tuned(loss, 3, c.samples(make_folded_sectors, SIZES, seed, flip=flip), kernel="rbf", gamma=1.0)


def _draw(summary: Summary) -> Any:
    figure, axes = d.panels(1, 3, size=4.0, ratio=1.0)
    titles = ("SVM", "truncated at s = 0", "truncated at s = -1/2")
    for axis, loss, title in zip(axes[0], LOSSES, titles):
        setting = {"loss": loss}
        X, chosen = summary.mean(setting, "X"), summary.mean(setting, "support") > 0.5
        d.scatter(axis, X, summary.mean(setting, "y"))
        axis.scatter(*X[chosen].T, s=5, color="black", zorder=3, label="support vector")
        rule = d.linear_scores(summary.mean(setting, "coef"), summary.mean(setting, "intercept"))
        d.boundary(axis, rule, (-1, -1), (1, 1), colors="grey", linewidths=0.8)
        axis.set(aspect="equal")
        axis.set_title(f"{title}: {chosen.sum()} support vectors", fontsize=9)
    d.legend_below(figure, axes[0, 0])
    return figure


@experiment(
    "truncated-hinge/figure1",
    title="support vectors of the SVM and of the truncated SVMs on one sample",
    paper=PAPER,
    settings=grid(loss=LOSSES),
    draw=_draw,
    about="Three sectors, 20% flipped labels, 100 points; black dots are support vectors, s <= u <= 1.",
)
def figure1(seed: int, *, loss: str) -> dict[str, Any]:
    """Fit one loss on one sample."""
    train, tune = c.samples(make_sectors, (100, 100), seed, n_classes=3, flip=0.2)
    chosen = c.best(c.fits(lambda C: model(loss, C), train), tune)
    chosen_support = support(c.margins(chosen, train), truncation(loss, 3)).astype(float)
    return {
        "X": train.X,
        "y": train.y,
        "support": chosen_support,
        "coef": chosen.coef_,
        "intercept": np.ravel(chosen.intercept_),
    }
