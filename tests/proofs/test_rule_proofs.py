"""Proofs about rules: written, checked, true by enumeration of all rules, and rejected once anything is changed."""

import copy
import gzip
import itertools
import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

from psilearn import L0BoostClassifier, LogicalBinarizer, LPBoostClassifier, check, prove, prove_monomial
from psilearn.proofs import check_rules
from psilearn.proofs.statement import ProofError

#: Forged files per kind; all of them were tried once with 2,000.
MUTATIONS = 150


def sample(n=60, d=4, k=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    cuts = [0.0] if k == 2 else [-0.4, 0.4]
    return X, np.digitize(X[:, 0] - (X[:, 1] > 0) + 0.5 * rng.normal(size=n), cuts), rng.uniform(0.2, 3.0, n)


def answers(n=60, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.integers(0, 2, (n, 5))
    noise = rng.random(n) < 0.15
    return A, np.where(noise, 1 - (A[:, 0] & A[:, 1]), A[:, 0] & A[:, 1]), rng.uniform(0.2, 3.0, n)


def records_of(path):
    with gzip.open(path, "rt") as file:
        return [json.loads(line) for line in file]


def written(path, records):
    with gzip.open(path, "wt") as file:
        file.writelines(json.dumps(record) + "\n" for record in records)


def all_rules(records, X):
    """(what it covers, class, order) of every rule of a claim, by enumeration."""
    problem = records[0]["problem"]
    X = np.asarray(X, dtype=float)
    true = [X[:, f] > v if kind == "above" else X[:, f] == v for f, kind, v in problem["attributes"]]
    literals = [*true, *(~column for column in true)]
    for order in range(problem["max_order"] + 1):
        for chosen in itertools.combinations(range(len(literals)), order):
            covered = np.all([literals[l] for l in chosen], axis=0) if chosen else np.ones(len(X), bool)
            for target in range(len(problem["classes"])):
                yield covered, target, order


CASES = {
    "LP-Boost": (LPBoostClassifier(max_order=2, nu=0.3, binarizer="support"), sample, 2, False),
    "LP-Boost, weights": (LPBoostClassifier(max_order=2, nu=0.7, binarizer="support"), sample, 2, True),
    "LP-Boost, nu = 1": (LPBoostClassifier(nu=1.0, binarizer="support"), sample, 2, True),
    "LP-Boost, 3 classes": (LPBoostClassifier(max_order=2, nu=0.4, binarizer="support"), sample, 3, False),
    "LP-Boost, short": (LPBoostClassifier(max_order=2, nu=0.4, max_rules=3), answers, 2, False),
    "L0-RBoost": (L0BoostClassifier(max_order=2), answers, 2, False),
    "L0-RBoost, whole": (L0BoostClassifier(max_order=2, costs=1.0), answers, 2, False),
    "L0-RBoost, weights": (L0BoostClassifier(max_order=1, binarizer="support"), sample, 2, True),
    "L0-RBoost, short": (L0BoostClassifier(max_order=2, max_rules=2), answers, 2, False),
    "L0-RBoost, points": (L0BoostClassifier(max_order=2, max_rules=2, points=3, costs=0.5), answers, 2, True),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("rules")


@pytest.fixture(scope="module")
def proofs(folder):
    """Every case with its fitted model, data, file and records; made once."""
    made = {}
    for number, (name, (model, data, k, has_weights)) in enumerate(CASES.items()):
        X, y, weight = data(k=k) if data is sample else data()
        weight = weight if has_weights else None
        path = folder / f"{number}.proof"
        prove(model, X, y, path, weight)
        made[name] = model, (X, y, weight), path, records_of(path)
    return made


@pytest.mark.parametrize("name", CASES)
def test_fits_are_proved(name, proofs):
    model, data, path, _ = proofs[name]
    answer = check(path, *data)
    assert answer.ok, answer.message
    if hasattr(model, "upper_bound_"):
        assert answer.objective == pytest.approx(model.objective_, abs=1e-8)
        assert answer.bound == pytest.approx(model.upper_bound_, abs=1e-6)
    else:
        assert answer.bound >= model.lower_bound_ - 1e-5 * abs(model.lower_bound_)
        assert answer.bound <= answer.objective


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith("LP")])
def test_soft_margins_lie_between_the_two_ends(name, proofs):
    """The program over all rules, solved by an engine that knows nothing of ours."""
    _, (X, y, weight), path, records = proofs[name]
    m = np.ones(len(y)) if weight is None else weight
    rules, k = list(all_rules(records, X)), len(records[0]["problem"]["classes"])
    n, D = len(y), 1.0 / (records[0]["problem"]["nu"] * m.sum())
    rows = []
    for i in range(n):
        for rival in set(range(k)) - {y[i]}:
            votes = [float(c[i]) * ((t == y[i]) - float(t == rival)) for c, t, _ in rules]
            slack = np.zeros(n)
            slack[i] = -1.0
            rows.append([-v for v in votes] + slack.tolist() + [1.0])
    cost = np.r_[np.zeros(len(rules)), D * m, -1.0]
    limits = [(0, None)] * (len(rules) + n) + [(None, None)]
    total = np.r_[np.ones(len(rules)), np.zeros(n + 1)][None]
    best = -linprog(cost, np.array(rows), np.zeros(len(rows)), total, [1.0], limits).fun
    answer = check(path, X, y, weight)
    assert answer.objective - 1e-9 <= best <= answer.bound + 1e-9


@pytest.mark.parametrize("most", [None, 2, 3])
def test_the_least_cost_lies_between_the_two_ends(most, tmp_path):
    """The integer program over all rules, on data small enough for an engine."""
    A, y, _ = answers(18, seed=3)
    path = tmp_path / "l0.proof"
    prove(L0BoostClassifier(max_order=1, costs=0.75, rho=0.3, max_rules=most), A[:, :3], y, path)
    rules, n, rho = list(all_rules(records_of(path), A[:, :3])), len(y), 0.3
    U = len(rules)
    h = np.array([np.where(covered, 2 * target - 1, 0) for covered, target, _ in rules]).T
    margin = np.hstack([(2 * y - 1)[:, None] * h, np.zeros((n, U)), (1 + rho) * np.eye(n)])
    used = np.hstack([-np.eye(U), np.eye(U), np.zeros((U, n))])
    total = np.r_[np.ones(U), np.zeros(U + n)][None]
    constraints = [LinearConstraint(margin, rho), LinearConstraint(used, 0), LinearConstraint(total, 1, 1)]
    constraints.append(LinearConstraint(np.r_[np.zeros(U), np.ones(U), np.zeros(n)][None], -np.inf, most or U))
    cost = np.r_[np.zeros(U), np.full(U, 0.75), np.ones(n)]
    best = milp(cost, constraints=constraints, integrality=np.r_[np.zeros(U), np.ones(U + n)], bounds=Bounds(0, 1)).fun
    answer = check(path, A[:, :3], y)
    assert answer.ok, answer.message
    assert answer.bound - 1e-7 <= best <= answer.objective + 1e-7


@pytest.mark.parametrize("max_order", [0, 1, 2, None])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_best_monomials_are_proved(max_order, is_weighted, tmp_path):
    A, y, weight = answers()
    weight = weight if is_weighted else None
    path = tmp_path / "monomial.proof"
    found = prove_monomial(A, y, path, weight, max_order)
    answer = check(path, A, y, weight)
    assert answer.ok, answer.message
    m = np.ones(len(y)) if weight is None else weight
    best = max(abs(float((m * (2 * y - 1))[covered].sum())) for covered, _, _ in all_rules(records_of(path), A))
    assert found.value == pytest.approx(best)
    assert answer.objective <= best * (1 + 1e-12)
    assert best <= answer.bound * (1 + 1e-12)
    assert answer.gap <= 2e-9


def greatest(literals, rows, max_order, costs):
    """The largest value of a conjunction, by trying all."""
    best = -math.inf
    for order in range(max_order + 1):
        for chosen in itertools.combinations(range(literals), order):
            mask = sum(1 << l for l in chosen)
            value = sum(v for which, v in rows.items() if which & mask == mask)
            best = max(best, value - costs[order])
    return best


@pytest.mark.parametrize("seed", range(40))
def test_the_search_finds_the_largest_value_to_the_last_unit(seed):
    rng = np.random.default_rng(seed)
    n_literals, max_order = int(rng.integers(1, 7)), int(rng.integers(0, 4))
    max_order = min(max_order, n_literals)
    costs = np.sort(rng.integers(0, 4, max_order + 1)).tolist()
    rows = {}
    for _ in range(int(rng.integers(1, 20))):
        rows[int(rng.integers(0, 1 << n_literals))] = int(rng.integers(-6, 7))
    best = greatest(n_literals, rows, max_order, costs)
    search = check_rules.Conjunctions(n_literals, max_order, costs, rows)
    assert search.at_most(best)
    assert not search.at_most(best - 1)


def changed_number(value, rng):
    if isinstance(value, float):
        return float(value * rng.choice([0.5, 0.999999, 1.000001, 2.0])) if rng.random() < 0.8 else float(rng.normal())
    step = int(rng.choice([-1, 1, 7, 1 << 20, 1 << 58]))
    return value + step if rng.random() < 0.8 else 2 * value


def numbers_in(record, path=()):
    items = record.items() if isinstance(record, dict) else enumerate(record) if isinstance(record, list) else ()
    for key, value in items:
        if type(value) in (int, float):
            yield (*path, key)
        yield from numbers_in(value, (*path, key))


def mutated(records, rng):
    """A copy with one number changed, one entry or line left out, or two swapped."""
    records = copy.deepcopy(records)
    places = [place for place in numbers_in(records) if "made_by" not in place and "data" not in place[:2]]
    place = places[rng.integers(len(places))]
    parent = records
    for key in place[:-1]:
        parent = parent[key]
    what = rng.random()
    if what < 0.7 or not isinstance(parent, list):
        parent[place[-1]] = changed_number(parent[place[-1]], rng)
    elif what < 0.85:
        parent.pop(place[-1])
    elif what < 0.95:
        other = int(rng.integers(len(parent)))
        parent[place[-1]], parent[other] = parent[other], parent[place[-1]]
    else:
        records.pop(int(rng.integers(len(records))))
    return records


class Truth:
    """What holds for a claim, found by enumeration; problems are told apart by what they state."""

    def __init__(self, X, y, weight):
        self.X, self.y, self.m = X, y, np.ones(len(y)) if weight is None else weight
        self.known = {}

    def allows(self, records):
        """Whether a forged file that is accepted states something true."""
        key = json.dumps(records[0]["problem"], sort_keys=True)
        if key not in self.known:
            self.known[key] = self._optimum(records)
        objective, bound, best = records[0]["objective"], records[0]["bound"], self.known[key]
        low, high = (bound, objective) if records[0]["problem"]["kind"] == "l0boost" else (objective, bound)
        return low <= best + 1e-9 <= high + 2e-9

    def _optimum(self, records):
        rules, y, m, problem = list(all_rules(records, self.X)), self.y, self.m, records[0]["problem"]
        U, n = len(rules), len(y)
        h = np.array([np.where(covered, 2 * target - 1, 0) for covered, target, _ in rules]).T * (2 * y - 1)[:, None]
        if problem["kind"] == "agreement":
            return float(np.max(m @ h))
        if problem["kind"] == "lpboost":
            D = 1.0 / (problem["nu"] * m.sum())
            rows = np.hstack([-h, -np.eye(n), np.ones((n, 1))])
            total = np.r_[np.ones(U), np.zeros(n + 1)][None]
            limits = [(0, None)] * (U + n) + [(None, None)]
            return -linprog(np.r_[np.zeros(U), D * m, -1.0], rows, np.zeros(n), total, [1.0], limits).fun
        rho, costs = problem["rho"], [problem["costs"][order] for _, _, order in rules]
        margin = np.hstack([h, np.zeros((n, U)), (1 + rho) * np.eye(n)])
        used = np.hstack([-np.eye(U), np.eye(U), np.zeros((U, n))])
        total = np.r_[np.ones(U), np.zeros(U + n)][None]
        constraints = [LinearConstraint(margin, rho), LinearConstraint(used, 0), LinearConstraint(total, 1, 1)]
        rules_used, most = np.r_[np.zeros(U), np.ones(U), np.zeros(n)][None], problem.get("max_rules", U)
        constraints.append(LinearConstraint(rules_used, -np.inf, most))
        integers = np.r_[np.zeros(U), np.ones(U + n)]
        return milp(
            np.r_[np.zeros(U), costs, m], constraints=constraints, integrality=integers, bounds=Bounds(0, 1)
        ).fun


def small_proofs(folder):
    A, y, weight = answers(14, seed=5)
    A = A[:, :2]
    prove_monomial(A, y, folder / "agreement.proof", weight, 2)
    prove(LPBoostClassifier(max_order=1, nu=0.5), A, y, folder / "lpboost.proof", weight)
    prove(L0BoostClassifier(max_order=1, costs=0.75), A, y, folder / "l0boost.proof", weight)
    prove(L0BoostClassifier(max_order=2, costs=0.1, rho=0.3, max_rules=2), A, y, folder / "short.proof", weight)
    return A, y, weight


@pytest.mark.parametrize("kind", ["agreement", "lpboost", "l0boost", "short"])
def test_forged_files_are_accepted_only_if_they_prove_their_claim(kind, tmp_path):
    mutations = int(os.environ.get("PSILEARN_MUTATIONS", MUTATIONS))
    data = small_proofs(tmp_path)
    records, rng, truth = records_of(tmp_path / f"{kind}.proof"), np.random.default_rng(0), Truth(*data)
    assert check(tmp_path / f"{kind}.proof", *data).ok
    assert truth.allows(records)
    rejected = 0
    for _ in range(mutations):
        forged = mutated(records, rng)
        written(tmp_path / "forged.proof", forged)
        if check(tmp_path / "forged.proof", *data).ok:
            assert truth.allows(forged), forged
        else:
            rejected += 1
    assert rejected >= mutations // 3


def test_a_proof_is_bound_to_its_data(proofs):
    _, (X, y, weight), path, _ = proofs["LP-Boost"]
    other = X.copy()
    other[3, 1] = np.nextafter(other[3, 1], 9.0)
    assert "other data" in check(path, other, y, weight).message
    assert not check(path, X, 1 - y, weight).ok
    assert not check(path, X, y, np.full(len(y), 2.0)).ok


def test_an_endless_search_is_refused(proofs, monkeypatch):
    _, data, path, _ = proofs["LP-Boost"]
    monkeypatch.setattr(check_rules, "MAX_WORK", 1000)
    assert "too long" in check(path, *data).message


def test_the_checkers_run_alone_from_a_folder(proofs, tmp_path):
    _, (X, y, _), path, _ = proofs["LP-Boost"]
    for name in ("check.py", "check_rules.py"):
        shutil.copy(Path(check_rules.__file__).with_name(name), tmp_path)
    lines = [",".join([*map(repr, row), str(label)]) for row, label in zip(X.tolist(), y.tolist())]
    (tmp_path / "data.csv").write_text("\n".join(["a,b,c,d,y", *lines]) + "\n")

    def run(script):
        command = [sys.executable, "-S", "-E", str(tmp_path / script), str(path), str(tmp_path / "data.csv")]
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)

    done = run("check_rules.py")
    assert done.returncode == 0, done.stderr + done.stdout
    assert "largest soft margin" in done.stdout
    other = run("check.py")
    assert other.returncode == 1
    assert "check_rules.py" in other.stdout


