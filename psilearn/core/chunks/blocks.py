"""Blocks of rows, and where they come from. A block is read when it is needed and dropped afterwards."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: Entries (rows times features) of a block that are worked on at a time; they stay in the cache.
PART_ENTRIES = 1 << 19
#: Entries of a block that is cut from one large array or file: 64 MB of float32.
BLOCK_ENTRIES = 1 << 24


class Block(NamedTuple):
    """Rows X, the labels as given, and the sample weights (None: all are 1)."""

    X: NDArray[Any] | sp.csr_matrix
    y: NDArray[Any] | None
    weights: NDArray[Any] | None

    def parts(self) -> Iterator[Block]:
        """Return the rows in parts that fit into the cache, dense and of the type they have."""
        n, p = self.X.shape
        step = max(64, PART_ENTRIES // max(1, p))
        for first in range(0, n, step):
            rows = slice(first, min(first + step, n))
            X = self.X[rows]
            yield Block(
                sp.csr_matrix(X).toarray() if sp.issparse(X) else np.asarray(X),
                None if self.y is None else self.y[rows],
                None if self.weights is None else self.weights[rows],
            )


def as_block(X: Any, y: Any, weights: Any) -> Block:
    """Bring what a block's parts may be (arrays, data frames, sparse matrices) into one form."""
    rows = sp.csr_matrix(X) if sp.issparse(X) else np.asarray(X)
    if rows.ndim != 2:
        raise ValueError("X must have two dimensions, rows and features.")
    if not sp.issparse(rows) and rows.dtype.kind not in "fiub":
        raise ValueError("X must hold numbers; encode words and dates as numbers first.")
    flat = (None if v is None else np.asarray(v).reshape(-1) for v in (y, weights))
    return Block(rows, *flat)


@dataclass(frozen=True, eq=False)
class RowBlocks:
    """Rows of a table in blocks: arrays, memory-mapped files, CSR matrices, or functions that return one of these.

    Parameters
    ----------
    blocks : sequence
        Each an array or CSR matrix of shape (rows, features), or a function without arguments that returns one.
    n_features : int, optional
        Features of every block; None looks at the first one.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn.core.chunks.blocks import RowBlocks
    >>> RowBlocks.split(np.zeros((10, 3)), 4).n_blocks
    4
    """

    blocks: Sequence[Any]
    n_features: int | None = None

    @classmethod
    def split(cls, X: Any, n_blocks: int) -> RowBlocks:
        """Cut an array into blocks of about equal size; nothing is copied."""
        ends = np.linspace(0, X.shape[0], n_blocks + 1).astype(int)
        return cls([X[a:b] for a, b in itertools.pairwise(ends)], X.shape[1])

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return len(self.blocks)

    @property
    def width(self) -> int:
        """Number of features."""
        return int(self.load(0).shape[1]) if self.n_features is None else self.n_features

    def load(self, i: int) -> Any:
        """Return block i."""
        block = self.blocks[i]
        return block() if isinstance(block, Callable) else block  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class Sample:
    """Blocks of rows with their labels and weights; ``load`` brings block i together.

    Attributes
    ----------
    X : RowBlocks
        The rows.
    y, weights : RowBlocks or ndarray or None
        In blocks like those of X, or one array for all rows, of which block i takes its part.
    starts : ndarray of intp or None
        First row of each block, and the number of rows at the end, where it is known.
    """

    X: RowBlocks
    y: RowBlocks | NDArray[Any] | None = None
    weights: RowBlocks | NDArray[Any] | None = None
    starts: NDArray[np.intp] | None = None

    def load(self, i: int) -> Block:
        """Read block i."""
        return as_block(self.X.load(i), self._column(self.y, i), self._column(self.weights, i))

    def _column(self, values: RowBlocks | NDArray[Any] | None, i: int) -> NDArray[Any] | None:
        if values is None:
            return None
        if isinstance(values, RowBlocks):
            return np.asarray(values.load(i)).ravel()
        assert self.starts is not None
        return np.asarray(values[self.starts[i] : self.starts[i + 1]])
