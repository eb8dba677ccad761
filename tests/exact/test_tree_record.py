"""The record of the tree: every division is noted once, and following it again finds the same tree closed."""

import numpy as np

from psilearn import PsiClassifier
from psilearn.exact.two_class.tree.record_jit import make_record, note_division, with_room
from psilearn.proofs.statement import state
from psilearn.proofs.two_class.scaled import make_model
from psilearn.proofs.two_class.tree import Replay
from psilearn.proofs.write import tree_hints


def fitted():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 4))
    y = (X[:, 0] + 0.9 * rng.standard_normal(50) > 0).astype(int)
    return PsiClassifier(C=3.0, solver="mip").fit(X, y), X, y


def test_children_are_numbered_in_pairs():
    estimator, _, _ = fitted()
    record = estimator.certificate_.record
    divided = np.flatnonzero(record.sample >= 0)
    assert divided.size > 5
    assert record.size[0] == 2 * divided.size + 1
    assert sorted(record.child[divided].tolist()) == list(range(1, int(record.size[0]), 2))


def test_a_proof_that_follows_the_record_needs_fewer_nodes():
    """Divisions of the record are taken as they are; without it samples are tried."""
    estimator, X, y = fitted()
    statement = state(estimator, X, y)
    model = make_model(statement)
    goal = estimator.objective_ * (1 - 1e-4)
    counts = []
    for hints in (tree_hints(statement, estimator.certificate_.record), None):
        replay = Replay(model, goal, hints)
        assert replay.run(1e9) >= goal * (1 - 1e-12)
        counts.append(replay.count)
    assert counts[0] < counts[1]


def test_a_full_record_forgets():
    record = make_record(4)
    assert note_division.py_func(record, 0, 7) == 1
    assert note_division.py_func(record, 1, 3) == -1
    assert note_division.py_func(record, -1, 3) == -1
    record = with_room(record, 10)
    assert note_division.py_func(record, 2, 5) == 3
    assert record.sample[:3].tolist() == [7, -1, 5]
