"""Attacks on the checker: mutated proofs. None may be accepted that does not prove its claim, none may hang or raise.

An accepted mutation is judged by :func:`is_refuted`, an evaluation of its claim from scratch (fractions, no code of the
checker): the claim is false if its point is worth more than it says, or if some point is worth less than its bound.
"""

import copy
import functools
import gzip
import json
import math
import random
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest

import psilearn
from psilearn import HardMargin, MarginClassifier, PsiClassifier, SVMClassifier, TruncatedHingeClassifier
from psilearn.proofs import check as checker
from psilearn.proofs import write

#: Mutations per proof here; 1000 per proof (7000 in all) take about two minutes and were run once.
MUTATIONS = 60

PROOFS = {
    "hinge": (SVMClassifier(C=2.0), 2),
    "elastic net": (SVMClassifier(penalty="elastic-net"), 2),
    "3 classes l1": (SVMClassifier(penalty="l1"), 3),
    "rbf": (SVMClassifier(kernel="rbf"), 2),
    "psi": (PsiClassifier(solver="mip", C=2.0), 2),
    "psi l1": (PsiClassifier(solver="mip", penalty="l1", C=2.0), 2),
    "3 classes": (TruncatedHingeClassifier(s=0.0, C=0.5, solver="patterns"), 3),
    "3 classes psi": (PsiClassifier(C=2.0, solver="patterns"), 3),
    "hard margin": (MarginClassifier(HardMargin(), solver="mip"), 2),
    "hard margin, large C": (MarginClassifier(HardMargin(), C=50.0, solver="mip"), 2),
}


@functools.cache
def honest(name, folder):
    estimator, k = PROOFS[name]
    rng = np.random.default_rng(3)
    X = rng.standard_normal((14, 2)).round(3)
    score = X[:, 0] + 0.5 * X[:, 1] + 0.7 * rng.standard_normal(14)
    y = np.digitize(score, [-0.4, 0.4] if k > 2 else [0.0])
    path = folder / f"{name}.proof"
    psilearn.prove(estimator, X, y, path)
    with gzip.open(path) as file:
        records = [json.loads(line) for line in file]
    return records, X, y


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("attacks")


# -- an evaluation of claims that shares nothing with the checker ------------------------------------------------------


def real(text):
    return Fraction(float(text))


class Claim:
    """The problem of a claim, evaluated straight from the definition on all given rows."""

    def __init__(self, record, X, y):
        p = record["problem"]
        self.p, self.X, self.y = p, X, [p["classes"].index(str(label)) for label in y.tolist()]
        self.unit = Fraction(2) ** record["units"]["coef"]
        self.k = len(p["classes"])

    def worth(self, W, b):
        """F at coefficients, a Fraction (rbf: a float, good to 1e-12)."""
        x = [[Fraction(v) for v in row] for row in self.X.tolist()]
        if self.p["kernel"]["kind"] == "rbf":
            gamma = float(self.p["kernel"]["gamma"])
            square = ((self.X[:, None] - self.X[None]) ** 2).sum(axis=2)
            x = [[Fraction(v) for v in row] for row in np.exp(-gamma * square).tolist()]
        scores = [[sum(w * v for w, v in zip(row, one)) + c for row, c in zip(W, b)] for one in x]
        total = self.penalty(W, x)
        for f, code in zip(scores, self.y):
            u = (2 * code - 1) * f[0] if self.k == 2 else f[code] - max(v for j, v in enumerate(f) if j != code)
            total += real(self.p["C"]) * real(self.p["class_weight"][code]) * self.loss(u, code)
        return total

    def penalty(self, W, x):
        l2 = real(self.p["penalty"]["l2"])
        if self.p["kernel"]["kind"] == "rbf":
            return l2 / 2 * sum(w * sum(a * v for a, v in zip(row, one)) for row in W for w, one in zip(row, x))
        l1 = self.p["penalty"]["l1"]
        weights = l1 if isinstance(l1, list) else [[l1] * len(row) for row in W]
        total = l2 / 2 * sum(w * w for row in W for w in row)
        for row, per_row in zip(W, weights):
            for w, weight in zip(row, per_row):
                total += abs(w) * real(weight) if weight is not None else (math.inf if w else 0)
        return total

    def loss(self, u, code):
        loss = self.p["loss"]
        if loss["cap"] is not None:
            t, cap = real(loss["t"]), real(loss["cap"][code])
            if u < t - real(loss["tolerance"]):
                return cap
            return min(cap, self.hinges(max(u, t), code))
        return self.hinges(u, code)

    def hinges(self, u, code):
        return sum(real(cs[code]) * max(real(t) - u, 0) for t, cs in self.p["loss"]["hinges"])


