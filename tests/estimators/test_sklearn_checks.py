"""scikit-learn's own checks on every margin classifier, with no expected failure."""

from collections import Counter

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

from psilearn import MarginClassifier, PsiClassifier, RejectClassifier, SVMClassifier, TruncatedHingeClassifier

ESTIMATORS = [
    SVMClassifier(),
    SVMClassifier(penalty="l1"),
    SVMClassifier(kernel="rbf"),
    TruncatedHingeClassifier(),
    PsiClassifier(a=2.0),
    PsiClassifier(),
    RejectClassifier(),
    MarginClassifier(),
]


@pytest.mark.filterwarnings("ignore:n_components=1 has no effect:UserWarning")  # several checks set it
@parametrize_with_checks(ESTIMATORS)
def test_sklearn_compatible(estimator, check):
    check(estimator)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_no_check_is_left_out_or_expected_to_fail(estimator):
    """Count what the test above runs: all of scikit-learn's checks for a classifier that takes weights and CSR data."""
    checks = list(estimator_checks_generator(estimator, mark="skip"))
    names = Counter(getattr(check, "func", check).__name__ for _, check in checks)
    assert len(checks) >= 55
    assert {"check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data"} <= set(
        names
    )
