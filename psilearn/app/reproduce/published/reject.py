"""Printed figures of Choi, Kim, Han and Kang on support vector machines with a reject option (2009)."""

from __future__ import annotations

from ..experiment import Paper, Published

PAPER = Paper(
    "Hosik Choi, Yongdai Kim, Sang-Tae Han and Hyuncheol Kang",
    "An algorithm for support vector machines with a reject option using bundle method",
    2009,
)

SIMULATIONS = 20
"""Replications of the simulation; the counts of Table 3 are out of these."""

# r, method, errors on all, accepted and rejected points each with its standard error, share rejected with its s.e.
_TABLE2 = """
0   svm    .151 .003 .134 .003 .505 .017 -    -
0   reject .147 .003 .131 .003 .483 .013 .048 .007
0.3 svm    .215 .003 .193 .003 .480 .013 -    -
0.3 reject .211 .003 .191 .004 .470 .024 .078 .010
0.6 svm    .258 .004 .236 .004 .493 .013 -    -
0.6 reject .251 .004 .230 .004 .515 .024 .087 .013
"""

# r, method, correct zeros and s.e., correct nonzeros and s.e., how often each of the first five was selected, others
_TABLE3 = """
0   svm    90.90 0.976 5     0    20 20 20 20 20 0.863
0   reject 90.35 1.164 5     0    20 20 20 20 20 0.979
0.3 svm    92.45 0.634 4.300 .147 20 17 17 17 15 0.537
0.3 reject 90.95 0.752 4.500 .154 20 18 18 17 17 0.853
0.6 svm    89.15 1.186 3.550 .198 19 10 11 12 19 1.232
0.6 reject 89.25 1.015 3.750 .176 18 14 13 12 18 1.211
"""

# method, errors on all, accepted and rejected samples with s.e., share rejected with s.e., model size with s.e.
_TABLE4 = """
svm    .254 .018 .235 .018 .512 .071 -    -    3.450 .872
reject .235 .009 .218 .011 .481 .068 .059 .011 2.850 .386
"""

ERRORS = ("total", "accepted", "rejected")

DESIGN = {"delta": 0.07, "validation": 100}
"""The threshold that fits the printed reject rates (the paper states none) and the printed size of validation sets."""


def _pairs(numbers: list[str], setting: dict, measures: list[str]) -> list[Published]:
    found = []
    for i, measure in enumerate(measures):
        value, se = numbers[2 * i : 2 * i + 2]
        if value != "-":
            found.append(Published(setting, measure, float(value), se=float(se)))
    return found


def _table2() -> list[Published]:
    printed = []
    for line in _TABLE2.strip().splitlines():
        r, method, *numbers = line.split()
        measures = [f"{method} {part}" for part in ERRORS] + ["reject share"]
        printed += _pairs(numbers, {"r": float(r), **DESIGN}, measures)
    return printed


def _table3() -> list[Published]:
    printed = []
    for line in _TABLE3.strip().splitlines():
        r, method, *numbers = line.split()
        setting = {"r": float(r), **DESIGN}
        printed += _pairs(numbers[:4], setting, [f"{method} correct zeros", f"{method} correct nonzeros"])
        for j, count in enumerate(numbers[4:9], start=1):
            printed.append(Published(setting, f"{method} selects {j}", float(count), sd=_binomial_sd(float(count))))
        printed.append(Published(setting, f"{method} others", float(numbers[9])))
    return printed


def _binomial_sd(count: float) -> float:
    """Return the standard deviation of a single simulation, written as out of 20, that a count implies."""
    share = count / SIMULATIONS
    return SIMULATIONS * (share * (1.0 - share) * SIMULATIONS / (SIMULATIONS - 1)) ** 0.5


def _table4() -> list[Published]:
    printed = []
    for line in _TABLE4.strip().splitlines():
        method, *numbers = line.split()
        measures = [f"{method} {part}" for part in ERRORS] + ["reject share", f"{method} size"]
        printed += _pairs(numbers, {"dataset": "thyroid"}, measures)
    return printed


TABLE2 = _table2()
TABLE3 = _table3()
TABLE4 = _table4()
