"""Each rule of the checker by itself: what it must accept, and a forged proof that only that rule stops."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from psilearn.proofs import check as checker
from psilearn.proofs import write
from psilearn.proofs.statement import as_lists


def claim_of(X, y, *, hinges=((1.0, 1.0),), t=None, cap=None, tolerance=0.0, l2=1.0, l1=0.0, C=1.0, kernel=None):
    """A claim's first record on data; hinges are pairs (t_k, c_k)."""
    k = int(max(y)) + 1
    X, y, weights = as_lists(np.asarray(X, dtype=float), y)
    loss = {
        "hinges": [[float(a), [float(c)] * k] for a, c in hinges],
        "t": None if t is None else float(t),
        "cap": None if cap is None else [float(cap)] * k,
        "tolerance": float(tolerance),
    }
    problem = {
        "classes": [str(j) for j in range(k)],
        "loss": loss,
        "penalty": {"l2": float(l2), "l1": float(l1)},
        "C": float(C),
        "class_weight": [1.0] * k,
        "kernel": kernel or {"kind": "linear"},
    }
    digest = checker.data_hash(X, [str(label) for label in y], weights)
    claim = {"format": "psilearn proof", "version": 1, "problem": problem, "data": {"sha256": digest}}
    return claim, (X, y, weights)


def verdict(tmp_path, claim, data, evidence, objective, bound, point=None, unit=0):
    """Check a file of these records; the point is zero unless one is given."""
    k, d = len(claim["problem"]["classes"]), len(data[0][0])
    m = 1 if k == 2 else k
    point = point or {"coef": [[0] * d] * m, "intercept": [0] * m}
    units = {"coef": 0, "multiplier": unit, "margin": -4}
    head = {**claim, "units": units, "objective": float(objective), "bound": float(bound)}
    records = [head, point, *evidence]
    write.write(tmp_path / "file.proof", [*records, {"end": len(records)}])
    ok, _, _, message = checker.check_arrays(tmp_path / "file.proof", *data)
    return ok, message


def search_of(claim, data, bound, margin=-4):
    return checker.Search(checker.Problem(claim, *data), Fraction(bound), 0, margin)


SAME_PLACE = ([[1.0], [1.0]], [0, 1])  # f(x) = 0 is best: each pays g(0)


def test_weak_duality_is_accepted_and_not_a_unit_more(tmp_path):
    claim, data = claim_of(*SAME_PLACE)
    assert verdict(tmp_path, claim, data, [{"leaf": [[0, 1], [1, 1]]}], 2.0, 2.0)[0]
    ok, message = verdict(tmp_path, claim, data, [{"leaf": [[0, 1], [1, 1]]}], 3.0, math.nextafter(2.0, 3.0))
    assert not ok
    assert "does not reach the bound" in message


def test_the_verdict_names_the_problem(tmp_path):
    """A proof is about the problem in the file; the verdict must say which one that is."""
    claim, data = claim_of(*SAME_PLACE, hinges=((1.0, 0.5),), t=0.25, cap=2.0, tolerance=0.125, C=3.0, l2=0.5)
    ok, message = verdict(tmp_path, claim, data, [{"leaf": []}], 20.0, 0.0)
    assert ok
    for part in ("0.5 (1.0 - u)_+", "2.0 for u < 0.25", "at most 0.125", "C = 3.0", "l2 0.5", "linear"):
        assert part in message
    kernel = {"kind": "precomputed", "ridge": 0.75}
    claim, data = claim_of([[1.0, 1.0]] * 2, [0, 1], kernel=kernel)
    assert "ridge 0.75" in verdict(tmp_path, claim, data, [{"leaf": []}], 2.0, 0.0)[1]


def test_kernels_take_no_l1_penalty(tmp_path):
    for weight in (1.0, None):
        claim, data = claim_of(*SAME_PLACE, kernel={"kind": "rbf", "gamma": 1.0})
        claim["problem"]["penalty"]["l1"] = weight
        ok, message = verdict(tmp_path, claim, data, [{"leaf": []}], 2.0, 0.0)
        assert not ok
        assert "l2 penalty alone" in message


