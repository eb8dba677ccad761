"""The fast check: rounding errors are bounded, and it accepts what the exact one accepts, mutations included."""

import math
import os
import random
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from proofs.test_attacks import PROOFS, folder, honest, mutate  # noqa: F401  the fixture

import psilearn
from psilearn import HardMargin, MarginClassifier, PsiClassifier, TruncatedHingeClassifier
from psilearn.proofs import check as exact
from psilearn.proofs import fast, write
from psilearn.proofs.statement import as_lists, state

#: Mutations of each proof; 1,000 of each were tried once.
MUTATIONS = int(os.environ.get("PSILEARN_MUTATIONS", "40"))


@pytest.mark.parametrize("name", PROOFS)
def test_the_same_files_are_accepted(name, folder):  # noqa: F811
    truth, X, y = honest(name, folder)
    data = as_lists(X, y)
    held = fast.check_arrays(folder / f"{name}.proof", *data)
    assert held == exact.check_arrays(folder / f"{name}.proof", *data)
    assert held[0]
    rng, path, accepted = random.Random(f"fast {name}"), folder / "fast.proof", 0
    for _ in range(MUTATIONS):
        write.write(path, mutate(truth, rng))
        mine, theirs = fast.check_arrays(path, *data), exact.check_arrays(path, *data)
        assert mine[0] is theirs[0], (mine, theirs)
        accepted += mine[0]
    assert accepted < MUTATIONS


@pytest.mark.parametrize("name", ["psi", "psi l1", "hard margin", "hard margin, large C", "3 classes psi"])
def test_a_bound_that_is_a_little_too_high_is_left_to_exact_arithmetic(name, folder):  # noqa: F811
    """Claims that hold by less than rounding are decided exactly: those within a few units in the last place."""
    truth, X, y = honest(name, folder)
    data, path = as_lists(X, y), folder / "ulp.proof"
    bound = float(truth[0]["bound"])
    for step in (1e-16, 1e-15, 1e-13, 1e-11, 1e-9, 3e-9, 1e-8, 1e-6):
        write.write(path, [{**truth[0], "bound": bound * (1 + step)}, *truth[1:]])
        assert fast.check_arrays(path, *data)[0] is exact.check_arrays(path, *data)[0], step


CASES = {
    "psi": (PsiClassifier(a=2.0, C=2.0), 2),
    "truncated": (TruncatedHingeClassifier(s=-0.5), 2),
    "hard margin": (MarginClassifier(HardMargin(), C=1e4), 2),
    "l1": (PsiClassifier(penalty="l1"), 2),
    "rbf": (PsiClassifier(kernel="rbf"), 2),
    "poly": (PsiClassifier(kernel="poly", degree=3, coef0=1.0), 2),
    "weights": (PsiClassifier(class_weight={0: 1e-7, 1: 1e5}), 2),
    "3 classes": (TruncatedHingeClassifier(s=0.0, solver="dca"), 3),
}


def random_interval(search, i, rng):
    """Give a sample an interval around, above or below t, maybe without an end."""
    ends = sorted(search.jump + int(x * 2**30) for x in rng.normal(0.0, 2.0, 2))
    low = [None, ends[0], search.jump][rng.integers(3)]
    high = [None, ends[1], search.jump][rng.integers(3)]
    if low is not None and high is not None and low >= high:
        high = low + 1 + int(rng.integers(1 << 30))
    search._set(i, low, high)


def random_multipliers(search, rng):
    """Balanced multipliers that have a dual value on the intervals, as entries of a record."""
    stated = search.problem
    size = 2 ** int(rng.integers(20, 60))
    a = [int(x * size) for x in rng.normal(size=stated.n)]
    if stated.k == 2:
        a = [max(x, 0) if high is None else x for x, high in zip(a, search.high)]
        a = [min(x, 0) if low is None else x for x, low in zip(a, search.low)]
        free = [i for i in range(stated.n) if search.low[i] is not None and search.high[i] is not None]
        if not free:
            return []
        off = sum(s * x for s, x in zip(stated.sign, a))
        a[free[0]] -= stated.sign[free[0]] * off
        return [[i, x] for i, x in enumerate(a) if x]
    entries = []
    for _ in range(6):  # cycles of classes: i of c against r, j of r against c
        i, j = rng.integers(stated.n, size=2).tolist()
        c, r = stated.code[i], stated.code[j]
        if c != r and search.low[i] is not None and search.low[j] is not None:
            x = abs(a[i])
            entries += [[i, r, x], [j, c, x]]
    return entries


@pytest.mark.parametrize("name", CASES)
def test_values_are_lower_bounds_and_close(name):
    model, k = CASES[name]
    rng = np.random.default_rng(7)
    X = rng.normal(size=(17, 3)) * 10.0 ** rng.integers(-3, 4, 3)
    y = rng.integers(0, k, 17)
    y[:k] = range(k)
    problem = state(model.set_params(time_limit=1.0).fit(X, y), X, y).exact
    checked = 0
    for _ in range(150):
        mine = fast.Search(problem, Fraction(1), -40, -30)
        for i in range(problem.n):
            random_interval(mine, i, rng)
        entries = random_multipliers(mine, rng)
        conflicts = [rng.choice(problem.n, 3, replace=False).tolist() for _ in range(2)]
        mine.conflicts = conflicts
        record = {"multipliers": entries, "weights": [[0, int(rng.integers(1 << 40))], [1, 5]]}
        total, relief = mine._weights(record)
        spared = np.zeros((1, problem.n))
        for i, weight in relief.items():
            spared[0, i] = math.ldexp(weight, mine.e)
        try:
            value = mine.dual_value(record)
        except exact.Rejected:
            continue
        alpha, R, _ = mine._numbers(entries)
        ends = [part[None, :] for part in (mine.lows, mine.highs, mine.sides)]
        gained = np.array([math.ldexp(total, mine.e)])
        bound = mine.values.least(alpha[None, :], None if R is None else R[None], *ends, spared, gained)[0]
        assert Fraction(bound) <= value
        size = np.abs(alpha).sum() * mine.values.unit * (1.0 + np.abs(ends[0][np.isfinite(ends[0])]).max(initial=0.0))
        scale = float(np.abs(mine.values.cap).sum()) + size + float(gained[0]) + abs(float(value)) + size**2 * 1e8
        assert bound >= float(value) - 1e-9 * scale
        checked += 1
    assert checked >= 40


