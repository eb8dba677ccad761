"""Check a proof about lists of rules in exact rational arithmetic, with Python's standard library and :mod:`check`.

    python check_rules.py FILE DATA.csv         (check.py in the same folder)

A *rule* is a conjunction of at most ``max_order`` literals, with a class it votes for. Literals ask one of the stated
attributes to be true or false; the conjunction of none covers every sample. The file claims one of these, the weights
m_i of the samples having the sum M:

* ``agreement`` (two classes): the largest sum of m_i [y_i = c] - m_i [y_i != c] over the covered samples of a rule for
  class c;
* ``lpboost``: the largest soft margin rho - D sum_i m_i (rho - u_i)_+, D = 1 / (nu M), of all votes lambda >= 0 of
  rules with sum 1, u_i being the least over r != y_i of the votes for y_i less those for r;
* ``l0boost`` (two classes): the least sum_i m_i [u_i < rho] + sum {cost of the order of u : lambda_u > 0} of all votes
  lambda >= 0 of rules with sum 1, at most ``max_rules`` of them not zero if the claim has that number, u_i the votes
  for y_i less those for the other class. rho > 0.

The first two claim objective <= largest <= bound, the last one bound <= least <= objective. The objective is that of
the rules in the file. The bound comes from multipliers, which turn the claim into a question about single rules,

    is  sum {value_i : sample i is covered} - cost of the order <= limit  for every rule?

and that is answered here by a search over all rules (:class:`Conjunctions`). ``format.md`` describes the file.
"""

# mypy: no-check-untyped-defs

import math
import operator
import sys
from fractions import Fraction

try:
    from . import check
except ImportError:  # two files in a folder
    import check  # type: ignore[no-redef]

require, number, integer, array = check.require, check.number, check.integer, check.array

#: Entries of tables that a search may read, about two minutes; attributes, and pairs of a file.
MAX_WORK, MAX_ATTRIBUTES, MAX_PAIRS = 2_000_000_000, 20_000, 100_000


class Conjunctions:
    """All conjunctions of at most ``max_order`` literals, and sums of values over what they cover.

    ``rows`` maps what a row satisfies (an integer with a bit per literal) to its value. Rows that satisfy the same
    literals are covered together, so their values are added up.
    """

    def __init__(self, n_literals, max_order, costs, rows):
        self.max_order, self.work = max_order, 0
        # A conjunction may be equal to a longer one, which costs what the longer one does.
        self.costs = [min(costs[k:]) for k in range(max_order + 1)]
        rows = sorted(((value, which) for which, value in rows.items() if value), key=lambda row: -row[0])
        self.everything = (1 << len(rows)) - 1
        self.masks = [0] * n_literals
        for place, (_, which) in enumerate(rows):
            while which:
                lowest = which & -which
                self.masks[lowest.bit_length() - 1] |= 1 << place
                which ^= lowest
        values = [value for value, _ in rows]
        gains = [value for value in values if value > 0]
        self.gaining = (1 << len(gains)) - 1
        self.totals, self.gains = _tables(values), _tables(gains)

    def at_most(self, limit):
        """Whether every conjunction has a value, less the cost of its order, of at most ``limit``."""
        self.limit = limit
        if _sum(self.totals, self.everything) - self.costs[0] > limit:
            return False
        return self.max_order == 0 or self._extensions(self.everything, range(len(self.masks)), 1)

    def _extensions(self, covered, literals, order):
        """Whether that holds for the conjunctions made of one that covers ``covered`` and of some of these literals.

        What longer conjunctions cover is part of what shorter ones do, so their values are at most the ``gain``, the
        sum of the positive values. A literal that keeps everything, or as much as an earlier one, can be left out or
        replaced: equal conjunctions have equal values, and :attr:`costs` never fall with the order. A conjunction of
        several literals is met in the branch of the first of them; those after it are the only ones to add.
        """
        kept, seen = [], {covered}
        for literal in literals:
            left = covered & self.masks[literal]
            if left in seen:
                continue
            seen.add(left)
            self.work += len(self.totals) + 16
            require(self.work <= MAX_WORK, "the search over all rules is too long")
            gain = _sum(self.gains, left & self.gaining)
            if gain - self.costs[order] <= self.limit:
                continue
            if _sum(self.totals, left) - self.costs[order] > self.limit:
                return False
            kept.append((literal, left))
        if order == self.max_order:
            return True
        later = [literal for literal, _ in kept]
        return all(self._extensions(left, later[place + 1 :], order + 1) for place, (_, left) in enumerate(kept))


