"""What was found, on one page that needs nothing else."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup

from lamaml._io import write_text
from lamaml.experiments.reporting.figures import Key, inline
from lamaml.experiments.reporting.page import pages
from lamaml.experiments.reporting.table import Grid
from lamaml.experiments.reproduction.drawings import drawings
from lamaml.experiments.reproduction.tabulation import grids


class Picture(NamedTuple):
    """A figure as the page shows it."""

    caption: str
    legend: Sequence[Key]
    drawing: Markup


class Part(NamedTuple):
    """A target as the page shows it."""

    outcome: Mapping[str, Any]
    grids: list[Grid]
    pictures: list[Picture]


def write_page(outcomes: Iterable[Mapping[str, Any]], path: Path) -> None:
    """Write the page."""
    write_text(path, render_page(outcomes))


def render_page(outcomes: Iterable[Mapping[str, Any]]) -> str:
    """The page as HTML."""
    parts = [
        Part(
            found,
            grids(found),
            [
                Picture(d.caption, d.legend, Markup(inline(d.draw, d.name)))  # noqa: S704  (our SVG)
                for d in drawings(found)
            ],
        )
        for found in outcomes
    ]
    return pages().get_template("reproduction.html").render(parts=parts).strip() + "\n"
