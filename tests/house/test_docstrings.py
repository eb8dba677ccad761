"""Docstrings of what is public: numpydoc's checks as scikit-learn chooses them, all names, examples that run."""

import doctest
import inspect

import pytest
from numpydoc.docscrape import NumpyDocString
from numpydoc.validate import validate
from sklearn.base import BaseEstimator

import psilearn
from psilearn import (
    L0BoostClassifier,
    LPBoostClassifier,
    PsiClassifier,
    RejectClassifier,
    SlipperClassifier,
    SVMClassifier,
    TruncatedHingeClassifier,
    TunedClassifier,
)

OBJECTS = {name: getattr(psilearn, name) for name in psilearn.__all__ if callable(getattr(psilearn, name))}
CLASSES = [name for name, thing in OBJECTS.items() if inspect.isclass(thing)]
ESTIMATORS = [name for name in CLASSES if issubclass(OBJECTS[name], BaseEstimator)]
FUNCTIONS = [name for name in OBJECTS if name not in CLASSES]
#: Left out as scikit-learn leaves them out: how a docstring begins, names of what is returned, and for all but
#: estimators longer texts, examples and pointers to others.
NEVER = {"GL01", "GL02", "GL08", "RT02"}
ESTIMATORS_ONLY = {"ES01", "SA01", "EX01"}


def methods(name):
    """Return the public methods that an estimator does not inherit from scikit-learn."""
    for method, thing in inspect.getmembers_static(OBJECTS[name]):
        if not method.startswith("_") and inspect.isfunction(thing) and thing.__module__.startswith("psilearn"):
            yield f"{name}.{method}"


def faults(path, skip):
    return [f"{code} {text}" for code, text in validate(f"psilearn.{path}")["errors"] if code not in skip]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators(name):
    assert faults(name, NEVER) == []


@pytest.mark.parametrize("path", [path for name in ESTIMATORS for path in methods(name)])
def test_methods_of_estimators(path):
    assert faults(path, NEVER | ESTIMATORS_ONLY) == []


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    """By the name of their module: ``psilearn.solve`` is a function and a package."""
    thing = OBJECTS[name]
    path = f"{thing.__module__}.{thing.__qualname__}".removeprefix("psilearn.")
    assert faults(path, NEVER | ESTIMATORS_ONLY) == []


@pytest.mark.parametrize("name", [name for name in CLASSES if name not in ESTIMATORS])
def test_records(name):
    """What a record is made with are its attributes, and may be documented as such."""
    assert faults(name, NEVER | ESTIMATORS_ONLY | {"PR01"}) == []
    known = documented(name, "Parameters") | documented(name, "Attributes")
    assert set(inspect.signature(OBJECTS[name]).parameters) - known == set()


def documented(name, section):
    entries = NumpyDocString(inspect.getdoc(OBJECTS[name]))[section]
    return {part.strip() for entry in entries for part in entry.name.split(",")}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_parameter_is_documented_in_the_order_of_the_signature(name):
    entries = NumpyDocString(inspect.getdoc(OBJECTS[name]))["Parameters"]
    assert [entry.name for entry in entries] == list(inspect.signature(OBJECTS[name]).parameters)
    assert all(entry.type and entry.desc for entry in entries)


X = [[float(i), float(i % 3)] for i in range(30)]
Y = [int(i > 14) for i in range(30)]
FITTED = [
    SVMClassifier(),
    SVMClassifier(kernel="rbf"),
    SVMClassifier(kernel="rbf", n_components=5),
    TruncatedHingeClassifier(penalty="adaptive-l1"),
    PsiClassifier(a=2.0),
    RejectClassifier(),
    psilearn.MarginClassifier(),
    LPBoostClassifier(),
    L0BoostClassifier(costs=0.1),
    SlipperClassifier(),
    TunedClassifier(SVMClassifier(), {"C": [0.1, 1.0]}),
    psilearn.LogicalBinarizer(),
]


def test_the_fitted_are_all_estimators():
    assert {type(model).__name__ for model in FITTED} == set(ESTIMATORS)


@pytest.mark.parametrize("model", FITTED, ids=repr)
def test_every_fitted_attribute_is_documented(model):
    model.fit(X, Y)
    names = {name for name in dir(model) if name.endswith("_") and not name.startswith("_") and hasattr(model, name)}
    assert names - documented(type(model).__name__, "Attributes") == set()


@pytest.mark.parametrize("name", OBJECTS)
def test_examples(name):
    tests = doctest.DocTestFinder(exclude_empty=True).find(OBJECTS[name], name)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    failed = [test.name for test in tests if test.examples and runner.run(test).failed]
    assert failed == []
