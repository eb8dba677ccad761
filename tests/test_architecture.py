"""The arrows of the house: who may import whom, and what an import may cost."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from psilearn.solvers.registry import SOLVERS

ROOT = Path(__file__).parent.parent / "psilearn"

SPINE = {"problem", "losses", "penalties", "spaces", "result", "duality"}

#: Room -> rooms it may import. A room not listed may import anything.
MAY_IMPORT = {
    "losses": set(),
    "penalties": set(),
    "duality": set(),
    "kernels": {"kernels"},
    "spaces": {"spaces", "kernels"},
    "problem": {"losses", "penalties", "spaces", "duality"},
    "result": {"problem"},
    "programs": {"programs", "kernels"},
    "coordinates": {"problem", "spaces", "penalties", "losses"},
    "risk": {"kernels", "problem", "spaces"},
    "truncation": {"kernels", "coordinates", "problem", "losses", "penalties", "spaces"},
    "solvers": {"solvers", "programs", "kernels", "risk", "coordinates", "truncation", *SPINE},
}
ENGINES = {"highspy", "pyscipopt", "gurobipy"}


def rooms_and_imports():
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                yield from ((parts, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                base = ["psilearn", *parts[:-1]][: len(parts) - node.level + 1] if node.level else []
                stem = ".".join([*base, *([node.module] if node.module else [])])
                yield from ((parts, f"{stem}.{alias.name}") for alias in node.names)


IMPORTS = list(rooms_and_imports())


def test_imports_are_found():
    assert len(IMPORTS) > 50


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_arrows_point_down(room):
    for parts, target in IMPORTS:
        if parts[0] == room and target.startswith("psilearn."):
            assert target.split(".")[1] in MAY_IMPORT[room], f"{'/'.join(parts)} imports {target}"


def test_only_programs_speak_to_engines():
    for parts, target in IMPORTS:
        if target.split(".")[0] in ENGINES:
            assert parts[0] == "programs", f"{'/'.join(parts)} imports {target}"


def test_only_kernels_use_numba():
    for parts, target in IMPORTS:
        if target.split(".")[0] == "numba":
            assert parts[0] == "kernels", f"{'/'.join(parts)} imports {target}"


def test_kernels_import_numpy_and_numba_alone():
    for parts, target in IMPORTS:
        if parts[0] == "kernels":
            package = target.split(".")[0]
            assert package in {"numpy", "numba", "psilearn"} or package in sys.stdlib_module_names, target


def test_no_solver_imports_a_solver():
    """Starts, inner machines and polishers are handed in by the registry; parts that solvers share are not solvers."""
    solvers = {module for module, _ in SOLVERS.values()}
    for parts, target in IMPORTS:
        if parts[0] == "solvers" and parts[-1] in solvers and target.startswith("psilearn.solvers."):
            assert target.split(".")[2] not in solvers, f"{'/'.join(parts)} imports {target}"


def test_heavy_imports_are_lazy():
    code = "import sys, sklearn.svm; before = set(sys.modules); import psilearn; print(*set(sys.modules) - before)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in out.stdout.split()}
    assert "psilearn" in loaded
    assert not loaded & {"numba", "highspy", "pyscipopt", "matplotlib", "typer", "rich", "pandas", "dask"}
