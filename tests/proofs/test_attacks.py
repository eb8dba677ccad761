"""The checker under attack: mutated proofs are rejected, or what they claim is still true; nothing else ever happens.

``PYTHONPATH=tests python tests/proofs/test_attacks.py 5000`` runs more of them.
"""

import copy
import gzip
import json
import random
import sys
from pathlib import Path

import numpy as np
import pytest

from psilearn import PsiClassifier, SVMClassifier
from psilearn.proofs import check as checker
from psilearn.proofs.write import prove

from oracles.proof_files import read_records, stated_value, two_classes, write_records

MUTATIONS = 150  # per proof, in the test suite
ODD = [
    None,
    True,
    "1",
    [],
    {},
    -1,
    0,
    1,
    2**70,
    10**300,
    -0.5,
    1e308,
    5e-324,
    float("nan"),
    float("inf"),
    [[1]],
    "x" * 99,
]


def small_proofs(folder):
    """Proofs of tiny problems whose truth a grid can tell: a convex one, and trees for both norms."""
    X, y, weights = two_classes(14, 1, seed=1)
    fits = {
        "svm": SVMClassifier(C=0.5),
        "psi": PsiClassifier(C=0.8, solver="mip"),
        "psi-l1": PsiClassifier(C=0.8, penalty="l1", solver="mip"),
    }
    for name, estimator in fits.items():
        prove(estimator, X, y, folder / name, weights)
    return [folder / name for name in fits], (X, y, weights)


@pytest.fixture(scope="module")
def proofs(tmp_path_factory):
    return small_proofs(tmp_path_factory.mktemp("proofs"))


def places(value, path=()):
    """Yield the path to every entry inside a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from places(inner, (*path, key))


def put(record, path, value):
    """Set an entry."""
    for key in path[:-1]:
        record = record[key]
    record[path[-1]] = value


def get(record, path):
    """Read an entry."""
    for key in path:
        record = record[key]
    return record


def changed_number(rng, value):
    """Return a number near another: one digit, the last bit, the sign, a factor."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return rng.choice(ODD)
    if isinstance(value, int):
        return rng.choice([value + 1, value - 1, -value, value * 2, value + 10 ** rng.randrange(12), value >> 1])
    near = [float(np.nextafter(value, 9e9)), float(np.nextafter(value, -9e9)), -value, value * 1.1, value * 0.9]
    return rng.choice([*near, value * (1 + 1e-9), value * (1 - 1e-9), value + 1.0, int(value)])


def mutate(rng, records):
    """Return a mutated copy of the lines of a proof."""
    records = copy.deepcopy(records)
    at = rng.randrange(len(records))
    kind = rng.choice(["number", "number", "number", "odd", "drop", "double", "exchange", "inside", "key", "claim"])
    if kind in ("number", "odd", "claim"):
        at = 0 if kind == "claim" else at
        path = rng.choice(list(places(records[at])))
        old = get(records[at], path)
        put(records[at], path, rng.choice(ODD) if kind == "odd" else changed_number(rng, old))
    elif kind == "drop":
        del records[at]
    elif kind == "double":
        records.insert(at, copy.deepcopy(records[at]))
    elif kind == "exchange":
        other = rng.randrange(len(records))
        records[at], records[other] = records[other], records[at]
    elif kind == "inside":
        lists = [p for p in places(records[at]) if isinstance(get(records[at], p), list)]
        inner = get(records[at], rng.choice(lists)) if lists else []
        if len(inner) > 1:
            i, j = rng.sample(range(len(inner)), 2)
            inner[i], inner[j] = inner[j], inner[i]
    else:
        key = rng.choice(list(records[at]))
        records[at][rng.choice(["leaf", "split", "empty", "at", "low", key + "x"])] = records[at].pop(key)
    return records


def is_true(claim, data):
    """Whether a claim holds on a grid of all coefficients that matter, in floating point."""
    X, y, weights = data
    w, b = np.array(claim["coef"][0], dtype=float), float(claim["intercept"][0])
    reached = stated_value(claim, X, y, weights, w, b)
    if abs(reached - claim["objective"]) > 1e-9 * abs(reached):
        return False
    slopes = np.linspace(-6.0, 6.0, 41)
    # For a given slope the best intercept puts some sample at a breakpoint of its loss.
    at = [t for t, _ in claim["loss"]["hinges"]] + ([claim["loss"]["t"]] if claim["loss"]["t"] is not None else [])
    for slope in [*slopes, float(w[0])]:
        for x, sign in ((x, s) for x in X[:, 0] for s in (-1.0, 1.0)):
            for t in at:
                value = stated_value(claim, X, y, weights, np.array([slope]), sign * t - slope * x + sign * 1e-12)
                if value < claim["bound"] - 1e-9:
                    return False
    return True


