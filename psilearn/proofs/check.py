"""Check a proof file in exact rational arithmetic, with the Python standard library alone.

    python -m psilearn.proofs.check FILE DATA.csv        or        python check.py FILE DATA.csv

This file imports nothing of psilearn and nothing of anybody else. Floats are dyadic rationals, so every number of the
data and of the proof is an integer over a power of two; no rounding happens anywhere below. The format is written in
``format.md``. The claim is about the problem

    minimise  F(w, b) = P(w) + sum_i c_i l_i(u_i),     c_i = C * sample weight_i * class weight of i,
    P(w) = sum_j  l2/2 ||w_j||^2 + sum_f l1_jf |w_jf|,

    two classes: one function f(x) = <w, x> + b,  u_i = y_i f(x_i), y_i = -1 for the first class and +1 for the second;
    k classes:   f_1..f_k with sum 0,  u_i = min over j != y_i of f_{y_i}(x_i) - f_j(x_i);

    l_i(u) = sum_k s_ik (t_k - max(u, t))_+   if u >= T = t - tolerance,      cap_i   if u < T

(t = -infinity, no cap: convex; the slopes s_ik and the cap may depend on the class). It says that the stated
coefficients reach ``objective`` and that no coefficients at all reach less than ``bound``.

How the bound B is proved. Suppose F(w, b) < B for some (w, b). Rules "low" and "high" confine its margins, "split"
divides what is left into cases, and each case ends in a "leaf", where weak duality shows F(w, b) >= B. So there is no
such (w, b). Each rule is proved where it is coded.
"""

# Annotations are left out on purpose: there is less to read.
# mypy: ignore-errors

import csv
import gzip
import hashlib
import json
import math
import sys
import zlib
from fractions import Fraction
from operator import mul

FORMAT, VERSION = "psilearn-proof", 1
#: Limits that keep a hostile file from filling the memory: bytes of a line, bytes and lines of a proof, digits of an
#: integer, exponents of quanta, cells of the data, and open splits and tightenings.
MAX_LINE, MAX_BYTES, MAX_LINES, MAX_DIGITS, MAX_QUANTUM, MAX_CELLS = 1 << 24, 1 << 32, 10**7, 400, 2000, 10**8
MAX_DEPTH = 5000


class Rejected(Exception):
    """The proof does not prove its claim; the text says why."""


def demand(condition, why):
    """Reject the proof unless the condition holds."""
    if not condition:
        raise Rejected(why)


# -- numbers ----------------------------------------------------------------------------------------------------------


def is_int(value):
    """Whether a value of a JSON file is an integer (true and false are not)."""
    return isinstance(value, int) and not isinstance(value, bool)


def rational(value, what):
    """Return a finite JSON number as a Fraction, exactly."""
    demand(is_int(value) or (isinstance(value, float) and math.isfinite(value)), f"{what} is not a finite number")
    return Fraction(value)


def rationals(values, what, size=None):
    """Return a JSON list of numbers as Fractions; ``size`` is the length it must have."""
    demand(isinstance(values, list) and size in (None, len(values)), f"{what} is not a list of the right length")
    return [rational(v, what) for v in values]


def integers(values, what, size, none=False):
    """Return a JSON list of integers (or nulls) after looking at each."""
    demand(isinstance(values, list) and len(values) == size, f"{what} is not a list of {size} numbers")
    demand(all(is_int(v) or (none and v is None) for v in values), f"{what} does not hold integers")
    return values


def exponent(values):
    """Return the least e >= 0 for which all values are integers times 2^-e; all must be dyadic."""
    most = max((v.denominator for v in values), default=1)
    demand(most & (most - 1) == 0, "a number is not a dyadic rational")
    return most.bit_length() - 1


def scaled(value, e):
    """Return the integer value * 2^e."""
    return value.numerator << (e - (value.denominator.bit_length() - 1))


# -- the data ---------------------------------------------------------------------------------------------------------


def label_text(label):
    """Return a label as text, numbers in one form: 1, 1.0, "1" and "1.0" are the same label."""
    text = str(label).strip()
    try:
        number = float(text)
    except ValueError:
        return text
    if not math.isfinite(number):
        return text
    return str(int(number)) if number == int(number) else repr(number)


def data_hash(rows, labels, weights):
    """Return the SHA-256 of the data: float.hex of every cell, weight and the label of every row, in order."""
    digest = hashlib.sha256(b"psilearn-data-1\n")
    for row, label, weight in zip(rows, labels, weights):
        cells = " ".join((float(v) + 0.0).hex() for v in row)  # + 0.0 turns -0.0 into 0.0
        digest.update(f"{cells}|{float(weight).hex()}|{json.dumps(label_text(label))}\n".encode())
    return digest.hexdigest()