def test_multipliers_above_the_slope_of_the_loss_prove_nothing(tmp_path):
    claim, data = claim_of(*SAME_PLACE)
    ok, message = verdict(tmp_path, claim, data, [{"leaf": [[0, 5], [1, 5]]}], 20.0, 10.0)
    assert not ok
    assert "too large" in message


def test_negative_multipliers_of_unbounded_margins_prove_nothing(tmp_path):
    claim, data = claim_of(*SAME_PLACE, hinges=((-1.0, 1.0),))
    ok, message = verdict(tmp_path, claim, data, [{"leaf": [[0, -5], [1, -5]]}], 20.0, 10.0)
    assert not ok
    assert "upper end" in message


def test_unbalanced_multipliers_prove_nothing(tmp_path):
    claim, data = claim_of([[0.0], [0.0], [0.0]], [0, 1, 1])
    assert verdict(tmp_path, claim, data, [{"leaf": [[0, 1], [1, 1]]}], 3.0, 2.0)[0]
    ok, message = verdict(tmp_path, claim, data, [{"leaf": [[0, 1], [1, 2]]}], 3.0, 3.0)
    assert not ok
    assert "balanced" in message


def test_multipliers_beyond_an_l1_penalty_prove_nothing(tmp_path):
    claim, data = claim_of([[-3.0], [3.0]], [0, 1], l2=0.0, l1=1.0)
    # f(x) = x / 3 pays 1/3 in all; v = 6 would need |v| <= 1
    ok, message = verdict(tmp_path, claim, data, [{"leaf": [[0, 1], [1, 1]]}], 2.0, 2.0)
    assert not ok
    assert "l1" in message
    assert verdict(tmp_path, claim, data, [{"leaf": [[0, 1], [1, 1]]}], 2.0, 0.25, unit=-3)[0]


def test_multipliers_between_classes_must_not_be_negative(tmp_path):
    """All samples at zero, 3 + 1 + 1 of them: always class 0 pays 4, and balanced signed multipliers would prove 5."""
    claim, data = claim_of([[0.0]] * 5, [0, 0, 0, 1, 2])
    # equal rows are merged: sample 0 has cost 3, samples 1 and 2 cost 1
    forged = [[0, 1, 1], [0, 2, 2], [1, 0, 2], [1, 2, -1], [2, 0, 1]]
    point = {"coef": [[0]] * 3, "intercept": [2, -1, -1]}
    ok, message = verdict(tmp_path, claim, data, [{"leaf": forged}], 9.0, 5.0, point=point)
    assert not ok
    assert "negative" in message
    honest = [[0, 1, 1], [0, 2, 1], [1, 0, 1], [2, 0, 1]]
    assert verdict(tmp_path, claim, data, [{"leaf": honest}], 9.0, 4.0, point=point)[0]


def test_functions_that_do_not_sum_to_zero_are_no_point(tmp_path):
    """Under an l1 penalty they can be cheaper: |1| against |2/3| + |1/3| + |1/3|."""
    claim, data = claim_of([[1.0], [-1.0], [-1.5]], [0, 1, 2], l2=0.0, l1=1.0)
    for intercept, coef in (([0, 0, 0], [[1], [0], [0]]), ([1, 0, 0], [[1], [-1], [0]])):
        point = {"coef": coef, "intercept": intercept}
        ok, message = verdict(tmp_path, claim, data, [{"leaf": []}], 100.0, 0.0, point=point)
        assert not ok
        assert "sum to zero" in message
    assert verdict(
        tmp_path, claim, data, [{"leaf": []}], 100.0, 0.0, point={"coef": [[1], [-1], [0]], "intercept": [0] * 3}
    )[0]


def test_an_indefinite_gram_matrix_has_no_bound(tmp_path):
    kernel = {"kind": "precomputed", "ridge": 0.0}
    for gram, is_definite in (
        ([[1.0, 2.0], [2.0, 1.0]], False),
        ([[2.0, 1.0], [1.0, 2.0]], True),
        ([[1.0, 1.0]] * 2, False),
    ):
        claim, data = claim_of(gram, [0, 1], kernel=kernel)
        ok, message = verdict(tmp_path, claim, data, [{"leaf": []}], 2.0, 0.0)
        assert ok is is_definite
        assert ok or "positive definite" in message


