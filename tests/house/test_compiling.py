"""Kernels with a version of numba whose inner workings are unknown."""

import os
import subprocess
import sys

CODE = """
import sys
import numba
import numpy as np
numba.__version__ = "9.9.9"
from psilearn import SVMClassifier
from psilearn.core._jit import inner, kernel

@inner
def _add(x, y):
    return x + y

@kernel
def total(x):
    s = 0.0
    for i in range(x.size):
        s = _add(s, x[i])
    return s

assert total.py_func is not total and numba.extending.is_jitted(total)
assert "psilearn.core._linking_jit" not in sys.modules
X = np.array([[0.0], [1.0], [2.0], [3.0]])
assert SVMClassifier(C=10.0).fit(X, [0, 0, 1, 1]).score(X, [0, 0, 1, 1]) == 1.0
print(total(np.arange(5.0)))
"""


def test_an_unknown_numba_compiles_in_its_plain_way(tmp_path):
    path = tmp_path / "plain.py"  # numba's cache needs a file
    path.write_text(CODE)
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    run = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, env=environment)
    assert run.stdout.strip() == "10.0", run.stderr
