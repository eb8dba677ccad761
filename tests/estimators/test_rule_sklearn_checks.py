"""The rule learners as scikit-learn estimators."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from psilearn.estimators.rules import L0BoostClassifier, LPBoostClassifier, SlipperClassifier
from psilearn.rules.binarize import LogicalBinarizer


@parametrize_with_checks(
    [LPBoostClassifier(), L0BoostClassifier(), SlipperClassifier(max_rounds=10), LogicalBinarizer()]
)
def test_sklearn_conventions(estimator, check):
    check(estimator)