def _tables(values):
    """Return, for every eight values, their sums over each of the 256 subsets."""
    tables = []
    for first in range(0, len(values), 8):
        sums = [0]
        for value in values[first : first + 8]:
            sums += [value + x for x in sums]
        tables.append(sums)
    return tables


def _sum(tables, mask):
    """Return the sum of the values at the bits of a mask."""
    return sum(map(operator.getitem, tables, mask.to_bytes(len(tables), "little")))


class Rules:
    """The claim's problem on the given data.

    Samples are the given rows of positive weight; rows of one class with the same attributes have the same votes, so
    they are one sample whose weights are added up. Samples are numbered from 0 in the order of first appearance.
    """

    def __init__(self, claim, rows, labels, weights):
        stated, labels = claim["problem"], [check.label_text(label) for label in labels]
        self.classes = array(stated["classes"])
        require(all(isinstance(name, str) for name in self.classes), "classes are texts")
        self.k = len(self.classes)
        require(self.k >= 2 and len(set(self.classes)) == self.k, "at least two different classes are needed")
        code = {name: j for j, name in enumerate(self.classes)}
        require(rows and all(len(row) == len(rows[0]) for row in rows), "the data are empty or ragged")
        require(len(labels) == len(rows) == len(weights), "labels or weights are missing")
        require(all(math.isfinite(x) for row in [*rows, weights] for x in row), "the data are not finite")
        require(check.data_hash(rows, labels, weights) == claim["data"]["sha256"], "the proof is about other data")
        require(min(weights) >= 0 and max(weights) > 0, "weights are negative or all zero")
        require(all(label in code for label in labels), "a label is not among the classes")
        attributes = array(stated["attributes"])
        require(len(attributes) <= MAX_ATTRIBUTES, "there are too many attributes")
        self.N = len(attributes)
        self.max_order = integer(stated["max_order"], 0, self.N)
        used = [i for i, weight in enumerate(weights) if weight > 0]
        answers = [_answers(attribute, [rows[i] for i in used]) for attribute in attributes]
        # The literals that a sample satisfies: bit a if attribute a is true, else bit N + a.
        which = [sum(1 << (a if holds else self.N + a) for a, holds in enumerate(row)) for row in zip(*answers)]
        at = {}
        for i, mask in zip(used, which or [0] * len(used)):
            key = mask, code[labels[i]]
            at[key] = at.get(key, 0) + Fraction(weights[i])
        self.which, self.code = ([key[part] for key in at] for part in (0, 1))
        self.weight = list(at.values())
        self.n, self.total = len(at), sum(self.weight)

    def read(self, record):
        """Return the votes [literals, class, weight] of the point as (mask of literals, class, order, weight)."""
        votes = []
        for vote in array(record["rules"]):
            literals, target, weight = array(vote, 3)
            literals = [integer(l, 0, 2 * self.N - 1) for l in array(literals)]
            require(len(set(literals)) == len(literals) <= self.max_order, "a rule has too many literals")
            mask = sum(1 << l for l in literals)
            votes.append((mask, integer(target, 0, self.k - 1), len(literals), integer(weight, 1)))
        require(votes, "there are no rules")
        return votes

    def margins(self, votes):
        """Return u_i of every sample for votes whose weights are divided by their sum."""
        total, margins = sum(weight for *_, weight in votes), []
        for which, own in zip(self.which, self.code):
            scores = [0] * self.k
            for mask, target, _, weight in votes:
                scores[target] += weight if which & mask == mask else 0
            margins.append(Fraction(scores[own] - max(scores[:own] + scores[own + 1 :]), total))
        return margins

    def all_at_most(self, values, limit, costs=None, pairs=()):
        """Whether sum {values_i : i covered} - sum {v : both ends of a pair covered} - cost <= limit for all rules."""
        limit, costs = Fraction(limit), [Fraction(c) for c in costs or [0] * (self.max_order + 1)]
        scale = math.lcm(limit.denominator, *(c.denominator for c in costs), *(Fraction(v).denominator for v in values))
        scale = math.lcm(scale, *(Fraction(v).denominator for *_, v in pairs))
        rows = {}
        for which, value in zip(self.which, values):
            rows[which] = rows.get(which, 0) + int(value * scale)
        for first, second, v in pairs:
            both = self.which[first] & self.which[second]
            rows[both] = rows.get(both, 0) - int(v * scale)
        search = Conjunctions(2 * self.N, self.max_order, [int(c * scale) for c in costs], rows)
        return search.at_most(int(limit * scale))


def _answers(attribute, rows):
    """Return for every row whether [feature, "above" or "equals", value] holds."""
    feature, kind, value = array(attribute, 3)
    integer(feature, 0, len(rows[0]) - 1)
    value = number(value)
    require(kind in ("above", "equals"), "unknown attribute")
    column = [row[feature] for row in rows]
    return [x > value for x in column] if kind == "above" else [x == value for x in column]