def attack(path, data, count, seed):
    """Check mutated proofs; returns (accepted, rejected)."""
    rng = random.Random(seed)
    records = read_records(path)
    victim = path.with_suffix(".mutant")
    accepted = 0
    for _ in range(count):
        mutant = mutate(rng, records)
        write_records(victim, mutant)
        ok, *_, message = verdict(victim, data)
        assert message.startswith("proved" if ok else "rejected")
        if ok and json.dumps(mutant[0]) != json.dumps(records[0]):
            assert is_true(mutant[0], data), mutant[0]
        accepted += ok
    return accepted, count - accepted


def test_mutated_proofs_prove_what_they_claim_or_are_rejected(proofs):
    paths, data = proofs
    for seed, path in enumerate(paths):
        assert verdict(path, data)[0]
        accepted, rejected = attack(path, data, MUTATIONS, seed)
        assert rejected > 0.5 * MUTATIONS
        assert accepted < 0.5 * MUTATIONS


def verdict(path, data):
    """Check a proof against arrays."""
    return checker.check_arrays(path, *(part.tolist() for part in data))


def test_dropped_leaves_and_doubled_splits_are_rejected(proofs, tmp_path):
    paths, data = proofs
    records = read_records(paths[1])
    splits = [at for at, record in enumerate(records) if "split" in record]
    leaves = [at for at, record in enumerate(records) if "leaf" in record]
    assert splits
    assert len(leaves) == len(splits) + 1
    for at in leaves:
        write_records(tmp_path / "a", records[:at] + records[at + 1 :])
        assert not verdict(tmp_path / "a", data)[0]
    for at in splits:
        write_records(tmp_path / "a", [*records[:at], records[at], *records[at:]])
        assert not verdict(tmp_path / "a", data)[0]


def test_a_leaf_of_one_case_does_not_close_the_other(proofs, tmp_path):
    """Every leaf is tried in every other place: a proof that is accepted must have strong leaves only."""
    paths, data = proofs
    records = read_records(paths[1])
    leaves = [at for at, record in enumerate(records) if "leaf" in record]
    refused = 0
    for at in leaves[:8]:
        for other in leaves[:8]:
            write_records(tmp_path / "a", [*records[:at], records[other], *records[at + 1 :]])
            refused += not verdict(tmp_path / "a", data)[0]
    assert refused > 0


def test_damaged_files_are_rejected(proofs, tmp_path):
    paths, data = proofs
    content = paths[1].read_bytes()
    rng = random.Random(0)
    for _ in range(150):
        damaged = bytearray(content)
        damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
        (tmp_path / "a").write_bytes(damaged)
        *_, message = verdict(tmp_path / "a", data)
        assert message.startswith("rejected") or gzip.decompress(bytes(damaged)) == gzip.decompress(content)
        (tmp_path / "a").write_bytes(content[: rng.randrange(len(content))])
        assert verdict(tmp_path / "a", data)[3].startswith("rejected")


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\n",
        b"[]\n",
        b"1\n",
        b"null\n",
        b"{}\n",
        b"\xff\xfe\n",
        b'{"format": "psilearn-proof", "version": 1}\n',
        b'{"a": ' + b"[" * 200_000 + b"]" * 200_000 + b"}\n",
        b'{"a": ' + b'{"a": ' * 200_000 + b"1" + b"}" * 200_000 + b"}\n",
        b'{"a": ' + b"9" * 100_000 + b"}\n",
        b'{"a": 1e999}\n',
        b'{"a": NaN}\n',
        b'{"a": -Infinity}\n',
    ],
    ids=range(14),
)
def test_hostile_lines_are_rejected(text, proofs, tmp_path):
    paths, data = proofs
    with gzip.open(tmp_path / "a", "wb") as file:
        file.write(text)
    assert verdict(tmp_path / "a", data)[3].startswith("rejected")
    records = gzip.decompress(paths[0].read_bytes())
    with gzip.open(tmp_path / "a", "wb") as file:
        file.write(records + text)
    ok, *_, message = verdict(tmp_path / "a", data)
    assert message.startswith("rejected") or (ok and text == b"")


def test_a_gzip_bomb_does_not_fill_the_memory(proofs, tmp_path):
    """A line of 400 MB is given up after its limit, and memory stays below a quarter of it."""
    import tracemalloc

    _, data = proofs
    with gzip.open(tmp_path / "a", "wb", compresslevel=1) as file:
        file.write(b'{"a": "')
        for _ in range(400):
            file.write(b"0" * 2**20)
    tracemalloc.start()
    assert "too long" in verdict(tmp_path / "a", data)[3]
    assert tracemalloc.get_traced_memory()[1] < 100 * 2**20
    tracemalloc.stop()


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        files, samples = small_proofs(Path(name))
        each = int(sys.argv[1]) // len(files) + 1
        for number, file in enumerate(files):
            print(file.name, "accepted, rejected:", attack(file, samples, each, 1000 + number))