def holds(search, i, gap, same):
    """Whether the exact rule accepts."""
    try:
        search._neighbours(i, gap, same)
    except exact.Rejected:
        return False
    return True


NEIGHBOURS = {**CASES, "l1 on a grid": (PsiClassifier(penalty="l1"), 2), "grid": (PsiClassifier(), 2)}


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_neighbours_hold_a_margin_only_where_the_exact_rule_says_so(name):
    """Margins around the largest that the exact rule accepts, with samples given up and believed at random."""
    model, k = NEIGHBOURS[name]
    rng = np.random.default_rng(3)
    X = rng.normal(size=(25, 2)).round(1 if "grid" in name else 9)
    y = rng.integers(0, k, 25)
    y[:k] = range(k)
    weights = 10.0 ** rng.uniform(-6, 6, 25) if name == "weights" else None
    problem = state(model.set_params(time_limit=1.0).fit(X, y, weights), X, y, weights).exact
    decided = accepted = 0
    for _ in range(60):
        bound = Fraction(float(rng.uniform(0.1, 0.6) * sum(map(float, problem.cost))))
        mine, theirs = fast.Search(problem, bound, -40, -30), exact.Search(problem, bound, -40, -30)
        for j in rng.choice(problem.n, 6, replace=False).tolist():
            ends = (mine.jump, None) if rng.random() < 0.4 else (None, mine.jump)
            mine._set(j, *ends)
            theirs._set(j, *ends)
        i, same = int(rng.integers(problem.n)), bool(k > 2 or rng.random() < 0.5)

        low, high = Fraction(0), Fraction(10**6)
        for _ in range(70):
            middle = (low + high) / 2
            low, high = (low, middle) if holds(theirs, i, middle, same) else (middle, high)
        for factor in (0.0, 0.5, 1 - 1e-9, 1 - 2e-16, 1.0, 1 + 2e-16, 1 + 1e-9, 1.1, 3.0):
            gap = high * Fraction(factor)
            is_held = holds(theirs, i, gap, same)
            assert is_held or not mine._are_near(i, gap, same)
            decided += is_held and mine._are_near(i, gap, same)
            accepted += is_held
    assert decided > 0.3 * accepted


def test_ends_that_are_no_doubles_are_rounded_outwards_and_remembered(folder):  # noqa: F811
    _, X, y = honest("psi", folder)
    problem = state(PsiClassifier(solver="mip").fit(X, y), X, y).exact
    search = fast.Search(problem, Fraction(1), -40, -70)
    c = (1 << 70) + 1
    search._set(0, -c, c)
    assert search.lows[0] == math.nextafter(-1.0, -math.inf)
    assert search.highs[0] == math.nextafter(1.0, math.inf)
    search._claim(search._numbers([]))
    with pytest.raises(exact.Rejected):
        search._settle()
    assert search.judge.low[0] == -c
    assert search.judge.high[0] == c


def test_next_to_nothing_is_left_to_exact_arithmetic(folder, monkeypatch):  # noqa: F811
    left, decide = [], fast.Search._decide
    monkeypatch.setattr(fast.Search, "_decide", lambda *arguments: (left.append(1), decide(*arguments)))
    for name in ("psi", "psi l1", "hard margin", "hard margin, large C"):
        _, X, y = honest(name, folder)
        assert fast.check_arrays(folder / f"{name}.proof", *as_lists(X, y))[0]
        assert len(left) <= 2, name
        left.clear()


def test_lines_are_read_as_the_exact_check_reads_them():
    for line in (b'{"a": 1}', b'{"a": [1, -2.5e3, "t"]}', b'{"a": 1' + b"0" * 350 + b"}"):
        assert fast.parse(line) == exact.parse(line)
    for line in (b"[1]", b'{"a": 1, "a": 2}', b'{"a": NaN}', b'{"a": ' + b"9" * 500 + b"}", b'{"a": Infinity}'):
        with pytest.raises(exact.Rejected):
            fast.parse(line)


def test_it_is_asked_for_by_name(folder):  # noqa: F811
    _, X, y = honest("psi", folder)
    path, table = folder / "psi.proof", folder / "data.csv"
    rows = [",".join(map(repr, [*row, label])) for row, label in zip(X.tolist(), y.tolist())]
    table.write_text("\n".join(["x0,x1,y", *rows]) + "\n")
    assert psilearn.check(path, X, y, fast=True) == psilearn.check(path, X, y)
    for command in (["psilearn.proofs.fast"], ["psilearn", "check", "--fast"]):
        done = subprocess.run([sys.executable, "-m", *command, path, table], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert "proved in exact arithmetic" in done.stdout
    code = "import sys, psilearn.proofs.check; sys.exit('psilearn.proofs.fast' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
