"""All experiments by name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module

from .experiment import Experiment

PAPERS = ("psi-mip", "truncated-hinge", "multicategory-psi", "l0-boost", "reject")
"""One module of `psilearn.app.reproduce.experiments` each, dashes written as underscores."""


def catalogue() -> dict[str, Experiment]:
    """Return every experiment, paper by paper, in the order of their modules."""
    found: dict[str, Experiment] = {}
    for paper in PAPERS:
        module = import_module(f"{__package__}.experiments.{paper.replace('-', '_')}")
        found |= {value.name: value for value in vars(module).values() if isinstance(value, Experiment)}
    return found


def select(names: Iterable[str], known: dict[str, Experiment]) -> Sequence[Experiment]:
    """Return the experiments with these names; the name of a paper stands for all of its experiments."""
    chosen: dict[str, Experiment] = {}
    for name in names:
        matches = [e for e in known.values() if e.name == name or e.name.startswith(f"{name}/")]
        if not matches:
            raise ValueError(f"unknown experiment {name!r}; 'psilearn reproduce' without a name lists all.")
        chosen |= {match.name: match for match in matches}
    return list(chosen.values())
