"""Printed figures of Liu and Wu, Optimizing psi-learning via mixed integer programming (2006)."""

from __future__ import annotations

from ..experiment import Paper, Published

PAPER = Paper(
    "Yufeng Liu and Yichao Wu", "Optimizing ψ-learning via mixed integer programming", 2006, "Statistica Sinica"
)

COSTS = ("1", "10", "1000", "1e+07")
"""The values of C in Table 1."""

SVM = "svm"
"""Stands in the place of a for the support vector machine."""

PSI, RESTRICTED = "psi", "restricted psi"
"""psi-learning solved whole, and with the points outside the margin of the SVM held there (Section 3.3)."""

# number of flips, then the errors at the four values of C
_TABLE1_SVM = """
0 .0486 .0344 .0228 .0222
1 .0546 .0418 .0350 .0360
2 .0571 .0425 .0413 .0413
5 .0675 .0583 .0573 .0573
"""

# number of flips, a, errors of unrestricted psi-learning at the four values of C, then of the restricted one
_TABLE1_PSI = """
0 0.1 .0322 .0275 .0209 .0222 .0291 .0253 .0203 .0222
0 0.2 .0314 .0260 .0215 .0222 .0292 .0262 .0215 .0222
0 0.5 .0293 .0258 .0219 .0222 .0291 .0254 .0219 .0222
0 1.0 .0313 .0276 .0227 .0222 .0287 .0274 .0227 .0222
0 1.5 .0461 .0361 .0234 .0222 .0303 .0292 .0233 .0222
0 1.8 .0576 .0398 .0237 .0222 .0310 .0302 .0237 .0222
0 1.9 .0614 .0411 .0238 .0222 .0316 .0303 .0238 .0222
0 2.0 .0633 .0419 .0238 .0222 .0319 .0307 .0238 .0222
1 0.1 - .0322 .0288 .0279 .0379 .0309 .0289 .0289
1 0.2 .0349 .0344 .0283 .0279 .0381 .0332 .0282 .0289
1 0.5 .0331 .0311 .0279 .0276 .0367 .0317 .0278 .0286
1 1.0 .0370 .0325 .0274 .0281 .0367 .0335 .0274 .0286
1 1.5 .0535 .0382 .0269 .0276 .0396 .0386 .0269 .0279
1 1.8 .0643 .0437 .0270 .0286 .0440 .0437 .0270 .0284
1 1.9 .0679 .0436 .0270 .0286 .0451 .0433 .0270 .0284
1 2.0 .0691 .0447 .0272 .0286 .0465 .0437 .0272 .0289
2 0.1 - - .0270 .0275 .0382 .0292 .0271 .0303
2 0.2 - .0316 .0263 .0277 .0379 .0306 .0263 .0303
2 0.5 .0339 .0309 .0271 .0277 .0372 .0305 .0271 .0303
2 1.0 .0427 .0322 .0287 .0273 .0387 .0312 .0287 .0303
2 1.5 .0563 .0383 .0295 .0291 .0446 .0386 .0295 .0305
2 1.8 .0672 .0452 .0300 .0294 .0521 .0444 .0300 .0305
2 1.9 .0693 .0456 .0298 .0289 .0543 .0448 .0298 .0305
2 2.0 .0725 .0455 .0298 .0285 .0553 .0448 .0298 .0305
5 0.1 - - - - .0470 .0456 .0396 .0413
5 0.2 - - - - .0465 .0439 .0392 .0413
5 0.5 .0484 .0407 .0389 .0390 .0462 .0408 .0382 .0415
5 1.0 .0498 .0442 .0354 .0396 .0472 .0437 .0346 .0422
5 1.5 .0601 .0511 .0354 .0399 .0562 .0504 .0345 .0413
5 1.8 .0709 .0559 .0351 .0408 .0640 .0559 .0343 .0421
5 1.9 .0721 .0560 .0351 .0394 .0666 .0560 .0343 .0421
5 2.0 .0742 .0561 .0362 .0415 .0677 .0561 .0354 .0421
"""

