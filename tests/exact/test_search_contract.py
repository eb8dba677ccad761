"""What every exact search promises to its caller: :class:`psilearn.exact.search.Search`."""

import math

import numpy as np
import pytest

from psilearn.core.losses import HardMargin, Psi, TruncatedHinge
from psilearn.core.solving import Options
from psilearn.exact.search import Budget
from psilearn.exact.two_class.hitting.search import HittingSearch
from psilearn.exact.two_class.incumbent import given_incumbent
from psilearn.exact.two_class.model import make_model
from psilearn.exact.two_class.plane.search import BoxSearch, LineSearch
from psilearn.exact.two_class.reduction import reduce
from psilearn.exact.two_class.settings import Settings
from psilearn.exact.two_class.tree.search import TreeSearch
from psilearn.exact.two_class.violations.search import ViolationSearch

from oracles.samples import two_class_problem

GAP = 1e-7
#: Units by which a run may exceed its budget: the tree ends its dive of 64 nodes, the trials of the last one (12), and
#: the tightening of its margins (24, and the node twice more). Boxes come in pairs.
EXCESS = {"tree": 102, "boxes": 1}


def exclusive(is_exclusive):
    options = Options(gap_tol=GAP, settings=(Settings(exclusive=is_exclusive),))
    return lambda model, best, scratch: ViolationSearch(model, best, options)


OPTIONS = Options(gap_tol=GAP)
SEARCHES = {
    "tree": (lambda model, best, scratch: TreeSearch(model, best, scratch, OPTIONS), HardMargin()),
    "tree of psi": (lambda model, best, scratch: TreeSearch(model, best, scratch, OPTIONS), Psi(2.0)),
    "hitting": (lambda model, best, scratch: HittingSearch(model, best, scratch, OPTIONS), HardMargin()),
    "hitting of psi": (lambda model, best, scratch: HittingSearch(model, best, scratch, OPTIONS), Psi(2.0)),
    "exclusive": (exclusive(True), HardMargin()),
    "proper": (exclusive(False), HardMargin()),
    "lines": (lambda model, best, scratch: LineSearch(model, best, OPTIONS), Psi(0.5)),
    "boxes": (lambda model, best, scratch: BoxSearch(model, best, OPTIONS), TruncatedHinge(-0.5)),
}


def start(name, seed, n):
    """A search with nothing but constants as incumbents, so that it must find the optimum itself."""
    make, loss = SEARCHES[name]
    n = 12 if name == "hitting of psi" else n
    model = make_model(reduce(two_class_problem([seed, n], n, 2, loss)), loss)
    best, scratch = given_incumbent(model, [])
    return best, make(model, best, scratch), (model, loss)


def optimum(model):
    """By the tree in one run, or by the enumeration of lines if the tree itself is asked: another algorithm."""
    best, scratch = given_incumbent(model, [])
    search = TreeSearch(model, best, scratch, Options(gap_tol=1e-9))
    search.run(Budget())
    assert search.done
    return float(best.value[0])


@pytest.mark.parametrize("name", SEARCHES)
def test_bounds_rise_to_the_optimum_and_budgets_are_kept(name):
    for seed in range(4):
        best, search, (model, _) = start(name, seed, 24)
        truth = optimum(model)
        bound, work, runs = 0.0, 0, 0
        while not search.done:
            search.run(Budget(work=5))
            runs += 1
            assert search.bound >= bound * (1.0 - 1e-9)
            assert search.bound <= truth * (1.0 + 1e-7)
            assert search.bound <= best.value[0]
            assert work <= search.work <= work + 5 + EXCESS.get(name.split(" of ")[0], 0)
            bound, work = search.bound, search.work
            assert not search.is_stuck
            assert runs < 10_000
        assert best.value[0] == pytest.approx(truth, rel=1e-6)
        assert search.bound >= best.value[0] * (1.0 - 10 * GAP)


@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_that_is_done_does_nothing(name):
    best, search, _ = start(name, 7, 16)
    search.run(Budget())
    assert search.done
    before = search.bound, search.work, float(best.value[0])
    search.run(Budget())
    assert (search.bound, search.work, float(best.value[0])) == before


@pytest.mark.parametrize("name", SEARCHES)
def test_no_time_and_no_work_mean_no_work(name):
    for budget in (Budget(until=0.0), Budget(work=0)):
        _, search, _ = start(name, 3, 16)
        search.run(budget)
        assert search.work == 0
        assert not search.done
        assert search.bound >= 0.0


@pytest.mark.parametrize("name", SEARCHES)
def test_slices_do_not_change_the_result(name):
    values = []
    for work in (7, math.inf):
        best, search, _ = start(name, 11, 20)
        while not search.done:
            search.run(Budget(work=work))
        values.append(float(best.value[0]))
    np.testing.assert_allclose(values[0], values[1], rtol=1e-6)
