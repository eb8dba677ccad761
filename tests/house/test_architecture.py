"""The arrows of the house: who may import whom, and what an import may cost."""

import ast
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from psilearn.solvers import SOLVERS

ROOT = Path(__file__).parents[2] / "psilearn"

#: Room -> rooms it may import. Every room is listed; a room may always import itself.
MAY_IMPORT = {
    "core": set(),
    "engines": {"core"},
    "convex": {"core", "engines"},
    "exact": {"core", "engines"},
    "solvers": {"core", "convex", "exact"},
    "rules": {"core", "engines"},
    "evaluation": set(),
    "estimators": {"core", "rules", "solvers", "evaluation", "proofs"},
    "proofs": {"core", "exact", "rules", "__init__"},
    "datasets": {"core"},
    "app": {"core", "engines", "exact", "rules", "solvers", "evaluation", "estimators", "proofs", "datasets"}
    | {"__init__"},
    "__init__": {"core", "solvers", "rules", "estimators", "evaluation", "datasets", "proofs", "app"},
    "__main__": {"app", "core"},
}
#: The same for the rooms inside the largest ones, by their first folder or file.
WITHIN = {
    "core": {
        "extras": set(),
        "losses": set(),
        "bounds": set(),
        "penalties": {"bounds"},
        "_stamp": set(),
        "clock": set(),
        "_jit": {"_linking_jit", "_stamp", "clock"},
        "scaling": {"penalties"},
        "_linking_jit": set(),
        "spaces": {"_jit", "bounds"},
        "dual": {"losses", "penalties", "spaces", "bounds"},
        "problem": {"losses", "penalties", "spaces", "bounds", "dual"},
        "chunks": {"problem", "losses", "penalties", "spaces", "bounds", "scaling", "_jit"},
        "relaxation": {"losses", "problem", "spaces"},
        "result": {"problem", "relaxation"},
        "solving": {"clock", "dual", "problem", "result", "spaces"},
        "capabilities": {"problem"},
    },
    "exact": {
        "inverse_jit": set(),
        "envelope_jit": set(),
        "margin_floor": set(),
        "sample_state_jit": set(),
        "search": set(),
        "two_class": {"inverse_jit", "envelope_jit", "margin_floor", "sample_state_jit", "search"},
        "k_class": {"inverse_jit", "envelope_jit", "margin_floor", "sample_state_jit", "search"},
        "label_prices": {"sample_state_jit", "two_class"},
    },
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


def inner_imports():
    """Pairs (importing file, imported module below psilearn)."""
    for parts, target in IMPORTS:
        if target.split(".")[0] == "psilearn":
            inside = target.split(".")[1:]
            yield (
                parts,
                ["__init__"] if not (ROOT / inside[0]).exists() and not (ROOT / f"{inside[0]}.py").exists() else inside,
            )


def test_listings_stay_short():
    """At most 14 entries above, at most 15 files in a folder, so that a listing tells the story."""
    assert len([p for p in ROOT.iterdir() if p.name != "__pycache__"]) <= 14
    for folder in {path.parent for path in ROOT.rglob("*.py")}:
        files = sorted(path.name for path in folder.glob("*.py"))
        assert len(files) <= 15, f"{folder.relative_to(ROOT)} holds {len(files)}: {', '.join(files)}"


def test_every_room_is_listed():
    rooms = {p.stem for p in ROOT.iterdir() if p.suffix == ".py" or (p.is_dir() and p.name != "__pycache__")}
    assert rooms == set(MAY_IMPORT)


def test_every_folder_names_the_tests_that_hold_it():
    """Whatever line one reads, the folder says which tests fail if it is wrong."""
    folders = [path.parent for path in ROOT.rglob("__init__.py") if path.parent != ROOT]
    for folder in folders:
        text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or ""
        assert "\nTests: " in text, f"{folder.name}/__init__.py does not name its tests"
        for name in text.split("\nTests: ")[1].rstrip(".").replace("\n", " ").split(", "):
            assert (ROOT.parent / name).exists(), f"{folder.name}/__init__.py names {name}"
    assert len(folders) > 30


def test_imports_are_found():
    assert len(IMPORTS) > 50


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_arrows_point_down(room):
    for parts, target in inner_imports():
        if parts[0] == room:
            assert target[0] in {room, *MAY_IMPORT[room]}, f"{'/'.join(parts)} imports {'.'.join(target)}"


@pytest.mark.parametrize("room", WITHIN)
def test_arrows_point_down_inside_a_room(room):
    for parts, target in inner_imports():
        if parts[0] == room and len(parts) > 1 and parts[1] != "__init__" and target[0] == room:
            assert target[1] in {parts[1], *WITHIN[room][parts[1]]}, f"{'/'.join(parts)} imports {'.'.join(target)}"


def test_no_module_imports_itself_through_others():
    """Within a room, too: a reader of a module can begin with those it imports."""
    known = {path.relative_to(ROOT).with_suffix("").parts for path in ROOT.rglob("*.py")}
    arrows = {parts: set() for parts in known if parts[-1] != "__init__"}
    for parts, target in IMPORTS:
        name = tuple(target.split(".")[1:]) if target.startswith("psilearn.") else ()
        name = name if name in arrows else name[:-1]
        if parts in arrows and name in arrows:
            arrows[parts].add(name)
    sorter = TopologicalSorter(arrows)
    sorter.prepare()  # raises CycleError, which names the modules
    assert sum(map(len, arrows.values())) > 400


def test_only_engines_speak_to_engines():
    for parts, target in IMPORTS:
        if target.split(".")[0] in ENGINES:
            assert parts[0] == "engines", f"{'/'.join(parts)} imports {target}"


def test_numba_lives_in_jit_files():
    for parts, target in IMPORTS:
        if target.split(".")[0] == "numba":
            assert parts[-1].endswith("_jit"), f"{'/'.join(parts)} imports {target}"


def test_jit_files_import_numpy_and_numba_alone():
    for parts, target in IMPORTS:
        if parts[-1].endswith("_jit"):
            package, last = target.split(".")[0], target.split(".")
            assert package in {"numpy", "numba", "psilearn"} or package in sys.stdlib_module_names, target
            if package == "psilearn":
                is_how_to_compile = parts[-1] == "_jit" and {"_stamp", "clock"} & set(last)
                assert is_how_to_compile or any(part.endswith("_jit") for part in last), f"{'/'.join(parts)}: {target}"


def test_no_solver_imports_a_solver():
    """Starts, inner solvers and polishers are handed in by `solve`; parts that solvers share are not solvers."""
    solvers = {solver.module for solver in SOLVERS.values()}
    for parts, target in IMPORTS:
        if ".".join(parts) in solvers and target.startswith("psilearn."):
            imported = target.removeprefix("psilearn.")
            assert not any(imported == s or imported.startswith(f"{s}.") for s in solvers), f"{parts} imports {target}"


def test_heavy_imports_are_lazy():
    code = "import sys, sklearn.svm; before = set(sys.modules); import psilearn; print(*set(sys.modules) - before)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in out.stdout.split()}
    assert "psilearn" in loaded
    assert not loaded & {"numba", "highspy", "pyscipopt", "matplotlib", "typer", "rich", "pandas", "dask"}