@pytest.mark.parametrize(
    ("model", "k", "words"),
    [
        (LPBoostClassifier(multiclass="one-vs-rest"), 3, "one problem per class"),
        (L0BoostClassifier(), 3, "prove each class against the others"),
    ],
)
def test_what_cannot_be_proved_is_refused(model, k, words, tmp_path):
    X, y, _ = sample(k=k)
    with pytest.raises(ProofError, match=words):
        prove(model, X, y, tmp_path / "none.proof")
    assert not (tmp_path / "none.proof").exists()


def test_categories_and_missing_values_are_refused(tmp_path):
    X, y, _ = sample()
    X[3, 0] = np.nan
    with pytest.raises(ProofError, match="LogicalBinarizer"):
        prove(LPBoostClassifier(), X, y, tmp_path / "none.proof")
    A = LogicalBinarizer(support=None, missing=True, max_cuts=8).fit(X, y).transform(X)
    prove(LPBoostClassifier(), A, y, tmp_path / "answers.proof")
    assert check(tmp_path / "answers.proof", A, y).ok


def test_one_class_against_the_others_is_proved(tmp_path):
    X, y, _ = sample(k=3)
    model = prove(L0BoostClassifier(binarizer="support"), X, y == 2, tmp_path / "one.proof")
    answer = check(tmp_path / "one.proof", X, y == 2)
    assert answer.ok, answer.message
    assert answer.bound >= model.lower_bound_ - 1e-5 * abs(model.lower_bound_)


def test_a_limit_on_the_number_of_rules_is_checked(proofs, tmp_path):
    _, data, _, records = proofs["L0-RBoost, short"]
    assert check(proofs["L0-RBoost, short"][2], *data).ok
    claim, evidence = records[0], records[2]
    fewer = {**claim, "problem": {**claim["problem"], "max_rules": 1}}
    without = {**claim, "problem": {k: v for k, v in claim["problem"].items() if k != "max_rules"}}
    for changed, says in (
        ([fewer, *records[1:]], "too many rules"),
        ([without, records[1], {**evidence, "theta": 0.5}, records[3]], "theta needs a limit"),
        ([claim, records[1], {**evidence, "theta": -0.5}, records[3]], "too small"),
        ([claim, records[1], {**evidence, "theta": evidence["theta"] + 0.5}, records[3]], "do not reach the bound"),
    ):
        written(tmp_path / "changed.proof", changed)
        assert says in check(tmp_path / "changed.proof", *data).message
