"""What a newcomer waits for: the import, the first fit ever (numba compiles), and the first fit of a later process.

CPU seconds in fresh processes, numba's import included. Theirs is what the like scikit-learn step takes: importing
sklearn.svm before ours. A fit "after" another shares its cache of compiled code, so it pays only for the rest.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import psilearn
from benchmarks.runner.rows import Plan, Row, at_most

#: Seconds that `import psilearn` may add to `import sklearn.svm`, and that a first fit may take in a later process.
IMPORT, LATER = 0.2, 0.8

IMPORTS = """
import time
start = time.process_time()
import sklearn.svm
middle = time.process_time()
import psilearn
print(time.process_time() - middle, middle - start)
"""
FIRST_FIT = """
import time
import warnings
import numpy as np
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X = rng.normal(size=({n}, 2))
y = np.digitize(X[:, 0] + rng.normal(size={n}), {edges})
import psilearn
start = time.process_time()
psilearn.{fit}.fit(X, y)
print(time.process_time() - start)
"""


class Case(NamedTuple):
    """A fit, the most seconds the first one may take, what divides the classes, and the fit that went before."""

    fit: str
    target: float = 8.0
    edges: tuple[float, ...] = (0.0,)
    after: str | None = None


HARD = "MarginClassifier(psilearn.HardMargin(), solver='mip')"
CASES = {
    "SVMClassifier()": Case("SVMClassifier()"),
    "SVMClassifier(penalty='l1')": Case("SVMClassifier(penalty='l1')"),
    "SVMClassifier(kernel='rbf')": Case("SVMClassifier(kernel='rbf')"),
    "TruncatedHingeClassifier()": Case("TruncatedHingeClassifier()"),
    "RejectClassifier()": Case("RejectClassifier()"),
    "PsiClassifier()": Case("PsiClassifier()"),
    "PsiClassifier(penalty='l1')": Case("PsiClassifier(penalty='l1')"),
    "hard margin, after psi": Case(HARD, after="PsiClassifier()"),
    "cones": Case("TruncatedHingeClassifier(s=0, solver='cones')", 5.0, (-0.5, 0.5)),
    "L0BoostClassifier()": Case("L0BoostClassifier()", 4.0),
}
QUICK = ("SVMClassifier()", "TruncatedHingeClassifier()", "PsiClassifier()")


def fresh(code: str, **environment: str) -> list[float]:
    """The figures that a fresh process prints; it imports the psilearn that is measured."""
    where = os.environ | {"PYTHONPATH": str(Path(psilearn.__file__).parents[1])} | environment
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=where)
    return [float(word) for word in run.stdout.split()]


def first_and_later(case: Case, repeats: int) -> tuple[float, float]:
    """CPU seconds of the first fit with an empty cache, and with that cache in later processes."""

    def seconds(fit: str, cache: str) -> float:
        return fresh(FIRST_FIT.format(fit=fit, edges=case.edges, n=24), NUMBA_CACHE_DIR=cache)[0]

    with tempfile.TemporaryDirectory() as cache:
        if case.after is not None:
            seconds(case.after, cache)
        first = seconds(case.fit, cache)
        return first, min(seconds(case.fit, cache) for _ in range(repeats))


def rows(plan: Plan) -> Iterator[Row]:
    """The import, and the first fits."""
    ours, theirs = min(fresh(IMPORTS) for _ in range(2 if plan.quick else 3))
    yield Row("import psilearn after sklearn.svm", ours, theirs, at_most(ours, IMPORT, "s"))
    for name, case in CASES.items():
        if (plan.quick and name not in QUICK) or not plan.wants(f"{name}, first ever"):
            continue
        first, later = first_and_later(case, 1 if plan.quick else 3)
        yield Row(f"{name}, first ever", first, goals=at_most(first, case.target, "s"))
        yield Row(f"{name}, later process", later, goals=at_most(later, LATER, "s"))
