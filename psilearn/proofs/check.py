"""Check a proof file in exact rational arithmetic, with Python's standard library alone.

    python check.py FILE DATA.csv

A proof file claims that the least value of one learning problem lies between two numbers,

    bound <= inf F <= objective,      F(W, b) = P(W) + sum_i cost_i l(u_i),

and brings the evidence: coefficients whose value is at most ``objective``, and a tree of weak duality bounds that shows
F >= ``bound`` everywhere. This file imports nothing but the standard library, so that it can be read and trusted by
somebody who trusts neither the library nor its authors. ``format.md`` beside it describes the file line by line. Every
number is a double (a dyadic rational) or an integer times a power of two; nothing here is rounded, but for the Gaussian
kernel, whose rounding error is part of the bounds.

The problem
-----------
* two classes: one function f, margins u_i = y_i f(x_i), y_i = -1 for the first class and +1 for the second;
* k > 2 classes: f_1..f_k with sum_j f_j = 0, margins u_i = min over j != y_i of f_{y_i}(x_i) - f_j(x_i);
* f_j(x) = <w_j, x> + b_j, intercepts not penalised, P(W) = l2/2 sum_j ||w_j||^2 + sum_jf l1_jf |w_jf|;
* or, with a kernel, f_j(x) = sum_i v_ji K(x_i, x) + b_j and P = l2/2 sum_j v_j' K v_j;
* l(u) = min(cap, g(u)) if u >= t and cap if u < t, with g(u) = sum_k c_k (t_k - u)_+; no cap means l = g. Slopes c_k
  and caps may depend on the class; cost_i = C * weight_i * (weight of the class of i).

How the bound is proved
-----------------------
Suppose some (W, b) had F(W, b) < bound. A node of the tree knows an interval L_i <= u_i < U_i for every margin (at the
root -inf and +inf). A *split* replaces a node by two that cover it; *cuts*, *floor* and *ceiling* shrink intervals
without losing any (W, b) with F < bound; a *conflict* names samples of which all such (W, b) give at least one up; a
*leaf* shows F >= bound in its node, a contradiction. When all nodes are closed no such (W, b) exists. Each rule is
proved in the docstring of the method that checks it.
"""

# mypy: no-check-untyped-defs

import csv
import decimal
import gzip
import hashlib
import json
import math
import re
import sys
import zlib
from fractions import Fraction

#: Limits that keep a hostile file from using up memory; honest proofs are far below them.
MAX_BYTES, MAX_RECORDS, MAX_CHANGES, MAX_BITS, MAX_EXPONENT = 1 << 33, 20_000_000, 2_000_000, 400, 2_400
MAX_CELLS, MAX_DIGITS = 10**8, 400
LINE_START, LINE_PER_NUMBER = 1 << 16, 512  # bytes of a line: a constant, and per entry of the largest array
KERNEL_BITS = 100  # Gaussian kernels are enclosed within 2 ** (1 - KERNEL_BITS)
_INTEGER, _DECIMAL = re.compile(r"[+-]?[0-9]{1,400}"), re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


_UNREADABLE = (OSError, EOFError, zlib.error, ValueError, LookupError, RecursionError, csv.Error)


class Rejected(Exception):
    """The file does not prove its claim; the message says why."""


def require(condition, message):
    """Reject unless the condition holds."""
    if not condition:
        raise Rejected(message)


# -- exact numbers -----------------------------------------------------------------------------------------------------


def number(value, least=None):
    """Return the exact value of a JSON number: an integer, or the double nearest to a decimal fraction."""
    require(type(value) in (int, float), f"not a number: {str(value)[:40]!r}")
    require(type(value) is float or abs(value) < 1 << 1023, "a number is too large")
    require(math.isfinite(value), "a number is not finite")
    value = Fraction(value)
    require(least is None or value >= least, "a number is too small")
    return value


def integer(value, low=-(1 << MAX_BITS), high=1 << MAX_BITS):
    """Return an integer of a record after checking its type and range."""
    require(type(value) is int and low <= value <= high, f"not an integer in range: {str(value)[:40]!r}")
    return value


def array(value, length=None):
    """Return a list of a record after checking its type and length."""
    require(isinstance(value, list), "a list is missing")
    require(length is None or len(value) == length, f"a list of {length} entries is missing")
    return value


def exponent(values):
    """Return the largest e <= 0 for which every value is an integer times 2^e."""
    e = 0
    for value in values:
        bits = value.denominator.bit_length() - 1
        require(value.denominator == 1 << bits, "a number is not dyadic")
        e = min(e, -bits)
    return e


def whole(value, e):
    """Return value / 2^e, an integer."""
    return value.numerator << (-e - value.denominator.bit_length() + 1)


def power(e):
    """Return 2^e exactly."""
    return Fraction(1 << e) if e >= 0 else Fraction(1, 1 << -e)


# -- data --------------------------------------------------------------------------------------------------------------


def label_text(value):
    """Return the canonical text of a label: 1, 1.0, True, "1" and "1.0" are the same label."""
    if isinstance(value, bool):
        value = int(value)
    text = value.strip() if isinstance(value, str) else repr(value) if isinstance(value, (int, float)) else str(value)
    if _INTEGER.fullmatch(text):
        return str(int(text))
    if _DECIMAL.fullmatch(text):
        real = float(text)
        return str(int(real)) if real.is_integer() and abs(real) < 2**53 else repr(real)
    return text


def data_hash(rows, labels, weights):
    """Return the SHA-256 of the exact data: one line per sample, doubles in hexadecimal, -0.0 written as 0.0."""
    digest = hashlib.sha256(f"psilearn data 1\n{len(rows)} {len(rows[0]) if rows else 0}\n".encode())
    for row, label, weight in zip(rows, labels, weights):
        cells = " ".join((float(x) + 0.0).hex() for x in row)
        digest.update(f"{json.dumps(label)}\t{(float(weight) + 0.0).hex()}\t{cells}\n".encode())
    return digest.hexdigest()


