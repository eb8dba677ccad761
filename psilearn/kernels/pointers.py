"""Kernels that call the node solver through a pointer.

A kernel that calls another one directly is compiled together with all it calls. The node solver is by far the largest
kernel and several others need it; called through a pointer it is compiled once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from numba import typeof, types

from .node import node_solver

_BOUND_AND_FLAG = types.Tuple((types.float64, types.int64))


def by_pointer(function: Any) -> Callable[..., Any]:
    """Turn a kernel (solve, model, work, ...) into a function (model, work, ...) whose ``solve`` is the node solver."""
    entries: dict[tuple[Any, ...], Callable[..., Any]] = {}

    @wraps(function.py_func)
    def call(*arguments: Any) -> Any:
        solve, key = node_solver(arguments[0]), tuple(map(typeof, arguments))
        if key not in entries:
            signature = _BOUND_AND_FLAG(key[0], key[1], types.float64)
            solve.compile(signature)
            entries[key] = function.compile((types.FunctionType(signature), *key))
        return entries[key](solve, *arguments)

    return call
