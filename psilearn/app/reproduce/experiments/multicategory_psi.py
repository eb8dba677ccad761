"""Liu, Shen and Doss, Multicategory psi-learning and SVM: computational tools (2005): Examples 1-4, leukemia."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from .... import datasets
from ..experiment import Experiment, Ordering, Published, Ratio, Reason, experiment, grid
from ..published.multicategory_psi import (
    CAPTIONS,
    EXAMPLE1,
    LEUKEMIA,
    PAPER,
    PRINTED_BAYES_ERROR,
    TABLE1,
    TABLE2,
    TABLE2_REDRAWN,
)
from ..summary import Summary
from . import _common as c
from . import _draw as d

METHODS = ("svm", "psi")
TEST_SIZE = 20_000
GLOBAL_SECONDS = 20.0
"""Time limit of one global search; Example 1 shows the share of optima that were proved within it."""

IMPROVEMENT = Ratio("improvement", "gain", "room")
"""Equation (5.1): (T(SVM) - T(psi)) / (T(SVM) - Bayes error), of averages."""

SPREAD_NOTE = "The figures in parentheses are headed standard errors but have the size of standard deviations."


def model(method: str, C: float, **options: Any) -> Any:
    """Return the multicategory SVM or psi-learning by the d.c. algorithm."""
    from psilearn import PsiClassifier, SVMClassifier

    if method == "svm":
        return SVMClassifier(C=C, **options)
    return PsiClassifier(a=2.0, C=C, **({"solver": "dca"} | options))


def compared(train: c.Sample, test: c.Sample, bayes_error: float) -> dict[str, float]:
    """Fit both methods at their best C, judged on the test sample as the paper does."""
    measures: dict[str, float] = {}
    for method in METHODS:
        chosen = c.best(c.fits(partial(model, method), train), test)
        measures[f"{method} training"] = c.error(chosen, train)
        measures[f"{method} testing"] = c.error(chosen, test)
        measures[f"{method} support"] = float((c.margins(chosen, train) <= 1.0 + 1e-6).sum())
    measures["gain"] = measures["svm testing"] - measures["psi testing"]
    measures["room"] = measures["svm testing"] - bayes_error
    return measures


def claim(setting: dict[str, Any]) -> Ordering:
    """Return the paper's claim for one case."""
    where = ", ".join(f"{name} {value}" for name, value in setting.items())
    return Ordering(
        f"{where}: psi-learning tests better than the SVM", (setting, "psi testing"), (setting, "svm testing")
    )


@experiment(
    "multicategory-psi/example1",
    title="Example 1: how far the d.c. algorithm ends from the global optimum",
    paper=PAPER,
    replications=30,
    printed_from=1,
    small=8,
    published=EXAMPLE1,
    orderings=[
        Ordering("The d.c. algorithm ends above the global optimum", ({}, "global cost"), ({}, "dca cost")),
        Ordering(
            "The global optimum tests better than the d.c. algorithm", ({}, "global testing"), ({}, "dca testing")
        ),
    ],
    about=(
        "Three Beta laws on [0, 1], n = 100, C = 1000. The paper shows one sample, on which the d.c. algorithm ended "
        "0.27% above the optimum; we show many. 'excess' is that percentage, 'proved' the share of global optima "
        "proved by outer approximation within its time limit. The printed figures are judged as one draw of ours."
    ),
)
def example1(seed: int) -> dict[str, float]:
    """SVM, d.c. algorithm and outer approximation on one sample."""
    from psilearn import PsiClassifier

    train, test = c.samples(datasets.make_beta_mixture, (100, TEST_SIZE), seed)
    # the paper's SVM loss is 2 (1 - u)_+, twice ours
    svm = c.fit(model("svm", 2000.0), train)
    dca = c.fit(model("psi", 1000.0), train)
    best = c.fit(PsiClassifier(a=2.0, C=1000.0, solver="outer", time_limit=GLOBAL_SECONDS), train)
    measures: dict[str, float] = {"svm cost": _psi_cost(svm, train), "dca cost": dca.objective_}
    measures |= {"global cost": best.objective_, "proved": c.is_proved(best)}
    measures["excess"] = 100.0 * (dca.objective_ / best.objective_ - 1.0)
    for name, fitted in (("svm", svm), ("dca", dca), ("global", best)):
        measures[f"{name} training"] = c.error(fitted, train)
        measures[f"{name} testing"] = c.error(fitted, test)
    return measures


def _psi_cost(fitted: Any, sample: c.Sample, C: float = 1000.0) -> float:
    """Cost (2.2) of any linear fit."""
    from ....core.losses import Psi

    return float(0.5 * np.sum(fitted.coef_**2) + C * Psi(2.0).value(c.margins(fitted, sample)).sum())


TABLE1_SETTINGS = grid(df=[1, 3])


