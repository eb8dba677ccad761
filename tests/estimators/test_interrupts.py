"""Ctrl-C: one solve returns its incumbent; whatever makes several solves raises instead of going on to the next."""

import numpy as np
import pytest

from psilearn import (
    PsiClassifier,
    RejectClassifier,
    SVMClassifier,
    TruncatedHingeClassifier,
    TunedClassifier,
    certify_labels,
    prove,
    regularization_path,
    truncation_path,
)
from psilearn.convex import newton
from psilearn.core.result import Status
from psilearn.exact.two_class import portfolio


def sample(n=60, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, (X[:, 0] + rng.normal(size=n) > 0).astype(int)


def several_solves():
    X, y = sample()
    return {
        "tuned": lambda: TunedClassifier(SVMClassifier(), {"C": [0.1, 1.0]}).fit(X, y),
        "tuned without a path": lambda: TunedClassifier(PsiClassifier(), {"a": [1.0, 2.0]}).fit(X, y),
        "path": lambda: regularization_path(SVMClassifier(), X, y, [0.1, 1.0]),
        "path, not convex": lambda: regularization_path(TruncatedHingeClassifier(), X, y, [0.1, 1.0]),
        "truncation path": lambda: truncation_path(TruncatedHingeClassifier(), X, y, [-np.inf, 0.0]),
        "threshold": lambda: RejectClassifier(penalty="l2", threshold="auto").fit(X, y),
        "adaptive l1": lambda: SVMClassifier(penalty="adaptive-l1").fit(X, y),
        "label prices": lambda: certify_labels(TruncatedHingeClassifier(), X, y),
        "proof": lambda: prove(SVMClassifier(), X, y, "/nowhere/fit.proof"),
    }


@pytest.mark.parametrize("name", several_solves())
def test_several_solves_end_at_the_first_that_is_interrupted(name, monkeypatch):
    calls = []

    def interrupted(self):
        calls.append(1)
        raise KeyboardInterrupt

    monkeypatch.setattr(newton._Iterate, "step", interrupted)
    with pytest.raises(KeyboardInterrupt):
        several_solves()[name]()
    assert len(calls) == 1


def test_prices_of_labels_end_at_the_first_that_is_interrupted(monkeypatch):
    X, y = sample()
    model = TruncatedHingeClassifier(s=0.0, C=3.0).fit(X, y)
    assert model.suspects_.size > 2
    calls = []

    def interrupted(*_):
        calls.append(1)
        raise KeyboardInterrupt

    monkeypatch.setattr(portfolio, "_run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        certify_labels(model, X, y)
    assert len(calls) == 1


@pytest.mark.parametrize("model", [PsiClassifier(solver="mip"), PsiClassifier(), PsiClassifier(a=2.0, solver="mip")])
def test_no_search_begins_after_an_interrupted_descent(model, monkeypatch):
    def interrupted(self):
        raise KeyboardInterrupt

    def search(*_, **__):
        pytest.fail("the search began")

    monkeypatch.setattr(newton._Iterate, "step", interrupted)
    monkeypatch.setattr(portfolio, "search", search)
    X, y = sample()
    with pytest.warns():
        model.fit(X, y)
    assert model.status_ is Status.INTERRUPTED
    assert np.isfinite(model.objective_)
    assert model.verify(X, y).ok
