"""What a compiled function was compiled from: its own file and every compiled file that this one imports.

numba keeps compiled functions on disk and compiles again when the function's own file changes. It does not see changes
in the files of the functions that are compiled into it, so we tell it: the stamp of a file covers all of them.
"""

from __future__ import annotations

import ast
import hashlib
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[1]


@cache
def stamp(path: Path) -> str:
    """Return a digest of a file and of all ``_jit`` files of the package that it imports, directly or not."""
    digest = hashlib.sha256()
    for part in sorted(_with_imports(path.resolve())):
        digest.update(part.read_bytes())
    return digest.hexdigest()


@cache
def _with_imports(path: Path) -> frozenset[Path]:
    found = {path}
    for imported in _imported(path):
        if imported not in found:
            found |= _with_imports(imported)
    return frozenset(found)


@cache
def _imported(path: Path) -> frozenset[Path]:
    """Return the ``_jit`` files that a file imports by ``from . import x_jit`` or ``from .x_jit import name``."""
    found = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.ImportFrom) and node.level:
            folder = path.parents[node.level - 1].joinpath(*(node.module or "").split("."))
            found |= {folder.with_suffix(".py"), *(folder / f"{name.name}.py" for name in node.names)}
    return frozenset(file for file in found if file.stem.endswith("_jit") and file.is_file())