def read_csv(path, target, weight=None, features=None):
    """Return (rows, labels, weights, names of features) of a CSV file with a header; all features must be numbers.

    ``features`` are by default all columns but the other two; weights are 1 unless a column is named.
    """
    with open(path, newline="", encoding="utf-8-sig") as file:
        lines = csv.reader(file)
        header = [name.strip() for name in next(lines, [])]
        require(len(set(header)) == len(header) > 0, "the data have no header of distinct names")
        names = [h for h in header if h not in (target, weight)] if features is None else features
        for name in [*names, target, *([] if weight is None else [weight])]:
            require(name in header, f"the data have no column {name!r}")
        places = [header.index(name) for name in names]
        rows, labels, weights = [], [], []
        for line in filter(None, lines):
            require(len(line) == len(header), f"a row of the data has {len(line)} cells, the header {len(header)}")
            rows.append([_cell(line[p]) for p in places])
            labels.append(line[header.index(target)])
            weights.append(1.0 if weight is None else _cell(line[header.index(weight)]))
            require(len(rows) * len(header) <= MAX_CELLS, "the data have too many cells")
    return rows, labels, weights, names


def _cell(text):
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    require(math.isfinite(value), f"the data hold {text[:40]!r} where a number is needed")
    return value


# -- the problem -------------------------------------------------------------------------------------------------------


class Problem:
    """The claim's problem on the given data.

    Samples are the given rows of positive weight; rows with equal features and equal labels have equal margins, so they
    are one sample whose costs are added up (not so for a precomputed kernel). Samples are numbered from 0 in the order
    of first appearance.
    """

    def __init__(self, claim, rows, labels, weights):
        stated = claim["problem"]
        self.classes = array(stated["classes"])
        require(all(isinstance(name, str) for name in self.classes), "classes are texts")
        self.k = len(self.classes)
        require(self.k >= 2 and len(set(self.classes)) == self.k, "at least two different classes are needed")
        self.m = 1 if self.k == 2 else self.k
        self._read_data(claim["data"], stated, rows, [label_text(label) for label in labels], weights)
        self._read_loss(stated["loss"])
        factor, C = [number(f, 0) for f in array(stated["class_weight"], self.k)], number(stated["C"], 0)
        self.cost = [C * w * factor[code] for w, code in zip(self.weight, self.code)]
        self._read_penalty(stated["penalty"])
        self._read_believed(array(stated.get("believed", [])), len(rows))
        kernel = stated["kernel"]
        if kernel["kind"] == "linear":
            self.space = Linear(self)
        else:
            require(self.l2 > 0 and all(w == 0 for row in self.l1 for w in row), "kernels take an l2 penalty alone")
            self.space = Gram(self, kernel)

    def _read_data(self, data, stated, rows, labels, weights):
        self.n, self.d = len(rows), len(rows[0]) if rows else 0
        self.is_square = self.n == self.d
        require(self.n > 0 and all(len(row) == self.d for row in rows), "the data are empty or ragged")
        require(len(labels) == self.n and len(weights) == self.n, "labels or weights are missing")
        require(all(abs(x) < float("inf") for row in [*rows, weights] for x in row), "the data are not finite")
        require(data_hash(rows, labels, weights) == data["sha256"], "the proof is about other data (hashes differ)")
        require(min(weights) >= 0, "a weight is negative")
        code = {name: j for j, name in enumerate(self.classes)}
        require(all(label in code for label in labels), "a label is not among the classes")
        merges = stated["kernel"]["kind"] != "precomputed"
        at, self.rows, self.code, self.weight, self.given, self.sample = {}, [], [], [], [], [None] * self.n
        for i, (row, label, weight) in enumerate(zip(rows, labels, weights)):
            if weight == 0:
                continue
            key = (code[label], *(x + 0.0 for x in row)) if merges else i
            self.sample[i] = at.setdefault(key, len(self.rows))
            if self.sample[i] < len(self.rows):
                self.weight[self.sample[i]] += Fraction(weight)
                continue
            self.given.append(i)
            self.rows.append(row)
            self.code.append(code[label])
            self.weight.append(Fraction(weight))
        self.n = len(self.rows)
        self.sign = [1 if code else -1 for code in self.code]

    def _read_loss(self, loss):
        self.hinges = [(number(t), [number(c, 0) for c in array(cs, self.k)]) for t, cs in array(loss["hinges"])]
        self.tolerance = number(loss["tolerance"], 0)
        self.is_convex = loss["cap"] is None
        if self.is_convex:
            require(loss["t"] is None and self.hinges and self.tolerance == 0, "a convex loss is hinges alone")
        else:
            self.t, self.cap = number(loss["t"]), [number(c, 0) for c in array(loss["cap"], self.k)]

    def _read_penalty(self, penalty):
        self.l2, l1 = number(penalty["l2"], 0), penalty["l1"]
        rows = array(l1, self.m) if isinstance(l1, list) else [[l1] * self.d] * self.m
        self.l1 = [[None if x is None else number(x, 0) for x in array(row, self.d)] for row in rows]  # None: w = 0

    def _read_believed(self, given, n):
        """Read the rows whose labels are believed: the bound is then about the functions with u_i >= t there."""
        require(not given or not self.is_convex, "a convex loss has no t")
        self.believed = {self.sample[integer(row, 0, n - 1)] for row in given}
        require(None not in self.believed, "a believed row has no weight")

    def loss(self, u, code):
        """Return l(u) of a sample of a class; margins that miss t by at most the tolerance count as t."""
        if self.is_convex:
            return sum(cs[code] * (t - u) for t, cs in self.hinges if t > u)
        if u < self.t - self.tolerance:
            return self.cap[code]
        u = max(u, self.t)
        return min(self.cap[code], sum(cs[code] * (t - u) for t, cs in self.hinges if t > u))

    def objective(self, point, unit):
        """Return F at the stated coefficients exactly (Gaussian kernels: an upper bound, 2^-99 per entry off)."""
        coef = [[integer(w) for w in array(row, self.space.dim)] for row in array(point["coef"], self.m)]
        intercept = [integer(b) for b in array(point["intercept"], self.m)]
        if self.k > 2:
            sums = [sum(column) for column in zip(*coef)]
            require(not any(sums) and sum(intercept) == 0, "the functions do not sum to zero")
        total, blur = self.space.penalty(coef, power(unit)), self.space.blur(coef, power(unit))
        for i, scores in enumerate(self.space.scores(coef, intercept, power(unit))):
            own = self.code[i]
            u = self.sign[i] * scores[0] if self.k == 2 else scores[own] - max(scores[:own] + scores[own + 1 :])
            total += self.cost[i] * self.loss(u - blur, own)
        return total


