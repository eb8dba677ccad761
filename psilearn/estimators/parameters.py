"""The parameters of a margin classifier, and the problem that they state for given data."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import validate_data

from ..core.losses import Loss
from ..core.penalties import Penalty
from ..core.problem import Problem
from ..core.result import Certificate, Status, Step, go_on_after
from ..core.solving import Clock, Options, SolverSettings
from ..core.spaces import LinearSpace, LowRank, Space
from ..core.spaces.gram import Kernel, scale_of
from ..core.spaces.low_rank import automatic_rank
from ..solvers import SOLVERS, solve, takes
from .encode import Sample, classes_of, encode

#: Part of the time that is left which the pilot fit of an adaptive l1 penalty may take.
PILOT_SHARE = 0.5
#: Fan and Li's choice of the second parameter of SCAD.
SCAD = 3.7


class Fitted:
    """Types of what a fit leaves behind; documented at :class:`.base.MarginEstimator`."""

    classes_: NDArray[Any]
    n_features_in_: int
    feature_names_in_: NDArray[Any]
    certificate_: Certificate
    status_: Status
    n_iter_: int
    history_: list[Step]
    intercept_: NDArray[np.float64]
    coef_: NDArray[np.float64]
    component_coef_: NDArray[np.float64]
    adaptive_weights_: NDArray[np.float64]
    dual_coef_: NDArray[np.float64]
    dual_support_: NDArray[np.intp] | None
    support_vectors_: Any
    support_: NDArray[np.intp]
    suspects_: NDArray[np.intp]
    kernel_: Kernel
    low_rank_: LowRank | None


@dataclass(eq=False, repr=False, kw_only=True)
class MarginParameters(Fitted, BaseEstimator):
    """Parameters of a margin classifier; a subclass states its loss in :meth:`_loss`.

    Being a dataclass writes ``__init__`` with its explicit signature, which is all scikit-learn asks of it.

    Parameters
    ----------
    C : float, default=1.0
        Price of a unit of loss: ``P(w) + C sum_i weight_i loss(u_i)`` is minimised, intercepts free.
    penalty : {"l2", "l1", "adaptive-l1", "elastic-net", "scad"}, default="l2"
        "l2" is ||w||^2 / 2, "l1" is ||w||_1, "adaptive-l1" is sum_j |w_j| / |w0_j| with w0 from the l2 fit of the same
        loss and C, "elastic-net" is l1_ratio ||w||_1 + (1 - l1_ratio)/2 ||w||^2, "scad" the smoothly clipped absolute
        deviation with lambda = 1 and a = 3.7 (not convex: solved by the d.c. algorithm).
    l1_ratio : float, default=0.5
        Share of the l1 norm in the elastic net.
    adaptive_weights : array-like, default=None
        Weights of |w_j| for "adaptive-l1", in place of 1 / |w0_j|; inf forbids a coefficient.
    kernel : {"linear", "rbf", "poly", "sigmoid", "precomputed"} or callable, default="linear"
        Kernel machines take penalty "l2".
    gamma : {"scale", "auto"} or float, default="scale"
        Coefficient of "rbf", "poly" and "sigmoid": "scale" is 1 / (d Var X), "auto" is 1 / d for d features.
    degree : int, default=3
        Degree of "poly".
    coef0 : float, default=0.0
        Constant of "poly" and "sigmoid".
    n_components : int or "auto", default=None
        Number of landmarks of a low-rank kernel: f is sought among the functions sum_j beta_j k(l_j, x) of landmarks
        l_j, which are centres of k-means. Time and memory then grow with the samples and not with their square, every
        solver for linear functions applies, and certificates are claims about this restricted problem. "auto" is the
        exact kernel up to 4,000 samples and min(500, 5 sqrt(n)) landmarks beyond; None is always exact. Without
        effect, and a warning, for kernel="linear".
    solver : str, default="auto"
        "auto" chooses; a solver that cannot take the problem raises ValueError and says why.
    tol : float, default=1e-4
        Relative duality gap of convex fits, criticality residual of d.c. fits.
    gap_tol : float, default=1e-4
        Relative gap between solution and bound at which an exact fit counts as proved.
    time_limit : float, default=None
        Seconds for the whole fit: kernel matrix, pilot of "adaptive-l1" and all else, but not the compiling of a solver
        that is used for the first time. The best solution found is kept, with an honest gap and a ConvergenceWarning.
    max_iter : int, default=None
        Iteration limit of the solver's outer loop.
    class_weight : dict or "balanced", default=None
        Factors on the sample weights by class.
    random_state : int, RandomState or None, default=None
        Seed of restarts; None is 0, so that fits are repeatable.
    n_jobs : int, default=None
        Threads of an exact search of two classes that is not counted in nodes (solver="mip", or a ``time_limit``), and
        of passes over data in blocks; None is 1, -1 all cores. Optimum and bound do not depend on it, the number of
        nodes does.
    cluster : str, default=None
        Address of a dask scheduler ("tcp://host:8786") whose workers do the exact search in place of threads; without
        it and without ``n_jobs``, those of the dask client that is active, if there is one.
    checkpoint : path, default=None
        File in which a fit on data in blocks keeps what its passes found. A fit that was broken off, made again with
        the same data, blocks and parameters, reads it and goes on to the same result.
    verbose : int, default=0
        0 is silent; 1 shows objective and bound about twice a second while the fit runs; 2 shows every line, also of
        the solvers inside the solver. All of it goes to the logger "psilearn", whatever ``verbose`` is.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "C": [Interval(Real, 0, None, closed="neither")],
        "penalty": [StrOptions({"l2", "l1", "adaptive-l1", "elastic-net", "scad"})],
        "l1_ratio": [Interval(Real, 0, 1, closed="both")],
        "adaptive_weights": ["array-like", None],
        "kernel": [StrOptions({"linear", "rbf", "poly", "sigmoid", "precomputed"}), callable],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0, None, closed="neither")],
        "degree": [Interval(Integral, 0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "n_components": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left"), None],
        "solver": [StrOptions({"auto", *SOLVERS})],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "gap_tol": [Interval(Real, 0, None, closed="left")],
        "time_limit": [Interval(Real, 0, None, closed="neither"), None],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "cluster": [str, None],
        "checkpoint": [str, PathLike, None],
        "verbose": ["verbose"],
    }

    C: float = 1.0
    penalty: str = "l2"
    l1_ratio: float = 0.5
    adaptive_weights: Any = None
    kernel: Any = "linear"
    gamma: Any = "scale"
    degree: int = 3
    coef0: float = 0.0
    n_components: Any = None
    solver: str = "auto"
    tol: float = 1e-4
    gap_tol: float = 1e-4
    time_limit: float | None = None
    max_iter: int | None = None
    class_weight: Any = None
    random_state: Any = None
    n_jobs: int | None = None
    cluster: str | None = None
    checkpoint: str | PathLike[str] | None = None
    verbose: int = 0

    def _loss(self, n_classes: int) -> Loss:
        """State the loss; may depend on the number of classes."""
        raise NotImplementedError(f"{type(self).__name__} must define _loss()")

    def _settings(self) -> tuple[SolverSettings, ...]:
        """Options of single solvers."""
        return ()

    def _learn_from(self, rows: Any) -> None:
        """See some training rows after a fit on data in blocks."""

    @property
    def _is_linear(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "linear"

    def _kernel_on(self, X: Any, weights: NDArray[np.float64] | None) -> Kernel:
        """The kernel with the number behind ``gamma``."""
        gamma = 1.0 if self.kernel == "precomputed" else scale_of(self.gamma, X, weights)
        return Kernel(self.kernel, gamma, self.degree, self.coef0)

    @property
    def _limit(self) -> float:
        return math.inf if self.time_limit is None else float(self.time_limit)

    @property
    def _seed(self) -> int:
        seed = self.random_state
        if seed is None or isinstance(seed, Integral):
            return int(seed or 0)
        return int(check_random_state(seed).randint(2**31 - 1))

    def _options(self, seconds: float | None = None) -> Options:
        limit = self._limit if seconds is None else seconds
        return Options(
            tol=self.tol, gap_tol=self.gap_tol, time_limit=limit, max_iter=self.max_iter,
            random_state=self._seed, verbose=int(self.verbose), n_jobs=effective_n_jobs(self.n_jobs),
            cluster=self.cluster, settings=self._settings(),
        )  # fmt: skip

    # -- the problem ---------------------------------------------------------------------------------------------------

    def _prepare(
        self, X: Any, y: Any, sample_weight: Any, clock: Clock | None = None, low_rank: LowRank | None = None
    ) -> tuple[Problem, Sample]:
        """Validate, encode, and state the problem.

        The clock is that of the whole fit; ``low_rank`` are landmarks of an earlier one, kept if they fit these data.
        """
        X, y = self._validated(X, y)
        is_precomputed = isinstance(self.kernel, str) and self.kernel == "precomputed"
        if is_precomputed and X.shape[0] != X.shape[1]:
            raise ValueError(f"A precomputed kernel must be square, got X of shape {X.shape}.")
        sample = encode(X, y, self.classes_, sample_weight, self.class_weight, is_precomputed)
        k = self.classes_.size
        space = self._space(sample, low_rank)
        problem = Problem(space, sample.y, k, self._loss(k), Penalty(l2=1.0), float(self.C), sample.weights)
        return replace(problem, penalty=self._penalty(problem, clock or Clock(self._limit))), sample

    def _space(self, sample: Sample, low_rank: LowRank | None) -> Space:
        """Return the space of the problem, and keep kernel and landmarks."""
        self.low_rank_: LowRank | None = None
        if self._is_linear:
            if self.n_components is not None:
                # scikit-learn's checks set n_components of every estimator that has it, so this cannot be an error.
                given = f"n_components={self.n_components!r} has no effect with kernel='linear'"
                warnings.warn(f"{given}; choose another kernel, such as 'rbf'.", UserWarning, stacklevel=4)
            return LinearSpace(sample.X)
        if self.penalty != "l2":
            raise ValueError(f"Kernel machines take penalty='l2' only, got penalty={self.penalty!r}.")
        self.kernel_ = self._kernel_on(sample.X, sample.sample_weight)
        n, asked = sample.y.size, self.n_components
        rank = automatic_rank(n) if isinstance(asked, str) else asked
        if rank is None:
            return self.kernel_.space(sample.X)
        if low_rank is None or low_rank.kernel != self.kernel_ or low_rank.asked != rank:
            low_rank = LowRank.of(self.kernel_, sample.X, int(rank), sample.weights, self._seed)
        self.low_rank_ = low_rank
        return low_rank.space(sample.X)

    def _validated(self, X: Any, y: Any) -> tuple[Any, NDArray[Any]]:
        """Check the samples, and learn the classes."""
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], order="C")
        self.classes_ = classes_of(y)
        return X, y

    def _penalty(self, problem: Problem, clock: Clock) -> Penalty:
        if self.penalty == "l2":
            return Penalty(l2=1.0)
        if self.penalty == "l1":
            return Penalty(l1=1.0)
        if self.penalty == "elastic-net":
            return Penalty(l2=1.0 - self.l1_ratio, l1=float(self.l1_ratio))
        if self.penalty == "scad":
            return Penalty(l1=1.0, scad=SCAD)
        shape = (problem.n_functions, problem.space.dim)
        if self.adaptive_weights is not None:
            weights = np.asarray(self.adaptive_weights, dtype=np.float64)
            if np.any(np.isnan(weights)) or np.any(weights < 0) or np.broadcast_shapes(weights.shape, shape) != shape:
                raise ValueError(f"adaptive_weights must be non-negative numbers of shape {shape} or one per feature.")
            return Penalty(l1=np.broadcast_to(weights, shape))
        pilot = self._pilot(problem, clock)
        # A pilot coefficient of rounding size means "not in the model": forbid it instead of dividing by it.
        floor = 1e-10 * np.abs(pilot).max(initial=0.0)
        with np.errstate(divide="ignore"):
            self.adaptive_weights_ = np.where(np.abs(pilot) > floor, 1.0 / np.abs(pilot), np.inf)
        return Penalty(l1=self.adaptive_weights_)

    def _pilot(self, problem: Problem, clock: Clock) -> NDArray[np.float64]:
        """Return the coefficients of the l2 fit, which may take a part of the time that is left."""
        solver = self.solver if self.solver != "auto" and takes(self.solver, problem) else "auto"
        pilot = solve(problem, solver, self._options(PILOT_SHARE * clock.left), None)
        go_on_after(pilot.status)
        return pilot.coef