def read_csv(path, target, weight=None, features=None):
    """Read (rows, labels, weights, names of features) from a CSV file with a header; all features must be numbers."""
    with open(path, newline="", encoding="utf-8-sig") as file:
        lines = csv.reader(file)
        header = [name.strip() for name in next(lines, [])]
        demand(len(set(header)) == len(header) > 0, "the data have no header of distinct names")
        names = [h for h in header if h not in (target, weight)] if features is None else features
        for name in [*names, target, *([] if weight is None else [weight])]:
            demand(name in header, f"the data have no column {name!r}")
        places = [header.index(name) for name in names]
        rows, labels, weights = [], [], []
        for line in lines:
            if not line:
                continue
            demand(len(line) == len(header), f"a row of the data has {len(line)} cells, the header {len(header)}")
            rows.append([number_of(line[p]) for p in places])
            labels.append(line[header.index(target)])
            weights.append(1.0 if weight is None else number_of(line[header.index(weight)]))
            demand(len(rows) * len(header) <= MAX_CELLS, "the data have too many cells")
    return rows, labels, weights, names


def number_of(text):
    """Return a cell as a float."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    demand(math.isfinite(value), f"the data hold {text[:40]!r} where a number is needed")
    return value


# -- the file ---------------------------------------------------------------------------------------------------------


def _short_int(text):
    demand(len(text) <= MAX_DIGITS, f"an integer has more than {MAX_DIGITS} digits")
    return int(text)


def _no_constant(text):
    raise Rejected(f"{text} is not a number")


def proof_lines(file):
    """Yield the JSON objects of a proof, one per line, within the limits."""
    size = 0
    for count in range(MAX_LINES + 1):
        line = file.readline(MAX_LINE + 1)
        size += len(line)
        if not line:
            return
        demand(len(line) <= MAX_LINE, "a line is too long")
        demand(size <= MAX_BYTES and count < MAX_LINES, "the proof is too long")
        record = json.loads(line.decode("utf-8"), parse_int=_short_int, parse_constant=_no_constant)
        demand(isinstance(record, dict), "a line is not a JSON object")
        yield record


def following(lines, key):
    """Return the value of ``key`` of the next line."""
    record = next(lines, None)
    demand(record is not None, f"the proof ends where {key!r} is expected")
    demand(key in record, f"a line has no {key!r}")
    return record[key]


# -- where f lives ----------------------------------------------------------------------------------------------------


class Features:
    """Linear functions on rows of numbers, kept as integers over 2^e. ``l1`` has one list per function; None bans."""

    def __init__(self, rows, l2, l1):
        self.l2, self.l1, self.width = l2, l1, len(rows[0])
        exact = [[Fraction(float(v)) for v in row] for row in rows]
        self.e = exponent([v for row in exact for v in row])
        self.rows = [[scaled(v, self.e) for v in row] for row in exact]
        self.columns = [list(column) for column in zip(*self.rows)]
        self.squares = 2 * self.e

    def scores(self, w):
        """Return <w, x_i> of all samples."""
        e = exponent(w)
        w = [scaled(v, e) for v in w]
        return [Fraction(sum(map(mul, row, w)), 1 << (self.e + e)) for row in self.rows]

    def penalty(self, coef):
        """Return P(w); infinite penalties must meet zeros."""
        total = Fraction(0)
        for w, l1 in zip(coef, self.l1):
            demand(all(v == 0 for v, p in zip(w, l1) if p is None), "a banned coefficient is not zero")
            total += self.l2 / 2 * sum(v * v for v in w) + sum(p * abs(v) for v, p in zip(w, l1) if p)
        return total

    def conjugate(self, columns, q, shift):
        """Return an upper bound on sup over w (with sum_j w_j = 0 for k functions) of sum_j <w_j, v_j> - P(w).

        Here v_j = sum_i R_ij x_i. Adding the same vector to all v_j changes nothing where sum_j w_j = 0, so ``shift``
        may be subtracted. Without that constraint the supremum splits into coordinates: sup of v w - l2/2 w^2 - l1 |w|
        is (|v| - l1)_+^2 / (2 l2), and for l2 = 0 it is 0 if |v| <= l1, else infinite (None). l1 = None bans w: 0.
        """
        e = self.e + q
        square, excess = 0, Fraction(0)
        for R, l1 in zip(columns, self.l1):
            for column, price, move in zip(self.columns, l1, shift):
                if price is None:
                    continue
                v = abs(sum(map(mul, R, column)) - move)
                if not price:
                    square += v * v
                else:
                    excess += max(Fraction(v, 1 << e) - price, Fraction(0)) ** 2
        total = Fraction(square, 1 << (2 * e)) + excess
        if self.l2 == 0:
            return Fraction(0) if total == 0 else None
        return total / (2 * self.l2)

    def products(self, R):
        """Return <v, x_i> of all samples for v = sum_i R_i x_i, times 2^squares; banned coefficients are left out."""
        demand(self.l2 > 0 and not any(self.l1[0]), "this rule is for the penalty l2 alone")
        v = [0 if p is None else sum(map(mul, R, column)) for p, column in zip(self.l1[0], self.columns)]
        return [sum(map(mul, row, v)) for row in self.rows]

    def square(self, i, j):
        """Return ||x_i - x_j||^2 times 2^squares."""
        return sum((a - b) ** 2 for a, b in zip(self.rows[i], self.rows[j]))

    def is_within(self, i, j, gap, bound):
        """Whether |<w, x_i - x_j>| <= gap for all w with P(w) <= bound.

        By Cauchy and Schwarz, |<w, x>|^2 <= ||w||^2 ||x||^2 <= (2 bound / l2) ||x||^2. Without an l2 part |<w, x>| <=
        sum_f l1_f |w_f| |x_f| / l1_f <= bound * max_f |x_f| / l1_f over the coefficients that are not banned.
        """
        if self.l2 > 0:
            return 2 * bound * self.square(i, j) <= self.l2 * gap * gap * (1 << self.squares)
        steps = [abs(a - b) for a, b in zip(self.rows[i], self.rows[j])]
        limit = gap * (1 << self.e)
        return all(p is None or s == 0 or (p > 0 and bound * s <= limit * p) for s, p in zip(steps, self.l1[0]))


class Gram:
    """Functions f = sum_i v_i K(x_i, .) known by a positive semidefinite matrix K; P is l2/2 sum_j v_j' K v_j."""

    def __init__(self, rows, ridge, factor, l2):
        demand(l2 > 0, "a kernel needs l2 > 0")
        self.l2 = l2
        exact = [
            [Fraction(float(v)) + (ridge if a == b else 0) for b, v in enumerate(row)] for a, row in enumerate(rows)
        ]
        self.e = exponent([v for row in exact for v in row])
        self.rows = [[scaled(v, self.e) for v in row] for row in exact]
        self.width, self.squares = len(rows), self.e
        self.demand_semidefinite(factor)

    def demand_semidefinite(self, factor):
        """Accept K if K - G G' is symmetric and diagonally dominant with a diagonal >= 0, G the stated factor.

        Such a matrix is positive semidefinite by Gershgorin's theorem (each eigenvalue lies within sum_{j != i} |E_ij|
        of some E_ii), G G' is, and so is the sum K of both.
        """
        e = exponent([v for row in factor for v in row])
        G = [[scaled(v, e) for v in row] for row in factor]
        up = max(0, 2 * e - self.e), max(0, self.e - 2 * e)
        for i, row in enumerate(self.rows):
            rest = [(row[j] << up[0]) - (sum(map(mul, G[i], G[j])) << up[1]) for j in range(self.width)]
            demand(all(row[j] == self.rows[j][i] for j in range(i)), "the Gram matrix is not symmetric")
            off = sum(map(abs, rest)) - abs(rest[i])
            demand(rest[i] >= off, "the Gram matrix is not proved positive semidefinite")

    def scores(self, v):
        """Return (K v)_i of all samples."""
        e = exponent(v)
        v = [scaled(x, e) for x in v]
        return [Fraction(sum(map(mul, row, v)), 1 << (self.e + e)) for row in self.rows]

    def penalty(self, coef):
        """Return P."""
        return self.l2 / 2 * sum(sum(map(mul, v, self.scores(v))) for v in coef)

    def conjugate(self, columns, q, shift):
        """Return sup over f of sum_j <f_j, sum_i R_ij K(x_i, .)> - l2/2 ||f_j||^2 = sum_j R_j' K R_j / (2 l2)."""
        demand(not any(shift), "a shift is for features only")
        total = sum(r * sum(map(mul, row, R)) for R in columns for r, row in zip(R, self.rows) if r)
        return Fraction(total, 1 << (self.e + 2 * q)) / (2 * self.l2)

    def products(self, R):
        """Return (K R)_i times 2^squares."""
        return [sum(map(mul, row, R)) for row in self.rows]

    def square(self, i, j):
        """Return ||x_i - x_j||^2 = K_ii + K_jj - 2 K_ij times 2^squares."""
        return self.rows[i][i] + self.rows[j][j] - 2 * self.rows[i][j]

    def is_within(self, i, j, gap, bound):
        """As for features."""
        return 2 * bound * self.square(i, j) <= self.l2 * gap * gap * (1 << self.squares)


