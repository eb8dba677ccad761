"""The rule learners as scikit-learn estimators."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from psilearn.boosting.binarize import LogicalBinarizer
from psilearn.estimators.rules import L0BoostClassifier, LPBoostClassifier


@parametrize_with_checks([LPBoostClassifier(), L0BoostClassifier(), LogicalBinarizer()])
def test_sklearn_conventions(estimator, check):
    check(estimator)
