"""The cost model of fits on blocks: its predictions as a table, and docs/scale.png against what was measured."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent

#: Measured on one core (`python -m benchmarks scale`): rows, features, passes (that of the
#: description and the one for the support included), CPU seconds of a fit certified to 1e-3.
MEASURED = [(300_000, 10, 5, 0.13), (1_000_000, 10, 5, 0.39), (100_000, 100, 6, 0.23), (250_000, 200, 6, 1.05)]
#: Measured, passes of each fit of a path of 20 values of C, n = 1e5, p = 100: one pass serves all of them.
PATH_PASSES = [3, 1, 1, 1, 4, 1, 1, 1, 4, 1, 1, 4, 4, 4, 4, 1, 5, 1, 4, 5]
#: The values that are solved first, in a set of passes of their own.
KNOTS = (0, 4, 8, 12, 16, 19)


@dataclass(frozen=True)
class Cluster:
    """What a pass runs on.

    Attributes
    ----------
    nodes, cores : int
        Computers, and cores of each.
    disk : float
        Bytes a second that a computer reads.
    memory : float
        Bytes of a computer: data that fit there are read from disk once.
    per_block, latency : float
        Seconds of the scheduler per block, and per step of a reduction.
    per_row, per_entry : float
        Seconds of a core per row and per entry.
    """

    nodes: int = 1
    cores: int = 16
    disk: float = 2e9
    memory: float = 128e9
    per_block: float = 2e-3
    latency: float = 0.01
    per_row: float = 50e-9
    per_entry: float = 3.2e-9

    def compute(self, n: float, p: int) -> float:
        """Seconds of a pass for arithmetic."""
        return n * (self.per_row + p * self.per_entry) / (self.nodes * self.cores)

    def reading(self, n: float, p: int) -> float:
        """Seconds of a pass for reading float32."""
        return 4.0 * n * p / (self.nodes * self.disk)

    def scheduling(self, n: float, p: int, block: float) -> float:
        """Seconds of a pass that the scheduler takes: its blocks, and a tree of sums that is eight wide."""
        blocks = max(4.0 * n * p / block, 1.0)
        return blocks * self.per_block + self.latency * math.ceil(math.log(max(blocks, 2.0), 8))

    def fit(self, n: float, p: int, passes: int, block: float = 64e6) -> float:
        """Seconds of a fit: arithmetic and reading overlap, the scheduler sends one task after the other."""
        held = 4.0 * n * p <= 0.5 * self.memory * self.nodes
        reads = 1 if held else passes
        busy = max(passes * self.compute(n, p), reads * self.reading(n, p))
        return max(busy, passes * self.scheduling(n, p, block))


def in_words(seconds: float) -> str:
    """A time as people say it."""
    for size, unit in ((86400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"


def table(p: int = 100, passes: int = 20) -> str:
    """Predictions for 1e9 and 1e11 rows on 1 to 1000 computers, with blocks of 64 MB and of 1 GB."""
    lines = ["| rows | blocks | 1 node | 10 nodes | 100 nodes | 1000 nodes |", "|" + "---|" * 6]
    for n in (1e9, 1e11):
        for block, name in ((64e6, "64 MB"), (1e9, "1 GB")):
            times = [in_words(Cluster(nodes).fit(n, p, passes, block)) for nodes in (1, 10, 100, 1000)]
            lines.append(f"| 1e{math.log10(n):.0f} | {name} | " + " | ".join(times) + " |")
    return "\n".join(lines)


def draw() -> None:
    """Draw time against rows, passes of a path, and speed-up against computers."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt
    import numpy as np

    figure, (time, passes, speed) = plt.subplots(1, 3, figsize=(12, 3.4), constrained_layout=True)
    core = Cluster(cores=1, disk=math.inf)
    rows = np.geomspace(1e4, 1e9, 30)
    for p, colour in ((10, "tab:blue"), (100, "tab:orange"), (200, "tab:green")):
        time.plot(rows, [6 * core.compute(n, p) for n in rows], colour, label=f"model, p = {p}, 6 passes")
        points = [(n, seconds) for n, width, _, seconds in MEASURED if width == p]
        time.plot(*zip(*points), "o", color=colour) if points else None
    time.set(xscale="log", yscale="log", xlabel="rows", ylabel="seconds of one core", title="A certified fit (1e-3)")
    time.legend()
    colours = ["tab:orange" if at in KNOTS else "tab:gray" for at in range(20)]
    passes.bar(range(1, 21), PATH_PASSES, color=colours)
    others = max(count for at, count in enumerate(PATH_PASSES) if at not in KNOTS)
    total = max(PATH_PASSES[at] for at in KNOTS) + others
    passes.axhline(total, color="tab:red", label="passes over the data, all together")
    passes.set(xlabel="value of C", ylabel="passes", title="20 values of C: orange first", ylim=(0, total + 2))
    passes.legend()
    nodes = np.array([1, 2, 5, 10, 20, 50, 100, 200, 500, 1000])
    for block, name in ((64e6, "64 MB"), (1e9, "1 GB")):
        one = Cluster(1).fit(1e10, 100, 20, block)
        speed.plot(
            nodes, [one / Cluster(int(k)).fit(1e10, 100, 20, block) for k in nodes], "o-", label=f"blocks of {name}"
        )
    speed.plot(nodes, nodes, "k:", label="linear")
    speed.set(
        xscale="log", yscale="log", xlabel="computers", ylabel="speed-up", title="1e10 rows, 100 features (model)"
    )
    speed.legend()
    figure.savefig(HERE / "pictures" / "scale.png", dpi=110)


def check() -> None:
    """Print what the model says of the measured points."""
    core = Cluster(cores=1, disk=math.inf)
    for n, p, passes, seconds in MEASURED:
        model = passes * core.compute(n, p)
        print(f"n = {n:.0e}, p = {p}: measured {seconds:.2f} s, model {model:.2f} s, ratio {seconds / model:.2f}")


if __name__ == "__main__":
    check()
    print(table())
    draw()