@experiment(
    "multicategory-psi/table1",
    title="Example 2: four classes with t noise",
    paper=PAPER,
    settings=TABLE1_SETTINGS,
    replications=100,
    small=10,
    published=TABLE1,
    ratios=[IMPROVEMENT],
    orderings=[claim(setting) for setting in TABLE1_SETTINGS],
    reasons=[
        Reason(
            "the exact Bayes error for df = 3 is .190415 (two quadratures agree to 1e-9); .1937 is printed.",
            lambda settings, measure: settings["df"] == 3 and measure == "improvement",
        ),
        Reason(
            "with df = 1 far outliers make f = 0 the SVM's optimum, to eight digits, for every C on some samples; "
            "small coefficients whose objective is not better, as a less exact solver leaves them, err less often.",
            lambda settings, measure: settings["df"] == 1 and measure.startswith("svm"),
        ),
    ],
    about=(
        "n = 100, 20,000 test points (the paper: 100,000); C by a grid search on the test sample, as in the paper. The "
        "exact Bayes errors are .301416 (df = 1) and .190415 (df = 3), where .3015 and .1937 are printed; the "
        f"improvement uses the exact ones. {SPREAD_NOTE}"
    ),
)
def table1(seed: int, *, df: int) -> dict[str, float]:
    """Both methods on one sample."""
    train, test = c.samples(datasets.make_t_diamond, (100, TEST_SIZE), seed, df=df)
    return compared(train, test, datasets.bayes_t_diamond(df).error)


def _triangles(name: str, title: str, to: datasets.Flip, published: list[Published], **fields: Any) -> Experiment:
    def run(seed: int, *, flip: float, to: datasets.Flip) -> dict[str, float]:
        train, test = c.samples(datasets.make_triangles, (100, TEST_SIZE), seed, flip=flip, to=to)
        return compared(train, test, PRINTED_BAYES_ERROR[flip])

    run.__name__ = name.replace("-", "_")  # workers find the experiment by this name
    settings = grid(flip=[0.1, 0.2], to=[to])
    return experiment(
        f"multicategory-psi/{name}", title=title, paper=PAPER, settings=settings, replications=100, small=10,
        published=published, ratios=[IMPROVEMENT], orderings=[claim(setting) for setting in settings], **fields,
    )(run)  # fmt: skip


table2 = _triangles(
    "table2",
    "Example 3: four triangles with flipped labels, as the text describes it",
    "others",
    TABLE2,
    reasons=[
        Reason(
            "the printed table does not follow from the text: labels redrawn among all four classes, not among the "
            "remaining three, give the printed figures (see multicategory-psi/table2-redrawn)."
        )
    ],
    about=f"Flipped labels go to the remaining three classes; n = 100; C by a grid search. {SPREAD_NOTE}",
)
table2_redrawn = _triangles(
    "table2-redrawn",
    "Example 3 with the chosen labels redrawn among all four classes",
    "all",
    TABLE2_REDRAWN,
    reasons=[
        Reason(
            "the number of support vectors depends on C and on where the d.c. algorithm stops; which grid, and which "
            "of several C with the same error, the paper does not say.",
            lambda settings, measure: "support" in measure,
        )
    ],
    about=(
        "The design that matches the printed table, though not the text. Its Bayes error is 3/4 of the share of flips; "
        f"the improvement uses the printed Bayes errors to stay comparable. {SPREAD_NOTE}"
    ),
)


@experiment(
    "multicategory-psi/leukemia",
    title="leukemia: ALL-B, ALL-T and AML from 50 genes",
    paper=PAPER,
    settings=grid(method=METHODS),
    deterministic=True,
    published=LEUKEMIA,
    reasons=[
        Reason("the SVM of the paper errs twice at small C only; at C of 1 and above it makes one error, as psi does.")
    ],
    about="Section 5.2: published split (38 / 34); the best C on the test samples, as in the paper.",
)
def leukemia(seed: int, *, method: str) -> dict[str, float]:
    """Test errors at the best C."""
    data = datasets.load_leukemia()
    train, test = (c.Sample(data.data[rows], data.target[rows]) for rows in (data.train, data.test))
    chosen = c.best(c.fits(partial(model, method), train), test)
    wrong = chosen.predict(test.X) != test.y
    numbers = data.sample[data.test].astype(int)
    measures = {f"sample {number} wrong": float(wrong[numbers == number].any()) for number in (66, 67)}
    return {"errors": float(wrong.sum()), **measures}


def _draw_probabilities(summary: Summary) -> Any:
    lines = {f"class {j}": f"class {j}" for j in (1, 2, 3)}
    return d.curves(summary, "x", lines, ("k-", "k:", "k--"), xlabel="x", ylabel="P(Y = j | x)")


@experiment(
    "multicategory-psi/figure2",
    title="class probabilities of Example 1",
    paper=PAPER,
    deterministic=True,
    draw=_draw_probabilities,
)
def figure2(seed: int) -> dict[str, Any]:
    """Posterior of the three classes."""
    x = np.linspace(0.0, 1.0, 201)
    posterior = datasets.bayes_beta_mixture().posterior(x[:, None])
    return {"x": x, **{f"class {j + 1}": posterior[:, j] for j in range(3)}}


