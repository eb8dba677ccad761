"""Finding wrong labels: psilearn.find_label_issues against cleanlab on data with known flips, and simulated coverage.

Labels are flipped uniformly to another class, by class (some classes lose more, each to one other class), or near
the boundary (rows on which a random forest hesitates go to the class it prefers otherwise). cleanlab gets held-out
probabilities from five folds of tuned logistic regression, of HistGradientBoosting, and of an SVC, tuned over C and
gamma and calibrated. Printed are average precisions and our CPU seconds; the best of the three is chosen on every line
by the truth, which nobody can do in practice.

The audit was tuned on ionosphere, pima, vote and wdbc of the ten sets, and on clvheart, huheart, spambase, banknote,
phoneme, satimage, glass and vowel, 300 or 400 rows each, flipped with seed 7; ``--fresh`` leaves these out.

    python benchmarks/label_audit.py [--seeds N] [--rows N] [--shares S ...] [--sets NAME ...] [--fresh]
    python benchmarks/label_audit.py --coverage 200

The folder $PSILEARN_DATA holds gzip-compressed CSV files with a column ``target``; wdbc comes with scikit-learn.
"""

import argparse
import os
import time
import warnings
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from cleanlab.rank import get_label_quality_scores
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import average_precision_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_predict
from sklearn.svm import SVC

from psilearn import find_label_issues
from psilearn.app.compare.job import flip_labels
from psilearn.app.encoding import TableEncoder
from psilearn.app.tables import understand

LINEAR = ("wdbc", "bcw", "vote", "dna", "segment")
OTHERS = ("sonar", "pima", "ionosphere", "german_credit", "vehicle")
TUNED_ON = {"ionosphere", "pima", "vote", "wdbc"}
KINDS = ("uniform", "class", "boundary")


def load(name, rows):
    if name == "wdbc":
        frame = load_breast_cancer(as_frame=True).frame
        frame["target"] = frame["target"].astype(str)
    else:
        folder = Path(os.environ.get("PSILEARN_DATA", "data"))
        frame = pd.read_csv(folder / f"{name}.csv.gz", keep_default_na=False, na_values=[""])
    # In random order: rivals tune and calibrate on folds of rows in a row, and sonar is sorted by class.
    frame = frame.sample(min(rows, len(frame)), random_state=0).reset_index(drop=True)
    data = understand(frame, "target")
    return TableEncoder(numbers=data.numbers).fit_transform(data.frame), data.labels.to_numpy(dtype=str)


def flipped(X, y, kind, share, seed):
    """Return labels of which the share was changed."""
    if kind == "uniform":
        return flip_labels(y, share, seed)[0]
    rng = np.random.default_rng(seed)
    classes, codes = np.unique(y, return_inverse=True)
    k, n = classes.size, codes.size
    if kind == "class":
        weights = (rng.dirichlet(np.full(k, 0.5)) + 0.02)[codes]
        other = ((np.arange(k) + rng.integers(1, k, k)) % k)[codes]
    else:
        forest = RandomForestClassifier(200, oob_score=True, random_state=seed, min_samples_leaf=2).fit(X, codes)
        p = forest.oob_decision_function_.copy()
        own = p[np.arange(n), codes]
        p[np.arange(n), codes] = -1.0
        weights, other = np.exp(-3 * np.abs(own - p.max(axis=1))), p.argmax(axis=1)
    rows = rng.choice(n, round(share * n), replace=False, p=weights / weights.sum())
    codes[rows] = other[rows]
    return classes[codes]


def ours(X, y):
    table = find_label_issues(X, y)
    score = np.empty(len(y))
    score[table["index"]] = -np.arange(len(y))  # the ranking itself
    return score


def cleanlab_with(model):
    def score(X, y):
        folds = StratifiedKFold(5, shuffle=True, random_state=0)
        codes = np.unique(y, return_inverse=True)[1]
        return -get_label_quality_scores(codes, cross_val_predict(model, X, codes, cv=folds, method="predict_proba"))

    return score


