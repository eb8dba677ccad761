"""The command: chooses benchmarks, prints their rows, keeps them as JSON and compares two runs."""

from __future__ import annotations

import argparse
import importlib
import math
import sys
import time
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from . import record
from .rows import LeftOutError, Plan, Row

HOME = Path(__file__).parents[1]


def names() -> list[str]:
    """Every benchmark: the modules of the folder that define ``rows``."""
    files = sorted(HOME.glob("[a-z]*.py"))
    return [path.stem for path in files if "\ndef rows(" in path.read_text(encoding="utf-8")]


def parser() -> argparse.ArgumentParser:
    """What the command understands."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure psilearn against others.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of: {', '.join(names())}")
    parser.add_argument("--quick", action="store_true", help="the short form: a minute or so for each")
    parser.add_argument("--only", default="", metavar="WORD", help="rows whose name contains this")
    parser.add_argument("--limit", type=float, metavar="SECONDS", help="CPU seconds that one search may take")
    parser.add_argument("--enough", type=float, metavar="SECONDS",
                        help="hard_margin: CPU seconds after which the published bounds are enough")  # fmt: skip
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows, the machine and all versions")
    parser.add_argument("--resume", action="store_true", help="do not measure again the rows that --json holds")
    parser.add_argument("--against", type=Path, metavar="FILE", help="print what is slower than in this earlier run")
    parser.add_argument("--package", type=Path, metavar="FOLDER", help="measure the psilearn of another checkout")
    return parser


@dataclass
class Session:
    """The rows of one run, benchmark by benchmark, and what went wrong."""

    rows: dict[str, list[Row]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)

    def run(self, name: str, plan: Plan) -> Iterator[None]:
        """Measure one benchmark; control returns after each row."""
        known = self.rows.setdefault(name, [])
        try:
            module = importlib.import_module(f"benchmarks.{name}")
            for row in module.rows(plan):
                if not plan.wants(row.name):
                    continue
                known.append(row)
                print(text_of(row), flush=True)
                yield
        except LeftOutError as error:
            print(f"  left out: {error}.", flush=True)
        except ImportError as error:
            print(f"  left out: {error}; pip install -e '.[test,bench]' brings what is compared.", flush=True)
        except Exception as error:  # the other benchmarks still run; the exit status tells
            traceback.print_exc()
            self.errors.append(f"{name}: {type(error).__name__}: {error}")

    def failed(self) -> list[str]:
        """Checks that do not hold, and benchmarks that ended with an error."""
        rows = ((name, row) for name, rows in self.rows.items() for row in rows)
        checks = [
            f"{name}: {row.name}: {check}" for name, row in rows for check, held in row.checks.items() if not held
        ]
        return checks + self.errors


def text_of(row: Row) -> str:
    """One line of the table."""
    unit = f" {row.unit}"
    figures = f"{row.ours:10.4g}{unit}"
    if not math.isnan(row.theirs):
        figures += f" {row.theirs:10.4g}{unit}  ratio {row.ratio:8.3g}"
    goals = "  ".join(f"{goal}: {'met' if met else 'MISSED'}" for goal, met in row.goals.items())
    failed = "  ".join(f"FAILED: {check}" for check, held in row.checks.items() if not held)
    return f"  {row.name:44s} {figures}  " + "  ".join(part for part in (goals, failed, row.note) if part)


def summary(rows: list[Row]) -> str:
    """One line: how many rows, the mean ratio, how many goals are met."""
    ratios = [row.ratio for row in rows if not math.isnan(row.ratio) and row.ratio > 0]
    goals = [met for row in rows for met in row.goals.values()]
    mean = f", geometric mean of ours / theirs {np.exp(np.mean(np.log(ratios))):.3g}" if ratios else ""
    return f"  {len(rows)} rows{mean}" + (f", goals met {sum(goals)} of {len(goals)}" if goals else "")


def load(asked: argparse.Namespace, session: Session) -> None:
    """Fill the session with the rows of an earlier run that is to be continued."""
    if asked.resume and asked.json and asked.json.exists():
        session.rows.update(record.read(asked.json))


def main(arguments: list[str] | None = None) -> int:
    """Run what is asked; 1 if a check failed or a benchmark broke, 2 for a name nobody knows."""
    asked = parser().parse_args(arguments)
    if asked.package:
        sys.path.insert(0, str(asked.package.resolve()))
    unknown = sorted(set(asked.names) - set(names()))
    if unknown:
        print(f"There is no benchmark called {unknown[0]!r}; choose among {', '.join(names())}.", file=sys.stderr)
        return 2
    warnings.simplefilter("ignore")
    session = Session()
    load(asked, session)
    print("name, ours, theirs (CPU seconds unless said), ratio ours / theirs")
    if asked.quick:
        print("The short form uses less data than most goals are meant for: read them as a trend.")
    with threadpool_limits(1):
        measure(asked, session)
    if asked.against:
        print_worse(session, asked.against)
    failed = session.failed()
    for line in failed:
        print(f"FAILED {line}")
    return 1 if failed else 0


def measure(asked: argparse.Namespace, session: Session) -> None:
    """Run the benchmarks one after another and keep every row at once."""
    try:
        for name in asked.names or names():
            began = time.process_time()
            print(f"== {name}", flush=True)
            done = frozenset(row.name for row in session.rows.get(name, []))
            plan = Plan(asked.quick, asked.only, asked.limit, asked.enough, done)
            for _ in session.run(name, plan):
                save(asked, session)
            print(summary(session.rows[name]), f"({time.process_time() - began:.0f} CPU s)", flush=True)
    except KeyboardInterrupt:
        print("Interrupted: what was measured until now is kept.", flush=True)
    save(asked, session)


def save(asked: argparse.Namespace, session: Session) -> None:
    """Write the JSON file, if one is asked for."""
    if asked.json:
        record.write(asked.json, session.rows, quick=asked.quick)


def print_worse(session: Session, path: Path) -> None:
    """Print what became slower (or otherwise worse) than in an earlier run."""
    worse: list[Any] = list(record.worse(session.rows, record.read(path)))
    for line in worse:
        print(f"worse: {line}")
    if not worse:
        print(f"nothing is worse than in {path}")
