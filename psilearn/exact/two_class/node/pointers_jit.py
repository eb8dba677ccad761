"""Kernels that call the node solver through a pointer.

A kernel that calls another one directly is compiled together with all it calls. The node solver is by far the largest
kernel and several others need it; called through a pointer it is compiled once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from numba import typeof, types

from .node_jit import node_solver

_BOUND_AND_FLAG = types.Tuple((types.float64, types.int64))


def by_pointer(function: Any) -> Callable[..., Any]:
    """Turn a kernel (solve, model, work, ...) into a function (model, work, ...) whose ``solve`` is the node solver.

    Arrays among the arguments must always have the same dtype and number of dimensions and be C-contiguous: only the
    first call with arguments of given Python types looks closer.
    """
    entries: dict[tuple[Any, ...], Callable[..., Any]] = {}

    @wraps(function.py_func)
    def call(*arguments: Any) -> Any:
        solve, key = node_solver(arguments[0]), (arguments[0].norm, *map(type, arguments))
        if key not in entries:
            model, work, *others = map(typeof, arguments)
            signature = _BOUND_AND_FLAG(model, work, types.float64)
            solve.compile(signature)
            entries[key] = function.compile((types.FunctionType(signature), model, work, *others))
        return entries[key](solve, *arguments)

    return call