PSI = {"hinges": ((1.0, 1.0),), "t": 0.0, "cap": 2.0}


def test_both_children_of_a_split_must_be_closed(tmp_path):
    """Two pairs at one place: f = 0 pays 4 of 8; a node where sample 0 is given up and 1 is not costs 2 at least."""
    claim, data = claim_of([[0.0], [0.0]], [0, 1], **PSI, C=2.0)
    low, high = {"leaf": []}, {"leaf": []}
    assert verdict(tmp_path, claim, data, [{"split": [0, "t"]}, low, high], 4.0, 0.0)[0]
    assert not verdict(tmp_path, claim, data, [{"split": [0, "t"]}, low], 4.0, 0.0)[0]
    assert not verdict(tmp_path, claim, data, [{"split": [0, "t"]}, low, high, high], 4.0, 0.0)[0]
    ok, message = verdict(tmp_path, claim, data, [{"split": [0, "t"]}, low, high], 4.0, 4.0)
    assert not ok  # the lower child reaches 4, the upper one does not
    assert "leaf" in message


def test_intervals_go_back_after_a_child_is_closed():
    claim, data = claim_of([[0.0], [1.0], [2.0]], [0, 1, 0], **PSI)
    search = search_of(claim, data, 0)
    before = [*search.low], [*search.high], search.total
    search.split({"split": [0, "t"]})
    search.split({"split": [1, 8]})
    assert search.high[:2] == [search.jump, search.jump + (8 << (search.margin - search.um))]
    search.leaf({"leaf": []})
    assert (search.low[1], search.high[1]) == (8 << (search.margin - search.um), None)
    search.leaf({"leaf": []})
    assert search.low == [search.jump, None, None]
    assert search.high == before[1]
    assert search.total == before[2]
    search.leaf({"leaf": []})
    assert search.is_done


def test_margins_must_lie_inside_their_interval():
    claim, data = claim_of([[0.0], [1.0], [2.0]], [0, 1, 0], **PSI)
    search = search_of(claim, data, 0)
    search.split({"split": [0, 16]})
    for c in (16, 17, 1000):
        with pytest.raises(checker.Rejected, match="outside"):
            search.split({"split": [0, c]})
    search.leaf({"leaf": []})
    for c in (16, 15, "t"):
        with pytest.raises(checker.Rejected, match="outside"):
            search.split({"split": [0, c]})


def test_cuts_are_proved_one_by_one(tmp_path):
    """Giving up every sample would cost 2 C each; a cut that says so must be closed by multipliers."""
    claim, data = claim_of([[-1.0], [1.0]], [0, 1], **PSI, C=4.0)
    forged = [{"multipliers": [], "cuts": [[0, ">", "t", []], [1, ">", "t", []]]}, {"leaf": []}]
    ok, message = verdict(tmp_path, claim, data, forged, 16.0, 16.0)
    assert not ok
    assert "cut" in message
    # where sample 0 is given up, 8 is paid: nothing below 8 lies there, and after that cut the sample has u >= 0
    cut = {"multipliers": [], "cuts": [[0, "<", "t", []]]}
    assert verdict(tmp_path, claim, data, [cut, {"leaf": []}], 9.0, 0.0)[0]
    search = search_of(claim, data, 8)
    search.cuts(cut)
    assert search.low == [search.jump, None]
    with pytest.raises(checker.Rejected, match="cut"):
        search_of(claim, data, Fraction(8) + Fraction(1, 2**80)).cuts(cut)


def test_a_changed_multiplier_is_paid_for():
    """x = -1 and 1 at distance 2: moving s between them costs v^2 / 2 = (2 s)^2 / 2 and wins s (c + c)."""
    claim, data = claim_of([[-1.0], [1.0]], [0, 1], **PSI, C=4.0)

    def cut(bound, change):
        search = search_of(claim, data, bound)
        search._set(0, -64 << (search.margin - search.um), None)
        search._set(1, 3 << (4 + search.margin - search.um), None)
        search.cuts({"multipliers": [], "cuts": [[0, "<", 48, change]]})

    # multipliers (1, 1): v = 2, P* = 2; the part u_0 < 3, u_1 >= 3 has terms min(8 - 4, 4 + 0, 1) = 1 and 3
    cut(Fraction(2), [[0, 1], [1, 1]])
    with pytest.raises(checker.Rejected, match="cut"):
        cut(Fraction(2) + Fraction(1, 2**80), [[0, 1], [1, 1]])
    with pytest.raises(checker.Rejected, match="balanced"):
        cut(Fraction(1), [[0, 1]])