class Linear:
    """f_j(x) = <w_j, x> + b_j; samples are kept as integers times 2^e."""

    def __init__(self, problem):
        self.problem, self.dim, self.twice = problem, problem.d, 2 if problem.k == 2 else 4
        ratios = [[x.as_integer_ratio() for x in row] for row in problem.rows]
        self.e = -max((q.bit_length() - 1 for row in ratios for _, q in row), default=0)
        self.x = [[p << (-self.e - q.bit_length() + 1) for p, q in row] for row in ratios]
        self.l1e = exponent([a for row in problem.l1 for a in row if a is not None])

    def blur(self, coef, unit):
        """Return by how much margins may be smaller than computed: not at all."""
        return 0

    def scores(self, coef, intercept, unit):
        """Yield f_1(x_i), .., f_m(x_i) of every sample."""
        scale = unit * power(self.e)
        for x in self.x:
            sums = [sum(w * a for w, a in zip(row, x)) for row in coef]
            yield [scale * total + unit * b for total, b in zip(sums, intercept)]

    def penalty(self, coef, unit):
        """Return P(W)."""
        total = self.problem.l2 / 2 * unit**2 * sum(w * w for row in coef for w in row)
        for row, weights in zip(coef, self.problem.l1):
            for w, weight in zip(row, weights):
                require(w == 0 or weight is not None, "a forbidden coefficient is not zero")
                total += unit * abs(w) * weight if w else 0
        return total

    def combine(self, R, V=None):
        """Return V_j = sum_i R_ij x_i, added to an earlier V if there is one."""
        V = [[0] * self.dim for _ in R] if V is None else [list(row) for row in V]
        for row, multipliers in zip(V, R):
            for i, r in multipliers.items():
                for f, a in enumerate(self.x[i]):
                    row[f] += r * a
        return V

    def conjugate(self, V, unit, shift=None):
        """Return an upper bound on P*(V) = sup of <V, W> - P(W) over W (k > 2 classes: with rows summing to zero).

        One function: P*(v) = sum_f ((|v_f| - l1_f)_+)^2 / (2 l2), coefficient by coefficient, and for l2 = 0 it is zero
        if all |v_f| <= l1_f (otherwise infinite, and the evidence is rejected). Several functions: rows of W that sum
        to zero have <V, W> = sum_j <v_j - nu, w_j> for any vector nu, so P*(V) <= sum_j P_j*(v_j - nu). ``shift`` is
        nu.
        """
        e = min(unit + self.e, self.l1e, 0 if shift is None else shift[0])
        up, total = unit + self.e - e, 0
        for j, row in enumerate(V):
            for f, v in enumerate(row):
                weight = self.problem.l1[j][f]
                if weight is None:
                    continue
                v = (v << up) - (0 if shift is None else shift[1][f] << (shift[0] - e))
                excess = abs(v) - (whole(weight, e) if weight else 0)
                if excess > 0:
                    require(self.problem.l2 > 0, "multipliers are too large for the l1 penalty")
                    total += excess * excess
        return power(2 * e) * total / (2 * self.problem.l2) if total else 0

    def distance(self, i, j):
        """Return a number that grows with the distance of two samples; only the order of a search depends on it."""
        if self.problem.l2 > 0:
            return sum((a - b) ** 2 for a, b in zip(self.x[i], self.x[j]))
        pairs = zip(self.x[i], self.x[j], self.problem.l1[0])
        return max((abs(a - b) / w for a, b, w in pairs if w), default=0)

    def reach(self, i, j, bound, c):
        """Return whether |<w, x_i - x_j>| <= c wherever P(W) <= bound, c >= 0, w being f or a difference of two f_j.

        l2 > 0: |<w, z>|^2 <= ||w||^2 ||z||^2 and, for one function, l2/2 ||w||^2 <= P(w), so c^2 >= 2 bound/l2 ||z||^2
        suffices; ||w_j - w_r||^2 <= 2 ||w_j||^2 + 2 ||w_r||^2 <= 4 P(W) / l2 doubles that. l2 = 0: |<w, z>| <= max_f
        |z_f| / l1_f * sum_f l1_f |w_f|, so c l1_f >= bound |z_f| for all f (of all functions) suffices.
        """
        z = [a - b for a, b in zip(self.x[i], self.x[j])]
        if self.problem.l2 > 0:
            return c * c * self.problem.l2 >= self.twice * bound * power(2 * self.e) * sum(a * a for a in z)
        scale = bound * power(self.e)
        return all(w is None or c * w >= scale * abs(a) for row in self.problem.l1 for w, a in zip(row, z))

    def reach_in_ball(self, i, j, V, unit, room, c):
        """Return whether <w, x_i - x_j> >= -c wherever l2/2 ||W - V/l2||^2 <= room; w as in :meth:`reach`.

        For f: <w, z> >= <v, z>/l2 - sqrt(2 room/l2) ||z||, so with s = c + <v, z>/l2 it suffices that s >= 0 and
        s^2 l2 >= 2 room ||z||^2; for a difference of the own function and another one 4 takes the place of 2.
        """
        problem, own = self.problem, self.problem.code[i]
        z = [a - b for a, b in zip(self.x[i], self.x[j])]
        size = room * power(2 * self.e) * sum(a * a for a in z)
        if problem.k == 2:
            inner = [problem.sign[i] * _dot(V[0], z)]
        else:
            inner = [_dot(V[own], z) - _dot(row, z) for r, row in enumerate(V) if r != own]
        for product in inner:
            s = c + power(unit + 2 * self.e) * product / problem.l2
            if s < 0 or s * s * problem.l2 < self.twice * size:
                return False
        return True


