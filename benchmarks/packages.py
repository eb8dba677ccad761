"""Other packages that solve the same problems, where they are installed: ReHLine, skglm, scikit-learn-intelex, abess.

Each row fits the same data at each package's own default tolerance; ours at its default, a certified relative gap of
1e-4. The note has the excess of their objective over our proved bound: how far their fit is from the optimum, at most.

- ReHLine and skglm (``LinearSVC``): hinge, 2-norm. ReHLine penalises the intercept, which it gets as a column of ones;
  skglm has none, and gets centred data and more than its 50 iterations, after which it is far from the optimum. Their
  objective is ours at their coefficients, with the best intercept for them.
- scikit-learn-intelex (``SVC``): hinge, rbf; the same problem for two classes.
- abess: best subset for logistic regression with the size chosen by its default criterion, against the 1-norm with C
  chosen by cross-validation; the unit is test error in percent. Five or all of 50 features matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from benchmarks.runner.data import L2, clouds
from benchmarks.runner.rows import LeftOutError, Plan, Row, timed
from psilearn import Hinge, Problem, SVMClassifier, TunedClassifier
from psilearn.core.spaces.gram import Kernel


def rehline(X: Any, y: Any, C: float) -> Any:
    from rehline import plqERM_Ridge

    ones = np.column_stack([X, np.ones(len(y))])
    return plqERM_Ridge(loss={"name": "svm"}, C=C).fit(ones, 2.0 * y - 1.0).coef_[:-1]


def skglm(X: Any, y: Any, C: float) -> Any:
    from skglm import LinearSVC

    return LinearSVC(C=C, fit_intercept=False, max_iter=10_000).fit(X, y).coef_


LINEAR: dict[str, Callable[[Any, Any, float], Any]] = {"rehline": rehline, "skglm": skglm}


def with_best_intercept(problem: Any, w: Any) -> float:
    """Our objective at their coefficients; convex in the intercept."""
    W = np.reshape(w, (1, -1))
    far = 2.0 + float(np.abs(problem.space.scores(W, np.zeros(1))).max())
    return float(minimize_scalar(lambda b: problem.value(W, np.array([b])), bounds=(-far, far), method="bounded").fun)


def linear_rows(plan: Plan) -> Iterator[Row]:
    X, y = clouds(20_000 if plan.quick else 100_000, 50, 2)
    for C in (0.01, 1.0):
        names = {package: f"linear, C={C:g}, {package}" for package in LINEAR}
        wanted = [package for package, name in names.items() if find_spec(package) and plan.wants(name)]
        if not wanted:
            continue
        SVMClassifier(C=C).fit(X[:500], y[:500])  # compile
        ours, model = timed(lambda: SVMClassifier(C=C).fit(X, y))  # noqa: B023
        for package in wanted:
            LINEAR[package](X[:500], y[:500], C)
            theirs, w = timed(lambda: LINEAR[package](X, y, C))  # noqa: B023
            yield compared(names[package], ours, theirs, model, with_best_intercept(model.problem(X, y), w))


def compared(name: str, ours: float, theirs: float, model: Any, reached: float) -> Row:
    """Both times; our bound must hold for their fit, too."""
    checks = {
        "gap at most 1e-4": model.gap_ <= 1e-4,
        "bound below their value": model.lower_bound_ <= reached * (1.0 + 1e-12),
    }
    excess = reached / model.lower_bound_ - 1.0
    return Row(name, ours, theirs, {"ratio <= 1": ours <= theirs}, checks, f"their excess at most {excess:.1e}")


def kernel_rows(plan: Plan) -> Iterator[Row]:
    n = 2000 if plan.quick else 5000
    for C in (1.0, 10.0):
        name = f"rbf, n={n}, C={C:g}, sklearnex"
        if not (find_spec("sklearnex") and plan.wants(name)):
            continue
        from sklearnex.svm import SVC

        X, y = clouds(n, 15, 2)
        kernel = {"kernel": "rbf", "gamma": 1.0 / 15.0, "C": C}
        SVMClassifier(**kernel).fit(X[:200], y[:200])  # compile
        ours, model = timed(lambda: SVMClassifier(**kernel).fit(X, y))  # noqa: B023
        theirs, rival = timed(lambda: SVC(**kernel).fit(X, y))  # noqa: B023
        full = np.zeros((1, n))
        full[0, rival.support_] = rival.dual_coef_[0]
        space = Kernel("rbf", 1.0 / 15.0).space(X)  # rows in the order of the data, which ours need not keep
        reached = Problem(space, y, 2, Hinge(), L2, C, np.ones(n)).value(full, np.atleast_1d(rival.intercept_))
        yield compared(name, ours, theirs, model, reached)


def subset_rows(plan: Plan) -> Iterator[Row]:
    seeds = 5 if plan.quick else 20
    for matter in (5, 50):
        name = f"{matter} of 50 features matter, abess"
        if not (find_spec("abess") and plan.wants(name)):
            continue
        errors, kept = zip(*(subset_errors(matter, seed) for seed in range(seeds)))
        ours, theirs = 100.0 * np.mean(errors, axis=0)
        sizes = np.mean(kept, axis=0)
        difference = 100.0 * np.diff(errors, axis=1)
        note = f"kept {sizes[0]:.0f} and {sizes[1]:.0f}; se of the difference {difference.std(ddof=1) / seeds**0.5:.2f}"
        yield Row(name, ours, theirs, {"ahead": ours < theirs}, {}, note, unit="%")


def subset_errors(matter: int, seed: int) -> tuple[list[float], list[int]]:
    from abess import LogisticRegression

    rng = np.random.default_rng(seed)
    beta = np.r_[np.ones(matter), np.zeros(50 - matter)] * np.sqrt(5.0 / matter)
    X, X_test = rng.normal(size=(200, 50)), rng.normal(size=(5000, 50))
    y, y_test = ((A @ beta + rng.normal(size=len(A)) > 0).astype(int) for A in (X, X_test))
    grid = {"C": [0.02, 0.05, 0.1, 0.3, 1.0]}
    tuned = TunedClassifier(SVMClassifier(penalty="l1"), grid, random_state=0).fit(X, y)
    rival = LogisticRegression().fit(X, y)
    errors = [float(np.mean(model.predict(X_test) != y_test)) for model in (tuned, rival)]
    return errors, [int(np.count_nonzero(w)) for w in (tuned.best_estimator_.coef_, rival.coef_)]


def rows(plan: Plan) -> Iterator[Row]:
    """Whatever of the four packages is installed."""
    if not any(map(find_spec, (*LINEAR, "sklearnex", "abess"))):
        raise LeftOutError("needs rehline, skglm, scikit-learn-intelex or abess")
    yield from linear_rows(plan)
    yield from kernel_rows(plan)
    yield from subset_rows(plan)