# -- the problem ------------------------------------------------------------------------------------------------------


class Region:
    """What a case allows for one margin: low <= u <= high (None is infinite), and u >= T (side 1) or u < T (side -1).

    ``points`` are pairs (u, cost at u): see :meth:`Problem.gain`. ``least`` and ``most`` limit the multiplier.
    """

    __slots__ = ("high", "is_empty", "least", "low", "most", "points", "side")

    def __init__(self, low, high, side):
        self.low, self.high, self.side = low, high, side


class Problem:
    """The stated problem in integers: margins times 2^U, multipliers times 2^q, costs times 2^M."""

    def __init__(self, claim, rows, labels, weights):
        self.read_loss(claim)
        classes = claim.get("classes")
        is_list = isinstance(classes, list) and all(isinstance(label, str) for label in classes)
        demand(is_list and len(set(classes)) == len(classes) >= 2, "classes is not a list of two or more labels")
        self.k = len(classes)
        self.functions = 1 if self.k == 2 else self.k
        price = rational(claim.get("C"), "C")
        factor = rationals(claim.get("class_weight"), "class_weight", self.k)
        demand(price > 0 and min(factor) >= 0, "C or a class weight is negative")
        codes = [classes.index(label) if label in classes else -1 for label in map(label_text, labels)]
        demand(min(codes, default=-1) >= 0, "a label of the data is not among the classes")
        costs = [price * Fraction(float(w)) * factor[c] for w, c in zip(weights, codes)]
        demand(min(costs) >= 0, "a weight is negative")
        self.rows, self.y, self.costs = merged(rows, codes, costs, claim.get("space") != "gram is data")
        self.n = len(self.y)
        self.set_scales(claim)

    def read_loss(self, claim):
        """Read slopes, breakpoints, t, tolerance and cap."""
        loss = claim.get("loss")
        demand(isinstance(loss, dict) and isinstance(loss.get("hinges"), list), "the loss has no hinges")
        k = len(claim["classes"]) if isinstance(claim.get("classes"), list) else 0
        demand(all(isinstance(h, list) and len(h) == 2 for h in loss["hinges"]), "a hinge is not a pair")
        self.hinges = [(rational(t, "hinge"), rationals(s, "slopes", k)) for t, s in loss["hinges"]]
        demand(all(min(s) >= 0 for _, s in self.hinges), "a slope is negative")
        self.is_convex = loss.get("t") is None
        if self.is_convex:
            demand(loss.get("cap") is None and self.hinges, "a convex loss has hinges and no cap")
            self.t, self.tolerance, self.cap = None, Fraction(0), None
        else:
            self.t, self.cap = rational(loss["t"], "t"), rationals(loss.get("cap"), "cap", k)
            self.tolerance = rational(loss.get("tolerance"), "tolerance")
            demand(0 <= self.tolerance <= Fraction(1, 10**6) and min(self.cap) >= 0, "cap or tolerance out of range")

    def set_scales(self, claim):
        """Choose the powers of two and turn the loss into integers."""
        self.q, grid = claim.get("quantum"), claim.get("margin_quantum")
        demand(is_int(self.q) and is_int(grid) and 0 <= self.q <= MAX_QUANTUM and 0 <= grid <= MAX_QUANTUM, "quantum")
        ends = [] if self.is_convex else [self.t, self.t - self.tolerance]
        self.U = max(grid, exponent([*ends, *(t for t, _ in self.hinges)]))
        self.grid = self.U - grid
        slopes = [[c * s[y] for _, s in self.hinges] for c, y in zip(self.costs, self.y)]
        caps = [Fraction(0) if self.is_convex else c * self.cap[y] for c, y in zip(self.costs, self.y)]
        flat = [s for row in slopes for s in row]
        self.M = max(self.U + max(exponent(flat), self.q), exponent(caps))
        self.slopes = [[scaled(s, self.M - self.U) for s in row] for row in slopes]
        self.caps = [scaled(c, self.M) for c in caps]
        self.knots = [scaled(t, self.U) for t, _ in self.hinges]
        self.at, self.T = (None, None) if self.is_convex else (scaled(v, self.U) for v in ends)
        self.breakpoints = sorted({*self.knots, *([] if self.is_convex else [self.at, self.T])})

    def loss(self, i, u):
        """Return c_i l_i(u) of sample i for an integer margin u; at u = T the smaller of both sides."""
        if self.T is not None:
            if u < self.T:
                return self.caps[i]
            if u == self.T:
                return min(self.caps[i], self.hinge_sum(i, self.at))
            u = max(u, self.at)
        return self.hinge_sum(i, u)

    def hinge_sum(self, i, u):
        """Return c_i g_i(u)."""
        return sum(s * (t - u) for s, t in zip(self.slopes[i], self.knots) if t > u)

    def value(self, coef, intercept):
        """Return F at rational coefficients, one list per function."""
        F = [[s + b for s in self.space.scores(w)] for w, b in zip(coef, intercept)]
        total = self.space.penalty(coef)
        for i, (y, c) in enumerate(zip(self.y, self.costs)):
            if self.k == 2:
                u = F[0][i] if y == 1 else -F[0][i]
            else:
                u = F[y][i] - max(F[j][i] for j in range(self.k) if j != y)
            if not self.is_convex and u < self.t - self.tolerance:
                total += c * self.cap[y]
                continue
            u = u if self.is_convex else max(u, self.t)
            total += c * sum(s[y] * (t - u) for t, s in self.hinges if t > u)
        return total

    def region(self, i, low, high, side):
        """Prepare the region of sample i."""
        region = Region(low, high, side)
        if side < 0:
            high = self.T if high is None else min(high, self.T)
            ends = [v for v in (low, high) if v is not None]
            region.points = [(u, self.caps[i]) for u in ends]
            region.is_empty = low is not None and (low >= self.T or (region.high is not None and low > region.high))
            region.least, region.most = None, (0 if low is None else None)
            return region
        if side > 0:
            low = self.T if low is None else max(low, self.T)
        inner = [b for b in self.breakpoints if (low is None or b > low) and (high is None or b < high)]
        ends = [v for v in (low, high) if v is not None]
        region.points = [(u, self.loss(i, u)) for u in (*ends, *inner)]
        region.is_empty = low is not None and high is not None and low > high
        region.least, region.most = (0 if high is None else None), None
        if low is None:
            region.most = sum(self.slopes[i]) if self.is_convex else 0
        return region

    def gain(self, i, alpha, region):
        """Return G_i = inf of c_i l_i(u) + alpha u over the region, for a multiplier alpha in units of 2^-q.

        The function is linear between neighbouring breakpoints of l_i, and l_i at T is the smaller of its two limits,
        so over a bounded region the infimum is the least value at the ends and the breakpoints inside. For u < T it is
        cap_i + alpha u, and the ends are the lower one and T. Where the region is unbounded above the slope there is
        alpha, which must be >= 0; unbounded below it is alpha minus the sum of the slopes (convex) or alpha (capped),
        which must be <= 0. Then the infimum over the unbounded piece is at its finite end, which is in the list.
        """
        alpha <<= self.M - self.U - self.q
        demand(region.least is None or alpha >= 0, "a multiplier is negative where the margin is unbounded above")
        demand(region.most is None or alpha <= region.most, "a multiplier is too large for an unbounded margin")
        return min(cost + alpha * u for u, cost in region.points)

    def columns(self, leaf):
        """Return (alpha, R): the multipliers of the margins, and for each function its column of R.

        Two classes: R_i = y_i alpha_i, so alpha_i u_i = R_i f(x_i). k classes: A_ij >= 0, A_{i y_i} = 0, alpha_i =
        sum_j A_ij, R_ij = -A_ij and R_{i y_i} = alpha_i. As u_i <= f_{y_i} - f_j for every j, alpha_i u_i <= sum_j
        A_ij (f_{y_i} - f_j) = sum_j R_ij f_j(x_i). In both cases alpha_i u_i <= sum_j R_ij f_j(x_i).
        """
        if self.k == 2:
            alpha = integers(leaf, "a leaf", self.n)
            return alpha, [[a if y == 1 else -a for a, y in zip(alpha, self.y)]]
        demand(isinstance(leaf, list) and len(leaf) == self.n, "a leaf has not one row per sample")
        rows = []
        for A, y in zip(leaf, self.y):
            integers(A, "a leaf", self.k)
            demand(min(A) >= 0 and A[y] == 0, "multipliers of k classes must be >= 0, and 0 for the own class")
            rows.append([sum(A) if j == y else -A[j] for j in range(self.k)])
        return [row[y] for row, y in zip(rows, self.y)], [list(column) for column in zip(*rows)]

    def leaf_bound(self, leaf, regions, shift=None):
        """Return a number that F(w, b) reaches wherever the margins lie in the regions; None if there is none.

        Weak duality. Let R have columns that sum to zero. Then sum_ij R_ij b_j = 0, and with f_j(x_i) = <w_j, x_i> +
        b_j and v_j = sum_i R_ij x_i, :meth:`columns` gives  sum_i alpha_i u_i <= sum_j <w_j, v_j>.  Hence

            F(w, b) = P(w) + sum_i c_i l_i(u_i) >= P(w) - sum_j <w_j, v_j> + sum_i (c_i l_i(u_i) + alpha_i u_i)
                                                >= -P*(v) + sum_i G_i,

        with G_i of :meth:`gain` and the conjugate P*(v) = sup_w sum_j <w_j, v_j> - P(w).
        """
        alpha, columns = self.columns(leaf)
        demand(all(sum(column) == 0 for column in columns), "the multipliers do not balance")
        move = [0] * self.space.width if shift is None else integers(shift, "shift", self.space.width)
        demand(self.k > 2 or not any(move), "a shift is for more than two classes")
        paid = self.space.conjugate(columns, self.q, move)
        if paid is None:
            return None
        gains = sum(self.gain(i, a, region) for i, (a, region) in enumerate(zip(alpha, regions)))
        return Fraction(gains, 1 << self.M) - paid


