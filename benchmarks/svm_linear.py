"""Linear SVM against LIBLINEAR, CPU seconds in one process on one thread.

Ours: free intercept, relative duality gap <= 1e-3, certified. LIBLINEAR: hinge dual at its default tolerance and number
of iterations for two classes, Crammer-Singer with tol=0.1 for k classes; it penalises the intercept.
Data, standardised: (a) Gaussian features, labels by noisy linear scores, 10% redrawn; (b) make_classification with 20
informative features and flip_y=0.1.

Usage: python benchmarks/svm_linear.py [--million]
"""

import argparse
import resource
import time
import warnings

import numpy as np
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from psilearn.convex import newton
from psilearn.core.losses import Hinge
from psilearn.core.penalties import Penalty
from psilearn.core.problem import Problem
from psilearn.core.solving import Options
from psilearn.core.spaces import LinearSpace

TARGET = 1.0


def gaussian(n, d, k, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    noise = 0.3 * np.sqrt(d) * rng.standard_normal((n, k))
    y = (X @ rng.standard_normal((d, k)) + noise).argmax(axis=1)
    redrawn = rng.random(n) < 0.1
    y[redrawn] = rng.integers(0, k, redrawn.sum())
    return X, y


def informative(n, d, k, seed=0):
    return make_classification(n, d, n_informative=20, n_classes=k, flip_y=0.1, random_state=seed)


def cpu(job):
    began = time.process_time()
    answer = job()
    return time.process_time() - began, answer


def problem_of(X, y, k, C):
    return Problem(LinearSpace(X), y.astype(np.intp), k, Hinge(), Penalty(l2=1.0), C, np.ones(len(y)))


def rival(k, C):
    if k == 2:
        return LinearSVC(loss="hinge", dual=True, C=C, random_state=0)
    return LinearSVC(multi_class="crammer_singer", tol=0.1, C=C, random_state=0)


def compare(name, X, y, k, C):
    ours, result = cpu(lambda: newton.solve(problem_of(X, y, k, C), Options(tol=1e-3)))
    theirs, _ = cpu(lambda: rival(k, C).fit(X, y))
    print(
        f"{name:12s} k={k} C={C:<5g} ours {ours:6.2f} s (gap {result.gap:.1e}, {result.n_iter} steps)  "
        f"LIBLINEAR {theirs:6.2f} s  ratio {ours / theirs:.3f}  target {TARGET}",
        flush=True,
    )


def million():
    X, y = gaussian(10**6, 50, 2)
    seconds, result = cpu(lambda: newton.solve(problem_of(X, y, 2, 1.0), Options(tol=1e-3)))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    size = X.nbytes / 2**30
    print(f"n=1e6 k=2 C=1: {seconds:.2f} s, gap {result.gap:.1e}, X {size:.2f} GiB, peak of the process {peak:.2f} GiB")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--million", action="store_true", help="two classes, a million samples, ours alone")
    if parser.parse_args().million:
        return million()
    warnings.simplefilter("ignore", ConvergenceWarning)
    for k, Cs in ((2, (0.01, 0.1, 1.0)), (5, (0.1, 1.0))):
        for make in (gaussian, informative):
            X, y = make(100_000, 50, k)
            X = StandardScaler().fit_transform(X)
            newton.solve(problem_of(X[:500], y[:500], k, 1.0), Options(tol=1e-3))  # compile
            for C in Cs:
                compare(make.__name__, X, y, k, C)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
