"""Data in blocks, many fits at once, and proofs on several cores.

* **Blocks** against arrays in memory: the same linear fit on 64 chunks, on a memory-mapped file of float32, and 20
  values of C in one go against one fit.
* **Memory**: a process that may not use more than a limit (RLIMIT_DATA) fits data four times as large, from a file that
  is read block by block; its peak is compared with one and a half blocks and 20 bytes a row.
* **Workers**: two dask workers against one (wall seconds, since several processes work), and the exact search with two
  threads against one (wall seconds, the best of some runs each).
* **A file of 1e8 rows**, 10 features of float32 (4 GB): certified to 1e-3, reading included, against
  ``SGDClassifier.partial_fit`` in epochs until it is as good. PSILEARN_SCRATCH names a folder with room for it. Files
  are written, and that one is fitted, on all cores that joblib counts (LOKY_MAX_CPU_COUNT).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import SGDClassifier

from benchmarks.runner.psi_instances import LADDERS, problem_of
from benchmarks.runner.rows import Plan, Row, at_most, timed
from psilearn import PsiClassifier, RejectClassifier, SVMClassifier, TruncatedHingeClassifier, regularization_path
from psilearn.core.chunks.blocks import RowBlocks
from psilearn.core.solving import Options
from psilearn.exact.two_class import solver as mip

TOL = 1e-3
#: Rows that are written, or handed to partial_fit, at a time.
STEP = 1_000_000
#: The instances of the exact search: about 5 to 60 s each on one core.
PROOFS = (("quadratic, d = 8, C = 1", 200), ("Gaussians, d = 8, C = 1", 750), ("Gaussians, d = 30, C = 1", 400))


def weights(p: int) -> NDArray[np.float64]:
    return np.random.default_rng(p).normal(size=p) / np.sqrt(p)


def draw(n: int, p: int, seed: int) -> tuple[NDArray[np.float32], NDArray[np.int8]]:
    """Gaussian rows, labels by a noisy linear rule, in float32."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p), dtype=np.float32)
    return X, (X @ weights(p) + 0.5 * rng.standard_normal(n) > 0).astype(np.int8)


def scratch() -> Path:
    return Path(os.environ.get("PSILEARN_SCRATCH", tempfile.gettempdir()))


def written(n: int, p: int) -> tuple[Path, Path]:
    """Files of rows and labels, made once."""
    rows, labels = (scratch() / f"psilearn-{n}-{p}-{kind}.bin" for kind in ("X", "y"))
    if not rows.exists() or rows.stat().st_size != 4 * n * p:
        X = np.memmap(rows, np.float32, "w+", shape=(n, p))
        y = np.memmap(labels, np.int8, "w+", shape=(n,))

        def write(at: int) -> None:
            X[at : at + STEP], y[at : at + STEP] = draw(min(STEP, n - at), p, at)

        with ThreadPoolExecutor(joblib.cpu_count()) as pool:
            list(pool.map(write, range(0, n, STEP)))
    return rows, labels


def opened(n: int, p: int) -> tuple[Any, Any]:
    rows, labels = written(n, p)
    return np.memmap(rows, np.float32, "r", shape=(n, p)), np.memmap(labels, np.int8, "r", shape=(n,))


def wall(task: Callable[[], Any], repeats: int = 1) -> tuple[float, Any]:
    """Wall seconds of the fastest of some runs, and the last answer."""
    best = np.inf
    for _ in range(repeats):
        began = time.perf_counter()
        answer = task()
        best = min(best, time.perf_counter() - began)
    return float(best), answer


def blocks(plan: Plan) -> Iterator[Row]:
    n, p = (100_000, 50) if plan.quick else (1_000_000, 200)
    kinds = {kind: f"n={n:.0e} p={p} float32, {kind}" for kind in ("64 chunks", "memmap")}
    if not any(map(plan.wants, kinds.values())):
        return
    X, y = opened(n, p)
    held, labels = np.array(X), np.array(y)
    model = SVMClassifier(C=10.0 / n, tol=TOL)
    for given in (held[:5000], RowBlocks.split(held[:5000], 2)):
        SVMClassifier(C=0.01, tol=TOL).fit(given, labels[:5000])
    theirs, _ = timed(lambda: model.fit(held, labels), 2)
    value = model.objective_
    for kind, given, goal in (("64 chunks", RowBlocks.split(held, 64), 1.3), ("memmap", X, 1.5)):
        ours, _ = timed(lambda: model.fit(given, labels), 2)  # noqa: B023
        same = abs(model.objective_ - value) <= TOL * value
        checks = {"gap at most 1e-3": model.gap_ <= TOL, "objective as in memory": same}
        yield Row(kinds[kind], ours, theirs, at_most(ours / theirs, goal), checks, f"{model.n_iter_} passes")