class Gram:
    """f_j(x) = sum_i v_ji K(x_i, x) + b_j; entries of the Gram matrix are integers times 2^e, each off by at most err.

    Weak duality needs K to be positive semidefinite. Gaussian kernels are (Bochner), and so are polynomial ones with
    gamma, coef0 >= 0 (sums and products of kernels are kernels). A given matrix, made symmetric, is tested after the
    stated ``ridge`` has been added to its diagonal; the claim is then about that matrix.
    """

    def __init__(self, problem, kernel):
        self.problem, self.dim, self.err = problem, problem.n, Fraction(0)
        kind = kernel["kind"]
        require(kind in ("rbf", "poly", "precomputed"), "unknown kernel")
        if kind == "precomputed":
            self._given(problem, number(kernel["ridge"], 0))
            return
        gamma, linear = number(kernel["gamma"], 0), Linear(problem)
        if kind == "poly":
            coef0, degree = number(kernel["coef0"], 0), integer(kernel["degree"], 0, 32)
            scale, x = gamma * power(2 * linear.e), linear.x
            values = [[(scale * _dot(a, b) + coef0) ** degree for b in x[: i + 1]] for i, a in enumerate(x)]
            self.e = exponent([value for row in values for value in row])
            self._mirror([[whole(value, self.e) for value in row] for row in values])
            return
        self.e, self.err = -KERNEL_BITS, power(1 - KERNEL_BITS)
        squares, scale, x = [_dot(a, a) for a in linear.x], gamma * power(2 * linear.e), linear.x
        with decimal.localcontext(decimal.Context(prec=60, Emin=-(10**6), Emax=10**6)):
            half = [
                [_gaussian(scale * (squares[i] + squares[j] - 2 * _dot(a, x[j]))) for j in range(i + 1)]
                for i, a in enumerate(x)
            ]
        self._mirror(half)

    def _mirror(self, half):
        self.K = [[half[max(i, j)][min(i, j)] for j in range(self.dim)] for i in range(self.dim)]

    def _given(self, problem, ridge):
        require(problem.is_square, "a precomputed kernel must be square")
        given = problem.given
        values = [
            [(Fraction(problem.rows[i][given[j]]) + Fraction(problem.rows[j][given[i]])) / 2 for j in range(i + 1)]
            for i in range(problem.n)
        ]
        for i in range(problem.n):
            values[i][i] += ridge
        self.e = exponent([value for row in values for value in row])
        half = [[whole(value, self.e) for value in row] for row in values]
        require(is_positive_definite(half), "the Gram matrix with the stated ridge is not positive definite")
        self._mirror(half)

    def blur(self, coef, unit):
        """Return by how much a margin may be smaller than computed: err times the sum of all |v_ji|."""
        return self.err * unit * sum(abs(v) for row in coef for v in row) if self.err else 0

    def scores(self, coef, intercept, unit):
        """Yield f_1(x_i), .., f_m(x_i) of every sample."""
        scale = unit * power(self.e)
        for x in self.K:
            yield [scale * _dot(row, x) + unit * b for row, b in zip(coef, intercept)]

    def penalty(self, coef, unit):
        """Return l2/2 sum_j v_j' K v_j, or with err more: |v'(K - K0)v| <= err (sum |v|)^2."""
        return self.problem.l2 * self._square(self.combine([dict(enumerate(row)) for row in coef]), unit) / 2

    def combine(self, R, V=None):
        """Return (v, v' K v) for the coefficients v_j of sum_i R_ij K(x_i, .), the multipliers, added to an earlier V.

        (v + r)' K (v + r) = v' K v + 2 r' K v + r' K r, which is short if r has few entries.
        """
        out = []
        for (old, square), new in zip(V or [({}, 0)] * len(R), R):
            for i, r in new.items():
                row = self.K[i]
                square += r * (2 * sum(row[j] * s for j, s in old.items()) + sum(row[j] * s for j, s in new.items()))
            out.append(({**old, **{i: old.get(i, 0) + r for i, r in new.items()}}, square))
        return out

    def conjugate(self, V, unit, shift=None):
        """Return P*(V) = sum_j v_j' K v_j / (2 l2), an upper bound if kernel values are enclosed only.

        <V, W> - P(W) = sum_j v_j' K w_j - l2/2 w_j' K w_j, and (v - l2 w)' K (v - l2 w) >= 0 for every pair of rows.
        """
        require(shift is None, "kernels take no shift")
        return self._square(V, power(unit)) / (2 * self.problem.l2)

    def _square(self, V, unit):
        total = sum(square for _, square in V)
        size = sum(sum(abs(r) for r in row.values()) ** 2 for row, _ in V) if self.err else 0
        return unit**2 * (power(self.e) * total + self.err * size)

    def distance(self, i, j):
        """Return a number that grows with the distance of two samples."""
        return self.K[i][i] + self.K[j][j] - 2 * self.K[i][j]

    def reach(self, i, j, bound, c):
        """Return whether |f(x_i) - f(x_j)| <= c wherever P(f) <= bound: Cauchy-Schwarz in the RKHS."""
        square = power(self.e) * (self.K[i][i] + self.K[j][j] - 2 * self.K[i][j]) + 4 * self.err
        return c * c * self.problem.l2 >= (2 if self.problem.k == 2 else 4) * bound * square


