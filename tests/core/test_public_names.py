"""What is importable from the package itself."""

import importlib
import inspect

import numpy as np
import pytest

import psilearn


@pytest.mark.parametrize("name", psilearn.__all__)
def test_every_public_name_is_there_and_documented(name):
    thing = getattr(psilearn, name)
    assert name in dir(psilearn)
    assert name == "__version__" or thing.__doc__


def test_a_problem_is_stated_solved_and_verified_by_public_names():
    X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 0, 1, 1]
    problem = psilearn.SVMClassifier(C=2.0).problem(X, y)
    assert isinstance(problem, psilearn.Problem)
    assert isinstance(problem.penalty, psilearn.Penalty)
    result = psilearn.solve(problem, options=psilearn.Options(tol=1e-8))
    assert isinstance(result, psilearn.Result)
    assert isinstance(result.certificate, psilearn.Certificate)
    check = result.certificate.verify(problem)
    assert isinstance(check, psilearn.Verification)
    assert check.ok
    assert check.gap <= 1e-8


def test_solve_is_a_function_and_no_module_has_its_name():
    assert inspect.isfunction(psilearn.solve)
    assert importlib.import_module("psilearn.solvers").solve is psilearn.solve