def merged(rows, codes, costs, is_merging):
    """Leave out samples of cost 0 and merge equal rows of the same class, adding costs: F stays the same function."""
    places, kept = {}, ([], [], [])
    for at, (row, code, cost) in enumerate(zip(rows, codes, costs)):
        key = (code, *row) if is_merging else at
        if is_merging and cost == 0:
            continue
        if key in places:
            kept[2][places[key]] += cost
            continue
        places[key] = len(kept[1])
        for values, value in zip(kept, (row, code, cost)):
            values.append(value)
    demand(kept[1], "no sample has a positive weight")
    return kept


# -- the check --------------------------------------------------------------------------------------------------------


def penalty_of(claim, functions, width):
    """Read l2 and the l1 weights, one list per function; null bans a coefficient."""
    penalty = claim.get("penalty")
    demand(isinstance(penalty, dict), "the penalty is missing")
    l2, rows = rational(penalty.get("l2"), "l2"), penalty.get("l1")
    demand(isinstance(rows, list) and len(rows) == functions, "l1 has not one list per function")
    for row in rows:
        demand(isinstance(row, list) and len(row) == width, "l1 has not one weight per coefficient")
    l1 = [[None if v is None else rational(v, "l1") for v in row] for row in rows]
    demand(l2 >= 0 and all(v is None or v >= 0 for row in l1 for v in row), "a penalty weight is negative")
    return l2, l1


