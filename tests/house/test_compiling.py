"""Kernels with a version of numba whose inner workings are unknown."""

import os
import subprocess
import sys

from psilearn.core._stamp import _imported, _with_imports, stamp

CODE = """
import sys

from psilearn.core._stamp import _imported, _with_imports, stamp
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


def test_a_stamp_sees_the_files_that_are_compiled_into_a_function(tmp_path):
    (tmp_path / "outer_jit.py").write_text("from .inner_jit import add\nfrom .plain import other\n")
    (tmp_path / "inner_jit.py").write_text("from . import deep_jit\n")
    (tmp_path / "deep_jit.py").write_text("x = 1\n")
    (tmp_path / "plain.py").write_text("other = 1\n")

    def now():
        for function in (stamp, _with_imports, _imported):
            function.cache_clear()
        return stamp(tmp_path / "outer_jit.py")

    first = now()
    (tmp_path / "plain.py").write_text("other = 2\n")
    assert now() == first
    (tmp_path / "deep_jit.py").write_text("x = 2\n")
    assert now() != first


INNER = "from psilearn.core._jit import inner\n\n@inner\ndef shift(x):\n    return x + {}\n"
OUTER = """
from psilearn.core._jit import kernel
from .inner_jit import shift

@kernel
def shifted(x):
    return shift(x)
"""


def test_a_kernel_is_compiled_again_when_a_file_it_inlines_changes(tmp_path):
    package = tmp_path / "toy"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "outer_jit.py").write_text(OUTER)
    answers = []
    for number in (1.0, 2.0):
        (package / "inner_jit.py").write_text(INNER.format(number))
        code = "from toy.outer_jit import shifted; print(shifted(10.0), len(shifted.stats.cache_hits))"
        for _ in range(2):
            paths = os.pathsep.join([str(tmp_path), os.getcwd()])
            environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": paths}
            run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
            answers.append(run.stdout.split() or run.stderr)
    assert answers == [["11.0", "0"], ["11.0", "1"], ["12.0", "0"], ["12.0", "1"]]
