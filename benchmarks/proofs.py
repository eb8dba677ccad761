"""Proof files: what they cost beside the fit, and how many of the public hard-margin pairs are proved.

Each row fits, writes a proof, and checks it in exact arithmetic with the standard library alone; ``ours`` is the time
of writing and checking, ``theirs`` that of the fit. The goals: the fit's gap is proved, and checking costs at most
five times the fit (or a second). A file that is not accepted fails the run.

    python -m benchmarks proofs                  pairs of Santana, Serrano, Schiffer and Vidal, Support vector machines
    python -m benchmarks proofs --only psi       with the hard-margin loss, 2022, and psi-learning (Table 1, C = 10)
"""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning

import psilearn
from benchmarks.runner.data import folder
from benchmarks.runner.rows import Plan, Row
from psilearn import HardMargin, MarginClassifier, PsiClassifier
from psilearn.datasets import make_disk
from psilearn.proofs.statement import state
from psilearn.proofs.write import proof_of, write

#: Gap that counts as proved: that of the fit, and what rounding may cost.
PROVED = 1.1e-4


def proved(name: str, estimator: Any, X: np.ndarray, y: np.ndarray, seconds: float) -> Row:
    """Fit, write and check one proof."""
    with tempfile.TemporaryDirectory() as place, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        path = Path(place) / "fit.proof"
        began = time.process_time()
        estimator.fit(X, y)
        fitted = time.process_time() - began
        began = time.process_time()
        statement = state(estimator, X, y)
        write(path, proof_of(statement, estimator.certificate_, float(estimator.gap_tol), seconds))
        written = time.process_time() - began
        began = time.process_time()
        answer = psilearn.check(path, X, y)
        checked = time.process_time() - began
        size = path.stat().st_size
    goals = {
        "gap proved": answer.ok and answer.gap <= PROVED,
        "checked in 5 times the fit, or a second": checked <= max(5.0 * fitted, 1.0),
    }
    note = f"gap {answer.gap:.2g}, write {written:.2f} s, check {checked:.2f} s, {size} bytes"
    return Row(name, written + checked, fitted, goals=goals, checks={"accepted": answer.ok}, note=note)


def rows(plan: Plan) -> Iterator[Row]:
    """Psi-learning on the disk (Liu and Wu, 2006, Table 1) first, then the pairs, the solved ones first."""
    seconds = plan.seconds(10.0, 3.0)
    for flips, a in ((flips, a) for flips in (0, 1, 2, 5) for a in (1.0, 2.0)):
        name = f"psi disk n=50, {flips} flips, a={a:g}, C=10"
        if plan.wants(name):
            X, y = make_disk(50, n_flips=flips, random_state=flips)[:2]
            yield proved(name, PsiClassifier(a=a, C=10.0, solver="mip", time_limit=seconds), X, y, seconds)
    pairs = pd.read_csv(folder("hardmargin") / "published.csv").sort_values(["gap_percent", "seconds"], kind="stable")
    for _, pair in pairs.head(8 if plan.quick else len(pairs)).iterrows():
        name = f"{pair['name']} C={pair.C:g}"
        if plan.wants(name):
            table = pd.read_csv(folder("hardmargin") / f"{pair['name']}.csv.gz")
            X, y = table.drop(columns="target").to_numpy(dtype=float), (table["target"] > 0).to_numpy().astype(int)
            estimator = MarginClassifier(HardMargin(), C=float(pair.C), solver="mip", time_limit=seconds)
            yield proved(name, estimator, X, y, seconds)
