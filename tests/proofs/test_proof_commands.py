"""``psilearn prove`` and ``psilearn check``."""

import subprocess
import sys

import numpy as np
import pytest

from oracles.proof_files import two_classes, write_csv


def psilearn(*arguments):
    return subprocess.run([sys.executable, "-m", "psilearn", *map(str, arguments)], capture_output=True, text=True)


@pytest.mark.parametrize("method", ["psi", "svm-l1", "lp-boost", "l0-boost"])
def test_a_proof_holds_for_its_table_only(method, tmp_path):
    X, y, weights = two_classes(20, 2)
    labels = np.where(y == 1, "yes", "no")
    write_csv(tmp_path / "data.csv", X, labels, weights)
    X[3, 1] += 1e-12
    write_csv(tmp_path / "other.csv", X, labels, weights)
    proof = tmp_path / "fit.proof"
    names = ["--target", "label", "--weight", "weight", "--method", method, "--out", proof]
    made = psilearn("prove", tmp_path / "data.csv", *names)
    assert made.returncode == 0, made.stderr
    held = psilearn("check", proof, tmp_path / "data.csv")
    assert (held.returncode, held.stderr) == (0, "")
    assert "proved in exact arithmetic" in held.stdout
    refused = psilearn("check", proof, tmp_path / "other.csv")
    assert refused.returncode == 1
    assert "other data" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (["prove", "text.csv", "--target", "label", "--out", "a"], 1, "where a number is needed"),
        (["prove", "data.csv", "--target", "absent", "--out", "a"], 1, "no column 'absent'"),
        (["prove", "data.csv", "--target", "label", "--out", "a", "--method", "x"], 2, "unknown method"),
        (["prove", "data.csv", "--target", "label", "--out", "a", "--method", "l0-boost", "--C", "2"], 2, "no price"),
        (["check", "data.csv", "data.csv"], 1, "does not hold"),
        (["check", "absent", "data.csv"], 1, "Could not read"),
    ],
)
def test_errors_are_one_sentence(arguments, status, says, tmp_path):
    X, y, weights = two_classes(20, 2)
    write_csv(tmp_path / "data.csv", X, y, weights)
    (tmp_path / "text.csv").write_text("a,label\nred,1\n2.5,0\n")
    places = [tmp_path / a if a in ("data.csv", "text.csv", "a", "absent") and at != 3 else a
              for at, a in enumerate(arguments)]  # fmt: skip
    run = psilearn(*places)
    assert run.returncode == status, run.stderr
    assert says in run.stderr
    assert "Traceback" not in run.stderr
    assert not (tmp_path / "a").exists()
