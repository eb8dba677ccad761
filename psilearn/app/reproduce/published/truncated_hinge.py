"""Printed figures of Liu and Wu, Robust truncated-hinge-loss SVM (slides, 2006)."""

from __future__ import annotations

from ..experiment import Paper, Published

PAPER = Paper("Yufeng Liu and Yichao Wu", "Robust truncated-hinge-loss SVM", 2006, "slides")

PENALTIES = ("l2", "l1", "adaptive-l1")

# flip, k, d, loss; L2: error sd support; L1: error sd zeros; adaptive L1: error sd zeros
_LINEAR = """
0.1 4 2 hinge .1737 .0189 64.36 .1773 .0213 0.00 .1817 .0223 0.00
0.1 4 2 psi   .1520 .0182 20.88 .1526 .0192 0.00 .1563 .0225 0.00
0.1 4 2 auto  .1405 .0154 17.96 .1404 .0161 0.00 .1424 .0172 0.00
0.1 4 6 hinge .2354 .0223 63.26 .2271 .0227 0.00 .2002 .0249 0.00
0.1 4 6 psi   .2271 .0291 29.32 .2141 .0234 1.02 .1782 .0245 8.28
0.1 4 6 auto  .2186 .0210 32.12 .2054 .0234 1.02 .1702 .0231 7.84
0.2 3 2 hinge .2588 .0312 75.16 .2603 .0317 0.00 .2590 .0303 0.00
0.2 3 2 psi   .2381 .0179 21.96 .2359 .0155 0.06 .2377 .0186 0.62
0.2 3 2 auto  .2272 .0142 23.76 .2287 .0177 0.04 .2261 .0151 0.54
0.2 3 6 hinge .3012 .0207 73.32 .2866 .0264 0.00 .2695 .0249 0.00
0.2 3 6 psi   .2883 .0236 28.12 .2672 .0211 0.74 .2527 .0212 5.56
0.2 3 6 auto  .2776 .0221 33.18 .2614 .0205 0.74 .2434 .0137 4.44
0.2 4 2 hinge .3039 .0404 83.50 .3063 .0433 0.00 .3073 .0403 0.00
0.2 4 2 psi   .2611 .0312 25.32 .2609 .0319 0.04 .2630 .0322 0.06
0.2 4 2 auto  .2480 .0288 22.18 .2523 .0318 0.04 .2536 .0327 0.04
0.2 4 6 hinge .3553 .0286 79.74 .3514 .0268 0.00 .3357 .0359 0.00
0.2 4 6 psi   .3375 .0355 29.40 .3213 .0338 1.20 .2980 .0438 6.76
0.2 4 6 auto  .3300 .0339 32.02 .3153 .0341 0.78 .2858 .0331 6.10
"""

# flip, loss, error, sd, support
_NONLINEAR = """
0.1 hinge .1840 .0459 57.15
0.1 psi   .1695 .0355 21.00
0.1 auto  .1688 .0433 33.55
0.2 hinge .2755 .0183 67.60
0.2 psi   .2657 .0158 18.45
0.2 auto  .2615 .0217 27.15
"""


def _linear(wanted: str) -> list[Published]:
    printed = []
    for line in _LINEAR.strip().splitlines():
        flip, k, d, loss, *numbers = line.split()
        if flip != wanted:
            continue
        for i, penalty in enumerate(PENALTIES):
            setting = {"flip": float(flip), "k": int(k), "d": int(d), "loss": loss, "penalty": penalty}
            error, sd, count = (float(number) for number in numbers[3 * i : 3 * i + 3])
            printed.append(Published(setting, "testing", error, sd=sd))
            printed.append(Published(setting, "support" if penalty == "l2" else "zeros", count))
    return printed


def _nonlinear() -> list[Published]:
    printed = []
    for line in _NONLINEAR.strip().splitlines():
        flip, loss, error, sd, support = line.split()
        setting = {"flip": float(flip), "loss": loss}
        printed.append(Published(setting, "testing", float(error), sd=float(sd)))
        printed.append(Published(setting, "support", float(support)))
    return printed


TABLE1 = _linear("0.1")
TABLE2 = _linear("0.2")
TABLE3 = _nonlinear()
