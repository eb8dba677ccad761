"""What users were promised of every classifier: types of the fitted figures."""

import numpy as np
import pytest

from psilearn import Hinge, MarginClassifier, Psi, TruncatedHinge

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