def paths(plan: Plan) -> Iterator[Row]:
    """Twenty values of C in one go against one fit, on the same kind of data."""
    for penalty, n, p in (("l2", 1_000_000, 50), ("l1", 1_000_000, 50), ("l2", 200_000, 200)):
        n = n // 10 if plan.quick else n
        names = {where: f"20 values of C, {penalty}, n={n:.0e} p={p}, {where}" for where in ("in memory", "chunks")}
        if not any(map(plan.wants, names.values())):
            continue
        X, y = draw(n, p, 0)
        model, Cs = SVMClassifier(C=10.0 / n, penalty=penalty, tol=TOL), np.geomspace(1, 100, 20) / n
        for given in (X[:5000], RowBlocks.split(X[:5000], 2)):
            regularization_path(model, given, y[:5000], 200.0 * Cs)
        for where, given in (("in memory", X), ("chunks", RowBlocks.split(X, 64))):
            if plan.wants(names[where]):
                one, _ = timed(lambda: model.fit(given, y), 2)  # noqa: B023
                ours, path = timed(lambda: regularization_path(model, given, y, Cs))  # noqa: B023
                checks = {"every gap at most 1e-3": bool(np.all(path.gaps <= TOL))}
                note = f"theirs: one fit; at most {path.n_iters.max()} passes"
                yield Row(names[where], ours, one, at_most(ours / one, 3.0), checks, note)


#: What a process of limited memory does. Its blocks are read into memory, so that the limit counts them.
LIMITED = """
import json, resource, sys, time
import numpy as np
import psilearn
from benchmarks.scale import ESTIMATORS, opened, read_blocks
from psilearn.core.chunks.blocks import RowBlocks
name, n, p, limit, jobs = sys.argv[1], *map(int, sys.argv[2:])
model = ESTIMATORS[name](n).set_params(n_jobs=jobs)
few = [np.array(part[:30_000]) for part in opened(n, p)]
model.fit(RowBlocks.split(few[0], 4), few[1])  # compile
del few
X, y = read_blocks(n, p), opened(n, p)[1]
def size(key):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(key)) * 1024
before = size("VmData")
resource.setrlimit(resource.RLIMIT_DATA, (before + limit, before + limit))
open("/proc/self/clear_refs", "w").write("5")  # the peak begins again
resident = size("VmRSS")
began = time.process_time()
model.fit(X, y)
seconds = time.process_time() - began
peak = size("VmHWM") - resident - n  # the labels are a mapped file
print(json.dumps([seconds, peak, str(model.status_.value)]))
"""

#: Rows of a block that is read from a file.
READ = 160_000


def read_blocks(n: int, p: int) -> RowBlocks:
    """The rows of a file, read in blocks when they are wanted."""
    rows = written(n, p)[0]
    return RowBlocks([lambda at=at: _read(rows, at, min(READ, n - at), p) for at in range(0, n, READ)], p)


ESTIMATORS: dict[str, Callable[[int], Any]] = {
    "SVM": lambda n: SVMClassifier(C=10.0 / n, tol=TOL),
    "Reject": lambda n: RejectClassifier(C=10.0 / n, tol=TOL),
    "TruncatedHinge": lambda n: TruncatedHingeClassifier(C=10.0 / n, tol=TOL),
    "Psi(a=2)": lambda n: PsiClassifier(a=2.0, C=10.0 / n, tol=TOL),
}


