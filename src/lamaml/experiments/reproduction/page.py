"""The HTML page of a reproduction: every table and figure, self-contained."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from lamaml._io import write_text
from lamaml.experiments.reporting.figures import Drawing
from lamaml.experiments.reporting.page import templates
from lamaml.experiments.reporting.table import Table
from lamaml.experiments.reproduction.figures import figures
from lamaml.experiments.reproduction.outcomes import Outcome
from lamaml.experiments.reproduction.tables import tables


class Part(NamedTuple):
    """A target on the page."""

    outcome: Outcome
    tables: list[Table]
    figures: list[Drawing]


def write_page(outcomes: Iterable[Outcome], path: Path) -> None:
    """Write the page."""
    write_text(path, render_page(outcomes))


def render_page(outcomes: Iterable[Outcome]) -> str:
    """Returns the page as HTML."""
    parts = [Part(outcome, tables(outcome), figures(outcome)) for outcome in outcomes]
    return templates().get_template("reproduction.html").render(parts=parts).strip() + "\n"