# -- the three claims --------------------------------------------------------------------------------------------------


def agreement(rules, stated, point, evidence, objective, bound):
    """The rule of the file attains ``objective``, and the search finds none above ``bound``."""
    votes = rules.read(point)
    require(rules.k == 2 and len(votes) == 1, "an agreement is about one rule and two classes")
    mask, target, _, _ = votes[0]
    signed = [m if own == target else -m for own, m in zip(rules.code, rules.weight)]
    value = sum(m for which, m in zip(rules.which, signed) if which & mask == mask)
    require(value >= objective, "the rule does not attain the objective")
    for values in (signed, [-m for m in signed]):
        require(rules.all_at_most(values, bound), "there is a better rule")


def lpboost(rules, stated, point, evidence, objective, bound):
    """Bound the soft margin of all votes by multipliers w_ir >= 0 with sum W and sum_r w_ir <= D m_i W.

    For every rho, sum_i m_i D (rho - u_i)_+ >= sum_ir w_ir / W (rho - u_i), so the soft margin is at most

        sum_ir w_ir u_i / W <= sum_ir w_ir (votes for y_i - votes for r) / W = sum_u lambda_u e_u / W <= max_u e_u / W

    with e_u of a rule for class c the sum over its samples of [y_i = c] sum_r w_ir - w_ic. The soft margin of the given
    votes is attained at some margin rho = u_i.
    """
    nu = number(stated["nu"])
    require(0 < nu <= 1, "nu must be above 0 and at most 1")
    margins = rules.margins(rules.read(point))
    per, reached, rho = 1 / (nu * rules.total), Fraction(0), None
    for u, m in sorted(zip(margins, rules.weight)):
        reached, rho = reached + m * per, u
        if reached >= 1:
            break
    soft = rho - per * sum(m * (rho - u) for u, m in zip(margins, rules.weight) if u < rho)
    require(soft >= objective, "the rules do not attain the objective")
    w = [[0] * rules.k for _ in range(rules.n)]
    for entry in array(evidence["multipliers"]):
        i, r, value = array(entry, 3)
        i, r = integer(i, 0, rules.n - 1), integer(r, 0, rules.k - 1)
        require(r != rules.code[i], "a multiplier is against its own class")
        w[i][r] += integer(value, 0)
    total = sum(map(sum, w))
    require(total > 0, "all multipliers are zero")
    for row, m in zip(w, rules.weight):
        require(sum(row) * nu * rules.total <= m * total, "a multiplier is too large")
    for c in range(rules.k):
        values = [sum(row) if own == c else -row[c] for row, own in zip(w, rules.code)]
        require(rules.all_at_most(values, bound * total), "there is a rule with a larger edge")


def l0boost(rules, stated, point, evidence, objective, bound):
    """Bound the number of mistakes and the cost of rules by multipliers w_i >= 0, v_p >= 0 of pairs, and alpha.

    Write y = +1 and -1 for the codes 1 and 0, h_iu = y for a rule for that class that covers i, and 0 otherwise, xi_i
    for whether u_i < rho, mu_u for whether lambda_u > 0. Every vote has y_i H_i lambda + (1 + rho) xi_i >= rho; and for
    a pair of samples of code 1 and 0 (positive i, negative j), xi_i + xi_j + sum {mu_u : h_iu > h_ju} >= 1, since with
    both margins positive some rule with lambda_u > 0 has h_iu > h_ju. Adding these with multipliers,

        sum m_i xi_i + sum c_u mu_u >= rho sum w + sum v + sum_i xi_i (m_i - (1 + rho) w_i - sum {v_p : i in p})
                                       + sum_u (c_u - R_u) mu_u - sum_u E_u lambda_u

    with R_u = sum {v_p : h_iu > h_ju} and E_u = sum_i w_i y_i h_iu. If R_u <= c_u and R_u + E_u - c_u <= -alpha for all
    rules, the last line is at least sum_u (c_u - R_u - E_u) lambda_u >= alpha (mu_u >= lambda_u, sum lambda = 1). The
    terms of xi are at least their negative parts. If all weights and costs are integers, so is the least value.

    With at most K rules, theta (K - sum mu) >= 0 for every theta >= 0: the bound with all costs c_u + theta, less
    theta K, holds as well.
    """
    require(rules.k == 2, "two classes are needed")
    rho, costs = number(stated["rho"]), [number(c, 0) for c in array(stated["costs"], rules.max_order + 1)]
    require(0 < rho <= 1, "rho must be above 0 and at most 1")
    votes = rules.read(point)
    value = sum(m for u, m in zip(rules.margins(votes), rules.weight) if u < rho)
    used = {(mask, target, order) for mask, target, order, _ in votes}
    value += sum(costs[order] for _, _, order in used)
    require(value <= objective, "the rules do not attain the objective")
    theta, most = number(evidence.get("theta", 0), 0), integer(stated.get("max_rules", 0), 0)
    require("max_rules" in stated or theta == 0, "theta needs a limit on the number of rules")
    require("max_rules" not in stated or len(used) <= most, "there are too many rules")
    unit = check.power(integer(evidence["unit"], -check.MAX_EXPONENT, 0))
    w, pairs = [Fraction(0)] * rules.n, []
    for entry in array(evidence["multipliers"]):
        i, a = array(entry, 2)
        w[integer(i, 0, rules.n - 1)] += integer(a, 0) * unit
    require(len(array(evidence["pairs"])) <= MAX_PAIRS, "there are too many pairs")
    for entry in evidence["pairs"]:
        i, j, a = array(entry, 3)
        i, j = integer(i, 0, rules.n - 1), integer(j, 0, rules.n - 1)
        require(rules.code[i] == 1 and rules.code[j] == 0, "a pair is not of two classes")
        pairs.append((i, j, integer(a, 0) * unit))
    alpha = integer(evidence["alpha"]) * unit
    proved = l0_value(rules, rho, costs, w, pairs, alpha, theta * most)
    require(proved >= bound, "the multipliers do not reach the bound")
    raised = [c + theta for c in costs]
    require(l0_feasible(rules, raised, w, pairs, alpha), "there is a rule that costs less than the multipliers say")


