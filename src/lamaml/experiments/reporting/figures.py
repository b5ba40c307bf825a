"""`Drawing`: a figure of a report, rendered into a page in light and dark, or written to files."""

import base64
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
from markupsafe import Markup
from matplotlib.lines import Line2D

from lamaml._io import atomic_write, writing
from lamaml.experiments.reporting.canvas import Draw, Plot
from lamaml.experiments.reporting.palette import DARK, LIGHT, Palette

_LEGEND_COLUMNS = 4
_DATE = {"svg": "Date", "pdf": "CreationDate"}  # left out: the same figure gives the same file
_SVG: Any = {"svg.fonttype": "none", "svg.hashsalt": "lamaml"}


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

    @property
    def description(self) -> str:
        """Returns caption and legend in words, for readers who do not see the figure."""
        lines = ", ".join(key.word for key in self.legend)
        return f"{self.caption}. Lines: {lines}." if lines else f"{self.caption}."


def svg(draw: Draw, palette: Palette = LIGHT) -> str:
    """Returns the figure as an SVG document with a transparent background."""
    return _svg(draw(palette))


def picture(drawing: Drawing) -> Markup:
    """Returns the figure as HTML: drawn twice, it follows the reader's colour scheme.

    `data-values` has [x, y, text] of the values that the page's script shows on hover.
    """
    plots = [drawing.draw(palette) for palette in (LIGHT, DARK)]
    light, dark = (_data_uri(_svg(plot)) for plot in plots)
    values = json.dumps(plots[0].places(), ensure_ascii=False, separators=(",", ":"))
    return Markup(
        '<div class="plot" role="img" aria-label="{}" data-values="{}">'
        '<picture><source media="(prefers-color-scheme: dark)" srcset="{}">'
        '<img src="{}" alt=""></picture></div>'
    ).format(drawing.description, values, dark, light)


def export(drawing: Drawing, folder: Path, formats: Sequence[str] = ("svg", "pdf")) -> None:
    """Write a figure with its caption and legend, in light colours, as NAME.svg and NAME.pdf."""
    figure = drawing.draw(LIGHT).figure
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


def _svg(plot: Plot) -> str:
    buffer = io.StringIO()
    with matplotlib.rc_context(_SVG):
        plot.figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    return buffer.getvalue()


def _data_uri(document: str) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(document.encode()).decode()}"