def attach_space(problem, claim, lines):
    """Give the problem its space; for a kernel the Gram matrix (unless it is the data) and a factor come next."""
    kind, n = claim.get("space"), problem.n
    demand(kind in ("features", "gram in proof", "gram is data"), "unknown space")
    width = len(problem.rows[0]) if kind == "features" else n
    l2, l1 = penalty_of(claim, problem.functions, width)
    if kind == "features":
        problem.space = Features(problem.rows, l2, l1)
        return
    demand(all(v == 0 for row in l1 for v in row), "a kernel has no l1 penalty")
    if kind == "gram is data":
        demand(all(len(row) == n for row in problem.rows), "the Gram matrix is not square")
        rows = problem.rows
    else:
        rows = [rationals(following(lines, "gram"), "gram", n) for _ in range(n)]
    factor = [rationals(following(lines, "factor"), "factor") for _ in range(n)]
    demand(all(len(row) == len(factor[0]) <= n for row in factor), "the factor is not a matrix")
    ridge = rational(claim.get("ridge"), "ridge")
    problem.space = Gram(rows, ridge, factor, l2)


def root_regions(problem, bound, lines):
    """Read and prove the limits of the margins that hold for every (w, b) with F(w, b) < bound.

    Losses are >= 0, so P(w) < bound, and the samples with u < T cost less than the bound together. Let J be a set of
    samples of the class of i with sum_{j in J} c_j cap_j >= bound. Then some j in J has u_j >= T, and if |<w, x_i -
    x_j>| <= T - low for all of J, then u_i = u_j + y_i <w, x_i - x_j> >= T - (T - low) = low. Let J be such a set of
    the other class instead: then u_i = -u_j + y_i <w, x_i - x_j> <= -T + (high + T) = high. The largest J, all
    samples near enough, is taken. Two classes only.
    """
    n = problem.n
    if problem.is_convex or problem.k > 2:
        return [problem.region(i, None, None, 0) for i in range(n)]
    low = integers(following(lines, "low"), "low", n, none=True)
    high = integers(following(lines, "high"), "high", n, none=True)
    regions = []
    for i in range(n):
        ends = [None if v is None else v << problem.grid for v in (low[i], high[i])]
        gaps = [(problem.T - ends[0], True)] if ends[0] is not None else []
        gaps += [(problem.T + ends[1], False)] if ends[1] is not None else []
        for gap, own in gaps:
            demand(follows(problem, i, gap, own, bound), f"the limit of the margin of sample {i} does not follow")
        regions.append(problem.region(i, *ends, 0))
    return regions