def l0_value(rules, rho, costs, w, pairs, alpha, less=0):
    """Return the bound of feasible multipliers, the right side of the inequality in :func:`l0boost`, less theta K."""
    left = [m - (1 + rho) * x for m, x in zip(rules.weight, w)]
    for i, j, v in pairs:
        left[i], left[j] = left[i] - v, left[j] - v
    value = rho * sum(w) + sum(v for *_, v in pairs) + alpha + sum(min(x, 0) for x in left) - less
    is_whole = all(x.denominator == 1 for x in [*rules.weight, *costs])
    return Fraction(math.ceil(value)) if is_whole else value


def l0_feasible(rules, costs, w, pairs, alpha):
    """Whether R_u + E_u - c_u <= -alpha and R_u <= c_u for all rules, those for code 1 and those for code 0."""
    for target in (1, 0):
        reward = [Fraction(0)] * rules.n
        for i, j, v in pairs:
            reward[i if target else j] += v
        edges = [x + (a if own == target else -a) for x, a, own in zip(reward, w, rules.code)]
        if not rules.all_at_most(edges, -alpha, costs, pairs) or not rules.all_at_most(reward, 0, costs, pairs):
            return False
    return True


KINDS = {"agreement": agreement, "lpboost": lpboost, "l0boost": l0boost}


def verify(records, rows, labels, weights):
    """Check all records of a proof about rules; returns (claim, objective, bound) or raises Rejected."""
    claim = records.first
    require(claim["format"] == "psilearn rules proof" and claim["version"] == 1, "not a rules proof of version 1")
    objective, bound, kind = number(claim["objective"]), number(claim["bound"]), claim["problem"]["kind"]
    require(isinstance(kind, str) and kind in KINDS, "unknown kind of problem")
    rules = Rules(claim, rows, labels, weights)
    KINDS[kind](rules, claim["problem"], records.next(), records.next(), objective, bound)
    require(records.next() == {"end": 3}, "the last record is wrong")
    require(not records.file.read(1), "something follows the last record")
    return claim, objective, bound


def describe(claim):
    """Return one line on the problem of a claim that was checked."""
    stated = claim["problem"]
    what = {"agreement": "largest agreement of a rule", "lpboost": "largest soft margin", "l0boost": "L0 objective"}
    numbers = [f"{name} {stated[name]!r}" for name in ("nu", "rho", "costs", "max_rules") if name in stated]
    text = f"{what[stated['kind']]} over all rules of at most {stated['max_order']} of {len(stated['attributes'])}"
    return ", ".join([f"{text} attributes", *numbers])


def check_arrays(path, rows, labels, weights):
    """Check a proof about rules against data in memory; never raises for a bad file."""
    return check.verdict(path, lambda claim: (rows, labels, weights), verify, describe)


def check_file(path, data):
    """Check a proof about rules against a CSV file."""
    return check.check_file(path, data, verify, describe)


def run():
    """Run from the command line."""
    return check.main(sys.argv[1:], check_file)


if __name__ == "__main__":
    sys.exit(run())
