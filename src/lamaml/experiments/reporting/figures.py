"""Figures: as inline SVG in the page's colours, which follow light and dark, and as files.

A drawing is a function of its palette. For the page it is drawn with stand-in colours, which are
then replaced by CSS variables; for a file with the colours of the page in the light.
"""

import io
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import (
    FixedLocator,
    FuncFormatter,
    MaxNLocator,
    NullLocator,
    PercentFormatter,
)

from lamaml._io import atomic_write, writing

HEAT = "#3f74e0"
NUM_SERIES = 10  # colours of the page
_MOST_POINTS = 300  # of a curve: more cannot be seen
_LEGEND_COLUMNS = 4
_DATED = {".svg": "Date", ".pdf": "CreationDate"}  # left out: the same figure is the same file
_MOST_NUMBERED = 12  # tasks up to which the cells of a heat map are numbered


class Palette(NamedTuple):
    """Colours by the page's names for them."""

    soft: str  # words
    line: str  # axes
    ink: str  # numbers
    series: tuple[str, ...]

    def of(self, variable: str) -> str:
        """The colour of `--series-3`."""
        return self.series[int(variable.rpartition("-")[2])]


Draw = Callable[[Palette], Figure]
"""A drawing."""

_PAGE = Palette("#010101", "#020202", "#040404", tuple(f"#0300{n:02x}" for n in range(NUM_SERIES)))
_VARIABLES = {_PAGE.soft: "--soft", _PAGE.line: "--line", _PAGE.ink: "--ink"} | {
    colour: f"--series-{number}" for number, colour in enumerate(_PAGE.series)
}


class Key(NamedTuple):
    """What a line of a figure stands for: its CSS variable and dashes, as in `Series`."""

    word: str
    colour: str
    dashes: str = "-"


class Drawn(NamedTuple):
    """A figure.

    Attributes:
      name: of its files, and among the drawings of a page.
      caption: what it shows.
      legend: what its lines stand for; () where that needs no saying.
      draw: the drawing, without either.
    """

    name: str
    caption: str
    legend: Sequence[Key]
    draw: Draw


class Series(NamedTuple):
    """A line: where its points are, their values, the CSS variable of its colour, its dashes."""

    x: np.ndarray  # (points,)
    values: np.ndarray  # (seeds, points)
    colour: str
    dashes: str = "-"


def inline(draw: Draw, name: str) -> str:
    """A drawing as a part of a page.

    Args:
      draw: the drawing.
      name: that no other drawing on the page has.
    """
    return _svg(draw(_PAGE), name)


def export(drawn: Drawn, folder: Path, suffixes: Sequence[str] = (".svg", ".pdf")) -> None:
    """Write a figure, with its caption and legend, as files of its name."""
    palette = _light()
    figure = drawn.draw(palette)
    figure.suptitle(drawn.caption, color=palette.ink, fontsize=9)
    if drawn.legend:
        lines = [
            Line2D([], [], color=palette.of(key.colour), ls=key.dashes, label=key.word)
            for key in drawn.legend
        ]
        figure.legend(
            handles=lines,
            loc="outside lower center",
            ncols=min(len(lines), _LEGEND_COLUMNS),
            frameon=False,
            labelcolor=palette.soft,
            fontsize=8,
        )
    with writing(folder), matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "lamaml"}):
        for suffix in suffixes:
            with atomic_write(folder / f"{drawn.name}{suffix}") as file:
                figure.savefig(file, format=suffix[1:], metadata={_DATED[suffix]: None})


def curves(
    series: Sequence[Series],
    x_label: str,
    palette: Palette,
    *,
    percent: bool = True,
    log: bool = False,
) -> Figure:
    """Means over seeds as lines, ± one standard deviation as bands.

    Args:
      series: the lines.
      x_label: what x counts.
      palette: the colours.
      percent: whether values are shares.
      log: whether x is on a logarithmic scale.
    """
    with _axes(palette, 5.2, 2.9) as (figure, axes):
        for line in series:
            _draw(axes, line, palette.of(line.colour))
        axes.set_xlabel(x_label)
        axes.margins(x=0.02)
        if log:
            ticks = sorted({x for line in series for x in line.x})
            axes.set_xscale("log")
            axes.xaxis.set_major_locator(FixedLocator(ticks))
            axes.xaxis.set_minor_locator(NullLocator())
            axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
        else:
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        if percent:
            low, high = axes.get_ylim()
            axes.set_ylim(min(low, (low + high) / 2 - 0.05), max(high, (low + high) / 2 + 0.05))
            axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    return figure


