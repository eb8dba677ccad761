"""What a user waits for before the first answer: the import, and the first small fit of a fresh process.

Targets: `import psilearn` adds at most 0.2 s to `import sklearn.svm`; the first fit of a 100 x 5 problem in a second
process (numba cache warm) takes at most 0.8 s, numba's import included; the first fit ever compiles a few seconds.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

IMPORTS = """
import time
start = time.process_time()
import sklearn.svm
middle = time.process_time()
import psilearn
print(time.process_time() - middle)
"""

FIRST_FIT = """
import time
import numpy as np
from psilearn import {name}
rng = np.random.default_rng(0)
X = rng.normal(size=(100, 5))
y = (X[:, 0] + 0.5 * rng.normal(size=100) > 0).astype(int)
start = time.process_time()
{name}({arguments}).fit(X, y)
print(time.process_time() - start)
"""

FITS = [
    ("SVMClassifier", ""),
    ("SVMClassifier", "penalty='l1'"),
    ("SVMClassifier", "kernel='rbf'"),
    ("TruncatedHingeClassifier", ""),
    ("PsiClassifier", ""),
    ("RejectClassifier", ""),
]


def seconds(code: str, **environment: str) -> float:
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ | environment
    )
    return float(out.stdout.split()[-1])


def main() -> None:
    cost = min(seconds(IMPORTS) for _ in range(3))
    print(f"import psilearn after sklearn.svm: {cost:.3f} s (target 0.2)")
    with tempfile.TemporaryDirectory() as cache:
        for name, arguments in FITS:
            code = FIRST_FIT.format(name=name, arguments=arguments)
            first = seconds(code, NUMBA_CACHE_DIR=cache)
            second = min(seconds(code, NUMBA_CACHE_DIR=cache) for _ in range(2))
            print(f"{name}({arguments}): first fit ever {first:.2f} s, in a second process {second:.2f} s (target 0.8)")


if __name__ == "__main__":
    main()
