"""The kinds of plots in reports: curves, points, heat maps, histograms."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import (
    FixedLocator,
    FuncFormatter,
    MaxNLocator,
    NullLocator,
    PercentFormatter,
)

from lamaml.experiments.reporting.figures import Palette

HEAT = "#3f74e0"
_MOST_POINTS = 300  # of a curve: more cannot be seen
_MOST_NUMBERED = 12  # tasks up to which the cells of a heat map are numbered


class Series(NamedTuple):
    """A line of a plot."""

    x: np.ndarray  # (points,)
    values: np.ndarray  # (seeds, points)
    colour: int  # number in `Palette.series`
    dashes: str = "-"


class Point(NamedTuple):
    """A labelled point of a plot."""

    label: str
    x: float
    y: float  # in [0, 1]
    colour: int  # number in `Palette.series`


def curves(
    series: Sequence[Series],
    x_label: str,
    palette: Palette,
    *,
    percent: bool = True,
    log: bool = False,
) -> Figure:
    """Returns means over seeds as lines, ± one standard deviation as bands.

    Args:
      series: the lines.
      x_label: the label of the x axis.
      palette: the colours.
      percent: whether values in [0, 1] are labelled in percent.
      log: whether the x axis is logarithmic.
    """
    with _axes(palette, 5.2, 2.9) as (figure, axes):
        for line in series:
            _draw(axes, line, palette.series[line.colour])
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


def points(marks: Sequence[Point], x_label: str, palette: Palette) -> Figure:
    """Returns labelled points; y in percent."""
    with _axes(palette, 5.2, 2.9) as (figure, axes):
        for mark in marks:
            where = (mark.x, mark.y)
            axes.plot(*where, "o", color=palette.series[mark.colour], markersize=6)
            axes.annotate(
                mark.label, where, xytext=(6, 4), textcoords="offset points", color=palette.ink
            )
        axes.set_xlabel(x_label)
        axes.set_xlim(left=0)
        axes.margins(x=0.15, y=0.15)
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    return figure


class Marks(NamedTuple):
    """Points of one colour."""

    points: Sequence[tuple[float, float]]  # (x, y), y in [0, 1]
    colour: int  # number in `Palette.series`


def scatter(marks: Sequence[Marks], x_label: str, palette: Palette, *, log: bool = False) -> Figure:
    """Returns points without labels; y in percent, x on a log scale if `log`."""
    with _axes(palette, 5.2, 2.9) as (figure, axes):
        for group in marks:
            axes.plot(*zip(*group.points, strict=True), "o", color=palette.series[group.colour])
        axes.set_xlabel(x_label)
        axes.margins(x=0.05, y=0.15)
        if log:
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
            axes.xaxis.set_minor_locator(NullLocator())
        else:
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    return figure


def rate_map(
    values: np.ndarray,
    x_values: Sequence[float],
    y_values: Sequence[float],
    labels: tuple[str, str],
    palette: Palette,
) -> Figure:
    """Returns a heat map of the accuracy over two learning rates, numbered in percent.

    Args:
      values: (y, x) in [0, 1], NaN where unknown.
      x_values: the rates of the columns.
      y_values: the rates of the rows, from the bottom.
      labels: the names of the x rate and the y rate.
      palette: the colours.
    """
    with _axes(palette, 3.6, 3.2) as (figure, axes):
        axes.grid(visible=False)
        known = values[np.isfinite(values)]
        low, high = (known.min(), known.max()) if known.size else (0.0, 1.0)
        strength = np.nan_to_num(1 - 0.9 * (high - values) / max(high - low, 1e-9))
        axes.imshow(_heat(strength), interpolation="none", origin="lower", aspect="auto")
        for row, column in np.argwhere(np.isfinite(values)):
            colour = "#ffffff" if strength[row, column] > 0.55 else palette.ink
            text = f"{100 * values[row, column]:.0f}"
            axes.text(column, row, text, ha="center", va="center", color=colour, size=7.5)
        for axis, rates in ((axes.xaxis, x_values), (axes.yaxis, y_values)):
            axis.set_major_locator(FixedLocator(range(len(rates))))
            axis.set_major_formatter(FuncFormatter(lambda i, _, rates=rates: f"{rates[int(i)]:g}"))
        axes.set_xlabel(labels[0])
        axes.set_ylabel(labels[1])
    return figure


def heat_map(
    matrix: np.ndarray,
    palette: Palette,
    *,
    x_label: str = "tested on task",
    y_label: str = "after task",
) -> Figure:
    """Returns the accuracy matrix R[i, t]: one row per task learned, one column per task tested.

    A task that was not tested again keeps its last accuracy.

    Args:
      matrix: shares in [0, 1], NaN where not tested.
      palette: the colours.
      x_label: of the columns, counted from 1.
      y_label: of the rows, counted from 1.
    """
    size = len(matrix)
    matrix = _carried_on(matrix)
    with _axes(palette, 2.9, 2.8) as (figure, axes):
        axes.grid(visible=False)
        edges = (0.5, size + 0.5)
        image = _heat(np.nan_to_num(matrix))
        axes.imshow(image, interpolation="none", extent=(*edges, *edges[::-1]))
        if size <= _MOST_NUMBERED:
            _number_cells(axes, matrix, palette)
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True, prune=None))
        axes.yaxis.set_major_locator(MaxNLocator(nbins=6, integer=True, prune=None))
    return figure


def task_lines(matrix: np.ndarray, palette: Palette) -> Figure:
    """Returns one line per task: its accuracy after its own and every later task.

    Args:
      matrix: R[i, t], NaN where not tested.
      palette: the colours.
    """
    colour = palette.series[0]
    with _axes(palette, 2.9, 2.2) as (figure, axes):
        for task in range(len(matrix)):
            after = np.arange(task, len(matrix))
            known = np.isfinite(matrix[after, task])
            strength = 0.35 + 0.65 * task / max(len(matrix) - 1, 1)
            x, y = after[known] + 1, matrix[after, task][known]
            axes.plot(x, y, color=colour, alpha=strength, linewidth=1.1)
            axes.plot(x[:1], y[:1], "o", color=colour, markersize=2.5)
        axes.set_xlabel("tasks learned")
        axes.set_ylim(0, 1)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    return figure


def histograms(edges: np.ndarray, shares: np.ndarray, x_label: str, palette: Palette) -> Figure:
    """Returns a distribution over time: one column per time, darker where more values lie.

    Args:
      edges: the edges of the bins, one more than there are bins.
      shares: (times, bins), the share of the values in each bin.
      x_label: the label of the time axis.
      palette: the colours.
    """
    with _axes(palette, 2.9, 2.2) as (figure, axes):
        axes.grid(visible=False)
        image = _heat((shares.T / max(shares.max(), 1e-9)) ** 0.4)  # rare values stay visible
        span = (0.5, len(shares) + 0.5, edges[0], edges[-1])
        axes.imshow(image, interpolation="none", origin="lower", aspect="auto", extent=span)
        axes.set_xlabel(x_label)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    return figure


@contextmanager
def _axes(palette: Palette, width: float, height: float) -> Iterator[tuple[Figure, Axes]]:
    """Yields empty axes in the style of the reports; sizes in inches."""
    style: Any = {
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


def _heat(strength: np.ndarray) -> np.ndarray:
    """Returns an RGBA image of one colour whose opacity is the strength."""
    image = np.empty((*strength.shape, 4))
    image[..., :3] = matplotlib.colors.to_rgb(HEAT)
    image[..., 3] = strength
    return image


def _draw(axes: Axes, line: Series, colour: str) -> None:
    stride = max(1, len(line.x) // _MOST_POINTS)
    count = len(line.x) // stride
    values = line.values[:, : count * stride]
    thinned = values.reshape(len(values), count, stride).mean(axis=2)
    x = line.x[: count * stride : stride]
    mean = thinned.mean(axis=0)
    marker = "o" if count <= 1 else None
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
