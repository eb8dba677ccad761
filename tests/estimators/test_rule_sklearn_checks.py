"""The rule learners as scikit-learn estimators."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from psilearn.estimators.rules import L0BoostClassifier, LPBoostClassifier, SlipperClassifier
from psilearn.rules.binarize import LogicalBinarizer


# some of the checks fit labels that have nothing to do with X; the learners then say that their model is constant
@pytest.mark.filterwarnings("ignore:.* is constant:UserWarning")
@parametrize_with_checks(
    [LPBoostClassifier(), L0BoostClassifier(), SlipperClassifier(max_rounds=10), LogicalBinarizer()]
)
def test_sklearn_conventions(estimator, check):
    check(estimator)