# case, penalty, method, then training, tuning and testing error each with its standard deviation, zero coefficients
_TABLE2 = """
1 l1 svm .0688 .0306 .0676 .0324 .0770 .0202 0.00
1 l1 psi .0537 .0258 .0537 .0261 .0620 .0094 0.00
1 l2 svm .0682 .0307 .0654 .0320 .0761 .0203 0.00
1 l2 psi .0549 .0254 .0534 .0268 .0617 .0098 0.00
2 l1 svm .0697 .0302 .0706 .0324 .0828 .0208 1.07
2 l1 psi .0562 .0255 .0571 .0269 .0702 .0144 0.88
2 l2 svm .0746 .0299 .0721 .0310 .0902 .0194 0.00
2 l2 psi .0589 .0270 .0589 .0270 .0753 .0177 0.00
3 l1 svm .0686 .0301 .0778 .0369 .0895 .0251 3.48
3 l1 psi .0576 .0262 .0685 .0330 .0807 .0203 3.03
3 l2 svm .0750 .0279 .0899 .0364 .1079 .0238 0.00
3 l2 psi .0559 .0254 .0787 .0330 .0965 .0207 0.00
4 l1 svm .0699 .0304 .0828 .0362 .1015 .0282 7.40
4 l1 psi .0554 .0258 .0710 .0332 .0882 .0246 7.01
4 l2 svm .0738 .0297 .1069 .0379 .1330 .0263 0.00
4 l2 psi .0550 .0259 .1010 .0376 .1242 .0266 0.00
"""

# penalty, method, training, tuning and testing error, zero coefficients
_TABLE3 = """
l1 svm .0250 .0190 .0474 22.2
l2 svm .0190 .0160 .0374 0
l1 psi .0120 .0170 .0420 22.2
l2 psi .0120 .0270 .0333 0
"""


def _rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.strip().splitlines()]


def _value(word: str) -> float | None:
    return None if word == "-" else float(word)


def _table1() -> list[Published]:
    printed = []
    for flips, *errors in _rows(_TABLE1_SVM):
        setting = {"penalty": "l2", "flips": int(flips), "a": SVM, "restricted": False}
        printed += [Published(setting, f"C={C}", float(error)) for C, error in zip(COSTS, errors)]
    for flips, a, *errors in _rows(_TABLE1_PSI):
        for restricted, some in ((False, errors[:4]), (True, errors[4:])):
            psi = {"penalty": "l2", "flips": int(flips), "a": float(a), "restricted": restricted}
            printed += [Published(psi, f"C={C}", _value(error)) for C, error in zip(COSTS, some)]
    return printed


def _variants(method: str) -> tuple[str, ...]:
    """Return the methods a printed row of Tables 2 and 3 is compared with: it is of restricted psi-learning."""
    return (method,) if method == SVM else (RESTRICTED, method)


def _table2() -> list[Published]:
    printed = []
    for case, penalty, method, *numbers in _rows(_TABLE2):
        values = [float(number) for number in numbers]
        for variant in _variants(method):
            setting = {"case": int(case), "penalty": penalty, "method": variant}
            for i, measure in enumerate(("training", "tuning", "testing")):
                printed.append(Published(setting, measure, values[2 * i], sd=values[2 * i + 1]))
            printed.append(Published(setting, "zeros", values[6]))
    return printed


def _table3() -> list[Published]:
    printed = []
    for penalty, method, *numbers in _rows(_TABLE3):
        for variant in _variants(method):
            setting = {"penalty": penalty, "method": variant}
            for measure, number in zip(("training", "tuning", "testing", "zeros"), numbers):
                printed.append(Published(setting, measure, float(number)))
    return printed


TABLE1 = _table1()
TABLE2 = _table2()
TABLE3 = _table3()