def follows(problem, i, gap, own, bound):
    """Whether the samples of i's own (or the other) class whose scores differ by at most ``gap`` cost the bound."""
    if gap < 0:
        return False
    width, spent = Fraction(gap, 1 << problem.U), 0
    for j in range(problem.n):
        if (problem.y[i] == problem.y[j]) == own and problem.space.is_within(i, j, width, bound):
            spent += problem.caps[j]
    return Fraction(spent, 1 << problem.M) >= bound


def split(problem, record, regions):
    """Return (sample, region of the first case, region of the second).

    Without "at": u < T (the label is given up, the cap is paid) or u >= T (it is believed). With "at" = v: u <= v or
    u >= v. One of the two always holds.
    """
    i = record["split"]
    demand(is_int(i) and 0 <= i < problem.n, "a split names no sample")
    old = regions[i]
    if record.get("at") is None:
        demand(not problem.is_convex, "a convex loss has nothing to split")
        return i, narrowed(problem, i, old, None, None, -1), narrowed(problem, i, old, None, None, 1)
    demand(is_int(record["at"]) and problem.k == 2, "a split is at an integer, two classes only")
    v = record["at"] << problem.grid
    return i, narrowed(problem, i, old, None, v, 0), narrowed(problem, i, old, v, None, 0)


def narrowed(problem, i, old, low, high, side):
    """Return the intersection of a region with another."""
    low = old.low if low is None else low if old.low is None else max(low, old.low)
    high = old.high if high is None else high if old.high is None else min(high, old.high)
    region = problem.region(i, low, high, side or old.side)
    region.is_empty = region.is_empty or old.is_empty or side * old.side < 0
    return region