def is_refuted(records, truth, X, y):
    """Whether a claim is certainly false."""
    claim = Claim(records[0], X, y)
    slack = Fraction(1, 10**11) if claim.p["kernel"]["kind"] == "rbf" else 0
    objective, bound = real(records[0]["objective"]), real(records[0]["bound"])

    def stated(point, unit):
        return [[w * unit for w in row] for row in point["coef"]], [c * unit for c in point["intercept"]]

    W, b = stated(records[1], claim.unit)
    if claim.worth(W, b) > objective * (1 + slack):
        return True
    candidates = [(W, b), stated(truth[1], Fraction(2) ** truth[0]["units"]["coef"])]
    m = len(W)
    for level in (-1, 0, 1):
        candidates.append(([[Fraction(0)] * len(W[0])] * m, [Fraction(level)] if m == 1 else [Fraction(0)] * m))
    for factor in (Fraction(9, 10), Fraction(99, 100), Fraction(101, 100), Fraction(11, 10)):
        candidates.append(([[w * factor for w in row] for row in W], [c * factor for c in b]))
    return any(claim.worth(*point) < bound * (1 - slack) for point in candidates)


# -- mutations ---------------------------------------------------------------------------------------------------------


def places(value, path=()):
    """All places in a JSON value."""
    yield path
    if isinstance(value, dict):
        for key, part in value.items():
            yield from places(part, (*path, key))
    elif isinstance(value, list):
        for at, part in enumerate(value):
            yield from places(part, (*path, at))


def replaced(value, path, new):
    if not path:
        return new
    value = copy.copy(value)
    value[path[0]] = replaced(value[path[0]], path[1:], new)
    return value


def at(value, path):
    for key in path:
        value = value[key]
    return value


