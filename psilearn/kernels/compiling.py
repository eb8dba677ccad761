"""How kernels are compiled: a first fit waits for numba, so nothing is compiled that is not needed, or twice.

* numba optimises every function, together with all it calls, and translates it to machine code, even if nobody but
  other functions will call it, which then do both again with all of it. ``inner`` functions are left as they are for
  their callers; only a ``kernel``, which Python calls, is optimised and translated.
* Reference counts are needed by functions that allocate arrays, ``roomy_inner`` and ``roomy_kernel``; without them a
  function becomes a third smaller. Whether there are any is inherited by what a function calls unless that says so.
* Divisions do not look for zero (``error_model="numpy"``).

Only kernels are cached on disk, with all the inner functions that they call.
"""

from __future__ import annotations

import gc
from typing import Any

import numba
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.types import unliteral

#: Lines of LLVM's language from which on an inner function is large.
_LARGE = 60


class _LinkedLibrary(JITCodeLibrary):
    """The code of a function that has no address of its own, because it is only linked into its callers."""

    def _optimize_functions(self, ll_module: Any) -> None:
        """Tell LLVM not to inline large functions: many arguments tempt it to, and copies are compiled again."""
        super()._optimize_functions(ll_module)
        for function in ll_module.functions:
            if not function.is_declaration and str(function).count("\n") > _LARGE:
                function.add_function_attribute("noinline")

    def _optimize_final_module(self) -> None:
        """Leave the optimisation to the callers."""

    def _finalize_final_module(self) -> None:
        """Leave the translation to the callers, too."""
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """There is none."""
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> _LinkedLibrary:
        """Who would set the environment of the function; without an address there is none to set."""
        return self

    def set_env(self, env_name: str, env: Any) -> None:
        """Do nothing."""


class _LinkedCompiler(Compiler):
    """numba's own compiler, but for the library that it writes to."""

    def define_pipelines(self) -> Any:
        state = self.state
        state.library = _LinkedLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        return super().define_pipelines()


_njit: Any = numba.njit  # its type stubs do not know all options
_KERNEL = {"cache": True, "error_model": "numpy", "nogil": True, "no_cfunc_wrapper": True}
_INNER = {
    "error_model": "numpy",
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    "pipeline_class": _LinkedCompiler,
}


def kernel(function: Any) -> Any:
    """Decorate a function that Python calls and that does not allocate."""
    return _undisturbed(_njit(_nrt=False, **_KERNEL)(function))


def roomy_kernel(function: Any) -> Any:
    """Decorate a function that Python calls and that allocates."""
    return _undisturbed(_njit(_nrt=True, **_KERNEL)(function))


def shared_kernel(function: Any) -> Any:
    """Decorate a kernel that does not allocate and that other kernels call, too, through a pointer."""
    return _undisturbed(_njit(_nrt=False, **_KERNEL | {"no_cfunc_wrapper": False})(function))


def inner(function: Any) -> Any:
    """Decorate a function that only kernels call and that does not allocate."""
    return _whatever_the_values(_njit(_nrt=False, **_INNER)(function))


def roomy_inner(function: Any) -> Any:
    """Decorate a function that only kernels call and that allocates."""
    return _whatever_the_values(_njit(_nrt=True, **_INNER)(function))


def _undisturbed(function: Any) -> Any:
    """Pause Python's garbage collector while a kernel is compiled: it would go through all that numba keeps, often."""
    translate = function.compile

    def compile(signature: Any) -> Any:
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            return translate(signature)
        finally:
            if was_enabled:
                gc.enable()

    function.compile = compile
    return function


def _whatever_the_values(function: Any) -> Any:
    """Let constants among the arguments be of their type: numba would compile a function again for each of them."""
    find = function.get_call_template

    def get_call_template(args: Any, kws: Any) -> Any:
        return find(tuple(map(unliteral, args)), {name: unliteral(kind) for name, kind in kws.items()})

    function.get_call_template = get_call_template
    return function