@pytest.mark.parametrize("penalty", ["l2", "l1", "kernel"])
@pytest.mark.parametrize("name", ["floor", "ceiling"])
def test_neighbours_hold_a_margin_to_the_last_unit(penalty, name):
    """Samples at distance 3. Ceiling: P(w) < 2 and l2 = 1, so |<w, z>| < 2 * 3; l1 = 1: < 2 * 3, too.

    Floor: if sample 0 is given up, 1 is left for P, so |<w, z>| < sqrt(2) * 3 = 67.9 / 16 and < 3.
    """
    X, y = [[0.0], [3.0], [9.0]], [0, 0, 1] if name == "floor" else [0, 1, 0]
    options = {"l2": {}, "l1": {"l2": 0.0, "l1": 1.0}, "kernel": {}}[penalty]
    if penalty == "kernel":  # the same distances
        X = np.array([[9.0, 4.5, 0.0], [4.5, 9.0, 0.0], [0.0, 0.0, 90.0]])
        options = {"kernel": {"kind": "precomputed", "ridge": 0.0}}
    # a cap of 1 per sample: both samples near 0 together cost 2, sample 0 alone 1 (ceiling: sample 1 alone 2)
    C = 1.0 if name == "floor" else 2.0
    claim, data = claim_of(X, y, hinges=((1.0, 0.5),), t=0.0, cap=1.0, C=C, **options)
    reach = 16 * 6 if name == "ceiling" else 16 * 3 if penalty == "l1" else 68

    def hold(bound, c):
        search = search_of(claim, data, bound)
        getattr(search, name)({name: [[0, -c if name == "floor" else c]]})
        return search

    search = hold(2, reach)
    assert (search.low[0] if name == "floor" else search.high[0]) is not None
    with pytest.raises(checker.Rejected, match="neighbours"):
        hold(2, reach - 1)
    with pytest.raises(checker.Rejected, match="neighbours"):
        hold(2 + Fraction(1, 2**70), reach + 1)  # giving up both is no longer too expensive
    with pytest.raises(checker.Rejected):
        hold(2, -16)  # beyond t


def test_neighbours_of_the_wrong_class_hold_nothing():
    claim, data = claim_of([[0.0], [0.5], [1.0]], [0, 1, 1], hinges=((1.0, 0.5),), t=0.0, cap=1.0)
    with pytest.raises(checker.Rejected, match="neighbours"):
        search_of(claim, data, 2).floor({"floor": [[0, -1600]]})
    search_of(claim, data, 2).ceiling({"ceiling": [[0, 1600]]})
    with pytest.raises(checker.Rejected, match="neighbours"):
        search_of(claim, data, 2).ceiling({"ceiling": [[1, 1600]]})


@pytest.mark.parametrize("tolerance", [0.0, 0.25, 1.5])
@pytest.mark.parametrize("hinges", [((1.0, 1.0),), ((1.0, 1.0), (-0.5, 2.0)), ()])
def test_the_loss_of_the_tree_is_never_above_the_stated_loss(tolerance, hinges):
    claim, data = claim_of([[0.0], [1.0]], [0, 1], hinges=hinges, t=-0.25, cap=4.0, tolerance=tolerance)
    search = search_of(claim, data, 1)
    problem = search.problem
    for u in range(-80, 80):
        ours = search._loss(0, u << (search.margin - search.um)) * checker.power(search.e)
        stated = problem.loss(Fraction(u, 16), 0)
        assert ours <= stated
        if tolerance == 0:
            assert ours == stated


def test_the_jump_with_a_tolerance_is_the_claim_that_is_checked(tmp_path):
    claim, data = claim_of([[0.0], [0.0]], [0, 1], **PSI, tolerance=0.5)
    # f = 1/4: u = -1/4 and 1/4; the first is within the tolerance and pays g(0) = 1, the second 3/4
    point = {"coef": [[0]], "intercept": [1]}
    problem = checker.Problem(claim, *data)
    assert problem.objective(point, -2) == Fraction(7, 4)
    claim["problem"]["loss"]["tolerance"] = 0.2
    assert checker.Problem(claim, *data).objective(point, -2) == Fraction(11, 4)