def memory(plan: Plan) -> Iterator[Row]:
    """Fit a file four times as large as the memory that the process may add to what it has when it is warm."""
    n, p = (2_000_000, 100) if plan.quick else (5_000_000, 100)
    size = 4 * n * p
    for name, jobs in [(name, 1) for name in ESTIMATORS] + [("SVM", 2)] * (not plan.quick):
        label = f"{size / 1e9:.1f} GB in {size / 4e9:.1f} GB, {name}, {jobs} threads"
        if not plan.wants(label):
            continue
        written(n, p)
        command = [sys.executable, "-c", LIMITED, name, *map(str, (n, p, size // 4, jobs))]
        run = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[1])
        if run.returncode:
            yield Row(label, np.nan, checks={"fitted within the limit": False}, note=run.stderr[-300:])
            continue
        seconds, peak, status = json.loads(run.stdout.splitlines()[-1])
        allowed = 1.5 * jobs * 4 * READ * p + 20 * n
        goals = {"peak at most 1.5 blocks per thread + 20 bytes per row": peak <= allowed}
        note = f"peak {peak / 1e6:.0f} of {allowed / 1e6:.0f} MB, a block {4e-6 * READ * p:.0f} MB; {status}"
        yield Row(label, seconds, goals=goals, checks={"fitted within the limit": True}, note=note)


def workers(plan: Plan) -> Iterator[Row]:
    """Two dask workers against one, wall seconds."""
    name = "two dask workers against one"
    if not plan.wants(name):
        return
    import dask.array as da
    from distributed import Client, LocalCluster

    n, p = (400_000, 100) if plan.quick else (2_000_000, 100)
    y = opened(n, p)[1]
    model, seconds = SVMClassifier(C=10.0 / n, tol=TOL), []
    for count in (1, 2):
        with (
            LocalCluster(count, threads_per_worker=1, dashboard_address=None, silence_logs=50) as cluster,
            Client(cluster),
        ):
            files = written(n, p)
            step = n // 32
            rows = da.concatenate([da.from_delayed(_piece(files[0], at, step, p), (step, p), np.float32)
                                   for at in range(0, n, step)])  # fmt: skip
            model.fit(rows, np.array(y))
            took, _ = wall(lambda: model.fit(rows, np.array(y)), 3)  # noqa: B023
            seconds.append(took)
    goals = at_most(seconds[1] / seconds[0], 1 / 1.6)
    yield Row(name, seconds[1], seconds[0], goals, {"gap": model.gap_ <= TOL}, f"wall seconds, {model.n_iter_} passes")


def _piece(path: Path, first: int, n: int, p: int) -> Any:
    import dask

    return dask.delayed(_read)(path, first, n, p)


def _read(path: Path, first: int, n: int, p: int) -> NDArray[np.float32]:
    return np.fromfile(path, np.float32, n * p, offset=4 * first * p).reshape(n, p)


def proofs(plan: Plan) -> Iterator[Row]:
    """The exact search with two threads against one, wall seconds."""
    for kind, n in PROOFS[:1] if plan.quick else PROOFS:
        name = f"two threads against one, {kind}, n = {n}"
        if not plan.wants(name):
            continue
        draw_rows, C, _ = LADDERS[kind]
        X, y = draw_rows(n)
        for jobs in (1, 2):
            mip.solve(problem_of(X, y, C, 2.0, 2), Options(time_limit=3.0, n_jobs=jobs))
        found = []
        for jobs in (1, 2):
            problem = problem_of(X, y, C, 2.0, 2)
            options = Options(gap_tol=1e-6, time_limit=plan.seconds(120.0, 60.0), n_jobs=jobs)
            found.append(wall(lambda: mip.solve(problem, options), 3))  # noqa: B023
        (one, serial), (two, parallel) = found
        same = abs(parallel.objective - serial.objective) <= 1e-6 * serial.objective
        note = f"wall seconds; {serial.n_iter} and {parallel.n_iter} nodes, gaps {serial.gap:.0e}, {parallel.gap:.0e}"
        yield Row(name, two, one, at_most(two / one, 1 / 1.7), {"same optimum": same}, note)


def sgd_until(X: Any, y: Any, C: float, goal: float, most: int) -> tuple[float, float, int]:
    """CPU seconds of the reading, fitting and checking of SGD, its objective, and its epochs."""
    n = len(y)
    model, value, epoch = SGDClassifier(alpha=1.0 / (C * n)), np.inf, 0
    began = time.process_time()
    while value > goal and epoch < most:
        for at in range(0, n, STEP):
            model.partial_fit(X[at : at + STEP], y[at : at + STEP], classes=[0, 1])
        epoch += 1
        value = 0.5 * float(np.sum(model.coef_.astype(float) ** 2))
        for at in range(0, n, STEP):
            signs = 2.0 * y[at : at + STEP] - 1.0
            value += C * float(np.maximum(1.0 - signs * model.decision_function(X[at : at + STEP]), 0.0).sum())
    return time.process_time() - began, value, epoch


def large(plan: Plan) -> Iterator[Row]:
    n, p = (5_000_000, 10) if plan.quick else (100_000_000, 10)
    name = f"n={n:.0e} p={p} float32 in a file, SGDClassifier.partial_fit"
    if not plan.wants(name):
        return
    X, y = opened(n, p)
    C = 100.0 / n
    SVMClassifier(C=0.01, tol=TOL).fit(RowBlocks.split(np.array(X[:30_000]), 2), np.array(y[:30_000]))
    model = SVMClassifier(C=C, tol=TOL, n_jobs=joblib.cpu_count())
    began = time.perf_counter()
    ours, _ = timed(lambda: model.fit(X, y))
    took = time.perf_counter() - began
    theirs, value, epochs = sgd_until(X, y, C, model.objective_ * (1 + TOL), 5)
    note = (
        f"wall {took:.0f} s with {model.n_jobs} threads, {model.n_iter_} passes, gap {model.gap_:.1e}; theirs after "
        f"{epochs} epochs {value / model.objective_ - 1:.1e} above ours"
    )
    yield Row(name, ours, theirs, at_most(ours / theirs, 1.0), {"gap at most 1e-3": model.gap_ <= TOL}, note)


def rows(plan: Plan) -> Iterator[Row]:
    """Blocks, paths, memory, workers, proofs, and the large file."""
    yield from blocks(plan)
    yield from paths(plan)
    yield from memory(plan)
    yield from workers(plan)
    yield from proofs(plan)
    yield from large(plan)
