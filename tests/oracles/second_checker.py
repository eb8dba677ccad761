"""A second checker of proof files, written from ``psilearn/proofs/format.md``: slow, plain, all numbers fractions."""

import gzip
import hashlib
import json
import math
import re
from decimal import Context, Decimal, localcontext
from fractions import Fraction

INF = math.inf


class No(Exception):
    """The file is not accepted."""


def need(condition):
    if not condition:
        raise No


def whole(v, least=None, below=None):
    need(type(v) is int and abs(v) < 2**400 and (least is None or v >= least) and (below is None or v < below))
    return v


def double(v, least=None):
    need(type(v) in (int, float) and math.isfinite(v))
    need(least is None or v >= least)
    return Fraction(v)


def canonical(label):
    if isinstance(label, (bool, int)):
        return str(int(label))
    text = repr(label) if isinstance(label, float) else str(label).strip()
    if re.fullmatch(r"[+-]?[0-9]{1,400}", text):
        return str(int(text))
    if re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", text):
        x = float(text)
        return str(int(x)) if x == int(x) and abs(x) < 2**53 else repr(x)
    return text


def distinct(pairs):
    need(len({k for k, _ in pairs}) == len(pairs))
    return dict(pairs)


def no_constant(_):
    raise No


class Checker:
    """One file on one data set."""

    def __init__(self, lines, rows, labels, weights):
        self.lines, self.at = lines, 0
        claim = self.line()
        need(claim["format"] == "psilearn proof" and claim["version"] == 1)
        p = claim["problem"]
        self.classes, self.kind = p["classes"], p["kernel"]["kind"]
        k = self.k = len(self.classes)
        need(k >= 2 and len(set(self.classes)) == k and all(isinstance(c, str) for c in self.classes))
        self.m = 1 if k == 2 else k
        labels = [canonical(v) for v in labels]
        need(self.digest(rows, labels, weights) == claim["data"]["sha256"])
        self.samples(p, rows, labels, weights)
        self.loss_and_penalty(p, len(rows[0]))
        self.kernel(p["kernel"], rows)
        units = {key: Fraction(2) ** whole(claim["units"][key], -2400, 1) for key in ("coef", "multiplier", "margin")}
        self.q, self.grid = units["multiplier"], units["margin"]
        self.objective, self.bound = double(claim["objective"]), double(claim["bound"])
        need(self.value(self.line(), units["coef"]) <= self.objective)
        if not self.convex:  # the loss moved by the tolerance
            self.t, self.hinges = self.t - self.slack, [(a - self.slack, c) for a, c in self.hinges]
        self.L = [self.t if i in self.believed else -INF for i in range(self.n)]
        self.U = [INF] * self.n
        self.conflicts = []
        self.tree()
        count = self.at
        need(self.line() == {"end": count} and self.at == len(self.lines))

    def line(self):
        need(self.at < len(self.lines))
        self.at += 1
        record = json.loads(self.lines[self.at - 1], object_pairs_hook=distinct, parse_constant=no_constant)
        need(isinstance(record, dict))
        return record

    def digest(self, rows, labels, weights):
        text = f"psilearn data 1\n{len(rows)} {len(rows[0])}\n"
        for row, label, weight in zip(rows, labels, weights):
            cells = " ".join(float.hex(0.0 if x == 0 else float(x)) for x in row)
            text += f"{json.dumps(label)}\t{float.hex(0.0 if weight == 0 else float(weight))}\t{cells}\n"
        return hashlib.sha256(text.encode()).hexdigest()

    def samples(self, p, rows, labels, weights):
        factor = [double(f, 0) for f in p["class_weight"]]
        need(len(factor) == self.k)
        C, places = double(p["C"], 0), {}
        self.given, self.code, self.cost, self.of_row = [], [], [], {}
        for r, (row, label, weight) in enumerate(zip(rows, labels, weights)):
            need(label in self.classes and weight >= 0)
            if weight == 0:
                continue
            code = self.classes.index(label)
            key = r if self.kind == "precomputed" else (code, tuple(map(float, row)))
            if key not in places:
                places[key] = len(self.given)
                self.given.append(r)
                self.code.append(code)
                self.cost.append(Fraction(0))
            self.of_row[r] = places[key]
            self.cost[places[key]] += C * Fraction(weight) * factor[code]
        self.n = len(self.given)
        believed = p.get("believed", [])
        need(isinstance(believed, list) and all(whole(r) in self.of_row for r in believed))
        self.believed = {self.of_row[r] for r in believed}
        self.x = [[Fraction(float(v)) for v in rows[r]] for r in self.given]

    def loss_and_penalty(self, p, d):
        loss, penalty = p["loss"], p["penalty"]
        self.hinges = [(double(t), [double(c, 0) for c in cs]) for t, cs in loss["hinges"]]
        need(all(len(cs) == self.k for _, cs in self.hinges))
        self.convex, self.slack = loss["cap"] is None, double(loss["tolerance"], 0)
        self.t = self.cap = None
        if self.convex:
            need(loss["t"] is None and self.hinges and self.slack == 0 and not self.believed)
        else:
            self.t, self.cap = double(loss["t"]), [double(c, 0) for c in loss["cap"]]
            need(len(self.cap) == self.k)
        self.l2, l1 = double(penalty["l2"], 0), penalty["l1"]
        table = l1 if isinstance(l1, list) else [[l1] * d] * self.m
        need(len(table) == self.m and all(len(row) == d for row in table))
        self.l1 = [[None if v is None else double(v, 0) for v in row] for row in table]

    def kernel(self, stated, rows):
        """K as fractions, and how far an entry may be off."""
        self.K, self.err = None, Fraction(0)
        if self.kind == "linear":
            return
        need(self.l2 > 0 and all(v == 0 for row in self.l1 for v in row))
        n, x = self.n, self.x
        if self.kind == "precomputed":
            need(len(rows) == len(rows[0]))
            g = self.given
            self.K = [[(x[i][g[j]] + x[j][g[i]]) / 2 for j in range(n)] for i in range(n)]
            for i in range(n):
                self.K[i][i] += double(stated["ridge"], 0)
            need(definite(self.K))
            return
        gamma = double(stated["gamma"], 0)
        if self.kind == "poly":
            c, degree = double(stated["coef0"], 0), whole(stated["degree"], 0, 33)
            self.K = [[(gamma * dot(a, b) + c) ** degree for b in x] for a in x]
            return
        need(self.kind == "rbf")
        self.err = Fraction(1, 10**40)
        with localcontext(Context(prec=60, Emin=-(10**8), Emax=10**8)):
            squares = [[gamma * sum((s - r) ** 2 for s, r in zip(a, b)) for b in x] for a in x]
            self.K = [[Fraction(min((-(Decimal(s.numerator) / Decimal(s.denominator))).exp(), Decimal(1)))
                       if s < 200 else Fraction(0) for s in row] for row in squares]  # fmt: skip

    # -- the objective ------------------------------------------------------------------------------------------------

    def loss(self, u, code, left=False):
        if not self.convex:
            if u < self.t or (left and u <= self.t):
                return self.cap[code]
            u = max(u, self.t)
        paid = sum(cs[code] * max(a - u, 0) for a, cs in self.hinges)
        return paid if self.convex else min(paid, self.cap[code])

    def value(self, point, unit):
        size = len(self.x[0]) if self.K is None else self.n
        W = [[whole(w) * unit for w in row] for row in point["coef"]]
        b = [whole(c) * unit for c in point["intercept"]]
        need(len(W) == len(b) == self.m and all(len(row) == size for row in W))
        if self.k > 2:
            need(sum(b) == 0 and not any(sum(column) for column in zip(*W)))
        base = self.x if self.K is None else self.K
        blur = self.err * sum(abs(w) for row in W for w in row)
        total = self.l2 / 2 * sum(self.square(row) for row in W)
        for row, l1 in zip(W, self.l1) if self.K is None else ():
            need(all(w == 0 for w, a in zip(row, l1) if a is None))
            total += sum(abs(w) * a for w, a in zip(row, l1) if w)
        for i in range(self.n):
            f = [dot(row, base[i]) + c for row, c in zip(W, b)]
            own = self.code[i]
            u = (2 * own - 1) * f[0] if self.k == 2 else f[own] - max(f[:own] + f[own + 1 :])
            u -= blur
            if not self.convex and self.t - self.slack <= u < self.t:
                u = self.t
            total += self.cost[i] * self.loss(u, own)
        return total

    def square(self, v):
        """||v||^2, of kernels v'Kv from above."""
        if self.K is None:
            return dot(v, v)
        used = [i for i, a in enumerate(v) if a]
        return sum(v[i] * v[j] * self.K[i][j] for i in used for j in used) + self.err * sum(map(abs, v)) ** 2

    # -- the tree -----------------------------------------------------------------------------------------------------

    def margin(self, i, c):
        whole(i, 0, self.n)
        need(c != "t" or not self.convex)
        c = self.t if c == "t" else whole(c) * self.grid
        need(self.L[i] < c < self.U[i])
        return c

    def multipliers(self, entries):
        """Pairs (alpha, R) as dense lists."""
        alpha, R = [Fraction(0)] * self.n, [[Fraction(0)] * self.n for _ in range(self.m)]
        need(isinstance(entries, list))
        for entry in entries:
            i, *other, a = entry
            need(len(other) == (self.k > 2))
            own, a = self.code[whole(i, 0, self.n)], whole(a) * self.q
            alpha[i] += a
            if self.k == 2:
                R[0][i] += (2 * own - 1) * a
            else:
                need(a >= 0 and whole(other[0], 0, self.k) != own)
                R[own][i] += a
                R[other[0]][i] -= a
        need(all(sum(row) == 0 for row in R))
        return alpha, R

    def weighed(self, record):
        """Sum of the weights of conflicts, and what each sample is relieved of where it is given up."""
        total, relief, before = Fraction(0), [Fraction(0)] * self.n, -1
        weights = record.get("weights", [])
        need(isinstance(weights, list))
        for number, weight in weights:
            whole(number, before + 1, len(self.conflicts))
            weight, before = whole(weight, 0) * self.q, number
            total += weight
            for i in self.conflicts[number]:
                relief[i] += weight
        return total, relief

    def terms(self, alpha, relief=None):
        relief, total = relief or [Fraction(0)] * self.n, Fraction(0)
        for i, a in enumerate(alpha):
            low, high, code = self.L[i], self.U[i], self.code[i]
            need(high < INF or a >= 0)
            steepest = self.cost[i] * sum(cs[code] for _, cs in self.hinges) if self.convex else 0
            need(low > -INF or a <= steepest)
            inside = [p for p, _ in self.hinges if self.convex or p > self.t] + ([] if self.convex else [self.t])
            found = [self.cost[i] * self.loss(p, code) + a * p for p in inside if low < p < high]
            for end, left in ((low, False), (high, True)):
                if abs(end) < INF:
                    is_out = not self.convex and (end < self.t or (left and end == self.t))
                    found.append(self.cost[i] * self.loss(end, code, left) + a * end - (relief[i] if is_out else 0))
            if not self.convex and low < self.t < high:
                found.append(self.cost[i] * self.cap[code] + a * self.t - relief[i])
            total += min(found)
        return total

    def conjugate(self, R, shift=None):
        if self.K is not None:
            need(shift is None)
            return sum(self.square(row) for row in R) / (2 * self.l2)
        total, d = Fraction(0), len(self.x[0])
        nu = [Fraction(0)] * d
        if shift is not None:
            need(self.k > 2 and len(shift) == d + 1)
            nu = [whole(v) * Fraction(2) ** whole(shift[0], -2400, 2401) for v in shift[1:]]
        for row, l1 in zip(R, self.l1):
            used = [i for i in range(self.n) if row[i]]
            for f in range(d):
                if l1[f] is not None:
                    excess = max(abs(sum(row[i] * self.x[i][f] for i in used) - nu[f]) - l1[f], 0)
                    need(excess == 0 or self.l2 > 0)
                    total += excess**2 / (2 * self.l2) if excess else 0
        return total

    def tree(self):
        waiting = []
        while True:
            record = self.line()
            rules = [r for r in ("split", "leaf", "cuts", "conflict", "floor", "ceiling") if r in record]
            need(len(rules) == 1)
            rule = rules[0]
            if rule == "split":
                i, c = record["split"]
                c = self.margin(i, c)
                upper = self.L[:], self.U[:], self.conflicts[:]
                upper[0][i] = self.U[i] = c
                waiting.append(upper)
            elif rule == "leaf":
                need(self.dual(record["leaf"], record) >= self.bound)
                if not waiting:
                    return
                self.L, self.U, self.conflicts = waiting.pop()
            elif rule == "conflict":
                self.collide(record)
            elif rule == "cuts":
                self.cut(record)
            else:
                ball = self.ball(record) if rule == "floor" and "multipliers" in record else None
                for i, c in record[rule]:
                    self.hold(i, self.margin(i, c), rule == "floor", ball)

    def dual(self, entries, record):
        alpha, R = self.multipliers(entries)
        gained, relief = self.weighed(record)
        return gained + self.terms(alpha, relief) - self.conjugate(R, record.get("shift"))

    def collide(self, record):
        members, lower = record["conflict"], self.L[:]
        need(isinstance(members, list) and len({whole(i, 0, self.n) for i in members}) == len(members))
        for i in members:
            self.L[i] = self.margin(i, "t")
        need(self.dual(record["multipliers"], record) >= self.bound)
        self.L = lower
        self.conflicts = [*self.conflicts, members]

    def cut(self, record):
        alpha, R = self.multipliers(record["multipliers"])
        self.terms(alpha)
        for i, side, c, change in record["cuts"]:
            need(side in ("<", ">"))
            c = self.margin(i, c)
            more, step = self.multipliers(change)
            low, high = self.L[i], self.U[i]
            self.L[i], self.U[i] = (low, c) if side == "<" else (c, high)
            total = self.terms([a + s for a, s in zip(alpha, more)])
            total -= self.conjugate([[a + s for a, s in zip(p, q)] for p, q in zip(R, step)])
            need(total >= self.bound)
            self.L[i], self.U[i] = (c, high) if side == "<" else (low, c)

    def ball(self, record):
        """Centre V / l2 (one row per function) and bound - D, the room."""
        need(self.K is None and self.l2 > 0 and all(w == 0 for row in self.l1 for w in row))
        room = self.bound - self.dual(record["multipliers"], {})
        R = self.multipliers(record["multipliers"])[1]
        centre = [[sum(r * x[f] for r, x in zip(row, self.x)) / self.l2 for f in range(len(self.x[0]))] for row in R]
        return centre, max(room, 0)

    def in_ball(self, i, j, gap, ball):
        centre, room = ball
        z = [a - b for a, b in zip(self.x[i], self.x[j])]
        if self.k == 2:
            rows, factor = [[(2 * self.code[i] - 1) * w for w in centre[0]]], 2
        else:
            own = centre[self.code[i]]
            rows = [[a - b for a, b in zip(own, row)] for r, row in enumerate(centre) if r != self.code[i]]
            factor = 4
        sides = [gap + dot(row, z) for row in rows]
        return all(s >= 0 and s**2 * self.l2 >= factor * room * dot(z, z) for s in sides)

    def hold(self, i, c, is_floor, ball):
        need((self.k == 2 or is_floor) and not self.convex and self.bound > 0)
        gap = self.t - c if is_floor else c + self.t
        need(gap >= 0 if is_floor else gap > 0)
        paid = [cost * self.cap[code] for cost, code in zip(self.cost, self.code)]
        spent = sum(p for p, u in zip(paid, self.U) if u <= self.t)
        near = [j for j in range(self.n) if self.U[j] > self.t and (self.code[j] == self.code[i]) == is_floor]
        is_held = False
        for _, j in sorted((self.distance(i, j), j) for j in near):
            left = self.bound - spent
            is_held = left <= 0
            if is_held:
                break
            need(self.within(i, j, left, gap) or (ball is not None and self.in_ball(i, j, gap, ball)))
            is_held = self.L[j] >= self.t
            if is_held:
                break
            spent += paid[j]
        need(is_held or spent >= self.bound)
        if is_floor:
            self.L[i] = c
        else:
            self.U[i] = c

    def distance(self, i, j):
        if self.K is not None:
            return self.K[i][i] + self.K[j][j] - 2 * self.K[i][j]
        z = [a - b for a, b in zip(self.x[i], self.x[j])]
        if self.l2 > 0:
            return dot(z, z)
        return max((abs(a) / w for a, w in zip(z, self.l1[0]) if w), default=Fraction(0))

    def within(self, i, j, left, gap):
        if self.l2 > 0:
            return self.l2 * gap**2 >= (2 if self.k == 2 else 4) * left * (self.distance(i, j) + 4 * self.err)
        z = [abs(a - b) for a, b in zip(self.x[i], self.x[j])]
        return all(w is None or w * gap >= left * a for row in self.l1 for a, w in zip(z, row))


def dot(a, b):
    return sum((p * q for p, q in zip(a, b)), Fraction(0))


def definite(K):
    """Whether all pivots of exact elimination are positive."""
    K = [row[:] for row in K]
    for j in range(len(K)):
        if K[j][j] <= 0:
            return False
        for i in range(j + 1, len(K)):
            share = K[i][j] / K[j][j]
            K[i] = [a - share * b for a, b in zip(K[i], K[j])]
    return True


def accepts(path, rows, labels, weights):
    """Whether the file proves its claim on the data."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            Checker(file.read().splitlines(), rows, labels, weights)
    except (No, KeyError, ValueError, TypeError, IndexError, AttributeError, ArithmeticError, OSError, EOFError):
        return False
    except RecursionError:
        return False
    return True