def other_number(value, rng):
    """A number near or far from one that is there."""
    if isinstance(value, bool) or value is None or not isinstance(value, (int, float, str)):
        return rng.choice([None, 0, 1, -1, "t", [], {}, 10**60])
    if isinstance(value, int):
        return rng.choice(
            [value + 1, value - 1, -value, 2 * value, value // 2, 0, value + rng.randrange(-100, 100), 10**130]
        )
    if isinstance(value, str):
        return rng.choice(["", "t", "<", ">", value + "x", "nan", "inf", 0.5])
    x = value
    near = [
        math.nextafter(x, math.inf),
        math.nextafter(x, -math.inf),
        x * (1 + 1e-9),
        x * (1 + 1e-3),
        -x,
        0.0,
        2 * x,
        1e300,
    ]
    return rng.choice([*near, math.nan, math.inf, -math.inf, str(x)])


def mutate(records, rng):
    """One to three random changes to the records of a proof."""
    records = list(records)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        kind, where = rng.randrange(9), rng.randrange(len(records))
        if kind <= 3:  # a number or another value
            options = [p for p in places(records[where]) if p and p[0] != "made_by"]
            if options:
                path = rng.choice(options)
                records[where] = replaced(records[where], path, other_number(at(records[where], path), rng))
        elif kind == 4:
            del records[where]
        elif kind == 5:
            records.insert(rng.randrange(len(records) + 1), records[where])
        elif kind == 6:
            other = rng.randrange(len(records))
            records[where], records[other] = records[other], records[where]
        elif kind == 7:  # claim more
            bound, objective = (
                (float(records[0][key]) for key in ("bound", "objective"))
                if {type(records[0].get(key)) for key in ("bound", "objective")} <= {int, float}
                else (0.0, 1.0)
            )
            step = 10.0 ** rng.uniform(-12, 0) * abs(objective - bound)
            key, value = rng.choice([("bound", bound + step), ("objective", objective - step)])
            records[0] = {**records[0], key: value}
        else:  # one sample's number in place of another's
            options = [p for p in places(records[where]) if isinstance(at(records[where], p), int)]
            if len(options) > 1:
                p, q = rng.sample(options, 2)
                new = at(records[where], q)
                records[where] = replaced(records[where], p, new)
        if not records:
            break
    return records


def outcome(path, X, y):
    """The verdict, from the function that never raises; unhashable or missing parts must be no exception."""
    return psilearn.check(path, X, y)


@pytest.mark.parametrize("name", PROOFS)
def test_no_mutation_is_accepted_that_does_not_prove_its_claim(name, folder):
    truth, X, y = honest(name, folder)
    assert outcome(folder / f"{name}.proof", X, y).ok
    rng = random.Random(name)
    path, accepted, rejected = folder / "mutant.proof", 0, 0
    for _ in range(MUTATIONS):
        records = mutate(truth, rng)
        write.write(path, records)
        found = outcome(path, X, y)
        accepted, rejected = accepted + found.ok, rejected + (not found.ok)
        if found.ok:
            assert not is_refuted(records, truth, X, y), records[0]
        else:
            assert found.message.startswith("rejected")
    assert rejected > MUTATIONS // 2


def test_the_judge_knows_a_false_claim(folder):
    truth, X, y = honest("psi", folder)
    assert not is_refuted(truth, truth, X, y)
    objective = float(truth[0]["objective"])
    for key, value in (("bound", objective * 1.001), ("objective", objective * 0.999)):
        assert is_refuted([{**truth[0], key: value}, *truth[1:]], truth, X, y)


def test_the_attacked_proofs_hold_these_rules(folder):
    rules = {key for name in PROOFS for record in honest(name, folder)[0] for key in record}
    assert {"leaf", "split", "cuts", "conflict", "weights", "floor"} <= rules
    assert any({"floor", "multipliers"} <= set(record) for record in honest("3 classes", folder)[0])


@pytest.mark.parametrize("name", ["psi", "psi l1", "hard margin", "hard margin, large C"])
def test_every_record_of_a_tree_is_needed(name, folder):
    truth, X, y = honest(name, folder)
    for where in range(len(truth)):
        write.write(folder / "less.proof", truth[:where] + truth[where + 1 :])
        assert not outcome(folder / "less.proof", X, y).ok, where


@pytest.mark.parametrize("name", ["hinge", "psi"])
def test_every_multiplier_counts(name, folder):
    """Leaves of a convex proof are exact to the last digit of the bound; moving weight between samples breaks them."""
    truth, X, y = honest(name, folder)
    for where, record in enumerate(truth):
        for entry in range(len(record.get("leaf", []))):
            changed = copy.deepcopy(truth)
            changed[where]["leaf"][entry][1] += 1
            write.write(folder / "off.proof", changed)
            found = outcome(folder / "off.proof", X, y)
            assert not found.ok
            assert "balanced" in found.message


def test_bytes_of_the_file_may_be_anything(folder):
    _, X, y = honest("psi", folder)
    whole = (folder / "psi.proof").read_bytes()
    rng = random.Random(7)
    path = folder / "bytes.proof"
    plain = gzip.decompress(whole)
    for size in (0, 1, 10, len(whole) // 2, len(whole) - 1, len(whole) - 4):
        path.write_bytes(whole[:size])
        assert not outcome(path, X, y).ok
    for _ in range(200):
        broken = bytearray(whole)
        broken[rng.randrange(12, len(whole))] ^= 1 << rng.randrange(8)
        path.write_bytes(bytes(broken))
        # the last byte of the compressed stream has bits that nobody reads
        assert not outcome(path, X, y).ok or gzip.decompress(bytes(broken)) == plain
    for text in (b"", b"\n", b"{}\n", b"[]\n", b"null\n", b"\xff\xfe\n", plain + b"\n", plain[:-1], plain + b"{}\n",
                 plain.replace(b'"end"', b'"End"'), plain.replace(b"{", b'{"bound":"0x0.0p+0",', 1)):  # fmt: skip
        path.write_bytes(gzip.compress(text))
        assert not outcome(path, X, y).ok or text == plain[:-1]
    path.write_bytes(plain)
    assert not outcome(path, X, y).ok
    assert not outcome(folder / "nowhere.proof", X, y).ok
    assert not outcome(folder, X, y).ok


def test_hostile_files_cost_little_memory(folder):
    truth, X, y = honest("psi", folder)
    head = "\n".join(json.dumps(record) for record in truth[:2]).encode() + b"\n"
    bombs = {
        "one long line": [b"0" * (1 << 20)] * 300,
        "a deep list": [head, b"[" * (1 << 15)],
        "deep objects": [head, b'{"leaf":' * 4000],
        "a long number": [head, b'{"leaf":[[0,' + b"9" * 60000 + b"]]}\n"],
        "many splits": [head, *[b'{"split":[0,%d]}\n' % (1 << (380 - i)) for i in range(300)]],
        "many leaves": [head, b'{"leaf":[]}\n' * 100000],
        "a huge exponent": [head.replace(b'"multiplier": -', b'"multiplier": -9')],
        "not a number": [head, b'{"leaf":[[0,NaN]]}\n'],
        "infinite": [head, b'{"leaf":[[0,1e999]]}\n'],
        "negative places": [head, b'{"leaf":[[-1,5],[-2,5]]}\n'],
        "true for one": [head, b'{"leaf":[[true,0]]}\n'],
    }
    for name, parts in bombs.items():
        with gzip.open(folder / "bomb.proof", "wb") as file:
            for part in parts:
                file.write(part)
        tracemalloc.start()
        found = outcome(folder / "bomb.proof", X, y)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert not found.ok, name
        assert found.message.startswith("rejected"), name
        assert peak < 30e6, (name, peak)


def test_depth_is_limited(folder, monkeypatch):
    _, X, y = honest("psi", folder)
    monkeypatch.setattr(checker, "MAX_CHANGES", 3)
    found = outcome(folder / "psi.proof", X, y)
    assert not found.ok
    assert "deep" in found.message
    monkeypatch.setattr(checker, "MAX_RECORDS", 3)
    assert not outcome(folder / "psi.proof", X, y).ok
