"""What an experiment is: a seeded function, a grid of settings, published figures, claims and a drawing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .task import Task, canonical, replicate_seed

Settings = Mapping[str, Any]


@dataclass(frozen=True)
class Paper:
    """A paper, cited in full."""

    authors: str
    title: str
    year: int
    venue: str = ""

    def __str__(self) -> str:
        text = f"{self.authors}, {self.title}, {self.year}"
        return f"{text}, {self.venue}" if self.venue else text


@dataclass(frozen=True)
class Published:
    """One printed figure.

    Attributes
    ----------
    settings : mapping
        The settings of the experiment it belongs to.
    measure : str
        The measure of the experiment's result it belongs to.
    value : float or None
        None where the paper prints a dash.
    sd : float or None
        Printed standard deviation over replications.
    se : float or None
        Printed standard error of the mean.
    """

    settings: Settings
    measure: str
    value: float | None
    sd: float | None = None
    se: float | None = None


@dataclass(frozen=True)
class Ordering:
    """A claim of the paper that one average is lower than another; judged by the paired difference of replicates."""

    text: str
    lower: tuple[Settings, str]
    higher: tuple[Settings, str]


@dataclass(frozen=True)
class Ratio:
    """A measure that is a ratio of two averages, not an average of ratios; formed at every setting that has both."""

    measure: str
    numerator: str
    denominator: str


@dataclass(frozen=True)
class Reason:
    """Why figures may differ; shown only when a figure it applies to does."""

    text: str
    applies: Callable[[Settings, str], bool] = lambda settings, measure: True


@dataclass(frozen=True)
class Experiment:
    """One table or figure of a paper.

    Attributes
    ----------
    name : str
        ``paper/table`` as the user types it.
    title : str
    paper : Paper
    run : callable
        ``run(seed, **settings) -> {measure: number or (nested) list of numbers}``.
    settings : sequence of mappings
        Every setting of the table.
    replications : int
        As in the paper.
    small : int
        Replications of the small version.
    small_settings : sequence of mappings
        Settings of the small version; all of them when empty.
    printed_from : int or None
        Replications behind the printed figures where they are not ``replications``.
    deterministic : bool
        There is nothing random: one replication is exact, and a figure must equal the printed one.
    published, orderings, ratios, reasons : sequences
    draw : callable or None
        ``draw(summary) -> matplotlib Figure``.
    about : str
        What a reader must know to read the page: design, choices the paper leaves open.
    source : Experiment or None
        Another experiment whose results this one shows; it then has no tasks of its own.
    """

    name: str
    title: str
    paper: Paper
    run: Callable[..., Mapping[str, Any]]
    settings: Sequence[Settings] = ({},)
    replications: int = 1
    small: int = 1
    small_settings: Sequence[Settings] = ()
    printed_from: int | None = None
    deterministic: bool = False
    published: Sequence[Published] = ()
    ratios: Sequence[Ratio] = ()
    orderings: Sequence[Ordering] = ()
    reasons: Sequence[Reason] = ()
    draw: Callable[[Any], Any] | None = None
    about: str = ""
    function: str = ""
    source: Experiment | None = field(default=None, repr=False)

    @property
    def origin(self) -> Experiment:
        """The experiment whose tasks produce the results."""
        return self.source.origin if self.source is not None else self

    def tasks(self, replications: int | None = None, small: bool = False) -> list[Task]:
        """Return the tasks, replicate by replicate, so that an interrupted run is balanced over the settings."""
        origin = self.origin
        wanted = origin.settings if not (small and origin.small_settings) else origin.small_settings
        count = replications or (origin.small if small else origin.replications)
        return [
            Task(origin.name, origin.function, canonical(setting), i, replicate_seed(origin.name, i))
            for i in range(count)
            for setting in wanted
        ]


def experiment(name: str, **fields: Any) -> Callable[[Callable[..., Mapping[str, Any]]], Experiment]:
    """Turn the function below the decorator into an `Experiment` that workers find by its module and name."""

    def build(run: Callable[..., Mapping[str, Any]]) -> Experiment:
        return Experiment(name, run=run, function=f"{run.__module__}:{run.__name__}", **fields)

    return build


def view(source: Experiment, name: str, **fields: Any) -> Experiment:
    """Return another table or figure of the same results."""
    cleared: dict[str, Any] = {"published": (), "ratios": (), "orderings": (), "reasons": (), "draw": None, "about": ""}
    return replace(source, name=name, source=source, **(cleared | fields))


def grid(**axes: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the settings of a full factorial, the last axis running fastest."""
    settings: list[dict[str, Any]] = [{}]
    for axis, values in axes.items():
        settings = [{**setting, axis: value} for setting in settings for value in values]
    return settings
