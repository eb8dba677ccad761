"""How kernels are compiled: a first fit waits for numba, so nothing is compiled that is not needed, or twice.

* numba optimises every function, together with all it calls, and translates it to machine code, even if nobody but
  other functions will call it, which then do both again with all of it. ``inner`` functions are left as they are for
  their callers; only a ``kernel``, which Python calls, is optimised and translated.
* Reference counts are needed by functions that allocate arrays, ``allocating_inner`` and ``allocating_kernel``;
  without them a function becomes a third smaller. Whether there are any is inherited by what a function calls unless
  that says so.
* Divisions do not look for zero (``error_model="numpy"``).

Only kernels are cached on disk, with all the inner functions that they call; the cache is valid for the files of all of
them (:mod:`._stamp`). First fits of psi-learning and of the hard margin take 9 and 15 s of processor time this way and
18 and 31 s in numba's plain way (numba 0.68; linking alone: about 14 and 24 s without it).

The first two of these rest on inner workings of numba (:mod:`._linking_jit`). With a version of numba other
than those where they were tried, the same functions are compiled in numba's plain way, which takes longer the
first time.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numba
from numba.core import event

from ._stamp import stamp
from .clock import go_on, stand_still

#: Versions of numba, by their first two numbers, whose inner workings are as :mod:`._linking_jit` takes them to be.
TRIED = ("0.68",)

_njit: Any = numba.njit  # its type stubs do not know all options
_KERNEL: dict[str, Any] = {"cache": True, "error_model": "numpy", "nogil": True}
_INNER: dict[str, Any] = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_SHARED, _PLAIN, _ALLOCATING = _KERNEL, {}, {}

if ".".join(numba.__version__.split(".")[:2]) in TRIED:
    from ._linking_jit import LinkedCompiler, ignoring_constants, without_garbage_collection

    _KERNEL = _SHARED | {"no_cfunc_wrapper": True}
    _INNER |= {"pipeline_class": LinkedCompiler}
    _PLAIN, _ALLOCATING = {"_nrt": False}, {"_nrt": True}
else:

    def without_garbage_collection(function: Any) -> Any:
        """Leave it as it is."""
        return function

    ignoring_constants = without_garbage_collection


class _Clockwork(event.Listener):
    """Stops the clock while numba compiles."""

    def on_start(self, _: Any) -> None:
        stand_still()

    def on_end(self, _: Any) -> None:
        go_on()


event.register("numba:compile", _Clockwork())


def _stamped(function: Any) -> Any:
    """Keep a compiled function under a name that changes with every file compiled into it.

    numba compares only the function's own file. What was compiled from other files is never looked at again.
    """
    digest = stamp(Path(function.py_func.__code__.co_filename))
    try:
        store, file = function._cache, function._cache._cache_file
        name = f"{store._impl.filename_base}-{digest[:16]}"
        store._cache_file = type(file)(store._cache_path, name, file._source_stamp)
    except AttributeError:  # another version of numba: without a stamp, a stale function could be used
        return _njit(**{**function.targetoptions, "cache": False})(function.py_func)
    return function


def kernel(function: Any) -> Any:
    """Decorate a function that Python calls and that does not allocate."""
    return without_garbage_collection(_stamped(_njit(**_KERNEL, **_PLAIN)(function)))


def allocating_kernel(function: Any) -> Any:
    """Decorate a function that Python calls and that allocates."""
    return without_garbage_collection(_stamped(_njit(**_KERNEL, **_ALLOCATING)(function)))


def shared_kernel(function: Any) -> Any:
    """Decorate a kernel that does not allocate and that other kernels call, too, through a pointer."""
    return without_garbage_collection(_stamped(_njit(**_SHARED, **_PLAIN)(function)))


def inner(function: Any) -> Any:
    """Decorate a function that only kernels call and that does not allocate."""
    return ignoring_constants(_njit(**_INNER, **_PLAIN)(function))


def reordering_inner(function: Any) -> Any:
    """Decorate an inner function whose sums may be taken in any order: several terms at a time, which is faster."""
    return ignoring_constants(_njit(**_INNER, **_PLAIN, fastmath={"reassoc", "nsz"})(function))


def allocating_inner(function: Any) -> Any:
    """Decorate a function that only kernels call and that allocates."""
    return ignoring_constants(_njit(**_INNER, **_ALLOCATING)(function))
