"""Finding wrong labels: psilearn.find_label_issues against cleanlab on data with known flips.

Prints, for each data set and share of flipped labels, precision at the number of true flips, average precision and
CPU seconds of psilearn, of cleanlab with its default model (logistic regression) and of cleanlab with logistic
regression tuned by cross-validation. Held-out probabilities for cleanlab come from five folds, as it advises.

Target: at least cleanlab's average precision on the linear-ish sets (wdbc, bcw, vote); the others are reported as
they are.

    python benchmarks/label_audit.py [--seeds N] [--sets NAME ...] [--folder FOLDER]

``--sets music_genre_crowd`` measures labels that people got wrong, not flips; with ten classes it takes minutes.
FOLDER (default: $PSILEARN_DATA) holds gzip-compressed CSV files with a column ``target``; wdbc comes with scikit-learn.
"""

import argparse
import os
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from cleanlab.rank import get_label_quality_scores
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.metrics import average_precision_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from psilearn.audit import find_label_issues
from psilearn.compare.job import flip_labels
from psilearn.encoding import TableEncoder
from psilearn.tables import understand

LINEAR = ("wdbc", "bcw", "vote")
OTHERS = ("sonar", "pima", "ionosphere", "german_credit", "vehicle")
SHARES = (0.05, 0.1, 0.2, 0.3)
CROWD = "music_genre_crowd"


def load(name, folder):
    if name == "wdbc":
        frame = load_breast_cancer(as_frame=True).frame
        frame["target"] = frame["target"].astype(str)
    else:
        frame = pd.read_csv(folder / f"{name}.csv.gz", keep_default_na=False, na_values=[""])
    data = understand(frame, "target")
    return TableEncoder(numbers=data.numbers).fit_transform(data.frame), data.labels.to_numpy(dtype=str)


def load_crowd(folder):
    """Return features, crowd labels (majority vote) and true labels of the songs that were shown to the crowd."""
    frame = pd.read_csv(folder / f"{CROWD}.csv.gz", keep_default_na=False, na_values=[""])
    frame = frame[frame["meta_split"] == "train"].reset_index(drop=True)
    data = understand(frame, "target")
    X = TableEncoder(numbers=data.numbers).fit_transform(data.frame)
    return X, frame["meta_crowd_majority"].to_numpy(dtype=str), data.labels.to_numpy(dtype=str)


def ours(X, y):
    table = find_label_issues(X, y)
    score = np.empty(len(y))
    score[table["index"]] = -table["margin"]
    return score


def cleanlab_with(model):
    def score(X, y):
        folds = StratifiedKFold(5, shuffle=True, random_state=0)
        codes = np.unique(y, return_inverse=True)[1]
        return -get_label_quality_scores(codes, cross_val_predict(model, X, codes, cv=folds, method="predict_proba"))

    return score


TUNED = LogisticRegressionCV(
    Cs=[0.001, 0.01, 0.1, 1, 10], cv=3, max_iter=2000, scoring="neg_log_loss", use_legacy_attributes=False
)
METHODS = {
    "psilearn": ours,
    "cleanlab": cleanlab_with(LogisticRegression(max_iter=2000)),
    "cleanlab, tuned": cleanlab_with(TUNED),
}


def measure(X, given, truth):
    flipped = given != truth
    row = {}
    for name, method in METHODS.items():
        start = time.process_time()
        score = method(X, given)
        seconds = time.process_time() - start
        first = np.argsort(-score, kind="stable")[: flipped.sum()]
        row[name] = (flipped[first].mean(), average_precision_score(flipped, score), seconds)
    return row


def show(name, share, rows):
    mean = {m: np.mean([row[m] for row in rows], axis=0) for m in METHODS}
    cells = "  ".join(f"{m} {p:.3f} {ap:.3f} {s:5.1f}s" for m, (p, ap, s) in mean.items())
    print(f"{name:<18} {share:>5}  {cells}", flush=True)
    return mean


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--sets", nargs="*", default=[*LINEAR, *OTHERS])
    parser.add_argument("--folder", type=Path, default=Path(os.environ.get("PSILEARN_DATA", "data")))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    find_label_issues(*load("wdbc", options.folder), repeats=1)  # compile before timing
    print("precision at the number of true flips, average precision, CPU seconds")
    linear = []
    for name in options.sets:
        if name == CROWD:
            show(name, "crowd", [measure(*load_crowd(options.folder))])
            continue
        X, truth = load(name, options.folder)
        for share in SHARES:
            flips = [flip_labels(truth, share, seed)[0] for seed in range(options.seeds)]
            mean = show(name, share, [measure(X, given, truth) for given in flips])
            if name in LINEAR:
                linear.append([mean[m][1] for m in METHODS])
    if linear:
        ap = dict(zip(METHODS, np.mean(linear, axis=0)))
        for other in list(METHODS)[1:]:
            print(f"linear-ish sets: average precision {ap['psilearn'] / ap[other]:.3f} times {other} (target: >= 1)")


if __name__ == "__main__":
    main()