@pytest.mark.parametrize("seed", range(30))
def test_terms_are_the_least_of_a_fine_grid(seed):
    """min over [L, U) of cost l(u) + a u against a scan of all multiples of 1/16 (all breakpoints are among them)."""
    rng = np.random.default_rng(seed)
    hinges = tuple((float(rng.integers(-8, 24)) / 16, float(rng.integers(0, 4))) for _ in range(rng.integers(0, 3)))
    t = float(rng.integers(-16, 16)) / 16
    floor = sum(c * max(a - t, 0.0) for a, c in hinges)
    claim, data = claim_of([[0.0], [1.0]], [0, 1], hinges=hinges, t=t, cap=floor + float(rng.integers(0, 3)))
    search = search_of(claim, data, 1)
    step = 1 << (search.margin - search.um)
    low, high = sorted(rng.choice(np.arange(-60, 60), 2, replace=False).tolist())
    search._set(0, low * step, high * step)
    for a in range(-4, 5):
        grid = [search._loss(0, u * step) + (a * u * step << search.lift) for u in range(low, high)]
        limit = search._loss(0, high * step, from_left=True) + (a * high * step << search.lift)
        assert search._term(0, a) == min(*grid, limit)


def test_gaussian_kernels_are_enclosed():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((6, 2)), [0, 1] * 3
    claim, data = claim_of(X, y, kernel={"kind": "rbf", "gamma": 0.7})
    gram = checker.Problem(claim, *data).space
    for i, j in itertools.product(range(6), repeat=2):
        true = math.exp(-0.7 * float(np.sum((X[i] - X[j]) ** 2)))
        assert float(gram.K[i][j] * checker.power(gram.e)) == pytest.approx(true, rel=1e-14)
    # a series of 80 terms in exact arithmetic, for one entry
    q = Fraction(0.7) * sum((Fraction(a) - Fraction(b)) ** 2 for a, b in zip(X[0].tolist(), X[1].tolist()))
    term, total = Fraction(1), Fraction(1)
    for k in range(1, 80):
        term *= q / k
        total += term
    assert abs(gram.K[1][0] * checker.power(gram.e) - 1 / total) < gram.err


def test_only_a_believed_neighbour_ends_the_search_for_one():
    """Sample 1 holds sample 0 where it is believed; where it is only known to be above -1 it may be given up."""
    claim, data = claim_of([[0.0], [1.0], [9.0]], [0, 0, 1], hinges=((1.0, 0.5),), t=0.0, cap=1.0)
    for low, is_held in ((0, True), (-16, False)):
        search = search_of(claim, data, 4)  # more than both caps: without a believed one all may be given up
        search._set(1, low << (search.margin - search.um), None)
        if is_held:
            search.floor({"floor": [[0, -16 * 3]]})
            assert search.low[0] == -16 * 3 << (search.margin - search.um)
        else:
            with pytest.raises(checker.Rejected, match="neighbours"):
                search.floor({"floor": [[0, -16 * 3]]})


def test_a_row_without_weight_is_not_believed():
    claim, (X, y, weights) = claim_of([[0.0], [1.0], [2.0]], [0, 1, 1], **PSI)
    weights = [1.0, 1.0, 0.0]
    claim["data"]["sha256"] = checker.data_hash(X, [str(label) for label in y], weights)
    claim["problem"]["believed"] = [1]
    assert checker.Problem(claim, X, y, weights).believed == {1}
    for rows, reason in (([2], "no weight"), ([3], "range"), ([-1], "range")):
        claim["problem"]["believed"] = rows
        with pytest.raises(checker.Rejected, match=reason):
            checker.Problem(claim, X, y, weights)


# -- conflicts ---------------------------------------------------------------------------------------------------------

#: Samples at one place that pay 1 each unless u >= 1: those of one of the labels are given up.
HARD = {"hinges": (), "t": 1.0, "cap": 1.0}
CLASH = {"conflict": [0, 1], "multipliers": [[0, 1], [1, 1]]}


