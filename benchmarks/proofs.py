"""Proof files: what they cost beside the fit, and how many of the public hard-margin pairs are proved.

Each row fits, writes a proof, and checks it in exact arithmetic with the standard library alone; ``ours`` is the time
of writing and checking, ``theirs`` that of the fit. The goals: the fit's gap is proved, the fast check costs at most
five times the fit, writing a fifth of it, and 10,000 leaves of a tree are checked in two minutes by the exact one. A
file that is not accepted by both fails the run. The instances: psi-learning on the disk (Liu and Wu, 2006, Table 1, C =
10; C = .1 is where all depends on who is believed) and on the quadratic case, large trees; the data of the demo, breast
cancer with every tenth training label flipped, fitted by each method of ``psilearn prove``; three classes; rules; and
the pairs of Santana, Serrano, Schiffer and Vidal, Support vector machines with the hard-margin loss, 2022.

    python -m benchmarks proofs
    python -m benchmarks proofs --only psi
"""

from __future__ import annotations

import gzip
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, make_blobs
from sklearn.exceptions import ConvergenceWarning

import psilearn
from benchmarks.runner.data import flipped_cancer, folder
from benchmarks.runner.psi_instances import quadratic
from benchmarks.runner.rows import Plan, Row
from psilearn import (
    HardMargin,
    L0BoostClassifier,
    LPBoostClassifier,
    MarginClassifier,
    PsiClassifier,
    TruncatedHingeClassifier,
)
from psilearn.app.provable import PROVABLE
from psilearn.datasets import make_disk
from psilearn.proofs.rules import prove_booster
from psilearn.proofs.statement import state
from psilearn.proofs.write import proof_of, write

#: Gap that counts as proved: that of the fit, and what rounding may cost.
PROVED = 1.1e-4
#: Seconds for 10,000 leaves, and leaves from which that is measured.
LEAVES_SECONDS, MANY_LEAVES = 120.0, 1000


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
        began = time.process_time()
        same = psilearn.check(path, X, y, fast=True)
        quickly = time.process_time() - began
        size = path.stat().st_size
        leaves = gzip.decompress(path.read_bytes()).count(b'"leaf"')
    goals = {
        "gap proved": answer.ok and answer.gap <= PROVED,
        "checked fast in 5 times the fit, or a tenth of a second": quickly <= max(5.0 * fitted, 0.1),
        "written in a fifth of the fit, or a tenth of a second": written <= max(0.2 * fitted, 0.1),
    }
    if leaves >= MANY_LEAVES:
        goals["10,000 leaves checked in 2 minutes"] = 1e4 * checked / leaves <= LEAVES_SECONDS
    note = f"gap {answer.gap:.2g} (fit {estimator.gap_:.2g}), write {written:.2f} s, check {checked:.2f} s"
    note += f", fast {quickly:.2f} s, {leaves} leaves, {size} bytes"
    checks = {"accepted": answer.ok, "fast check agrees": tuple(same) == tuple(answer)}
    return Row(name, written + checked, fitted, goals=goals, checks=checks, note=note)


def proved_rules(name: str, booster: Any, X: np.ndarray, y: np.ndarray) -> Row:
    """Fit, write and check one proof about rules; ``fit`` is part of :func:`psilearn.prove`, so it is timed before."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "rules.proof"
        began = time.process_time()
        booster.fit(X, y)
        fitted = time.process_time() - began
        began = time.process_time()
        prove_booster(booster, X, y, path)
        written = time.process_time() - began
        began = time.process_time()
        answer = psilearn.check(path, X, y)
        checked = time.process_time() - began
        size = path.stat().st_size
    bound = getattr(booster, "upper_bound_", booster.lower_bound_)
    goals = {
        "bound of the fit proved": abs(answer.bound - bound) <= PROVED * abs(bound),
        "checked in 5 times the fit, or a second": checked <= max(5.0 * fitted, 1.0),
    }
    note = f"bound {answer.bound:.6g}, write {written:.2f} s, check {checked:.2f} s, {size} bytes"
    return Row(name, written + checked, fitted, goals=goals, checks={"accepted": answer.ok}, note=note)


def demo_rows(plan: Plan) -> Iterator[Row]:
    """The margin classifiers of the command on the demo's training data."""
    X, _, y, _ = flipped_cancer(seed=0)
    for method, make in PROVABLE.items():
        name = f"demo, {method}, C=0.1"
        if plan.wants(name):
            seconds = plan.seconds(20.0, 5.0)
            yield proved(name, make(0.1, seconds), X, y, seconds)


def small_rows(plan: Plan, seconds: float) -> Iterator[Row]:
    """Psi-learning on the disk and on the quadratic case, three classes, rules."""
    for flips, a, C in ((flips, a, C) for C in (10.0, 0.1) for flips in (0, 1, 2, 5) for a in (1.0, 2.0)):
        name = f"psi disk n=50, {flips} flips, a={a:g}, C={C:g}"
        if plan.wants(name):
            X, y = make_disk(50, n_flips=flips, random_state=flips)[:2]
            yield proved(name, PsiClassifier(a=a, C=C, solver="mip", time_limit=seconds), X, y, seconds)
    for n in (60, 100) if plan.quick else (60, 100, 150):
        name = f"psi quadratic case n={n}, d=8, C=1"
        if plan.wants(name):
            yield proved(name, PsiClassifier(a=2.0, solver="mip", time_limit=60.0), *quadratic(n, seed=0), 60.0)
    three = make_blobs(20, 2, centers=3, cluster_std=4.0, random_state=0)
    if plan.wants("three classes n=20, d=2, C=1"):
        model = TruncatedHingeClassifier(s=0.0, solver="patterns", time_limit=seconds)
        yield proved("three classes n=20, d=2, C=1", model, *three, 60.0)
    X, y = load_breast_cancer(return_X_y=True)
    for name, booster in (
        ("LP-Boost, WDBC, order 1", LPBoostClassifier(nu=0.2, binarizer="support")),
        ("LP-Boost, WDBC, order 2", LPBoostClassifier(nu=0.2, max_order=2, binarizer="support")),
        ("L0-RBoost, WDBC, order 1", L0BoostClassifier(binarizer="support")),
    ):
        if plan.wants(name):
            yield proved_rules(name, booster, X, y)


def rows(plan: Plan) -> Iterator[Row]:
    """The small instances first, then the pairs, the solved ones first."""
    seconds = plan.seconds(10.0, 3.0)
    yield from small_rows(plan, seconds)
    yield from demo_rows(plan)
    pairs = pd.read_csv(folder("hardmargin") / "published.csv").sort_values(["gap_percent", "seconds"], kind="stable")
    for _, pair in pairs.head(8 if plan.quick else len(pairs)).iterrows():
        name = f"{pair['name']} C={pair.C:g}"
        if plan.wants(name):
            table = pd.read_csv(folder("hardmargin") / f"{pair['name']}.csv.gz")
            X, y = table.drop(columns="target").to_numpy(dtype=float), (table["target"] > 0).to_numpy().astype(int)
            estimator = MarginClassifier(HardMargin(), C=float(pair.C), solver="mip", time_limit=seconds)
            yield proved(name, estimator, X, y, seconds)
