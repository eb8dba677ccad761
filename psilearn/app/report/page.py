"""The report: one self-contained HTML file from a comparison."""

from __future__ import annotations

from ..compare.job import Comparison
from ..explore.page import explorer_html
from ..pages import asset, page
from . import pictures, sections
from .quality import quality_section, shown_model
from .suspects import suspects_section

#: A page larger than this is slow to send and to open; these sections are left out first.
MOST_BYTES = 1_000_000
LEFT_OUT_FIRST = ("repeat", "data", "plane", "coefficients", "rules", "abstaining", "certificates")
TOO_LARGE = "<p>Left out: with this table the page would grow beyond 1 MB.</p>"


def report_page(comparison: Comparison, source: str, command: str, seconds: float = 20.0) -> str:
    """Return the report as HTML.

    Parameters
    ----------
    comparison : Comparison
        What is reported.
    source : str
        Name of the table, for the title.
    command : str
        The command that repeats the comparison.
    seconds : float
        Time for the fits that only the pictures need.
    """
    parts = _parts(comparison, command, seconds)
    for name in LEFT_OUT_FIRST:
        if len(_page(comparison, source, parts).encode()) <= MOST_BYTES:
            break
        parts = [(n, title, TOO_LARGE if n == name else body) for n, title, body in parts]
    return _page(comparison, source, parts)


def _parts(comparison: Comparison, command: str, seconds: float) -> list[tuple[str, str, str]]:
    """Return (name, title, HTML) of every section."""
    parts = [("suspects", "Rows to look at", suspects_section(comparison))]
    parts.append(("methods", "Methods", sections.methods_section(comparison)))
    if (chosen := shown_model(comparison)) is not None:
        parts.append(("quality", "The model", quality_section(comparison, chosen)))
    plane = pictures.plane(comparison)
    if plane is not None:
        projected = comparison.splits[0].X_train.shape[1] > 2
        parts.append(("plane", "Boundaries", sections.plane_section(plane, explorer_html(plane, "plane"), projected)))
    if paths := pictures.paths(comparison, seconds / 2):
        parts.append(("coefficients", "Coefficients", sections.paths_section(paths)))
    if risk := pictures.risk_coverage(comparison, seconds / 2):
        everyone = pictures.answers_of_all(comparison)
        parts.append(("abstaining", "Abstaining", sections.risk_section(comparison, risk, everyone)))
    if rules := [o for o in comparison.outcomes if hasattr(o.model, "rules_")]:
        parts.append(("rules", "Rules", sections.rules_section(rules)))
    return [
        *parts,
        ("certificates", "What is proved", sections.certificates_section(comparison, pictures.bounds(comparison))),
        ("data", "Data", sections.data_section(comparison)),
        ("repeat", "Repeat it", sections.settings_section(comparison, command)),
    ]


def _page(comparison: Comparison, source: str, parts: list[tuple[str, str, str]]) -> str:
    head = sections.header(comparison, source, [(name, title) for name, title, _ in parts])
    body = "".join(sections.section(*part) for part in parts)
    foot = "<footer><p>Made by psilearn. Nothing in this file leaves your computer.</p></footer>"
    scripts = [asset("report", "charts.js"), asset("explore", "explorer.js")]
    return page(f"{source}: can its labels be trusted?", f'{head}<main id="main">{body}</main>{foot}', scripts)