def clash(tmp_path, evidence, bound, labels=(0, 1), **changes):
    claim, data = claim_of([[0.0]] * len(labels), list(labels), **{**HARD, **changes})
    if len(set(labels)) < len(labels):  # equal rows would be one sample
        claim, data = claim_of([[float(i) / 4] for i in range(len(labels))], list(labels), **{**HARD, **changes})
    return verdict(tmp_path, claim, data, evidence, 4.0, bound)


def test_a_conflict_costs_the_cheaper_sample_and_no_more(tmp_path):
    assert clash(tmp_path, [CLASH, {"leaf": [], "weights": [[0, 1]]}], 1.0)[0]
    for weight in (1, 2, 3, 10**9):
        evidence = [CLASH, {"leaf": [], "weights": [[0, weight]]}]
        ok, message = clash(tmp_path, evidence, math.nextafter(1.0, 2.0))
        assert not ok
        assert "does not reach the bound" in message


def test_a_conflict_needs_evidence(tmp_path):
    for multipliers in ([], [[0, 1]], [[0, -1], [1, -1]]):
        evidence = [{**CLASH, "multipliers": multipliers}, {"leaf": [], "weights": [[0, 1]]}]
        assert not clash(tmp_path, evidence, 1.0)[0]
    ok, message = clash(tmp_path, [{**CLASH, "multipliers": []}], 1.0)
    assert not ok
    assert "a conflict is not proved" in message


def test_believing_is_what_a_conflict_assumes(tmp_path):
    """The samples of a conflict are not believed after it: the same multipliers close no leaf."""
    assert not clash(tmp_path, [CLASH, {"leaf": [[0, 1], [1, 1]]}], 1.0)[0]


@pytest.mark.parametrize(
    "weights", [[[0, -1]], [[1, 1]], [[-1, 1]], [[0, 1], [0, 1]], [[0]], [0], 1, [[0, 1.0]], [[True, 1]], [["0", 1]]]
)
def test_weights_are_of_known_conflicts_once_and_not_negative(tmp_path, weights):
    assert not clash(tmp_path, [CLASH, {"leaf": [], "weights": weights}], 1.0)[0]
    assert not clash(tmp_path, [{"leaf": [], "weights": weights}], 1.0)[0]


@pytest.mark.parametrize("members", [[0, 0, 1], [0, 2], [-1, 1], [0, True], [0, "1"], "01", [[0], 1]])
def test_the_samples_of_a_conflict_are_different_samples(tmp_path, members):
    assert not clash(tmp_path, [{**CLASH, "conflict": members}, {"leaf": [], "weights": [[0, 1]]}], 1.0)[0]


def test_a_convex_loss_has_no_conflicts(tmp_path):
    evidence = [CLASH, {"leaf": [], "weights": [[0, 1]]}]
    ok, message = clash(tmp_path, evidence, 1.0, hinges=((1.0, 1.0),), t=None, cap=None)
    assert not ok
    assert "no t" in message


def test_conflicts_are_forgotten_with_their_node(tmp_path):
    closed = {"leaf": [], "weights": [[0, 1]]}
    split = {"split": [0, -16]}  # u < -1 or not
    assert clash(tmp_path, [CLASH, split, closed, closed], 1.0)[0]
    assert clash(tmp_path, [split, {"leaf": []}, CLASH, closed], 1.0)[0]  # u_0 < -1 pays 1
    ok, message = clash(tmp_path, [{"split": [0, 32]}, CLASH, closed, closed], 1.0)
    assert not ok
    assert "in range" in message


def test_overlapping_conflicts_are_paid_once(tmp_path):
    """Sample 0 clashes with both others (they are close, and a steep function costs more than the bound)."""
    pairs = [{"conflict": [0, i], "multipliers": [[0, 2], [i, 2]]} for i in (1, 2)]
    for weights, bound, is_true in (
        ([[0, 1]], 1.0, True),
        ([[0, 1], [1, 1]], 1.0, True),
        ([[0, 1], [1, 1]], 2.0, False),
    ):
        evidence = [*pairs, {"leaf": [], "weights": weights}]
        assert clash(tmp_path, evidence, bound, (0, 1, 1))[0] is is_true


