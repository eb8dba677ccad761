"""From what a user hands in to blocks: dask arrays and data frames, memory-mapped arrays, blocks of rows."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from .blocks import BLOCK_ENTRIES, RowBlocks, Sample
from .workers import Dask, Threads, Workers, active_client

#: Entries up to which a memory-mapped array is read like any other: 8 MB of doubles. joblib hands such ones to workers.
SMALL_MEMMAP = 1 << 20


def is_chunked(X: Any) -> bool:
    """Whether data lie in blocks: they are never pulled into memory."""
    return is_dask(X) or isinstance(X, RowBlocks) or (isinstance(X, np.memmap) and X.size > SMALL_MEMMAP)


def is_dask(X: Any) -> bool:
    """Whether X is an array or a data frame of dask."""
    return hasattr(X, "__dask_graph__") and hasattr(X, "to_delayed")


def n_features_of(X: Any) -> int:
    """Return the number of columns."""
    if isinstance(X, RowBlocks):
        return X.width
    if len(getattr(X, "shape", ())) != 2:
        raise ValueError("X must have two dimensions, rows and features.")
    return int(X.shape[1])


def open_workers(X: Any, y: Any, sample_weight: Any, n_threads: int) -> Workers:
    """Return the blocks of X with their labels and weights, and who works on them.

    Parameters
    ----------
    X : dask array or data frame, memmap, RowBlocks
        The rows.
    y, sample_weight : array, memmap, dask array or series, RowBlocks or None
        In blocks of the same rows, or in one piece.
    n_threads : int
        Threads for data that are not dask's.
    """
    if is_dask(X):
        return _open_dask(X, y, sample_weight)
    blocks = rows_in_blocks(X)
    starts = None
    if any(v is not None and not isinstance(v, RowBlocks) for v in (y, sample_weight)):
        sizes = [blocks.load(i).shape[0] for i in range(blocks.n_blocks)]
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
        _check_length(y, int(starts[-1]), "y")
        _check_length(sample_weight, int(starts[-1]), "sample_weight")
    _check_blocks(y, blocks.n_blocks, "y")
    _check_blocks(sample_weight, blocks.n_blocks, "sample_weight")
    return Threads(Sample(blocks, _column(y), _column(sample_weight), starts), n_threads)


def rows_in_blocks(X: Any) -> RowBlocks:
    """Return the rows in blocks: as they are, or those that a memory-mapped array is cut into."""
    if isinstance(X, RowBlocks):
        return X
    return RowBlocks.split(X, max(1, -(-X.size // BLOCK_ENTRIES)))


def _column(values: Any) -> Any:
    return values if values is None or isinstance(values, RowBlocks) else np.asanyarray(values).reshape(-1)


def _check_length(values: Any, n: int, name: str) -> None:
    if values is not None and not isinstance(values, RowBlocks) and len(values) != n:
        raise ValueError(f"X has {n} rows, {name} has {len(values)}.")


def _check_blocks(values: Any, n_blocks: int, name: str) -> None:
    if isinstance(values, RowBlocks) and values.n_blocks != n_blocks:
        raise ValueError(f"X lies in {n_blocks} blocks, {name} in {values.n_blocks}; they must be cut alike.")


def _open_dask(X: Any, y: Any, sample_weight: Any) -> Workers:
    if hasattr(X, "chunks") and len(X.chunks[1]) > 1:
        X = X.rechunk({1: -1})
    rows = np.asarray(X.to_delayed()).ravel().tolist()
    sizes = X.chunks[0] if hasattr(X, "chunks") else None
    columns = [_delayed_column(v, name, len(rows), sizes) for v, name in ((y, "y"), (sample_weight, "sample_weight"))]
    return Dask([(x, *parts) for x, *parts in zip(rows, *columns)], active_client())


def _delayed_column(values: Any, name: str, n_blocks: int, sizes: Any) -> list[Any]:
    """Return a column in the blocks of X, delayed."""
    if values is None:
        return [None] * n_blocks
    if not is_dask(values):
        if sizes is None or np.any(np.isnan(np.asarray(sizes, dtype=float))):
            raise ValueError(
                f"{name} must come in blocks like X (a dask array or series): the rows of X's are unknown."
            )
        _check_length(values, int(sum(sizes)), name)
        ends = np.cumsum([0, *sizes])
        values = np.asarray(values).reshape(-1)
        return [values[a:b] for a, b in itertools.pairwise(ends)]
    if hasattr(values, "chunks"):
        values = values.reshape(-1) if values.ndim > 1 else values
        known = sizes is not None and not np.any(np.isnan(np.asarray([*sizes, *values.chunks[0]], dtype=float)))
        if known and values.chunks[0] != sizes:
            if sum(values.chunks[0]) != sum(sizes):
                raise ValueError(f"X has {sum(sizes)} rows, {name} has {sum(values.chunks[0])}.")
            values = values.rechunk((sizes,))
    parts = np.asarray(values.to_delayed()).ravel().tolist()
    if len(parts) != n_blocks:
        raise ValueError(f"X lies in {n_blocks} blocks, {name} in {len(parts)}; they must be cut alike.")
    return parts
