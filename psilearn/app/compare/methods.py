"""The methods that are compared: how each is built, what is tuned, what it costs, and what it promises in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ... import PsiClassifier, RejectClassifier, SVMClassifier, TruncatedHingeClassifier
from ...estimators.rules import L0BoostClassifier, LPBoostClassifier
from ...estimators.tuning.grids import LINEAR_CS
from .costs import Cost

#: Where the loss of a robust fit stops growing. The earliest point for k classes, -1/(k-1), often refuses one of two
#: classes that are hard to tell apart wholesale.
TRUNCATION = -1.0
#: Exhaustive search: the most training rows, and its work per second of the budget, in nodes times their size. It is
#: counted, so that the same seed and budget give the same model; 15 to 20 s of a budget of two minutes at most.
EXACT_ROWS, EXACT_WORK = 2000, 1e7


@dataclass(frozen=True)
class Context:
    """What a method is built for: seconds it may take at most, seed, sizes of the problem, price of an abstention, and
    the seconds for all methods together."""

    limit: float | None
    seed: int
    n_classes: int
    n_rows: int
    n_features: int = 1
    d: float = 0.2
    budget: float = 1.0


Build = Callable[[Context], Any]


@dataclass(frozen=True)
class Method:
    """One row of the comparison.

    Attributes
    ----------
    key, label, says : str
        Name on the command line, name in tables, one plain sentence.
    build : callable
        context -> unfitted classifier.
    grid : "auto", mapping or callable
        Values tried, as :class:`psilearn.TunedClassifier` takes them, or a function from the context to such;
        an empty mapping means that nothing is tuned.
    is_ours, is_robust : bool
        Whether it is no outside baseline; whether its loss is capped, so that it can refuse a label.
    on_table : bool
        True if it reads the table itself (rules in the original units), not the encoded matrix.
    cost : Cost
        What a fit costs, for dividing the time.
    tuned_by : callable, optional
        Builds a cheaper stand-in for tuning; None tunes the method itself.
    """

    key: str
    label: str
    says: str
    build: Build
    grid: Any = "auto"
    is_ours: bool = True
    is_robust: bool = False
    on_table: bool = False
    cost: Cost = Cost()  # noqa: RUF009 (frozen)
    tuned_by: Build | None = None

    def grid_for(self, context: Context) -> str | Mapping[str, Sequence[Any]]:
        """Return the values tried on a problem."""
        return self.grid(context) if callable(self.grid) else self.grid

    @property
    def family(self) -> str:
        """Name of the method without its kernel."""
        return self.key.removesuffix("-rbf")


def _common(context: Context) -> dict[str, Any]:
    return {"time_limit": context.limit, "random_state": context.seed}


#: The kernel itself for a few thousand rows, landmarks beyond.
RBF = {"kernel": "rbf", "n_components": "auto", "penalty": "l2"}


def _rbf_grid(context: Context) -> dict[str, Sequence[float]]:
    """Values of C and gamma; features are standardised, so 1/d is the usual gamma, and winding classes need more."""
    return {"C": (0.1, 1.0, 10.0, 100.0), "gamma": tuple(f / context.n_features for f in (0.1, 0.3, 1.0, 3.0, 10.0))}


def _steepness(context: Context) -> tuple[float, ...]:
    """Values of d that the reject loss is tried with: the price of an abstention, and less steep ones.

    Where more labels are wrong than an abstention costs, that loss is least at f = 0, everywhere: its sign, which every
    row is answered by, says nothing then.
    """
    return context.d, (context.d + 0.5) / 2, 0.45 + 0.1 * context.d


def _reject_grid(context: Context) -> dict[str, Sequence[float]]:
    return {"C": LINEAR_CS, "d": _steepness(context)}


def _reject_rbf_grid(context: Context) -> dict[str, Sequence[float]]:
    return {**_rbf_grid(context), "d": _steepness(context)}


def _svm(**options: Any) -> Build:
    return lambda context: SVMClassifier(**_common(context) | options)


def _truncated(**options: Any) -> Build:
    return lambda context: TruncatedHingeClassifier(s=TRUNCATION, solver="dca", **_common(context) | options)


def _psi_dca(**options: Any) -> Build:
    return lambda context: PsiClassifier(a=2.0, solver="dca", **_common(context) | options)


def _psi(context: Context) -> Any:
    """Exhaustive search where it is possible at all, a local optimum otherwise."""
    if context.n_classes == 2 and context.n_rows <= EXACT_ROWS:
        nodes = int(EXACT_WORK * context.budget / (context.n_rows * (context.n_features + 10)))
        return PsiClassifier(a=1.0, max_iter=max(100, nodes), random_state=context.seed)
    return _psi_dca()(context)


def _reject(**options: Any) -> Build:
    return lambda context: RejectClassifier(d=context.d, **_common(context) | options)


def _lp_boost(context: Context) -> Any:
    """It chooses nu and the order of its rules by itself, from the same column generation."""
    return LPBoostClassifier(nu="auto", max_order="auto", time_limit=context.limit, random_state=context.seed)


def _l0_boost(context: Context) -> Any:
    return L0BoostClassifier(rho="cv", time_limit=context.limit, random_state=context.seed)


def _logistic(context: Context) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=2000)


def _svc(context: Context) -> Any:
    from sklearn.svm import SVC

    return SVC(random_state=context.seed)


def _boosting(context: Context) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(random_state=context.seed)


def _majority(context: Context) -> Any:
    from sklearn.dummy import DummyClassifier

    return DummyClassifier(strategy="most_frequent")


#: Rules are learnt from every row up to 100,000; a time limit returns the rules found by then.
RULES = Cost(1.2e-7, power=2.0, whole=100_000)

METHODS: tuple[Method, ...] = (
    Method("majority", "Majority class", "Always the commonest class: what one gets without looking at the features.",
           _majority, grid={}, is_ours=False),
    Method("svm-l2", "SVM, l2", "The baseline every robust method is measured against.", _svm(),
           cost=Cost(1e-7, fits=9)),
    Method("svm-l1", "SVM, l1", "A support vector machine that sets unneeded coefficients to zero.",
           _svm(penalty="l1"), cost=Cost(3e-7, fits=9)),
    Method("svm-rbf", "SVM, rbf", "A support vector machine that is not linear.", _svm(**RBF),
           grid=_rbf_grid, cost=Cost(4e-8, kernel=True, fits=30)),
    Method("truncated", "Truncated hinge",
           "An SVM whose loss stops growing: a sample far on the wrong side is not believed.", _truncated(),
           is_robust=True, cost=Cost(4e-7, fits=9)),
    Method("truncated-adaptive", "Truncated, adaptive l1",
           "Robust and sparse: coefficients the robust fit found small are penalised more.",
           _truncated(penalty="adaptive-l1"), is_robust=True, cost=Cost(2e-6, fits=9)),
    Method("truncated-rbf", "Truncated hinge, rbf", "Robust, and not linear.", _truncated(**RBF), is_robust=True,
           grid=_rbf_grid, cost=Cost(7e-8, kernel=True, fits=30)),
    Method("psi", "psi-learning",
           "Counts mistakes almost as they are. Small two-class problems are searched exhaustively for a while; the "
           "last column says what is proved.", _psi, is_robust=True, cost=Cost(5e-7, fits=9), tuned_by=_psi_dca()),
    Method("psi-rbf", "psi-learning, rbf", "Counts mistakes almost as they are, and is not linear.", _psi_dca(**RBF),
           is_robust=True, grid=_rbf_grid, cost=Cost(8e-8, kernel=True, fits=30)),
    Method("reject", "Reject option, l1",
           "May answer \"I don't know\" where it is not sure; here it has to answer every row, and the notes tell "
           "what it would have abstained from.", _reject(), grid=_reject_grid, cost=Cost(3e-7, fits=27)),
    Method("reject-rbf", "Reject option, rbf", "May answer \"I don't know\", and is not linear.", _reject(**RBF),
           grid=_reject_rbf_grid, cost=Cost(4e-8, kernel=True, fits=90)),
    Method("lp-boost", "LP-Boost", "A weighted vote of simple rules with the largest soft margin.", _lp_boost,
           grid={}, on_table=True, cost=replace(RULES, fits=9)),
    Method("l0-boost", "L0-RBoost", "A short list of rules: every further rule has to pay for itself.", _l0_boost,
           grid={}, on_table=True, cost=RULES),
    Method("logistic", "Logistic regression", "Outside baseline (scikit-learn).", _logistic,
           grid={"C": (0.001, 0.01, 0.1, 1.0, 10.0)}, is_ours=False, cost=Cost(1e-7, fits=15)),
    Method("svc", "SVC, rbf kernel", "Outside baseline (scikit-learn), not linear.", _svc,
           grid=_rbf_grid, is_ours=False, cost=Cost(1.3e-9, power=2.0, fits=60)),
    Method("boosting", "Gradient boosting", "Outside baseline (scikit-learn), not linear.", _boosting,
           grid={}, is_ours=False, cost=Cost(1e-6, base=0.1)),
)  # fmt: skip
