"""What a margin classifier claims of its fit, and how anybody recomputes it.

Every figure is read from ``certificate_``, so no two of them can disagree. :meth:`Certified.verify` states the problem
again from the data and recomputes each claim: a convex optimum by weak duality, a stationary point by the residual of
its convex majorant (Liu, Shen and Doss, Multicategory psi-learning and support vector machine: computational tools,
2005), a global bound by a search that is guided by the record of the first one and checked in exact arithmetic. Cost:
a few passes over the data; for a global bound about a few times the fit, at most a minute.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from ..core.problem import Problem
from ..core.result import Certificate, Claim, Status, Verification
from .chunked import chunked_problem, fits_in_blocks
from .encode import Sample
from .parameters import MarginParameters


class Certified(MarginParameters):
    """The public face of the claims; a base of the margin classifiers."""

    @property
    def objective_(self) -> float:
        """The minimised objective at the fitted coefficients, evaluated with the exact loss."""
        return self.certificate_.objective

    @property
    def lower_bound_(self) -> float:
        """A valid lower bound on the global optimum, -inf if none is known."""
        return self.certificate_.bound

    @property
    def gap_(self) -> float:
        """Relative gap (objective - bound) / max(|objective|, eps), inf without a bound."""
        return self.certificate_.gap

    def problem(self, X: Any, y: Any, sample_weight: Any = None) -> Problem:
        """State the problem that :meth:`fit` solves on these data; the estimator is not changed.

        Parameters
        ----------
        X, y, sample_weight : array-like
            As for ``fit``.

        Returns
        -------
        Problem
            Data, loss, penalty and scaling. Equal rows of small samples are merged and sorted. The weights of an
            adaptive l1 penalty, and the landmarks of a low-rank kernel, are those of the fit if there was one.
        """
        return self._state(X, y, sample_weight)[1]

    def verify(self, X: Any, y: Any, sample_weight: Any = None) -> Verification:
        """Recompute every claim of the fit from the data it was made on.

        Parameters
        ----------
        X, y, sample_weight : array-like
            What was handed to ``fit``.

        Returns
        -------
        Verification
            ``ok, objective, bound, gap, message``; ``ok`` is True only if every claim was recomputed, and the message
            names what was not.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn import SVMClassifier
        >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 0, 1, 1]
        >>> model = SVMClassifier().fit(X, y)
        >>> model.verify(X, y).ok
        True
        >>> model.verify(X + 1.0, y).ok
        False
        """
        check_is_fitted(self)
        worker, problem, sample = self._state(X, y, sample_weight)
        if not np.array_equal(worker.classes_, self.classes_):
            return _refused(f"y holds the classes {worker.classes_.tolist()}, the fit {self.classes_.tolist()}")
        W = self._solver_coefficients(problem, sample)
        if W is None:
            return _refused("the data hold fewer samples than those of the fit")
        if not self._is_certified(problem, W):
            return _refused("the certificate is about other coefficients")
        check = self._provable(problem).verify(problem, W, self.intercept_)
        if check.ok and self.status_ is Status.OPTIMAL and not check.gap <= self._proved_gap() * (1 + 1e-6):
            return check._replace(ok=False, message=f"the fit is called optimal, but its gap is {check.gap!r}")
        return check

    def _provable(self, problem: Problem) -> Certificate:
        """Return the certificate with a proof of its global bound, if there can be one; a stored one is not used."""
        certificate = replace(self.certificate_, proof=None)
        if certificate.claim is not Claim.GLOBAL or problem.is_convex:
            return certificate
        from ..proofs.certify import tree_proof

        return replace(certificate, proof=tree_proof(certificate, problem))

    def _state(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
        worker: Any = clone(self)
        worker._validate_params()
        if worker.penalty == "adaptive-l1" and worker.adaptive_weights is None:
            worker.adaptive_weights = getattr(self, "adaptive_weights_", None)
        if fits_in_blocks(worker, X):
            return worker, chunked_problem(worker, X, y, sample_weight, getattr(self, "low_rank_", None))[0], None
        return worker, *worker._prepare(X, y, sample_weight, low_rank=getattr(self, "low_rank_", None))

    def _is_certified(self, problem: Problem, W: NDArray[np.float64]) -> bool:
        """Whether the certificate is about these coefficients; those of kernels are in the order of the samples."""
        point = self.certificate_.point
        if point is None:
            return True
        held = point[0]
        if problem.is_kernel:
            W, held = (np.sort(V[:, np.any(V != 0.0, axis=0)], axis=1) for V in (W, held))
        return np.array_equal(W, held) and np.array_equal(point[1], self.intercept_)

    def _proved_gap(self) -> float:
        """Return the gap up to which a fit counts as optimal."""
        if self.certificate_.claim is Claim.RESTRICTED:  # the optimum of another problem; no bound is claimed
            return np.inf
        return self.tol if self.certificate_.claim is Claim.CONVEX else self.gap_tol

    def _solver_coefficients(self, problem: Problem, sample: Sample) -> NDArray[np.float64] | None:
        """Return the fitted coefficients as a solver has them; None if they belong to samples that are not there."""
        if not problem.is_kernel:
            return self.coef_ if self.low_rank_ is None else self.component_coef_
        rows, values = self.dual_support_, self.dual_coef_
        assert rows is not None, "only landmarks are no samples"
        if rows.size and rows.max() >= sample.position.size:
            return None
        W = np.zeros((values.shape[0], problem.n))
        W[:, sample.position[rows]] = values
        return W


def _refused(message: str) -> Verification:
    return Verification(False, np.nan, -np.inf, np.inf, message)
