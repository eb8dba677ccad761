"""What users were promised of every classifier: types of the fitted figures, and sense on extreme numbers."""

import numpy as np
import pytest

from psilearn import (
    Hinge,
    MarginClassifier,
    Psi,
    PsiClassifier,
    RejectClassifier,
    SVMClassifier,
    TruncatedHinge,
    TruncatedHingeClassifier,
)

RNG = np.random.default_rng(17)
X = RNG.normal(size=(20, 2))
Y = (X[:, 0] + 0.8 * RNG.normal(size=20) > 0).astype(int)


@pytest.mark.parametrize(("solver", "loss", "penalty"), [
    ("mip", Psi(1.0), "l2"),
    ("auto", TruncatedHinge(0.0), "l1"),
    ("smoothed", Hinge(), "l1"),
    ("patterns", Psi(2.0), "l2"),
])  # fmt: skip
def test_figures_are_plain_floats(solver, loss, penalty):
    model = MarginClassifier(loss, solver=solver, penalty=penalty, time_limit=30.0).fit(X, Y)
    certificate, check = model.certificate_, model.verify(X, Y)
    figures = [model.objective_, model.lower_bound_, model.gap_, certificate.residual, certificate.gap]
    figures += [check.objective, check.bound, check.gap]
    figures += [figure for step in model.history_ for figure in step]
    assert {type(figure) for figure in figures} == {float}


THREE = np.argmax(np.c_[X, -X[:, 0]] + 0.7 * RNG.normal(size=(20, 3)), axis=1)
QUIET = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@QUIET
@pytest.mark.parametrize(("model", "is_two"), [
    (SVMClassifier(), False),
    (TruncatedHingeClassifier(), True),
    (TruncatedHingeClassifier(), False),
])  # fmt: skip
def test_samples_far_from_zero_lose_digits_only(model, is_two):
    rng = np.random.default_rng(3)  # a line search starts uphill by rounding on these
    data = rng.normal(size=(30, 3))
    two = (data[:, 0] + 0.7 * rng.normal(size=30) > 0).astype(int)
    y = two if is_two else np.argmax(data + 0.7 * rng.normal(size=(30, 3)), axis=1)
    near = model.fit(data, y).objective_
    far = model.fit(data + 1e12, y)
    assert far.objective_ == pytest.approx(near, rel=1e-2)
    assert far.verify(data + 1e12, y).ok


@QUIET
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("C", [1e-300, 1e-100, 1e200, 1e300])
def test_no_fit_is_worse_than_saying_nothing(C):
    model = RejectClassifier(C=C).fit(X, THREE)
    problem = model.problem(X, THREE)
    nothing = problem.value(np.zeros((3, 2)), np.zeros(3))
    assert model.objective_ <= nothing * (1 + 1e-12)
    assert model.verify(X, THREE).ok


@QUIET
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_overflowing_limits_end_in_a_fit():
    model = PsiClassifier(a=2.0, C=1e300).fit(X, THREE)
    assert np.isfinite(model.objective_)
    assert model.lower_bound_ <= model.objective_


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_feature_whose_square_overflows_is_named_as_the_cause():
    data = X.copy()
    data[3, 1] = 1e300
    with pytest.raises(ValueError, match="scale them"):
        PsiClassifier().fit(data, Y)