def _draw_envelope(summary: Summary) -> Any:
    titles = {"dca": "d.c. algorithm", "outer": "outer approximation"}
    costs = {name: float(summary.mean({}, f"{name} cost")) for name in titles}
    lines = {name: f"{title}, cost {costs[name]:.1f}" for name, title in titles.items()}
    return d.curves(summary, "x", lines, ("C1-", "k:"), xlabel="x", ylabel="max(f1, f2, f3)")


@experiment(
    "multicategory-psi/figure3",
    title="max f by the d.c. algorithm and by outer approximation",
    paper=PAPER,
    draw=_draw_envelope,
    about="One sample of Example 1, C = 1000.",
)
def figure3(seed: int) -> dict[str, Any]:
    """Two fits on one sample."""
    (train,) = c.samples(datasets.make_beta_mixture, (100,), seed)
    x = np.linspace(0.0, 1.0, 201)
    measures: dict[str, Any] = {"x": x}
    for solver in ("dca", "outer"):
        fitted = c.fit(model("psi", 1000.0, solver=solver, time_limit=GLOBAL_SECONDS), train)
        measures[solver] = fitted.decision_function(x[:, None]).max(axis=1)
        measures[f"{solver} cost"] = fitted.objective_
    return measures


CAPTION = "The printed errors belong to the paper's sample, ours to another: they are shown side by side, not judged."

LOW, HIGH, N_GRID = (-0.5, -0.5), (1.5, 1.5), 41
"""Window of Figures 4-6, and the number of grid points per axis at which the class scores are kept."""


def _draw_boundaries(rule: datasets.BayesRule, summary: Summary) -> Any:
    figure, axes = d.panels(size=5.0, ratio=1.1)
    axis = axes[0, 0]
    d.scatter(axis, summary.mean({}, "X"), summary.mean({}, "y"))
    d.boundary(axis, rule.posterior, LOW, HIGH, colors="black", linewidths=1.0)
    axis.plot([], [], "k-", linewidth=1.0, label="Bayes rule")
    for name, colour, line in (("svm", "crimson", "dotted"), ("psi", "blue", "dashed")):
        d.contours(axis, summary.mean({}, f"{name} scores"), LOW, HIGH, colors=colour, linestyles=line, linewidths=1.6)
        axis.plot([], [], color=colour, linestyle=line, label=name)
    errors = ", ".join(f"{name} {float(summary.mean({}, f'{name} testing')):.4f}" for name in METHODS)
    axis.set(xlim=(LOW[0], HIGH[0]), ylim=(LOW[1], HIGH[1]), title=f"testing error: {errors}")
    d.legend_below(figure, axis)
    return figure


def _pictured(data: list[c.Sample], kernels: Sequence[dict[str, Any]] = ({},)) -> dict[str, Any]:
    """Fit both methods at their best C (and kernel width) and keep their scores on a grid."""
    train, test = data
    points = d.lattice(LOW, HIGH, N_GRID)[2]
    measures: dict[str, Any] = {"X": np.round(train.X, 4), "y": train.y}
    for method in METHODS:
        models = [fitted for kernel in kernels for fitted in c.fits(partial(model, method, **kernel), train)]
        chosen = c.best(models, test)
        measures[f"{method} scores"] = np.round(chosen.decision_function(points), 3)
        measures[f"{method} training"] = c.error(chosen, train)
        measures[f"{method} testing"] = c.error(chosen, test)
    return measures


WIDTHS = [{"kernel": "rbf", "gamma": float(gamma)} for gamma in 2.0 ** np.arange(-3, 4)]


def _boundaries(
    number: int, title: str, about: str, make: Any, bayes: Any, kernels: Sequence[dict[str, Any]] = ({},), **law: Any
) -> Experiment:
    def run(seed: int) -> dict[str, Any]:
        return _pictured(c.samples(make, (100, TEST_SIZE), seed, **law), kernels)

    def draw(summary: Summary) -> Any:
        return _draw_boundaries(bayes(*law.values()), summary)

    run.__name__ = f"figure{number}"  # workers find the experiment by this name
    return experiment(
        f"multicategory-psi/figure{number}", title=f"decision boundaries on one sample of {title}", paper=PAPER,
        published=CAPTIONS[number], draw=draw, about=f"{about} {CAPTION}",
    )(run)  # fmt: skip


figure4 = _boundaries(
    4,
    "Example 2",
    "df = 3, one sample; solid: Bayes rule.",
    datasets.make_t_diamond,
    datasets.bayes_t_diamond,
    df=3,
)
figure5 = _boundaries(
    5,
    "Example 3",
    "10% flipped labels, one sample; solid: Bayes rule.",
    datasets.make_triangles,
    datasets.bayes_triangles,
    flip=0.1,
)
figure6 = _boundaries(
    6,
    "Example 4, Gaussian kernel",
    "df = 3 (the printed Bayes error .176 belongs to it), one sample; C and the kernel width by a grid search, 13 x 7 "
    "values where the paper has 20 x 20.",
    datasets.make_t_mixture,
    datasets.bayes_t_mixture,
    WIDTHS,
    df=3,
)
