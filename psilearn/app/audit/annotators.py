"""Several people's labels: what they agree on, and how good each of them is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .noise import Array

if TYPE_CHECKING:
    import pandas as pd

#: Rounds of expectation maximisation; it settles within a few.
ROUNDS = 50
#: Weight, in labels of each class, of "this annotator is as good as all of them together".
PSEUDO = 5.0


class Consensus(NamedTuple):
    """What several annotators and the model together believe.

    Attributes
    ----------
    classes : ndarray of shape (n, k)
        Probability of every class.
    quality : DataFrame
        One row per annotator: ``labels`` given, ``agreement`` with the most probable class, and ``accuracy``, the
        estimated probability that a label of theirs is right.
    """

    classes: Array
    quality: pd.DataFrame


def consensus(p: Array, codes: NDArray, annotators: Any, classes: NDArray) -> Consensus:
    """Combine the labels of several annotators with the model's probabilities.

    Every annotator has a matrix P(label | true class) of their own, estimated by expectation maximisation (Dawid and
    Skene, Maximum likelihood estimation of observer error-rates, 1979) with the model's held-out probabilities in the
    place of the class frequencies, and drawn towards the mean of all annotators.

    Parameters
    ----------
    p : ndarray of shape (n, k)
        Held-out probabilities of the classes.
    codes : ndarray of shape (n,)
        The labels under audit, which count as one more annotator, "given".
    annotators : array-like of shape (n, m)
        Labels, missing where an annotator gave none.
    classes : ndarray of shape (k,)
        The class of each code.
    """
    import pandas as pd

    frame = annotators if isinstance(annotators, pd.DataFrame) else pd.DataFrame(annotators)
    if len(frame) != codes.size:
        raise ValueError(f"annotators must have a row per label, {codes.size}; it has {len(frame)}.")
    votes = _votes(frame, codes, classes)
    k = classes.size
    belief = p * _shares(votes, k)
    belief /= belief.sum(axis=1, keepdims=True)
    for _ in range(ROUNDS):
        counts = np.array([_counts(belief, vote, k) for vote in votes])
        pooled = counts.sum(axis=0) + 0.5 + 4.5 * np.eye(k)
        pooled /= pooled.sum(axis=1, keepdims=True)
        matrices = counts + PSEUDO * pooled
        matrices /= matrices.sum(axis=2, keepdims=True)
        log = np.log(np.maximum(p, 1e-12))
        for vote, T in zip(votes, matrices):
            seen = vote >= 0
            log[seen] += np.log(T[:, vote[seen]]).T
        belief = np.exp(log - log.max(axis=1, keepdims=True))
        belief /= belief.sum(axis=1, keepdims=True)
    best = belief.argmax(axis=1)
    rows = []
    for vote in votes:
        given = np.flatnonzero(vote >= 0)
        right, agrees = belief[given, vote[given]], best[given] == vote[given]
        rows.append((given.size, agrees.mean(), right.mean()) if given.size else (0, np.nan, np.nan))
    names = pd.Index(["given", *map(str, frame.columns)], name="annotator")
    return Consensus(belief, pd.DataFrame(rows, index=names, columns=["labels", "agreement", "accuracy"]))


def _votes(frame: pd.DataFrame, codes: NDArray, classes: NDArray) -> list[NDArray[np.intp]]:
    """Return the labels as codes, -1 where missing; the given ones first."""
    import pandas as pd

    of = {str(c): at for at, c in enumerate(classes)}
    votes: list[NDArray[np.intp]] = [codes.astype(np.intp)]
    for name in frame.columns:
        texts = frame[name].map(lambda v: None if pd.isna(v) else _text(v))
        strange = sorted({t for t in texts.dropna() if t not in of})
        if strange:
            raise ValueError(f"Annotator '{name}' uses the label '{strange[0]}', which is none of the classes.")
        votes.append(texts.map(of).fillna(-1).to_numpy(dtype=np.intp))
    return votes


def _text(value: Any) -> str:
    """Return a label as text; a column of whole numbers with gaps is read as floats."""
    return str(int(value)) if isinstance(value, float) and value == int(value) else str(value).strip()


def _counts(belief: Array, vote: NDArray, k: int) -> Array:
    seen = vote >= 0
    return belief[seen].T @ np.eye(k)[vote[seen]]


def _shares(votes: list[NDArray], k: int) -> Array:
    """Return the share of each class among a row's votes, with one vote for none in particular."""
    total = sum((np.eye(k + 1)[vote][:, :k] for vote in votes), np.full((votes[0].size, k), 1.0 / k))
    return np.asarray(total) / np.sum(total, axis=1, keepdims=True)
