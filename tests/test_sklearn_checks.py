"""scikit-learn's own checks on every estimator, with no expected failure."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from psilearn import PsiClassifier, RejectClassifier, SVMClassifier, TruncatedHingeClassifier

ESTIMATORS = [
    SVMClassifier(),
    SVMClassifier(penalty="l1"),
    TruncatedHingeClassifier(),
    PsiClassifier(a=2.0),
    PsiClassifier(),
    RejectClassifier(),
]


@parametrize_with_checks(ESTIMATORS)
def test_sklearn_compatible(estimator, check):
    check(estimator)
