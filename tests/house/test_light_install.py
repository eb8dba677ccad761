"""Without the optional packages the library fits, and what needs one of them says which extra brings it."""

import subprocess
import sys

import pytest

BLOCK = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"pandas", "matplotlib", "typer", "rich", "dask", "pyscipopt"}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Absent())
import numpy as np
import psilearn
X = np.random.default_rng(0).normal(size=(40, 2))
y = (X[:, 0] > 0).astype(int)
"""


def run(code):
    return subprocess.run([sys.executable, "-c", BLOCK + code], capture_output=True, text=True)


@pytest.mark.parametrize(
    "name", ["SVMClassifier", "TruncatedHingeClassifier", "RejectClassifier", "LPBoostClassifier", "L0BoostClassifier"]
)
def test_estimators_need_no_extra(name):
    done = run(f"print(psilearn.{name}().fit(X, y).score(X, y) > 0.8)")
    assert done.stdout.strip() == "True", done.stderr


def test_generators_need_no_extra():
    assert run("print(len(psilearn.datasets.make_disk(10, random_state=0)))").returncode == 0


@pytest.mark.parametrize(
    ("code", "extra"),
    [
        ("psilearn.find_label_issues(X, y)", "cli"),
        ("psilearn.datasets.load_wdbc()", "cli"),
        ("psilearn.plots.LossDisplay.from_losses([psilearn.Hinge()])", "plots"),
    ],
)
def test_a_missing_package_is_named_with_its_extra(code, extra):
    done = run(f"""
try:
    {code}
except ImportError as error:
    print(error)
""")
    assert f"pip install 'psilearn[{extra}]'" in done.stdout, done.stderr


def test_the_command_says_what_it_needs():
    done = run("from psilearn.__main__ import main; main()")
    assert done.returncode == 1
    assert done.stderr.strip().endswith("run: pip install 'psilearn[cli]'")
    assert "Traceback" not in done.stderr
