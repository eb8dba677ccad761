"""Every condition of every rule of the checker is demanded: each is broken once by hand."""

import numpy as np
import pytest
from sklearn.base import clone

import psilearn
from psilearn.proofs import check as checker

from oracles.proof_files import CONVEX, TRUNCATED, read_records, write_records


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Proofs by name, with their data."""
    folder = tmp_path_factory.mktemp("rules")
    cases = {
        "l2": CONVEX[0],
        "l1": CONVEX[3],
        "k": CONVEX[10],
        "k-l1": CONVEX[11],
        "rbf": CONVEX[8],
        "psi": TRUNCATED[0],
        "psi-l1": TRUNCATED[1],
        "psi-rbf": TRUNCATED[2],
    }
    proofs = {}
    for name, (estimator, data) in cases.items():
        X, y, weights = data()
        psilearn.prove(clone(estimator), X, y, folder / name, weights)
        proofs[name] = read_records(folder / name), (X, y, weights)
    return proofs


def message(tmp_path, records, data):
    """Return what the checker says of changed lines, claimed with bound 0 or less, which needs no strength."""
    write_records(tmp_path / "a", records)
    return psilearn.check(tmp_path / "a", *data).message


def with_leaf(proof, change, bound=0.0):
    """Return the lines of a proof of one leaf after a change of it, with a bound that any feasible leaf may prove."""
    (claim, *rest), data = proof
    leaf = [list(row) if isinstance(row, list) else row for row in rest[-1]["leaf"]]
    change(leaf)
    return [claim | {"bound": bound}, *rest[:-1], rest[-1] | {"leaf": leaf}], data


@pytest.mark.parametrize("name", ["l2", "l1", "rbf"])
def test_multipliers_must_balance(name, made, tmp_path):
    def lower(leaf):
        leaf[int(np.argmax(leaf))] -= 1

    assert "balance" in message(tmp_path, *with_leaf(made[name], lower))


@pytest.mark.parametrize("name", ["k", "k-l1"])
def test_multipliers_of_k_classes_must_balance_and_not_be_negative(name, made, tmp_path):
    y = made[name][1][1][made[name][1][2] > 0]

    def lower(leaf):
        i = int(np.argmax([max(row) for row in leaf]))
        leaf[i][int(np.argmax(leaf[i]))] -= 1

    def negate(leaf):
        i = int(np.argmax([max(row) for row in leaf]))
        leaf[i] = [-v for v in leaf[i]]

    def own(leaf):
        leaf[0][int(y[0])] = 1

    assert "balance" in message(tmp_path, *with_leaf(made[name], lower))
    assert "must be >= 0" in message(tmp_path, *with_leaf(made[name], negate))
    assert "own class" in message(tmp_path, *with_leaf(made[name], own))


def test_multipliers_stay_in_their_box(made, tmp_path):
    """A pair of opposite labels is pushed out of the box together, so that the balance stays."""
    (claim, *_), (_, y, weights) = made["l2"]
    y = y[weights > 0]
    first, second = int(np.flatnonzero(y == 0)[0]), int(np.flatnonzero(y == 1)[0])

    def push(amount):
        def change(leaf):
            leaf[first] += amount
            leaf[second] += amount

        return change

    far = 100 << claim["quantum"]
    assert "too large" in message(tmp_path, *with_leaf(made["l2"], push(far)))
    assert "negative" in message(tmp_path, *with_leaf(made["l2"], push(-far)))


def test_the_conjugate_of_an_l1_penalty_must_be_finite(made, tmp_path):
    """Half the price of a coefficient makes the multipliers infeasible, however small the bound."""
    (claim, *rest), data = made["l1"]
    X, y, weights = data
    cheaper = claim | {"penalty": {"l2": 0.0, "l1": [[0.5 * v for v in claim["penalty"]["l1"][0]]]}}
    problem = checker.Problem(cheaper, X.tolist(), y.tolist(), weights.tolist())
    checker.attach_space(problem, cheaper, iter(()))
    regions = [problem.region(i, None, None, 0) for i in range(problem.n)]
    assert problem.leaf_bound(rest[-1]["leaf"], regions) is None


def test_a_case_must_be_empty_to_be_called_so(made, tmp_path):
    records, data = made["psi"]
    at = next(i for i, record in enumerate(records) if "leaf" in record)
    sample = next(record["split"] for record in records if "split" in record)
    for i in (sample, 0, -1, 10**9, None):
        assert "not" in message(tmp_path, [*records[:at], {"empty": i}, *records[at + 1 :]], data)


@pytest.mark.parametrize("name", ["psi", "psi-l1", "psi-rbf"])
def test_limits_of_margins_must_follow(name, made, tmp_path):
    """Limits closer to t by a hundredth do not follow."""
    records, data = made[name]
    places = {key: at for at, record in enumerate(records) for key in ("low", "high") if key in record}
    assert len(places) == 2
    for key, at in places.items():
        for i, end in enumerate(records[at][key]):
            if end:
                ends = list(records[at][key])
                ends[i] = int(0.99 * end)
                changed = [*records[:at], {key: ends}, *records[at + 1 :]]
                assert f"margin of sample {i} does not follow" in message(tmp_path, changed, data)


def test_tighter_limits_inside_a_case_must_follow(made, tmp_path):
    records, data = made["psi"]
    at = next(i for i, record in enumerate(records) if "tighten" in record)
    line, unit = records[at], 1 << records[0]["margin_quantum"]
    for number, (i, j, low, high) in enumerate(line["limits"]):
        for change in (
            [i, j, None if low is None else low + unit, high],
            [i, j, low, None if high is None else high - unit],
        ):
            if change != [i, j, low, high]:
                limits = [change if k == number else limit for k, limit in enumerate(line["limits"])]
                changed = [*records[:at], line | {"limits": limits}, *records[at + 1 :]]
                assert "does not follow" in message(tmp_path, changed, data)
    for number, (j, p, r) in enumerate(line["anchors"]):
        for change in ([j, p + (r - p) // 3, r], [j, p, r - (r - p) // 3]):
            anchors = [change if k == number else anchor for k, anchor in enumerate(line["anchors"])]
            changed = [*records[:at], line | {"anchors": anchors}, *records[at + 1 :]]
            assert "does not follow" in message(tmp_path, changed, data)
    doubled = line | {"limits": [*line["limits"], line["limits"][0]]}
    assert "twice" in message(tmp_path, [*records[:at], doubled, *records[at + 1 :]], data)


def test_what_a_case_knows_ends_with_it(made, tmp_path):
    """A tightening of the first case must not help the second: moved into the first case it is forgotten after it."""
    records, data = made["psi"]
    X, y, weights = data
    claim = records[0]
    problem = checker.Problem(claim, X.tolist(), y.tolist(), weights.tolist())
    checker.attach_space(problem, claim, iter(()))
    lines = iter(records[1:])
    bound = checker.Fraction(claim["bound"])
    regions = checker.root_regions(problem, bound, iter(records[1:3]))
    before = [(r.low, r.high, r.side) for r in regions]
    seen = []
    original = checker.close

    def close(problem, bound, record, regions):
        seen.append([(r.low, r.high, r.side) for r in regions])
        original(problem, bound, record, regions)

    checker.close = close
    try:
        checker.check_tree(problem, bound, lines)
    finally:
        checker.close = original
    first = next(record["split"] for record in records if "split" in record)
    sides = [state[first][2] for state in seen]
    assert sides[0] == -1
    assert sides[-1] == 1
    assert sides == sorted(sides)
    assert len(before) == len(seen[0])
