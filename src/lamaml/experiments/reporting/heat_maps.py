"""Heat maps with a colour key: accuracies of tasks, accuracies over two rates, distributions."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, Normalize, PowerNorm, to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter

from lamaml.experiments.reporting.canvas import PERCENT, PLAIN, Plot, Value, canvas, number_tasks
from lamaml.experiments.reporting.palette import Palette

_MOST_NUMBERED = 12  # tasks up to which the cells of an accuracy matrix are numbered
_DARK_TEXT, _LIGHT_TEXT = "#18212f", "#ffffff"
_EQUAL_CONTRAST = 0.21  # luminance on which both are read equally well
_FAINT = 0.06  # opacity of the least value, so that it differs from an unknown one


def accuracy_matrix(matrix: np.ndarray, palette: Palette, *, colour: int = 0) -> Plot:
    """Returns the accuracy matrix R[i, t]: one row per task learned, one column per task tested.

    A task that was not tested again keeps its last accuracy.

    Args:
      matrix: R[i, t], NaN where not tested.
      palette: the colours.
      colour: number in `Palette.series`.
    """
    return _square(
        _carried_on(matrix),
        palette,
        colour,
        "accuracy",
        ("tested on task", "after task"),
        "task {column} after task {row}",
    )


def confusion_matrix(shares: np.ndarray, palette: Palette, *, colour: int = 0) -> Plot:
    """Returns the confusion matrix: one row per class, one column per answer.

    Args:
      shares: the share of each answer among the rows of a class.
      palette: the colours.
      colour: number in `Palette.series`.
    """
    labels = ("answered, from class 1", "class, from class 1")
    return _square(shares, palette, colour, "share", labels, "class {row} answered as {column}")


def _square(
    matrix: np.ndarray,
    palette: Palette,
    colour: int,
    quantity: str,
    labels: tuple[str, str],
    text: str,
) -> Plot:
    """Returns a square matrix of shares, rows and columns counted from 1.

    Args:
      matrix: in [0, 1], NaN where unknown.
      palette: the colours.
      colour: number in `Palette.series`.
      quantity: the label of the colour key.
      labels: of the columns and of the rows.
      text: shown beside a cell, with {row} and {column}.
    """
    size = len(matrix)
    with canvas(palette, 2.8, 2.5) as (figure, axes):
        edges = (0.5, size + 0.5)
        image = _image(axes, matrix, palette.series[colour], Normalize(0, 1))
        image.set_extent((*edges, *edges[::-1]))
        axes.set_xlim(*edges)
        axes.set_ylim(*edges[::-1])
        _colour_key(figure, axes, image, quantity, PERCENT)
        if size <= _MOST_NUMBERED:
            places = [(row, column, row + 1, column + 1) for row, column in _known(matrix)]
            _write(axes, matrix, places, image, palette, 6 if size > 8 else 7.5)
        axes.set_xlabel(labels[0])
        axes.set_ylabel(labels[1])
        number_tasks(axes.xaxis, 1, size)
        number_tasks(axes.yaxis, 1, size)
    values = [
        Value(
            column + 1,
            row + 1,
            f"{text.format(row=row + 1, column=column + 1)}: {100 * matrix[row, column]:.1f} %",
        )
        for row, column in _known(matrix)
    ]
    return Plot(figure, axes, values)


def rate_map(
    values: np.ndarray,
    x_values: Sequence[float],
    y_values: Sequence[float],
    labels: tuple[str, str],
    palette: Palette,
    *,
    limits: tuple[float, float] | None = None,
    colour: int = 0,
) -> Plot:
    """Returns a heat map of the accuracy over two learning rates, numbered in percent.

    Args:
      values: (y, x) in [0, 1], NaN where unknown.
      x_values: the rates of the columns.
      y_values: the rates of the rows, from the bottom.
      labels: the names of the x rate and the y rate.
      palette: the colours.
      limits: the accuracies at the ends of the colour key; None for those of the values.
      colour: number in `Palette.series`.
    """
    known = values[np.isfinite(values)]
    low, high = limits or ((known.min(), known.max()) if known.size else (0.0, 1.0))
    with canvas(palette, 4.2, 3.2) as (figure, axes):
        norm = Normalize(low, max(high, low + 0.01))
        image = _image(axes, values, palette.series[colour], norm, origin="lower")
        _colour_key(figure, axes, image, "RA", PERCENT)
        places = [(row, column, row, column) for row, column in _known(values)]
        _write(axes, values, places, image, palette, 8)
        for axis, rates in ((axes.xaxis, x_values), (axes.yaxis, y_values)):
            axis.set_major_locator(FixedLocator(range(len(rates))))
            axis.set_major_formatter(FuncFormatter(lambda i, _, rates=rates: f"{rates[int(i)]:g}"))
        axes.set_xlabel(labels[0])
        axes.set_ylabel(labels[1])
    shown = [
        Value(
            column,
            row,
            f"{labels[0]} = {x_values[column]:g}, {labels[1]} = {y_values[row]:g}: "
            f"{100 * values[row, column]:.1f} %",
        )
        for row, column in _known(values)
    ]
    return Plot(figure, axes, shown)


def histograms(
    edges: np.ndarray,
    shares: np.ndarray,
    palette: Palette,
    *,
    most: float | None = None,
    colour: int = 0,
) -> Plot:
    """Returns a distribution of learning rates over tasks: one column per task learned.

    Args:
      edges: the edges of the bins, one more than there are bins.
      shares: (tasks, bins), the share of the weights in each bin.
      palette: the colours.
      most: the share at the end of the colour key; None for the greatest.
      colour: number in `Palette.series`.
    """
    with canvas(palette, 2.8, 2.5) as (figure, axes):
        # The power keeps rare values visible.
        norm = PowerNorm(0.4, 0, most or max(float(shares.max()), 1e-9))
        shown = np.where(shares > 0, shares, np.nan).T
        image = _image(axes, shown, palette.series[colour], norm, origin="lower")
        image.set_extent((0.5, len(shares) + 0.5, edges[0], edges[-1]))
        axes.set_xlim(0.5, len(shares) + 0.5)
        axes.set_ylim(edges[0], edges[-1])
        _colour_key(figure, axes, image, "share of weights", PERCENT)
        axes.set_xlabel("tasks learned")
        axes.set_ylabel("learning rate")
        axes.yaxis.set_major_formatter(PLAIN)
        number_tasks(axes.xaxis, 1, len(shares))
    centres = (edges[:-1] + edges[1:]) / 2
    values = [
        Value(
            task + 1,
            centres[number],
            f"rates {edges[number]:.3g} to {edges[number + 1]:.3g} after task {task + 1}: "
            f"{100 * shares[task, number]:.1f} % of the weights",
        )
        for task, number in np.argwhere(shares > 0).tolist()
    ]
    return Plot(figure, axes, values)


def _image(
    axes: Axes, values: np.ndarray, colour: str, norm: Normalize, origin: Any = "upper"
) -> Any:
    """Draws values as one colour whose opacity grows; unknown ones stay transparent."""
    rgb = to_rgb(colour)
    shades = LinearSegmentedColormap.from_list("heat", [(*rgb, _FAINT), (*rgb, 1.0)], N=128)
    axes.grid(visible=False)
    return axes.imshow(
        np.ma.masked_invalid(values),
        cmap=shades,
        norm=norm,
        interpolation="none",
        origin=origin,
        aspect="auto",
    )


def _colour_key(figure: Figure, axes: Axes, image: Any, label: str, formatter: Any) -> None:
    bar = figure.colorbar(image, ax=axes, label=label, format=formatter, fraction=0.06, pad=0.03)
    bar.outline.set_visible(False)
    if bar.solids is not None:
        bar.solids.set_rasterized(True)  # one small image instead of a path per shade
    bar.ax.minorticks_off()
    bar.ax.tick_params(labelsize=7.5)


def _write(
    axes: Axes,
    values: np.ndarray,
    places: Sequence[tuple[int, int, int, int]],
    image: Any,
    palette: Palette,
    size: float,
) -> None:
    """Writes values in percent; `places` has (row, column) of a value, and (y, x) of its text."""
    for row, column, y, x in places:
        *rgb, opacity = image.cmap(image.norm(values[row, column]))
        mixed = opacity * np.array(rgb) + (1 - opacity) * np.array(to_rgb(palette.card))
        bright = float(mixed**2.2 @ (0.2126, 0.7152, 0.0722))  # relative luminance
        colour = _DARK_TEXT if bright > _EQUAL_CONTRAST else _LIGHT_TEXT
        text = f"{100 * values[row, column]:.0f}"
        axes.text(x, y, text, ha="center", va="center", color=colour, size=size)


def _known(values: np.ndarray) -> list[tuple[int, int]]:
    """Returns (row, column) of every finite value."""
    return [(int(row), int(column)) for row, column in np.argwhere(np.isfinite(values))]


def _carried_on(matrix: np.ndarray) -> np.ndarray:
    filled = matrix.copy()
    for row in range(1, len(matrix)):
        missing = np.isnan(filled[row, : row + 1])
        filled[row, : row + 1][missing] = filled[row - 1, : row + 1][missing]
    return filled