def points(
    marks: Sequence[tuple[str, str, float, float]], x_label: str, palette: Palette
) -> Figure:
    """Named points.

    Args:
      marks: (name, CSS variable of its colour, x, share) of each.
      x_label: what x counts.
      palette: the colours.
    """
    with _axes(palette, 5.2, 2.9) as (figure, axes):
        for name, colour, x, share in marks:
            axes.plot([x], [share], "o", color=palette.of(colour), markersize=6)
            axes.annotate(
                name, (x, share), xytext=(6, 4), textcoords="offset points", color=palette.ink
            )
        axes.set_xlabel(x_label)
        axes.set_xlim(left=0)
        axes.margins(x=0.15, y=0.15)
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    return figure


def grid_map(
    values: np.ndarray,
    x_values: Sequence[float],
    y_values: Sequence[float],
    labels: tuple[str, str],
    palette: Palette,
) -> Figure:
    """A share for every pair of two rates, numbered.

    Args:
      values: (y, x), NaN where nothing is known.
      x_values: of the columns.
      y_values: of the rows, from the bottom.
      labels: of x and y.
      palette: the colours.
    """
    with _axes(palette, 3.6, 3.2) as (figure, axes):
        axes.grid(visible=False)
        known = values[np.isfinite(values)]
        low, high = (known.min(), known.max()) if known.size else (0.0, 1.0)
        image = np.empty((*values.shape, 4))
        image[..., :3] = matplotlib.colors.to_rgb(HEAT)
        image[..., 3] = np.nan_to_num(0.1 + 0.9 * (values - low) / max(high - low, 1e-9))
        axes.imshow(image, interpolation="none", origin="lower", aspect="auto")
        for row, column in np.argwhere(np.isfinite(values)):
            dark = image[row, column, 3] > 0.55
            text = f"{100 * values[row, column]:.0f}"
            colour = "#ffffff" if dark else palette.ink
            axes.text(column, row, text, ha="center", va="center", color=colour, size=7.5)
        for axis, found in ((axes.xaxis, x_values), (axes.yaxis, y_values)):
            axis.set_major_locator(FixedLocator(range(len(found))))
            axis.set_major_formatter(FuncFormatter(lambda i, _, found=found: f"{found[int(i)]:g}"))
        axes.set_xlabel(labels[0])
        axes.set_ylabel(labels[1])
    return figure


def heat_map(matrix: np.ndarray, palette: Palette) -> Figure:
    """R[i, t]: a row for each task learned, a column for each task tested.

    Where a task was not tested again, its last accuracy stands.
    """
    size = len(matrix)
    matrix = _carried_on(matrix)
    with _axes(palette, 2.9, 2.8) as (figure, axes):
        axes.grid(visible=False)
        image = np.empty((size, size, 4))
        image[..., :3] = matplotlib.colors.to_rgb(HEAT)
        image[..., 3] = np.nan_to_num(matrix)
        edges = (0.5, size + 0.5)
        axes.imshow(image, interpolation="none", extent=(*edges, *edges[::-1]))
        if size <= _MOST_NUMBERED:
            _number_cells(axes, matrix, palette)
        axes.set_xlabel("tested on task")
        axes.set_ylabel("after task")
        axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True, prune=None))
        axes.yaxis.set_major_locator(MaxNLocator(nbins=6, integer=True, prune=None))
    return figure


@contextmanager
def _axes(palette: Palette, width: float, height: float) -> Iterator[tuple[Figure, Axes]]:
    """Empty axes in the page's style, for the time of the block."""
    style: Any = {
        "svg.fonttype": "none",
        "svg.hashsalt": "lamaml",
        "font.size": 8.5,
        "axes.edgecolor": palette.line,
        "axes.labelcolor": palette.soft,
        "axes.titlecolor": palette.soft,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": palette.line,
        "grid.linewidth": 0.6,
        "xtick.color": palette.line,
        "ytick.color": palette.line,
        "xtick.labelcolor": palette.soft,
        "ytick.labelcolor": palette.soft,
        "lines.linewidth": 1.7,
    }
    with matplotlib.rc_context(style):
        figure = Figure(figsize=(width, height), layout="constrained")
        axes = figure.subplots()
        yield figure, axes
        axes.tick_params(length=0)