def _dot(a, b):
    return sum(x * y for x, y in zip(a, b))


def _gaussian(q):
    """Return floor(exp(-q) 2^KERNEL_BITS) up to one, q >= 0, from 60 correctly rounded digits."""
    if q > 200:
        return 0
    value = (-(decimal.Decimal(q.numerator) / decimal.Decimal(q.denominator))).exp()
    return int(value * decimal.Decimal(1 << KERNEL_BITS))


def is_positive_definite(half):
    """Return whether elimination proves the symmetric matrix with this lower half positive definite.

    With pivot p > 0 and column c the matrix is positive definite iff S = A - c c'/p is. S is rounded to a multiple of
    2^-64; the errors of its s x s entries are below that size, so S >= rounded S - s 2^-64 I, and that much is taken
    off the diagonal. Only matrices within such rounding of a singular one are refused wrongly.
    """
    rows = [[a << 64 for a in row] for row in half]
    while rows:
        p, column = rows[0][0], [row[0] for row in rows[1:]]
        if p <= 0:
            return False
        rows = [[row[j + 1] - column[i] * column[j] // p for j in range(i + 1)] for i, row in enumerate(rows[1:])]
        for row in rows:
            row[-1] -= len(rows) + 1
    return True


# -- the bound ---------------------------------------------------------------------------------------------------------


class Search:
    """The nodes of the tree, one at a time: intervals L_i <= u_i < U_i (None is infinite) and what follows from them.

    Margins are integers times 2^um, multipliers times 2^unit, values times 2^e. The loss in use is l(u + tolerance):
    l_tol(u) >= l(u + tolerance) for every u, because u >= t - tolerance implies max(u, t) <= u + tolerance and l is
    non-increasing, and below both are the cap. So what is proved here is a bound for the stated loss, too.
    """

    def __init__(self, problem, bound, unit, margin):
        self.problem, self.bound, self.unit, self.margin = problem, bound, unit, margin
        breakpoints = [t - problem.tolerance for t, _ in problem.hinges]
        self.t = None if problem.is_convex else problem.t - problem.tolerance
        self.um = min(margin, exponent([*breakpoints, self.t or Fraction(0)]))
        self.breakpoints = [whole(t, self.um) for t in breakpoints]
        self.jump = None if self.t is None else whole(self.t, self.um)
        slopes = [[cost * cs[code] for _, cs in problem.hinges] for cost, code in zip(problem.cost, problem.code)]
        cs = exponent([c for row in slopes for c in row])
        caps = [] if problem.is_convex else [cost * problem.cap[code] for cost, code in zip(problem.cost, problem.code)]
        self.e = min(cs + self.um, unit + self.um, exponent(caps))
        self.slopes = [[whole(c, cs) << (cs + self.um - self.e) for c in row] for row in slopes]  # times 2^(e - um)
        self.caps = [whole(c, self.e) for c in caps]
        self.lift = unit + self.um - self.e
        self.steepest = [sum(row) for row in slopes]
        breaks = {*self.breakpoints} if self.t is None else {self.jump, *(p for p in self.breakpoints if p > self.jump)}
        self.breaks = sorted(breaks)
        self.low, self.high = [None] * problem.n, [None] * problem.n
        for i in problem.believed:
            self.low[i] = self.jump
        self.points = [[]] * problem.n
        self.rest = [0] * problem.n  # what a sample pays at least, and their sum
        self.total = 0
        self.changes, self.pending = [], []
        self.conflicts, self.held = [], 0  # sets of samples, and their sizes together
        for i in range(problem.n):
            self._refresh(i)

    # intervals

    def _loss(self, i, u, from_left=False):
        """Return cost_i l(u), or its limit from the left."""
        if self.jump is not None and (u < self.jump or (from_left and u == self.jump)):
            return self.caps[i]
        paid = sum(c * (p - u) for c, p in zip(self.slopes[i], self.breakpoints) if p > u)
        return paid if self.jump is None else min(paid, self.caps[i])

    def _refresh(self, i):
        """List the points where cost_i l(u) + a u can be least on the interval of i, with the loss there.

        The third entry says whether the point belongs to the part u < t, where the sample is given up. The limit at t
        from the left is such a point, too; without relief (:meth:`_term`) it is never least, as l(t) <= cap.
        """
        low, high, t = self.low[i], self.high[i], self.jump
        inside = [p for p in self.breaks if (low is None or p > low) and (high is None or p < high)]
        points = [(p, self._loss(i, p), False) for p in inside]
        if low is not None:
            points.append((low, self._loss(i, low), t is not None and low < t))
        if high is not None:
            points.append((high, self._loss(i, high, True), t is not None and high <= t))
        if t is not None and t in inside:
            points.append((t, self.caps[i], True))
        self.points[i] = points
        least = min(paid for _, paid, _ in points)
        self.total += least - self.rest[i]
        self.rest[i] = least

    def _set(self, i, low, high):
        self.changes.append((i, self.low[i], self.high[i]))
        require(len(self.changes) <= MAX_CHANGES, "the tree is too deep")
        self.low[i], self.high[i] = low, high
        self._refresh(i)

    def _inside(self, i, c):
        """Return sample and margin (an integer or "t") of a record, which must lie inside the sample's interval."""
        integer(i, 0, self.problem.n - 1)
        require(c != "t" or self.t is not None, "a convex loss has no t")
        c = self.jump if c == "t" else integer(c) << (self.margin - self.um)
        low, high = self.low[i], self.high[i]
        require((low is None or low < c) and (high is None or c < high), "a margin is outside its interval")
        return i, c

    # weak duality

    def _term(self, i, a, relief=0):
        """Return a lower bound on cost_i l(u) + a u over L_i <= u < U_i; rejects multipliers that have none.

        Between two neighbouring points of {L_i, t, breakpoints, U_i} the function is concave (linear, or the smaller of
        two linear functions), so it is least at their ends, one-sided limits included. Beyond the last point the loss
        is constant or convex and non-increasing to 0, so a >= 0 is needed if U_i is infinite. Below the first point the
        loss is the cap (then a <= 0 is needed if L_i is infinite) or has slope -sum_k cost_i c_k (then a must not
        exceed that). For u < t the sample pays ``relief`` less, which is the same at all points there.
        """
        require(a >= 0 or self.high[i] is not None, "a negative multiplier needs an upper end")
        if a > 0 and self.low[i] is None:
            steepest = 0 if self.t is not None else self.steepest[i]
            require(a * power(self.unit) <= steepest, "a multiplier is too large")
        return min(paid + (a * u << self.lift) - (relief if is_below else 0) for u, paid, is_below in self.points[i])

    def _read(self, entries):
        """Return (alpha, R) of a list of multipliers: [i, a] for two classes, [i, j, a] with a >= 0 for more."""
        alpha, R = {}, [{} for _ in range(self.problem.m)]
        for entry in array(entries):
            *where, a = array(entry, 2 if self.problem.k == 2 else 3)
            i = integer(where[0], 0, self.problem.n - 1)
            a, own = integer(a), self.problem.code[i]
            alpha[i] = alpha.get(i, 0) + a
            if self.problem.k == 2:
                R[0][i] = R[0].get(i, 0) + self.problem.sign[i] * a
                continue
            j = integer(where[1], 0, self.problem.k - 1)
            require(a >= 0 and j != own, "a multiplier between classes is negative or against its own class")
            R[own][i] = R[own].get(i, 0) + a
            R[j][i] = R[j].get(i, 0) - a
        require(all(sum(row.values()) == 0 for row in R), "multipliers are not balanced")
        return alpha, R

    def _sum(self, alpha, relief=None):
        """Return sum_i min over the interval of cost_i l(u) + alpha_i u (less the relief), as an integer times 2^e."""
        total = self.total + sum(self._term(i, a) - self.rest[i] for i, a in alpha.items() if a)
        for i, paid in (relief or {}).items():
            a = alpha.get(i, 0)
            total += self._term(i, a, paid) - self._term(i, a)
        return total

    def _weights(self, record):
        """Return the sum of the weights [c, weight >= 0] of conflicts in a record, and the relief they give samples."""
        total, relief, next_c = 0, {}, 0
        for pair in array(record.get("weights", [])):
            c, weight = array(pair, 2)
            next_c = integer(c, next_c, len(self.conflicts) - 1) + 1  # each conflict once
            weight = integer(weight, 0) << (self.unit - self.e)
            total += weight
            for i in self.conflicts[c]:
                relief[i] = relief.get(i, 0) + weight
        return total, relief

    def dual_value(self, record):
        """Return the lower bound on F that multipliers prove for all (W, b) whose margins lie in the intervals.

        Two classes: sum_i y_i alpha_i = 0, so sum_i alpha_i u_i = <v, w> with v = sum_i alpha_i y_i x_i, and

            F = P(w) - <v, w> + sum_i (cost_i l(u_i) + alpha_i u_i) >= -P*(v) + sum_i min_u (cost_i l(u) + alpha_i u).

        k classes: a_ij >= 0 and alpha_i = sum_j a_ij give sum_j a_ij (f_{y_i} - f_j)(x_i) >= alpha_i u_i, the left side
        adds up to <V, W> if the multipliers of every function are balanced, and the same bound follows.

        Weights of conflicts: if z_c >= 1 samples of conflict c are given up, and weight_c >= 0, then F is at least

            F - sum_c weight_c (z_c - 1) = sum_c weight_c + P(w) + sum_i (cost_i l(u_i) - relief_i [u_i < t])

        with relief_i the weights of the conflicts that hold i, and this is bounded in the same way.
        """
        alpha, R = self._read(record["leaf"] if "leaf" in record else record["multipliers"])
        gained, relief = self._weights(record)
        shift = record.get("shift")
        if shift is not None:
            require(self.problem.m > 1, "one function takes no shift")
            e, *nu = array(shift, self.problem.d + 1)
            shift = integer(e, -MAX_EXPONENT, MAX_EXPONENT), [integer(x) for x in nu]
        V = self.problem.space.combine(R)
        return (gained + self._sum(alpha, relief)) * power(self.e) - self.problem.space.conjugate(V, self.unit, shift)

    def follow(self, records):
        """Apply records until the tree is complete, one rule each."""
        rules = {"leaf": self.leaf, "split": self.split, "cuts": self.cuts, "conflict": self.conflict,
                 "floor": self.floor, "ceiling": self.ceiling}  # fmt: skip
        while not self.is_done:
            record = next(records, None)
            require(record is not None, "the tree is not complete")
            names = [name for name in rules if name in record]
            require(len(names) == 1, "a record must follow exactly one rule")
            rules[names[0]](record)

    def leaf(self, record):
        """Close the node: its multipliers show F >= bound."""
        require(self.dual_value(record) >= self.bound, "a leaf does not reach the bound")
        self._close()

    def _close(self):
        """Go on with the upper child of the last split that waits for it; ``is_done`` if there is none."""
        if not self.pending:
            self.is_done = True
            return
        size, known, i, c = self.pending.pop()
        self._undo(size)
        while len(self.conflicts) > known:
            self.held -= len(self.conflicts.pop())
        self._set(i, c, self.high[i])

    is_done = False

    def _undo(self, size):
        """Take back all changes of intervals but the first ``size``."""
        while len(self.changes) > size:
            j, low, high = self.changes.pop()
            self.low[j], self.high[j] = low, high
            self._refresh(j)

    def split(self, record):
        """Divide the node: first the child u_i < c, then, when that is closed, the child u_i >= c."""
        i, c = self._inside(*array(record["split"], 2))
        self.pending.append((len(self.changes), len(self.conflicts), i, c))
        self._set(i, self.low[i], c)

    def cuts(self, record):
        """Shrink intervals: [i, "<", c, change] raises L_i to c, [i, ">", c, change] lowers U_i to c.

        The part that is cut off, u_i < c or u_i >= c, is closed as a leaf would close it, by the multipliers of the
        record plus the change; so (W, b) with F < bound are not in it. Cuts are made one after the other.
        """
        alpha, R = self._read(record["multipliers"])
        V, total = self.problem.space.combine(R), self._sum(alpha)
        for cut in array(record["cuts"]):
            i, side, c, change = array(cut, 4)
            require(side in ("<", ">"), "a cut has no side")
            i, c = self._inside(i, c)
            below, above = (self.low[i], c), (c, self.high[i])
            step, change = self._read(change)
            moved = {j: alpha.get(j, 0) + a for j, a in step.items()}
            moved.setdefault(i, alpha.get(i, 0))
            before = {j: self._term(j, alpha.get(j, 0)) for j in moved}
            self._set(i, *(below if side == "<" else above))
            after = total + sum(self._term(j, a) - before[j] for j, a in moved.items())
            paid = self.problem.space.conjugate(self.problem.space.combine(change, V), self.unit)
            require(after * power(self.e) - paid >= self.bound, "a cut is not proved")
            self.low[i], self.high[i] = above if side == "<" else below
            self._refresh(i)
            total += self._term(i, alpha.get(i, 0)) - before[i]

    def conflict(self, record):
        """Add a conflict: samples of which every (W, b) of the node with F < bound gives at least one up, u_i < t.

        With all of them believed, u_i >= t, the multipliers (and weights of earlier conflicts) show F >= bound as a
        leaf would. Descendants of the node know the conflict, too; it is forgotten when the node is closed.
        """
        members, size = array(record["conflict"]), len(self.changes)
        for i in members:
            self._set(i, self._inside(i, "t")[1], self.high[i])  # twice the same sample: no longer inside
        require(self.dual_value(record) >= self.bound, "a conflict is not proved")
        self._undo(size)
        self.conflicts.append(members)
        self.held += len(members)
        require(self.held <= MAX_CHANGES, "the tree is too deep")

    def floor(self, record):
        """Raise L_i to c for pairs [i, c], c <= t: near samples of the same class cannot all be given up.

        F < bound. Samples with U_j <= t pay their caps. Take the other samples of i's class in any order (i first, then
        by distance). If those before j pay as well and j does not, all that is left for the penalty is P(W) < left_j =
        bound - what they pay, and u_j >= t; so if |<w, x_i - x_j>| <= t - c for every such W (and w = w_y - w_r for
        every rival r), u_i >= u_j - (t - c) >= c. This is checked for every j until left_j <= 0, or until one with L_j
        >= t: some j up to there does not pay.

        With multipliers (l2 penalty alone, no kernel), P(W) - <V, W> = l2/2 ||W - V/l2||^2 - P*(V), so F - D >= l2/2
        ||W - V/l2||^2: all W in question lie in a ball, in which <w, x_i - x_j> >= -(t - c) may hold as well.
        """
        ball = self._ball(record) if "multipliers" in record else None
        for pair in array(record["floor"]):
            i, c = self._inside(*array(pair, 2))
            require(self.t is not None, "a convex loss has no floor")
            self._neighbours(i, self.t - c * power(self.um), same=True, ball=ball)
            self._set(i, c, self.high[i])

    def _ball(self, record):
        """Return (V, bound - D) of the multipliers of a record."""
        problem = self.problem
        is_ball = isinstance(problem.space, Linear) and problem.l2 > 0 and not any(map(any, problem.l1))
        require(is_ball and all(w is not None for row in problem.l1 for w in row), "no ball with this penalty")
        room = self.bound - self.dual_value({"multipliers": record["multipliers"]})
        return problem.space.combine(self._read(record["multipliers"])[1]), max(room, 0)

    def ceiling(self, record):
        """Lower U_i to c for pairs [i, c], c > -t: as :meth:`floor`, with the samples of the other class.

        One j of the other class has u_j >= t, so u_i <= -u_j + |<w, x_i - x_j>| <= -t + |..|; P(w) < left_j makes the
        inequality strict where x_i and x_j differ, and where they are equal u_i <= -t < c.
        """
        for pair in array(record["ceiling"]):
            i, c = self._inside(*array(pair, 2))
            require(self.t is not None, "a convex loss has no ceiling")
            gap = c * power(self.um) + self.t
            require(gap > 0, "a ceiling is too low")
            self._neighbours(i, gap, same=False)
            self._set(i, self.low[i], c)

    def _neighbours(self, i, gap, same, ball=None):
        """Reject unless the first sample of i's class (or of the other) that is not given up is within ``gap`` of i."""
        require((self.problem.k == 2 or same) and gap >= 0 and self.bound > 0, "no such rule here")
        code, space, spent, near = self.problem.code, self.problem.space, 0, []
        for j in range(self.problem.n):
            if self.high[j] is not None and self.high[j] <= self.jump:
                spent += self.caps[j]
            elif (code[i] == code[j]) is same:
                near.append(j)
        for j in sorted(near, key=lambda j: space.distance(i, j)):
            left = self.bound - spent * power(self.e)
            if left <= 0:
                return
            is_near = space.reach(i, j, left, gap)
            if ball is not None and not is_near:
                is_near = space.reach_in_ball(i, j, ball[0], self.unit, ball[1], gap)
            require(is_near, "a margin is not held by its neighbours")
            if self.low[j] is not None and self.low[j] >= self.jump:
                return
            spent += self.caps[j]
        require(spent * power(self.e) >= self.bound, "a margin is not held by its neighbours")


# -- the file ----------------------------------------------------------------------------------------------------------


def _object(pairs):
    out = dict(pairs)
    require(len(out) == len(pairs), "a key is given twice")
    return out


def _whole(text):
    require(len(text) <= MAX_DIGITS, "an integer is too long")
    return int(text)


def _refuse(text):
    raise Rejected(f"{text[:40]} is not a number")


def parse(line):
    """Return the object in one line of JSON."""
    record = json.loads(line, object_pairs_hook=_object, parse_int=_whole, parse_constant=_refuse)
    require(isinstance(record, dict), "a line is not an object")
    return record


class Records:
    """The lines of a proof file, one object each, within limits."""

    parse = staticmethod(parse)

    def __init__(self, file, numbers, first=None):
        self.file, self.read, self.count = file, 0, 0 if first is None else 1
        self.first = first
        self.longest = LINE_START + LINE_PER_NUMBER * numbers

    def next(self):
        """Return the next record."""
        line = self.file.readline(self.longest + 1)
        self.read, self.count = self.read + len(line), self.count + 1
        require(line, "the file ends too early")
        require(len(line) <= self.longest, "a line is too long")
        require(self.read <= MAX_BYTES and self.count <= MAX_RECORDS, "the file is too long")
        return self.parse(line)


def verify(records, rows, labels, weights, search=Search):
    """Check all records of a proof; returns (claim, objective, bound) or raises Rejected."""
    claim = records.first
    require(claim["format"] != "psilearn rules proof", "a proof about rules is for check_rules.py, beside this file")
    require(claim["format"] == "psilearn proof" and claim["version"] == 1, "not a proof file of version 1")
    problem = Problem(claim, rows, labels, weights)
    objective, bound, units = number(claim["objective"]), number(claim["bound"]), claim["units"]
    coef, unit, margin = (integer(units[key], -MAX_EXPONENT, 0) for key in ("coef", "multiplier", "margin"))
    require(problem.objective(records.next(), coef) <= objective, "the coefficients do not attain the objective")
    search(problem, bound, unit, margin).follow(iter(records.next, None))
    require(records.next() == {"end": records.count - 1}, "the last record is wrong")
    require(not records.file.read(1), "something follows the last record")
    return claim, objective, bound


def describe(claim):
    """Return one line on the problem of a claim that was checked: what was proved is about this problem only."""

    def plain(value):
        if isinstance(value, list):
            parts = [plain(part) for part in value]
            return parts[0] if parts and all(part == parts[0] for part in parts) else "[" + ", ".join(parts) + "]"
        return repr(value)

    stated = claim["problem"]
    loss, penalty, kernel = stated["loss"], stated["penalty"], stated["kernel"]
    hinges = " + ".join(f"{plain(cs)} ({plain(t)} - u)_+" for t, cs in loss["hinges"]) or "0"
    text = f"loss {hinges}"
    if loss["cap"] is not None:
        text += f", {plain(loss['cap'])} for u < {plain(loss['t'])}"
        if loss["tolerance"] > 0:
            text += f" (a margin that misses it by at most {plain(loss['tolerance'])} counts as there)"
    numbers = [f"{name} {plain(kernel[name])}" for name in ("gamma", "coef0", "ridge") if name in kernel]
    numbers += [f"degree {kernel['degree']}"] if kernel["kind"] == "poly" else []
    if stated.get("believed"):
        text += f"; the bound is about functions with u >= {plain(loss['t'])} at the rows {plain(stated['believed'])}"
    text += f"; C = {plain(stated['C'])}, class weights {plain(stated['class_weight'])}"
    text += f"; penalty l2 {plain(penalty['l2'])}, l1 {plain(penalty['l1'])}; {kernel['kind']} kernel"
    return " ".join([text, *numbers]).replace("linear kernel", "linear")


def verdict(path, load, verify=verify, describe=describe, records=Records):
    """Return (ok, objective, bound, message) of a proof file; ``load(claim)`` returns (rows, labels, weights)."""
    try:
        with gzip.open(path, "rb") as file:
            first = records(file, 1 << 14).next()
            rows, labels, weights = load(first)
            lines = records(file, len(set(labels)) * (len(rows) + (len(rows[0]) if rows else 0)), first)
            claim, objective, bound = verify(lines, rows, labels, weights)
            message = f"proved in exact arithmetic: {describe(claim)}"
    except Rejected as reason:
        return False, math.nan, math.nan, f"rejected: {reason}"
    except (*_UNREADABLE, TypeError, AttributeError, ArithmeticError) as error:
        message = f"rejected: the file cannot be read ({type(error).__name__}: {str(error)[:80]})"
        return False, math.nan, math.nan, message
    return True, float(objective), float(bound), message


def check_arrays(path, rows, labels, weights):
    """Check a proof against data in memory: lists of lists of floats, labels, floats; never raises for a bad file."""
    return verdict(path, lambda claim: (rows, labels, weights))


def check_file(path, data, verify=verify, describe=describe, records=Records):
    """Check a proof against a CSV file; raises OSError or csv.Error if the data cannot be read."""

    def load(claim):
        names = claim["columns"]
        require(isinstance(names, dict) and isinstance(names.get("target"), str), "the claim names no label column")
        features, weight = names.get("features"), names.get("weight")
        is_list = isinstance(features, list) and all(isinstance(name, str) for name in features)
        require((features is None or is_list) and (weight is None or isinstance(weight, str)), "bad names of columns")
        return read_csv(data, names["target"], weight, features)[:3]

    with open(path, "rb"), open(data, "rb"):
        pass
    return verdict(path, load, verify, describe, records)


def main(arguments, check_file=check_file):
    """Run from the command line: exit status 0 if the proof holds, 1 if not, 2 for bad usage."""
    if len(arguments) != 2:
        print("usage: check.py PROOF DATA.csv", file=sys.stderr)
        return 2
    try:
        ok, objective, bound, message = check_file(*arguments)
    except OSError as error:
        print(f"cannot read: {error}", file=sys.stderr)
        return 2
    if ok:
        print(f"objective {objective!r}, bound {bound!r}")
    print(message)
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
