"""Printed figures of Liu, Shen and Doss, Multicategory psi-learning and support vector machine (2005)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..experiment import Paper, Published

PAPER = Paper(
    "Yufeng Liu, Xiaotong Shen and Hani Doss",
    "Multicategory ψ-learning and support vector machine: computational tools",
    2005,
    "Journal of Computational and Graphical Statistics 14, 219-236",
)

# Section 5.1, Example 1: one training sample, C = 1000
EXAMPLE1 = [
    Published({}, "svm cost", 91355.6),
    Published({}, "dca cost", 57418.8),
    Published({}, "global cost", 57265.3),
    Published({}, "svm training", 0.29),
    Published({}, "dca training", 0.26),
    Published({}, "global training", 0.26),
    Published({}, "svm testing", 0.2595),
    Published({}, "dca testing", 0.2576),
    Published({}, "global testing", 0.2564),
]

# case: method, training and sd, testing and sd, support vectors and sd (headed s.e. in print, but of a single sample)
_TABLE1 = """
1 svm .4567 .1260 .5082 .1071 96.35 6.34
1 psi .3839 .1094 .4390 .0965 57.17 12.09
3 svm .1799 .0392 .2034 .0140 68.13 11.07
3 psi .1763 .0367 .2013 .0102 47.05 15.19
"""
_TABLE2 = """
0.1 svm .1298 .0333 .1615 .0256 57.92 11.68
0.1 psi .1005 .0282 .1318 .0211 22.99 9.13
0.2 svm .2267 .0444 .2646 .0339 76.77 9.12
0.2 psi .1819 .0349 .2160 .0227 33.16 10.05
"""
_IMPROVEMENT = {"1": 0.3348, "3": 0.2165, "0.1": 0.4829, "0.2": 0.7523}

PRINTED_BAYES_ERROR = {0.1: 0.1, 0.2: 0.2}
"""Bayes errors printed with Table 2, by the share of flips."""


def _table(text: str, axis: str, kind: type, extra: Mapping[str, Any]) -> list[Published]:
    printed = []
    for line in text.strip().splitlines():
        case, method, *numbers = line.split()
        setting = {axis: kind(case), **extra}
        values = [float(number) for number in numbers]
        for i, measure in enumerate(("training", "testing", "support")):
            printed.append(Published(setting, f"{method} {measure}", values[2 * i], sd=values[2 * i + 1]))
        if method == "psi":
            printed.append(Published(setting, "improvement", _IMPROVEMENT[case]))
    return printed


TABLE1 = _table(_TABLE1, "df", int, {})
TABLE2 = _table(_TABLE2, "flip", float, {"to": "others"})
TABLE2_REDRAWN = _table(_TABLE2, "flip", float, {"to": "all"})

# Captions of Figures 4-6: training and testing error of the SVM, then of psi-learning, on one sample
_CAPTIONS = {4: (0.19, 0.2079, 0.16, 0.1987), 5: (0.14, 0.1743, 0.09, 0.1242), 6: (0.15, 0.1914, 0.13, 0.1857)}
_CAPTIONED = ("svm training", "svm testing", "psi training", "psi testing")
CAPTIONS = {
    figure: [Published({}, measure, value) for measure, value in zip(_CAPTIONED, values)]
    for figure, values in _CAPTIONS.items()
}

# Section 5.2: errors among the 34 test samples; sample 67 is missed by both, sample 66 by the SVM alone
LEUKEMIA = [
    Published({"method": "svm"}, "errors", 2.0),
    Published({"method": "svm"}, "sample 66 wrong", 1.0),
    Published({"method": "svm"}, "sample 67 wrong", 1.0),
    Published({"method": "psi"}, "errors", 1.0),
    Published({"method": "psi"}, "sample 66 wrong", 0.0),
    Published({"method": "psi"}, "sample 67 wrong", 1.0),
]