def methods(d):
    logistic = LogisticRegressionCV(
        Cs=[0.001, 0.01, 0.1, 1, 10], cv=3, max_iter=2000, scoring="neg_log_loss", use_legacy_attributes=False
    )
    grid = {"C": [0.3, 1, 10], "gamma": [0.1 / d, 0.3 / d, 1 / d, 3 / d]}
    svc = CalibratedClassifierCV(GridSearchCV(SVC(), grid, cv=3), ensemble=False, cv=3)
    models = {"logistic": logistic, "boosting": HistGradientBoostingClassifier(random_state=0), "SVC": svc}
    return {"psilearn": ours, **{name: cleanlab_with(model) for name, model in models.items()}}


def measure(X, truth, kind, share, seed):
    given = flipped(X, truth, kind, share, seed)
    row = {}
    for name, method in methods(X.shape[1]).items():
        start = time.process_time()
        score = method(X, given)
        row[name] = average_precision_score(given != truth, score), time.process_time() - start
    return row


def compared(options):
    lines, found = [], {"linear-ish": [], "other": []}
    for name in options.sets:
        if options.fresh and name in TUNED_ON:
            continue
        X, truth = load(name, options.rows)
        for kind, share in product(KINDS, options.shares):
            rows = [measure(X, truth, kind, share, 100 + seed) for seed in range(options.seeds)]
            mean = {m: np.mean([row[m] for row in rows], axis=0) for m in rows[0]}
            found["linear-ish" if name in LINEAR else "other"].append([ap for ap, _ in mean.values()])
            cells = [
                name,
                kind,
                f"{100 * share:g}%",
                *(f"{ap:.3f}" for ap, _ in mean.values()),
                f"{mean['psilearn'][1]:.1f}",
            ]
            lines.append(f"| {' | '.join(cells)} |")
            print(lines[-1], flush=True)
    for group, values in found.items():
        if values:
            ap = np.array(values)
            best = ap[:, 1:].max(axis=1)
            print(
                f"{group}: mean average precision {ap[:, 0].mean():.4f}; logistic, boosting, SVC "
                f"{ap[:, 1:].mean(axis=0).round(4).tolist()}; the best of them on each line {best.mean():.4f}, "
                f"beaten on {np.sum(ap[:, 0] > best)} of {len(ap)} lines; every one of them alone on "
                f"{(ap[:, :1] > ap[:, 1:]).sum(axis=0).tolist()}"
            )
    if options.markdown:
        options.markdown.write_text("\n".join(lines) + "\n", encoding="utf-8")


def simulated(seed):
    """Return features, true labels and given labels of two clouds, XOR, three clouds, or a logistic model."""
    rng = np.random.default_rng(seed)
    kind, n, share = seed % 4, int(rng.integers(200, 600)), float(rng.choice([0.03, 0.08, 0.15, 0.25]))
    if kind == 0:
        y = rng.integers(0, 2, n)
        X = rng.normal(size=(n, 4))
        X[:, 0] += y * rng.uniform(1.5, 3.5)
    elif kind == 1:
        X = rng.uniform(-1, 1, (n, 3))
        y = (X[:, 0] * X[:, 1] > 0).astype(int)
    elif kind == 2:
        y = rng.integers(0, 3, n)
        X = rng.normal(size=(3, 5))[y] * 1.3 + rng.normal(size=(n, 5))
    else:
        X, w = rng.normal(size=(n, 6)), rng.normal(size=6)
        y = (rng.random(n) < 1 / (1 + np.exp(-2.5 * X @ w / 1.5))).astype(int)
    return X, y, flip_labels(y, share, seed)[0]


def coverage(count):
    """Print how often the 90% interval holds the share that was flipped."""
    held, below, refused = 0, 0, 0
    for seed in range(1000, 1000 + count):
        X, truth, given = simulated(seed)
        share, (low, high) = np.mean(given != truth), find_label_issues(X, given).attrs["share_interval"]
        refused += bool(np.isnan(low))
        held += bool(low <= share <= high)
        below += bool(share < low)
    answered = count - refused
    print(
        f"{count} simulations, {refused} refused; the interval holds in {held / answered:.1%}, is too high in {below}"
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--rows", type=int, default=600)
    parser.add_argument("--shares", type=float, nargs="*", default=[0.05, 0.1, 0.2, 0.3])
    parser.add_argument("--sets", nargs="*", default=[*LINEAR, *OTHERS])
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--coverage", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.coverage:
        coverage(options.coverage)
    else:
        compared(options)


if __name__ == "__main__":
    main()
