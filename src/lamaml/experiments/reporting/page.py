"""The HTML report of runs: one self-contained page with tables, figures and settings."""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import jinja2

from lamaml._io import write_text, writing
from lamaml.experiments.reporting.figures import DARK, LIGHT, Drawing, Key, export, picture
from lamaml.experiments.reporting.run_figures import Line, own_figures, shared_figures
from lamaml.experiments.reporting.table import Table
from lamaml.experiments.reporting.tables import (
    cell,
    comparable,
    describe,
    difference,
    metrics_table,
    pairs_table,
    reading,
    spread,
    timing,
)
from lamaml.experiments.storing.results import Run
from lamaml.experiments.storing.summary import Summary

_COLOURS = {
    name: number
    for number, name in enumerate(
        ("la_maml", "c_maml", "sync_la_maml", "la_er", "er", "online", "mer", "gem", "a_gem", "ewc")
    )
}
_DASHES = {"-": "solid", "--": "dashed", ":": "dotted", "-.": "double"}  # and their CSS


class Entry(NamedTuple):
    """A run on the page."""

    run: Run
    summary: Summary
    label: str
    colour: int  # number in `Palette.series`
    dashes: str
    figures: list[Drawing]


class Section(NamedTuple):
    """The runs of one benchmark and protocol."""

    name: str
    title: str
    reading: str
    entries: list[Entry]
    figures: list[Drawing]
    pairs: Table | None


def write_report(runs: Sequence[Run], path: Path, files: Path | None = None) -> None:
    """Write the page.

    Args:
      runs: the runs it shows.
      path: the file to write.
      files: a folder for every figure (SVG, PDF) and table (Markdown, LaTeX, CSV); None for none.

    Raises:
      LamamlError: a file cannot be written, or a run is damaged.
    """
    write_text(path, render(runs))
    if files is not None:
        write_files(runs, files)


def write_files(runs: Sequence[Run], folder: Path) -> None:
    """Write every figure and table of the page to its own files."""
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    for section in _sections(runs):
        entries = [figure for entry in section.entries for figure in entry.figures]
        for figure in [*section.figures, *entries]:
            export(figure, folder)
        summaries = [entry.summary for entry in section.entries]
        metrics_table(section.name, section.title, summaries).write(folder)
        if section.pairs is not None:
            section.pairs.write(folder)


def templates() -> jinja2.Environment:
    """Returns the templates of all pages, with the functions they call."""
    loader = jinja2.PackageLoader("lamaml.experiments.reporting", "templates")
    found = jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    found.globals |= {
        "spread": spread,
        "cell": cell,
        "difference": difference,
        "describe": describe,
        "timing": timing,
        "comparable": comparable,
        "dashes": _DASHES,
        "picture": picture,
        "vars": vars,
        "light": LIGHT,
        "dark": DARK,
    }
    return found


def render(runs: Sequence[Run]) -> str:
    """Returns the page as HTML."""
    page = templates().get_template("report.html").render(sections=_sections(runs))
    return page.strip() + "\n"


def _sections(runs: Sequence[Run]) -> list[Section]:
    ordered = sorted(runs, key=_group)
    return [_section(group, list(members)) for group, members in groupby(ordered, key=_group)]


def _group(run: Run) -> tuple[str, str]:
    return run.settings.recipe.benchmark, run.settings.recipe.protocol


def _section(group: tuple[str, str], runs: Sequence[Run]) -> Section:
    name = "-".join(group)
    entries: list[Entry] = []
    for run in runs:
        alike = sum(
            entry.run.settings.recipe.learner == run.settings.recipe.learner for entry in entries
        )
        entries.append(_entry(name, run, alike, several=_repeated(run, runs)))
    entries.sort(key=lambda entry: -(entry.summary.ra.mean or 0))
    benchmark, protocol = group
    passes = "single pass" if protocol == "single" else "multiple passes"
    return Section(
        name,
        f"{benchmark}, {passes}",
        reading([entry.summary for entry in entries]),
        entries,
        shared_figures(name, [Line(e.run, Key(e.label, e.colour, e.dashes)) for e in entries]),
        pairs_table(name, [(entry.label, entry.summary) for entry in entries]),
    )


def _repeated(run: Run, runs: Sequence[Run]) -> bool:
    return [other.settings.recipe.learner for other in runs].count(run.settings.recipe.learner) > 1


def _entry(section: str, run: Run, alike: int, several: bool) -> Entry:
    learner, found = run.settings.recipe.learner, run.summary
    label = f"{learner} ({describe(found)})" if several else learner
    colour = _COLOURS.get(learner, sum(map(ord, learner)) % len(_COLOURS))
    dashes = list(_DASHES)[alike % len(_DASHES)]
    name = f"{section}-{learner}" + (f"-{alike + 1}" if several else "")
    return Entry(run, found, label, colour, dashes, own_figures(name, run))
