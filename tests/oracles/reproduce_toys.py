"""Toy experiments for the harness's tests; a module of its own because worker processes import it by name.

Heavy imports stand inside the functions: every worker process of every test imports this module.
"""

import os
import time

import numpy as np

from psilearn.app.reproduce import Ordering, Paper, Published, Reason, experiment, grid, view

PAPER = Paper("A. Author and B. Author", "A toy", 2001)


def _draw(summary):
    from matplotlib.figure import Figure

    figure = Figure()
    figure.subplots().plot(summary.mean({"C": 1.0}, "curve"))
    return figure


@experiment(
    "toy/svm",
    title="a support vector machine on the disk",
    paper=PAPER,
    settings=grid(C=[1.0, 1000.0]),
    replications=8,
    small=3,
    published=[
        Published({"C": 1.0}, "error", 0.0486),
        Published({"C": 1000.0}, "error", 0.9, sd=0.01),
        Published({"C": 1000.0}, "vectors", None),
    ],
    orderings=[Ordering("a large C errs less", ({"C": 1000.0}, "error"), ({"C": 1.0}, "error"))],
    reasons=[
        Reason("the printed figure was made up.", lambda settings, measure: settings["C"] == 1000.0),
        Reason("this must not be shown.", lambda settings, measure: settings["C"] == 1.0),
    ],
    draw=_draw,
    about="No more than a toy.",
)
def svm(seed, *, C):
    from sklearn.svm import SVC

    from psilearn.datasets import make_disk

    X, y = make_disk(50, random_state=seed)
    X_test, y_test = make_disk(1000, random_state=seed + 1)
    model = SVC(kernel="linear", C=C).fit(X, y)
    error = np.mean(model.predict(X_test) != y_test)
    return {"error": error, "vectors": model.n_support_.sum(), "curve": np.abs(model.coef_[0]), "undefined": np.nan}


also = view(svm, "toy/also", title="the same results again")


@experiment("toy/slow", title="takes a moment", paper=PAPER, settings=grid(x=[1, 2]), replications=20)
def slow(seed, *, x):
    if "TOY_LOG" in os.environ:
        with open(os.environ["TOY_LOG"], "a") as log:
            log.write(f"{os.getpid()} {seed} {x}\n")
    time.sleep(0.05)
    return {"value": np.random.default_rng(seed).normal() * x}


@experiment("toy/broken", title="fails for odd x", paper=PAPER, settings=grid(x=[0, 1, 2, 3]), replications=1)
def broken(seed, *, x):
    if x % 2:
        raise ArithmeticError(f"{x} is odd")
    return {"value": x}


@experiment("toy/crash", title="kills its worker", paper=PAPER, settings=grid(x=[0, 1, 2, 3]), replications=1)
def crash(seed, *, x):
    if x == 2:
        os._exit(3)
    return {"value": x}


KNOWN = {e.name: e for e in (svm, also, slow, broken, crash)}