def tighten(problem, bound, record, regions):
    """Return pairs (sample, narrower region) that hold in this case for every (w, b) with F(w, b) < bound.

    Let D be the bound of :meth:`Problem.leaf_bound` for the multipliers alpha, v = sum_i alpha_i y_i x_i, w0 = v / l2,
    and s_i(u) = c_i l_i(u) + alpha_i u - G_i, which is >= 0 in the region of i. Completing the square gives

        F(w, b) = D + l2/2 ||w - w0||^2 + sum_i s_i(u_i),

    hence l2/2 ||w - w0||^2 < slack = bound - D, and s_j(u_j) < slack for every j. An anchor [j, p, r] states that s_j
    >= slack for u <= p and for u >= r, so p < u_j < r. For any i, with |<w - w0, x_i - x_j>| <= gap (the rule of
    ``is_within``, with the slack as bound of the penalty),

        u_i = y_i <w0, x_i - x_j> + y_i <w - w0, x_i - x_j> + y_i y_j u_j,

    which lies between centre + least - gap and centre + most + gap, where [least, most] is [p, r] for samples of one
    class and [-r, -p] otherwise. A limit [i, j, low, high] says so with low and high (null: no limit). All is
    multiplied by l2 and by powers of two; |<w - w0, x_i - x_j>|^2 <= (2 slack / l2) ||x_i - x_j||^2.
    """
    demand(problem.k == 2 and not problem.is_convex, "limits are tightened for truncated losses of two classes")
    reached = problem.leaf_bound(record["tighten"], regions)
    demand(reached is not None, "multipliers are not feasible")
    alpha, columns = problem.columns(record["tighten"])
    space, slack = problem.space, bound - reached
    products = space.products(columns[0])
    anchors = read_anchors(problem, record.get("anchors"), alpha, slack, regions)
    limits = record.get("limits")
    demand(isinstance(limits, list), "a line has no limits")
    l2, power = scaled(space.l2, exponent([space.l2])), exponent([space.l2])
    up = space.squares + problem.q, problem.U + power  # l2 times a margin has 2^(up[0] + up[1])
    room = 2 * slack * space.l2
    left, right = room.numerator << (2 * sum(up)), room.denominator << space.squares
    changes = []
    for limit in limits:
        i, j, low, high = integers(limit, "a limit", 4, none=True)
        demand(i is not None and 0 <= i < problem.n and j in anchors, "a limit names no sample or no anchor")
        least, most = anchors[j]
        if problem.y[i] != problem.y[j]:
            least, most = -most, -least
        centre = (products[i] - products[j]) << up[1]
        centre = centre if problem.y[i] == 1 else -centre
        ends = [None if v is None else v << problem.grid for v in (low, high)]
        gaps = [] if low is None else [((l2 * (least - ends[0])) << up[0]) + centre]
        gaps += [] if high is None else [((l2 * (ends[1] - most)) << up[0]) - centre]
        needed = left * space.square(i, j)
        demand(all(gap >= 0 and needed <= gap * gap * right for gap in gaps), "a tighter limit does not follow")
        changes.append((i, narrowed(problem, i, regions[i], *ends, 0)))
    return changes


def read_anchors(problem, entries, alpha, slack, regions):
    """Return a dictionary from anchors j to (p, r), margins in units of 2^-U, after proving them."""
    demand(isinstance(entries, list), "a line has no anchors")
    anchors = {}
    for entry in entries:
        j, p, r = integers(entry, "an anchor", 3)
        demand(0 <= j < problem.n, "an anchor names no sample")
        p, r = p << problem.grid, r << problem.grid
        least = problem.gain(j, alpha[j], regions[j])
        for part in (narrowed(problem, j, regions[j], None, p, 0), narrowed(problem, j, regions[j], r, None, 0)):
            rise = None if part.is_empty else Fraction(problem.gain(j, alpha[j], part) - least, 1 << problem.M)
            demand(rise is None or rise >= slack, "an anchor does not follow")
        anchors[j] = p, r
    return anchors


def check_tree(problem, bound, lines):
    """Check that all cases end in leaves that reach the bound; returns the number of leaves.

    The nodes come in preorder: a split is followed by the whole of its first case, then by its second. ``todo`` holds
    for every open split, and for every tightening inside an open case, the regions from before it and, for a split
    whose second case is still to come, that case's region.
    """
    regions = root_regions(problem, bound, lines)
    todo, leaves = [], 0
    while True:
        record = next(lines, None)
        demand(record is not None, "the proof ends before all cases are closed")
        demand(len(todo) <= MAX_DEPTH, "the tree is too deep")
        if "split" in record:
            i, first, second = split(problem, record, regions)
            todo.append(([(i, regions[i])], second))
            regions[i] = first
            continue
        if "tighten" in record:
            changes = tighten(problem, bound, record, regions)
            todo.append(([(i, regions[i]) for i, _ in changes], None))
            demand(len({i for i, _ in changes}) == len(changes), "a tightening names a sample twice")
            for i, region in changes:
                regions[i] = region
            continue
        close(problem, bound, record, regions)
        leaves += 1
        while todo and todo[-1][1] is None:
            for i, before in todo.pop()[0]:
                regions[i] = before
        if not todo:
            demand(next(lines, None) is None, "the proof goes on after its last case")
            return leaves
        before, second = todo.pop()
        regions[before[0][0]] = second
        todo.append((before, None))


