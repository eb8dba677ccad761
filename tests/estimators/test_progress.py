"""`verbose` shows what the solvers know; the logger "psilearn" hears it in any case."""

import logging

import numpy as np
import pytest

from psilearn import PsiClassifier, SVMClassifier

LOGGER = logging.getLogger("psilearn")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    return X, (X[:, 0] + rng.normal(size=40) > 0).astype(int)


def test_silent_by_default(data, capsys):
    PsiClassifier(solver="mip", max_iter=50).fit(*data)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("verbose", [True, 1, 2])
def test_progress_and_outcome_are_written_to_standard_output(data, capsys, verbose):
    model = PsiClassifier(solver="mip", max_iter=50, verbose=verbose).fit(*data)
    lines = capsys.readouterr().out.splitlines()
    assert all(line.startswith("[psilearn] ") for line in lines)
    assert any(line.startswith("[psilearn] mip: ") and "bound" in line for line in lines)
    assert lines[-1].startswith(f"[psilearn] PsiClassifier: {model.status_.value} after")
    assert f"objective {model.objective_:.6g}, bound {model.lower_bound_:.6g}" in lines[-1]
    assert any(" > dca" in line for line in lines) == (verbose == 2)


def test_every_outermost_line_is_the_history(data, caplog):
    with caplog.at_level(logging.INFO, "psilearn"):
        model = SVMClassifier(solver="bundle").fit(*data)
    told = [record.getMessage() for record in caplog.records if record.getMessage().startswith("bundle: ")]
    assert len(told) == len(model.history_)
    assert f"objective {model.objective_:.6g}, bound {model.lower_bound_:.6g}" in told[-1]


def test_the_logger_is_left_as_it_was(data):
    before = (LOGGER.level, list(LOGGER.handlers))
    SVMClassifier(verbose=1).fit(*data)
    with pytest.raises(ValueError, match="does not take"):
        SVMClassifier(verbose=1, solver="mip").fit(*data)
    assert (LOGGER.level, list(LOGGER.handlers)) == before
