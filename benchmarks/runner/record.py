"""A run as a JSON file: rows, machine, versions; and what became worse between two of them."""

from __future__ import annotations

import json
import math
import os
import platform
import subprocess
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from .rows import Row

#: A row is worse if its figure grew by more than this share; CPU times of one machine scatter by less.
TOLERANCE = 0.10
#: ... and, where it is a time, by more than this many seconds.
LEAST_SECONDS = 0.002
PACKAGES = (
    "numpy", "scipy", "scikit-learn", "numba", "highspy", "pyscipopt", "clarabel", "cleanlab", "imodels",
    "interpret-core", "wittgenstein", "aix360", "rehline", "skglm", "scikit-learn-intelex", "abess", "MAPIE",
)  # fmt: skip

Rows = dict[str, list[Row]]


def processor() -> str:
    """The processor's name, as far as the system tells."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    found = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return found[0] if found else platform.processor()


def versions() -> dict[str, str]:
    """Versions of ours and of what is compared, as far as it is installed."""
    import psilearn

    known = {"python": platform.python_version(), "psilearn": psilearn.__version__}
    for package in PACKAGES:
        try:
            known[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return known


def commit() -> str:
    """The commit of the psilearn that is measured, or nothing outside a repository."""
    import psilearn

    where = Path(psilearn.__file__).parent
    run = subprocess.run(["git", "-C", where, "describe", "--always", "--dirty"], capture_output=True, text=True)
    return run.stdout.strip()


def write(path: Path, rows: Rows, quick: bool) -> None:
    """Write a run; not-a-number becomes null."""
    machine = {"system": platform.platform(), "processor": processor(), "cores": os.cpu_count()}
    machine["load"] = [round(load, 2) for load in os.getloadavg()]
    date = datetime.now(UTC).isoformat(timespec="seconds")
    head = {"date": date, "commit": commit(), "quick": quick, "machine": machine, "versions": versions()}
    body = [{"benchmark": name} | fields_of(row) for name, found in rows.items() for row in found]
    text = json.dumps(head | {"rows": body}, indent=1, default=lambda value: value.item())  # scalars of numpy
    path.write_text(text + "\n", encoding="utf-8")


def fields_of(row: Row) -> dict[str, Any]:
    """A row with its ratio, ready for JSON."""
    values = asdict(row) | {"ratio": row.ratio}
    return {key: None if isinstance(value, float) and math.isnan(value) else value for key, value in values.items()}


def read(path: Path) -> Rows:
    """Read the rows of a run."""
    rows: Rows = {}
    for line in json.loads(path.read_text(encoding="utf-8"))["rows"]:
        values = {key: line[key] for key in ("name", "goals", "checks", "note", "unit")}
        theirs = math.nan if line["theirs"] is None else line["theirs"]
        rows.setdefault(line["benchmark"], []).append(Row(ours=line["ours"], theirs=theirs, **values))
    return rows


def worse(rows: Rows, before: Rows) -> Iterator[str]:
    """Say which rows of both runs became worse: their ratio where there is one, since it knows no machine."""
    for name, found in rows.items():
        old = {row.name: row for row in before.get(name, [])}
        for row in found:
            if row.name not in old:
                continue
            then = old[row.name]
            is_ratio = not math.isnan(row.ratio) and not math.isnan(then.ratio)
            now, was = (row.ratio, then.ratio) if is_ratio else (row.ours, then.ours)
            scale = row.theirs if is_ratio else 1.0
            small = row.unit == "s" and abs(now - was) * scale <= LEAST_SECONDS
            if now > was * (1.0 + TOLERANCE) and not small:
                what = "ratio" if is_ratio else row.unit
                yield f"{name}: {row.name}: {was:.4g} -> {now:.4g} {what} ({100 * (now / was - 1):+.0f}%)"
            lost = [goal for goal, met in row.goals.items() if not met and then.goals.get(goal)]
            yield from (f"{name}: {row.name}: {goal} was met and is missed" for goal in lost)