def test_relief_counts_in_the_limit_from_the_left():
    """Below t a sample pays 1 - relief, also where its interval has no lower end."""
    claim, data = claim_of(*SAME_PLACE, **HARD)
    search = search_of(claim, data, 1.0)
    search.high[0] = 2 * 16  # an upper end, so that multipliers may be negative
    search._refresh(0)
    one = 1 << -search.e  # 1 in units of values
    for multiplier in (-2, -1, 0):
        near_t = one - 3 * one + multiplier * one
        assert search._term(0, multiplier, 3 * one) <= near_t


@pytest.mark.parametrize("penalty", ["l2", "l1"])
def test_neighbours_of_three_classes_hold_a_margin_to_the_last_unit(penalty):
    """If sample 0 is given up, 1 is left for P: ||w_j - w_r|| < 2 (l1: < 1), and its neighbour is at distance 3."""
    options = {"l2": {}, "l1": {"l2": 0.0, "l1": 1.0}}[penalty]
    claim, data = claim_of([[0.0], [3.0], [9.0], [20.0]], [0, 0, 1, 2], hinges=((1.0, 0.5),), t=0.0, cap=1.0, **options)
    reach = 16 * (6 if penalty == "l2" else 3)
    search = search_of(claim, data, 2)
    search.floor({"floor": [[0, -reach]]})
    assert search.low[0] is not None
    with pytest.raises(checker.Rejected, match="neighbours"):
        search_of(claim, data, 2).floor({"floor": [[0, 1 - reach]]})
    with pytest.raises(checker.Rejected, match="no such rule"):
        search_of(claim, data, 2).ceiling({"ceiling": [[0, 1600]]})


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("seed", range(5))
def test_margins_in_a_ball_are_held_to_its_surface(k, seed):
    """The least <w, z> over the ball l2/2 ||W - V/l2||^2 <= room, W of rows that sum to zero, by its formula."""
    rng, l2 = np.random.default_rng(seed), 0.5
    X, y = rng.integers(-8, 9, (6, 2)) / 4.0, [0, 0, 1, 1, k - 1, k - 1]
    claim, data = claim_of(X, y, hinges=((1.0, 1.0),), t=0.0, cap=1.0, l2=l2)
    problem = checker.Problem(claim, *data)
    R = [{i: int(v) for i, v in enumerate(rng.integers(-5, 6, problem.n))} for _ in range(1 if k == 2 else k - 1)]
    if k > 2:
        R.append({i: -sum(row[i] for row in R) for i in range(problem.n)})
    V = problem.space.combine(R)
    centre = np.array([[float(v) for v in row] for row in V]) * 2.0**problem.space.e / l2
    z, room = np.array(problem.rows[0]) - np.array(problem.rows[1]), 1.75
    w = [-centre[0]] if k == 2 else [centre[0] - centre[1], centre[0] - centre[2]]  # codes of samples 0 and 1 are 0
    far = np.sqrt((1 if k == 2 else 2) * 2.0 * room / l2) * np.linalg.norm(z)
    least = min(float(v @ z) for v in w) - far

    def holds(c):
        return problem.space.reach_in_ball(0, 1, V, 0, Fraction(room), Fraction(c))

    assert holds(-least + 1e-9)
    assert not holds(-least - 1e-9)
    for _ in range(50):  # points on the surface come near the formula, and none lies below it
        step = rng.standard_normal((len(V), 2))
        step -= step.mean(axis=0) if k > 2 else 0.0
        W = centre + step * np.sqrt(2.0 * room / l2) / np.linalg.norm(step)
        lowest = min(float(v @ z) for v in ([-W[0]] if k == 2 else [W[0] - W[1], W[0] - W[2]]))
        assert lowest >= least - 1e-9


def test_no_ball_holds_under_an_l1_penalty():
    claim, data = claim_of([[0.0], [3.0], [9.0]], [0, 0, 1], hinges=((1.0, 0.5),), t=0.0, cap=1.0, l1=0.5)
    with pytest.raises(checker.Rejected, match="no ball"):
        search_of(claim, data, 2).floor({"floor": [[0, -160]], "multipliers": []})
