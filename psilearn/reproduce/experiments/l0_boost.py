"""Goldberg and Eckstein, Tightened L0-relaxation penalties for classification (2009): Table 1 and Figures 2-11."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.impute import SimpleImputer
from sklearn.model_selection import KFold

from ...datasets import load_dataset
from ..experiment import Experiment, Ordering, Reason, experiment, grid, view
from ..published.l0_boost import DATASETS, PAPER, TABLE1
from ..summary import Summary
from . import _draw as d

NU = {1: 0.56, 5: 0.50}
"""The nu of LP-Boost in Table 1, by the largest order K of a monomial."""

RHOS = (0.002, 0.01, 0.03, 0.1, 0.2, 0.4)
NUS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)

ABOUT = (
    "Accuracy and number of rules of a ten-fold cross-validation. Missing numbers become the median of the training "
    "part, a vote becomes two indicators (yes, no) that are both 0 when it is missing; each training part is binarized "
    "by itself. The paper's binarization is not stated."
)

SLIPPER = (
    " The SLIPPER rows are printed only: the program is not available, and the SLIPPER of a popular rule package is "
    "far below it."
)


def load(name: str) -> tuple[NDArray, NDArray]:
    """Return features as numbers and the labels."""
    bunch = load_dataset(name)
    if bunch.data.dtype != object:
        return bunch.data, bunch.target
    indicators = pd.get_dummies(bunch.frame.drop(columns="target"), dtype=float)
    return indicators.to_numpy(), bunch.target


def model(method: str, order: int, value: float | None = None) -> Any:
    """Return L0-RBoost (value: rho) or LP-Boost (value: nu)."""
    from psilearn import L0BoostClassifier, LPBoostClassifier

    if method == "l0":
        return L0BoostClassifier(max_order=order, rho="auto" if value is None else value)
    return LPBoostClassifier(max_order=order, nu=NU[order] if value is None else value)


def cross_validate(seed: int, name: str, method: str, order: int, value: float | None = None) -> dict[str, float]:
    """Average accuracy on both parts, number of rules and margin over ten folds."""
    X, y = load(name)
    folds = KFold(10, shuffle=True, random_state=seed)
    rows = [_one_fold(X, y, train, test, model(method, order, value)) for train, test in folds.split(X)]
    means = np.mean(rows, axis=0)
    return dict(zip(("accuracy", "training accuracy", "rules", "margin"), means))


def _one_fold(X: NDArray, y: NDArray, train: NDArray, test: NDArray, booster: Any) -> tuple[float, ...]:
    imputer = SimpleImputer(strategy="median", keep_empty_features=True).fit(X[train])
    known, new = imputer.transform(X[train]), imputer.transform(X[test])
    booster.fit(known, y[train])
    sign = np.where(y[train] == booster.classes_[1], 1.0, -1.0)
    margins = sign * np.ravel(booster.decision_function(known))
    accuracy = (np.mean(booster.predict(part) == y[rows]) for part, rows in ((new, test), (known, train)))
    return *accuracy, booster.n_rules_, float(np.median(margins))


@experiment(
    "l0-boost/table1",
    title="accuracy and number of rules on five data sets",
    paper=PAPER,
    settings=grid(dataset=DATASETS, method=["l0", "lp"], K=[1, 5]),
    replications=20,
    small=2,
    published=TABLE1,
    orderings=[
        Ordering(
            f"{name}, K = {K}: L0-RBoost is more accurate than LP-Boost",
            ({"dataset": name, "method": "lp", "K": K}, "accuracy"),
            ({"dataset": name, "method": "l0", "K": K}, "accuracy"),
        )
        for name in DATASETS
        for K in (1, 5)
    ],
    reasons=[
        Reason("the paper's binarization is unknown, and the number of rules and the accuracies depend on it."),
        Reason(
            "weights are not unique at the optimum, so the number of rules of two optimal solutions may differ.",
            lambda settings, measure: measure == "rules",
        ),
    ],
    about=f"rho = 20/M, kappa = 1.5; nu = 0.56 for K = 1 and 0.50 for K = 5. {ABOUT}{SLIPPER}",
)
def table1(seed: int, *, dataset: str, method: str, K: int) -> dict[str, float]:
    """One ten-fold cross-validation."""
    return cross_validate(seed, dataset, method, K)


SWEEP = [
    *grid(method=["l0"], K=[1, 5], value=RHOS),
    *grid(method=["lp"], K=[1, 5], value=NUS),
]
SMALL_SWEEP = [*grid(method=["l0"], K=[1, 5], value=RHOS[::2]), *grid(method=["lp"], K=[1, 5], value=NUS[1::2])]


def _points(summary: Summary, method: str, order: int, measure: str) -> tuple[list[float], list[float]]:
    cells = [
        cell
        for cell in summary.cells
        if cell.measure == measure and (cell.settings["method"], cell.settings["K"]) == (method, order)
    ]
    return [cell.settings["value"] for cell in cells], [cell.mean for cell in cells]


def _draw_sweep(summary: Summary) -> Any:
    figure, axes = d.panels(2, 2, size=3.0, ratio=1.5)
    for column, (method, name) in enumerate((("l0", "rho"), ("lp", "nu"))):
        for order in (1, 5):
            for measure, line in (("accuracy", "-"), ("training accuracy", ":")):
                axes[0, column].plot(
                    *_points(summary, method, order, measure), f"o{line}", label=f"{measure}, K = {order}"
                )
            axes[1, column].plot(*_points(summary, method, order, "rules"), "o-", label=f"K = {order}")
        axes[0, column].set(title=method, ylabel="accuracy")
        axes[1, column].set(xlabel=name, ylabel="number of rules")
        axes[0, column].legend(fontsize=6)
    return figure


def _draw_tradeoff(summary: Summary) -> Any:
    figure, axes = d.panels(1, 2, size=3.4)
    for axis, order in zip(axes[0], (1, 5)):
        for method, marker in (("l0", "o"), ("lp", "x")):
            rules, accuracy = (_points(summary, method, order, measure)[1] for measure in ("rules", "accuracy"))
            axis.plot(rules, accuracy, marker, label=method)
        axis.set(title=f"K = {order}", xlabel="number of rules", ylabel="accuracy")
        axis.legend()
    return figure


SWEEP_ABOUT = f"Values of rho (L0-RBoost) and nu (LP-Boost) on a grid of ours; 'margin' is the median margin. {ABOUT}"


def _sweep(dataset: str) -> dict[str, Any]:
    return {
        "title": f"accuracy and number of rules along rho and nu: {dataset}",
        "paper": PAPER,
        "settings": SWEEP,
        "replications": 10,
        "small": 1,
        "small_settings": SMALL_SWEEP,
        "draw": _draw_sweep,
        "about": SWEEP_ABOUT,
    }


def _tradeoff(source: Experiment, dataset: str, number: int) -> Experiment:
    title = f"accuracy against the number of rules: {dataset}"
    return view(source, f"l0-boost/figure{number}", title=title, draw=_draw_tradeoff, about=SWEEP_ABOUT)


@experiment("l0-boost/figure2", **_sweep("bcw"))
def figure2(seed: int, *, method: str, K: int, value: float) -> dict[str, float]:
    """One cross-validation on BCW."""
    return cross_validate(seed, "bcw", method, K, value)


@experiment("l0-boost/figure3", **_sweep("vote"))
def figure3(seed: int, *, method: str, K: int, value: float) -> dict[str, float]:
    """One cross-validation on VOTE."""
    return cross_validate(seed, "vote", method, K, value)


@experiment("l0-boost/figure4", **_sweep("clvheart"))
def figure4(seed: int, *, method: str, K: int, value: float) -> dict[str, float]:
    """One cross-validation on CLVHEART."""
    return cross_validate(seed, "clvheart", method, K, value)


@experiment("l0-boost/figure5", **_sweep("huheart"))
def figure5(seed: int, *, method: str, K: int, value: float) -> dict[str, float]:
    """One cross-validation on HUHEART."""
    return cross_validate(seed, "huheart", method, K, value)


@experiment("l0-boost/figure6", **_sweep("sonar"))
def figure6(seed: int, *, method: str, K: int, value: float) -> dict[str, float]:
    """One cross-validation on SONAR."""
    return cross_validate(seed, "sonar", method, K, value)


figure7 = _tradeoff(figure2, "bcw", 7)
figure8 = _tradeoff(figure3, "vote", 8)
figure9 = _tradeoff(figure4, "clvheart", 9)
figure10 = _tradeoff(figure5, "huheart", 10)
figure11 = _tradeoff(figure6, "sonar", 11)
