"""What numba costs a newcomer: the first tiny fit of each solver with an empty cache, and again in a second process.

CPU seconds of the fit in a fresh process, numba's import included. A second process finds the machine code on disk.
The fit "after" another one shares its cache, so it pays only for what that one did not compile.

    python benchmarks/first_compile.py            all cases
    python benchmarks/first_compile.py cones      those whose name contains a word
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from typing import NamedTuple

#: Seconds that a fit in a second process may take.
WARM = 0.8

CODE = """
import time
import warnings
import numpy as np
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X = rng.normal(size=(24, 2))
y = np.digitize(X[:, 0] + rng.normal(size=24), {edges})
import psilearn
start = time.process_time()
{fit}.fit(X, y)
print(time.process_time() - start)
"""


class Case(NamedTuple):
    """A fit, the most seconds the first may take, what divides the classes, and the fit that went before."""

    name: str
    fit: str
    target: float
    edges: tuple[float, ...] = (0.0,)
    after: str | None = None


PSI, HARD = "psilearn.PsiClassifier()", "psilearn.MarginClassifier(psilearn.core.losses.HardMargin(), solver='mip')"
CASES = [
    Case("psi, l2", PSI, 8.0),
    Case("psi, l1", "psilearn.PsiClassifier(penalty='l1')", 8.0),
    Case("hard margin, after psi", HARD, 8.0, after=PSI),
    Case("cones", "psilearn.TruncatedHingeClassifier(s=0, solver='cones')", 5.0, (-0.5, 0.5)),
    Case("L0-RBoost", "psilearn.L0BoostClassifier()", 4.0),
]


def seconds(fit: str, edges: tuple[float, ...], cache: str) -> float:
    """CPU seconds of one fit in a fresh process with this cache."""
    code = CODE.format(fit=fit, edges=edges)
    environment = os.environ | {"NUMBA_CACHE_DIR": cache}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    return float(run.stdout)


def main() -> None:
    missed = False
    for case in CASES:
        if not all(word in case.name for word in sys.argv[1:]):
            continue
        with tempfile.TemporaryDirectory() as cache:
            if case.after is not None:
                seconds(case.after, case.edges, cache)
            first = seconds(case.fit, case.edges, cache)
            second = min(seconds(case.fit, case.edges, cache) for _ in range(3))
        is_met = first <= case.target and second <= WARM
        missed |= not is_met
        verdict = "met" if is_met else "missed"
        print(f"{case.name:24} first {first:5.1f} s (target {case.target:g})   second process {second:4.2f} s "
              f"(target {WARM:g})   {verdict}", flush=True)  # fmt: skip
    raise SystemExit(missed)


if __name__ == "__main__":
    main()
