"""Inner functions that are linked into their callers without being compiled on their own.

This rests on parts of numba that it does not promise to keep, so :mod:`._jit` imports it only with versions of
numba with which it was tried.
"""

from __future__ import annotations

import gc
from typing import Any

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


class LinkedCompiler(Compiler):
    """numba's own compiler, but for the library that it writes to."""

    def define_pipelines(self) -> Any:
        """Return the pipelines, with a library of our own."""
        state = self.state
        state.library = _LinkedLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        return super().define_pipelines()


def without_garbage_collection(function: Any) -> Any:
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


def ignoring_constants(function: Any) -> Any:
    """Let constants among the arguments be of their type: numba would compile a function again for each of them."""
    find = function.get_call_template

    def get_call_template(args: Any, kws: Any) -> Any:
        return find(tuple(map(unliteral, args)), {name: unliteral(kind) for name, kind in kws.items()})

    function.get_call_template = get_call_template
    return function