@cache
def _light() -> Palette:
    """The colours of the page in the light, read from its style sheet."""
    sheet = resources.files("lamaml.experiments.reporting") / "templates" / "report.css"
    light = sheet.read_text("utf-8").partition("@media")[0]
    colours = dict(re.findall(r"(--[\w-]+): (#[0-9a-f]{6})", light))
    series = tuple(colours[f"--series-{number}"] for number in range(NUM_SERIES))
    return Palette(colours["--soft"], colours["--line"], colours["--ink"], series)


def task_lines(matrix: np.ndarray, palette: Palette) -> Figure:
    """The accuracy on each task after every task from its own on: how each fades.

    Args:
      matrix: R[i, t], NaN where not tested.
      palette: the colours.
    """
    with _axes(palette, 2.9, 2.2) as (figure, axes):
        for task in range(len(matrix)):
            after = np.arange(task, len(matrix))
            known = np.isfinite(matrix[after, task])
            strength = 0.35 + 0.65 * task / max(len(matrix) - 1, 1)
            x, y = after[known] + 1, matrix[after, task][known]
            axes.plot(x, y, color=palette.of("--series-0"), alpha=strength, linewidth=1.1)
            axes.plot(x[:1], y[:1], "o", color=palette.of("--series-0"), markersize=2.5)
        axes.set_xlabel("tasks learned")
        axes.set_ylim(0, 1)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    return figure


def histograms(edges: np.ndarray, counts: np.ndarray, x_label: str, palette: Palette) -> Figure:
    """Distributions that move: a column for each time, darker where more values lie.

    Args:
      edges: of the bins, one more than there are bins.
      counts: (times, bins), shares of the values.
      x_label: what the times count.
      palette: the colours.
    """
    with _axes(palette, 2.9, 2.2) as (figure, axes):
        axes.grid(visible=False)
        image = np.empty((*counts.T.shape, 4))
        image[..., :3] = matplotlib.colors.to_rgb(HEAT)
        image[..., 3] = (counts.T / max(counts.max(), 1e-9)) ** 0.4  # rare values are seen, too
        span = (0.5, len(counts) + 0.5, edges[0], edges[-1])
        axes.imshow(image, interpolation="none", origin="lower", aspect="auto", extent=span)
        axes.set_xlabel(x_label)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    return figure


def _draw(axes: Axes, line: Series, colour: str) -> None:
    stride = max(1, len(line.x) // _MOST_POINTS)
    points = len(line.x) // stride
    values = line.values[:, : points * stride]
    thinned = values.reshape(len(values), points, stride).mean(axis=2)
    x = line.x[: points * stride : stride]
    mean = thinned.mean(axis=0)
    marker = "o" if points <= 1 else None
    axes.plot(x, mean, line.dashes, color=colour, marker=marker, markersize=4)
    if len(values) > 1:
        spread = thinned.std(axis=0, ddof=1)
        axes.fill_between(x, mean - spread, mean + spread, color=colour, alpha=0.14, linewidth=0)


def _carried_on(matrix: np.ndarray) -> np.ndarray:
    filled = matrix.copy()
    for row in range(1, len(matrix)):
        missing = np.isnan(filled[row, : row + 1])
        filled[row, : row + 1][missing] = filled[row - 1, : row + 1][missing]
    return filled


def _number_cells(axes: Axes, matrix: np.ndarray, palette: Palette) -> None:
    for row, column in np.argwhere(np.isfinite(matrix)):
        value = matrix[row, column]
        colour = "#ffffff" if value > 0.55 else palette.ink
        where = (column + 1, row + 1)
        axes.text(*where, f"{100 * value:.0f}", ha="center", va="center", color=colour, size=6.5)


def _svg(figure: Figure, name: str) -> str:
    """The drawing alone, as a part of a page: no prologue, no namespaces, no fixed size."""
    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "lamaml"}):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r' (xmlns(:\w+)?|version|width|height)="[^"]*"', "", text, count=5)
    for stand_in, variable in _VARIABLES.items():
        text = text.replace(stand_in, f"var({variable})")
    return _with_own_ids(text.strip(), name)


def _with_own_ids(text: str, name: str) -> str:
    """The names that are used, made such that no other drawing on the page has them."""
    mark = f"f{zlib.crc32(name.encode()):08x}"
    used = set(re.findall(r'(?:url\(#|xlink:href="#)([^)"]+)', text))

    def renamed(match: re.Match[str]) -> str:
        return f' id="{mark}-{match[1]}"' if match[1] in used else ""

    text = re.sub(r' id="([^"]+)"', renamed, text)
    return re.sub(r'(url\(#|xlink:href="#)', rf"\g<1>{mark}-", text)
