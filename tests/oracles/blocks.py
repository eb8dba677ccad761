"""A problem in memory, stated again on blocks of its rows."""

import itertools

import numpy as np

from psilearn.core.chunks.blocks import RowBlocks, Sample
from psilearn.core.chunks.problem import ChunkedProblem, ChunkedSpace
from psilearn.core.chunks.sums import Form
from psilearn.core.chunks.workers import Threads


def in_blocks(problem, ends):
    """Return a ChunkedProblem on the rows of a problem without a tilt, cut at ``ends``."""
    X, k = problem.space.X, problem.n_classes
    starts = np.array([0, *ends, problem.n])
    blocks = RowBlocks([X[a:b] for a, b in itertools.pairwise(starts)], X.shape[1])
    sample = Sample(blocks, problem.y, problem.weights, starts)
    dense = X.toarray() if problem.space.is_sparse else X
    scale = np.where(dense.std(axis=0) > 0, dense.std(axis=0), 1.0)
    form = Form(np.arange(k), np.ones(k), dense.mean(axis=0), scale)
    space = ChunkedSpace(problem.n, X.shape[1])
    total = float(problem.weights.sum())
    return ChunkedProblem(Threads(sample), form, space, problem.loss, problem.penalty, problem.C, total)
