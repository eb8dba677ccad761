"""The exact solver stops when told to, and what it then says is true."""

import json
import subprocess
import sys

import numpy as np
import pytest

from psilearn.core.losses import Psi
from psilearn.core.penalties import Penalty
from psilearn.core.problem import Problem
from psilearn.core.result import Status
from psilearn.core.solving import Options
from psilearn.core.spaces import LinearSpace
from psilearn.exact.two_class import portfolio
from psilearn.exact.two_class import solver as mip

INTERRUPTED = """
import json, os, signal, threading
import numpy as np
from psilearn.core.losses import Psi
from psilearn.core.penalties import Penalty
from psilearn.core.problem import Problem
from psilearn.exact.two_class import solver as mip
from psilearn.core.solving import Options
from psilearn.core.spaces import LinearSpace

rng = np.random.default_rng(0)
X, y = rng.normal(size=(150, 8)), rng.integers(0, 2, 150)
problem = Problem(LinearSpace(X), y, 2, Psi(2.0), Penalty(l2=1.0), 0.5, np.ones(150))
mip.solve(problem, Options(max_iter=200))  # compiles
signal.signal(signal.SIGINT, signal.default_int_handler)  # a process in the background inherits that it is ignored
threading.Timer({delay}, os.kill, (os.getpid(), signal.SIGINT)).start()
result = mip.solve(problem, Options(time_limit=60))
value = problem.value(result.coef, result.intercept)
print(json.dumps([result.status.value, result.objective, value, result.lower_bound]))
"""


@pytest.mark.parametrize("delay", [0.7, 2.5])
def test_ctrl_c_returns_the_incumbent_and_an_honest_bound(delay):
    code = INTERRUPTED.format(delay=delay)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    status, objective, value, bound = json.loads(done.stdout.splitlines()[-1])
    assert status == "interrupted"
    assert objective == value
    assert 0 <= bound < objective


def test_ctrl_c_before_the_search_begins(monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(portfolio, "improve_incumbent", interrupt)
    rng = np.random.default_rng(0)
    problem = Problem(
        LinearSpace(rng.normal(size=(9, 2))), rng.integers(0, 2, 9), 2, Psi(1.0), Penalty(l2=1.0), 0.5, np.ones(9)
    )
    result = mip.solve(problem, Options())
    assert result.status is Status.INTERRUPTED
    assert result.lower_bound == 0.0
    assert result.objective == problem.value(result.coef, result.intercept) <= problem.best_constant()[0] * (1 + 1e-12)


@pytest.mark.parametrize("norm", [2, 1])
def test_the_time_limit_is_kept_on_larger_samples(norm, cpu_clock):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(500, 20)), rng.integers(0, 2, 500)
    penalty = Penalty(l2=1.0) if norm == 2 else Penalty(l1=1.0)
    problem = Problem(LinearSpace(X), y, 2, Psi(0.5), penalty, 1.0, np.ones(500))
    mip.solve(problem, Options(max_iter=1))  # compiles
    began = cpu_clock()
    result = mip.solve(problem, Options(time_limit=1.0))
    assert cpu_clock() - began < 5  # without a limit this takes hours
    assert result.lower_bound <= result.objective
