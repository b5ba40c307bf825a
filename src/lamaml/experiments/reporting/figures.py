"""`Drawing`: a figure of a report, rendered into a page in light and dark, or written to files."""

import base64
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
from markupsafe import Markup
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from lamaml._io import atomic_write, writing

_LEGEND_COLUMNS = 4
_DATE = {"svg": "Date", "pdf": "CreationDate"}  # left out: the same figure gives the same file
_SVG: Any = {"svg.fonttype": "none", "svg.hashsalt": "lamaml"}


class Palette(NamedTuple):
    """The colours of a page and of the figures in it."""

    page: str
    card: str
    ink: str  # text
    soft: str  # labels and notes
    line: str  # axes and borders
    warn: str
    series: tuple[str, ...]  # lines and learners

    @property
    def css(self) -> str:
        """Returns the declarations of `--page`, ..., `--series-0`, ...."""
        names = {name: value for name, value in self._asdict().items() if name != "series"}
        names |= {f"series-{number}": colour for number, colour in enumerate(self.series)}
        return " ".join(f"--{name}: {colour};" for name, colour in names.items())


LIGHT = Palette(
    *("#f6f7f9", "#ffffff", "#18212f", "#5a6675", "#e1e5ea", "#9a5b00"),
    series=(
        *("#2f5fd0", "#16906b", "#8b4fc7", "#0d8ba1", "#dc7a1c"),
        *("#7d8797", "#cb3a4f", "#8f6b3a", "#7c8a1f", "#c74a94"),
    ),
)
DARK = Palette(
    *("#11151b", "#191f27", "#e8ecf2", "#9aa7b7", "#2c3541", "#f0b45c"),
    series=(
        *("#7ea4ff", "#4fcfa2", "#c39bff", "#56cbe0", "#ffa75c"),
        *("#98a4b6", "#ff7d8f", "#d4b07a", "#c3d15b", "#ff8fcc"),
    ),
)

Draw = Callable[[Palette], Figure]
"""Draws a figure in the colours of a palette."""


class Key(NamedTuple):
    """An entry of a legend: its text, the number of its colour in `Palette.series`, its dashes."""

    word: str
    colour: int
    dashes: str = "-"


class Drawing(NamedTuple):
    """A figure.

    Attributes:
      name: the stem of its files.
      caption: what it shows.
      legend: its lines; empty where the figure needs no legend.
      draw: draws it, without caption and legend.
    """

    name: str
    caption: str
    legend: Sequence[Key]
    draw: Draw


def svg(draw: Draw, palette: Palette = LIGHT) -> str:
    """Returns the figure as an SVG document with a transparent background."""
    buffer = io.StringIO()
    with matplotlib.rc_context(_SVG):
        draw(palette).savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    return buffer.getvalue()


def picture(drawing: Drawing) -> Markup:
    """Returns a `<picture>` that holds the figure twice and follows the reader's colour scheme."""
    light, dark = (_data_uri(svg(drawing.draw, palette)) for palette in (LIGHT, DARK))
    return Markup(
        '<picture><source media="(prefers-color-scheme: dark)" srcset="{}">'
        '<img src="{}" alt="{}"></picture>'
    ).format(dark, light, drawing.caption)


def export(drawing: Drawing, folder: Path, formats: Sequence[str] = ("svg", "pdf")) -> None:
    """Write a figure with its caption and legend, in light colours, as NAME.svg and NAME.pdf."""
    figure = drawing.draw(LIGHT)
    figure.suptitle(drawing.caption, color=LIGHT.ink, fontsize=9)
    if drawing.legend:
        lines = [
            Line2D([], [], color=LIGHT.series[key.colour], ls=key.dashes, label=key.word)
            for key in drawing.legend
        ]
        figure.legend(
            handles=lines,
            loc="outside lower center",
            ncols=min(len(lines), _LEGEND_COLUMNS),
            frameon=False,
            labelcolor=LIGHT.soft,
            fontsize=8,
        )
    with writing(folder), matplotlib.rc_context(_SVG):
        for kind in formats:
            with atomic_write(folder / f"{drawing.name}.{kind}") as file:
                figure.savefig(file, format=kind, metadata={_DATE[kind]: None})


def _data_uri(document: str) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(document.encode()).decode()}"