def close(problem, bound, record, regions):
    """Check one leaf: a case that no margin satisfies, or a dual bound that reaches the bound."""
    if "empty" in record:
        i = record["empty"]
        demand(is_int(i) and 0 <= i < problem.n and regions[i].is_empty, "a case said to be empty is not")
        return
    demand("leaf" in record, "a line is neither a split nor a leaf")
    reached = problem.leaf_bound(record["leaf"], regions, record.get("shift"))
    demand(reached is not None and reached >= bound, "a leaf does not reach the bound")


def check_objective(problem, claim):
    """Check that the stated coefficients reach the stated objective, rounded up by at most 2^-40 of itself.

    For k > 2 classes the coefficients of the first k - 1 functions are stated; the last is minus their sum.
    """
    stated = 1 if problem.k == 2 else problem.k - 1
    rows, b = claim.get("coef"), rationals(claim.get("intercept"), "intercept", stated)
    demand(isinstance(rows, list) and len(rows) == stated, "coef has not one list per function")
    coef = [rationals(row, "coef", problem.space.width) for row in rows]
    if problem.k > 2:
        coef.append([-sum(column) for column in zip(*coef)])
        b = [*b, -sum(b)]
    exact, objective = problem.value(coef, b), rational(claim.get("objective"), "objective")
    demand(exact <= objective, "the coefficients do not reach the objective")
    demand(objective - exact <= exact / 2**40, "the objective is not that of the coefficients")
    return objective


def check_claim(claim, lines, rows, labels, weights):
    """Check everything that follows the first line; returns (objective, bound, number of leaves)."""
    demand(claim.get("format") == FORMAT and claim.get("version") == VERSION, f"not a {FORMAT} of version {VERSION}")
    demand(rows and len(rows) == len(labels) == len(weights), "the data are empty or of unequal lengths")
    demand(len({len(row) for row in rows}) == 1 and len(rows[0]) > 0, "the rows of the data are of unequal lengths")
    cells = [float(v) for row in (*rows, weights) for v in row]
    demand(all(map(math.isfinite, cells)), "the data hold a number that is not finite")
    data = claim.get("data")
    demand(isinstance(data, dict), "the claim does not say which data it is about")
    demand(data.get("sha256") == data_hash(rows, labels, weights), "the proof is about other data (hashes differ)")
    problem = Problem(claim, rows, labels, weights)
    attach_space(problem, claim, lines)
    objective = check_objective(problem, claim)
    bound = rational(claim.get("bound"), "bound")
    demand(-(2**1000) < bound <= objective < 2**1000, "the bound exceeds the objective, or a number is too large")
    return objective, bound, check_tree(problem, bound, lines)


def verdict(path, load):
    """Return (ok, objective, bound, message) of a proof file; ``load(claim)`` returns (rows, labels, weights)."""
    try:
        with open(path, "rb") as raw, gzip.GzipFile(fileobj=raw) as file:
            lines = proof_lines(file)
            claim = next(lines, None)
            demand(claim is not None, "the file is empty")
            objective, bound, leaves = check_claim(claim, lines, *load(claim))
    except Rejected as reason:
        return False, math.nan, math.nan, f"rejected: {reason}"
    except (gzip.BadGzipFile, EOFError, zlib.error, UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        return False, math.nan, math.nan, f"rejected: the file is damaged ({type(error).__name__})"
    count = "1 leaf" if leaves == 1 else f"{leaves} leaves"
    return True, float(objective), float(bound), f"proved in exact arithmetic, {count}"


def check_arrays(path, rows, labels, weights):
    """Check a proof against data in memory: lists of lists of floats, labels, floats."""
    return verdict(path, lambda claim: (rows, labels, weights))


def check_file(path, data):
    """Check a proof against a CSV file."""

    def load(claim):
        about = claim.get("data")
        demand(isinstance(about, dict) and isinstance(about.get("target"), str), "the claim names no label column")
        names, weight = about.get("features"), about.get("weight")
        is_list = isinstance(names, list) and all(isinstance(name, str) for name in names)
        demand((names is None or is_list) and (weight is None or isinstance(weight, str)), "bad names of columns")
        return read_csv(data, about["target"], weight, names)[:3]

    return verdict(path, load)


def main(arguments):
    """Run from the command line: exit status 0 if the proof holds, 1 if not, 2 for bad usage."""
    if len(arguments) != 2:
        print("usage: check.py PROOF DATA.csv", file=sys.stderr)
        return 2
    try:
        ok, objective, bound, message = check_file(*arguments)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        print(f"cannot read: {error}", file=sys.stderr)
        return 2
    print(f"{message}; objective {objective!r}, bound {bound!r}" if ok else message)
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
