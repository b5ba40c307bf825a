"""The HTML report of runs: one self-contained page with tables, figures and settings."""

from collections.abc import Sequence
from pathlib import Path

import jinja2

from lamaml._io import write_text, writing
from lamaml.experiments.reporting.comparison import comparisons
from lamaml.experiments.reporting.figures import export, picture
from lamaml.experiments.reporting.palette import DARK, LIGHT
from lamaml.experiments.reporting.sections import DASHES, sections
from lamaml.experiments.reporting.tables import (
    cell,
    comparable,
    describe,
    difference,
    memory,
    metrics_table,
    spread,
    timing,
)
from lamaml.experiments.storing.joining import run_records
from lamaml.experiments.storing.results import Run


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
    for section in sections(runs):
        entries = [figure for entry in section.entries for figure in entry.figures]
        for figure in [*section.figures, *entries]:
            export(figure, folder)
        shown = [entry.run for entry in section.entries]
        table = metrics_table(section.name, section.title, [run.summary for run in shown])
        table._replace(records=run_records(shown)).write(folder)
        if section.pairs is not None:
            pairs = [pair._asdict() for pair in comparisons(shown)]
            section.pairs._replace(records=pairs).write(folder)


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
        "memory": memory,
        "comparable": comparable,
        "dashes": DASHES,
        "picture": picture,
        "vars": vars,
        "light": LIGHT,
        "dark": DARK,
    }
    return found


def render(runs: Sequence[Run]) -> str:
    """Returns the page as HTML."""
    page = templates().get_template("report.html").render(sections=sections(runs))
    return page.strip() + "\n"
