"""The HTML page of a reproduction: every table and figure, self-contained."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from lamaml._io import write_text
from lamaml.experiments.reporting.figures import Drawing
from lamaml.experiments.reporting.page import templates
from lamaml.experiments.reporting.table import Table
from lamaml.experiments.reproduction.figures import figures
from lamaml.experiments.reproduction.tables import tables


class Part(NamedTuple):
    """A target on the page."""

    outcome: Mapping[str, Any]
    tables: list[Table]
    figures: list[Drawing]


def write_page(outcomes: Iterable[Mapping[str, Any]], path: Path) -> None:
    """Write the page."""
    write_text(path, render_page(outcomes))


def render_page(outcomes: Iterable[Mapping[str, Any]]) -> str:
    """Returns the page as HTML."""
    parts = [Part(outcome, tables(outcome), figures(outcome)) for outcome in outcomes]
    return templates().get_template("reproduction.html").render(parts=parts).strip() + "\n"
