"""Plots of lines: means over seeds with bands, and one line per task."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, NullLocator

from lamaml.experiments.reporting.canvas import (
    IN_PERCENT,
    PLAIN,
    Level,
    Plot,
    Quantity,
    Value,
    canvas,
    count_updates,
    draw_levels,
    number_tasks,
    set_limits,
)
from lamaml.experiments.reporting.palette import Palette

_MOST_POINTS = 300  # of a curve: more cannot be seen
_MOST_MARKS = 10  # points of a curve that are marked
_MOST_VALUES = 60  # of a curve that are shown on hover
_FEW = 40  # whole numbers up to which each point stands for a task


class Series(NamedTuple):
    """A line of a plot."""

    x: np.ndarray  # (points,)
    values: np.ndarray  # (seeds, points)
    colour: int  # number in `Palette.series`
    dashes: str = "-"
    label: str = ""


def curves(
    series: Sequence[Series],
    x_label: str,
    palette: Palette,
    *,
    quantity: Quantity = "accuracy",
    log: bool = False,
    levels: Sequence[Level] = (),
) -> Plot:
    """Returns means over seeds as lines, ± one standard deviation as bands.

    Args:
      series: the lines.
      x_label: the label of the x axis.
      palette: the colours.
      quantity: what the values are; it decides the limits of the y axis.
      log: whether the x axis is logarithmic.
      levels: lines for reference.
    """
    with canvas(palette, 5.0, 2.8) as (figure, axes):
        draw_levels(axes, levels, palette)
        drawn = [_draw(axes, line, palette.series[line.colour]) for line in series]
        axes.set_xlabel(x_label)
        axes.margins(x=0.02)
        if log:
            ticks = sorted({x for line in series for x in line.x})
            axes.set_xscale("log")
            axes.xaxis.set_major_locator(FixedLocator(ticks))
            axes.xaxis.set_minor_locator(NullLocator())
            axes.xaxis.set_major_formatter(PLAIN)
        else:
            _number(axes, np.concatenate([line.x for line in series]))
        ends = [end for _, mean, spread in drawn for end in (mean - spread, mean + spread)]
        set_limits(axes, np.concatenate(ends).tolist(), quantity)
        percent = quantity in IN_PERCENT
        values = [
            value
            for line, (x, mean, spread) in zip(series, drawn, strict=True)
            for value in _values(line, x, mean, spread, x_label, percent)
        ]
    return Plot(figure, axes, values)


def task_lines(matrix: np.ndarray, palette: Palette, *, colour: int = 0) -> Plot:
    """Returns one line per task: its accuracy after its own and every later task.

    Args:
      matrix: R[i, t], NaN where not tested.
      palette: the colours.
      colour: number in `Palette.series`; earlier tasks are paler.
    """
    shade, values = palette.series[colour], []
    with canvas(palette, 2.8, 2.5) as (figure, axes):
        for task in range(len(matrix)):
            after = np.arange(task, len(matrix))
            known = np.isfinite(matrix[after, task])
            strength = 0.35 + 0.65 * task / max(len(matrix) - 1, 1)
            x, y = after[known] + 1, matrix[after, task][known]
            axes.plot(x, y, color=shade, alpha=strength, linewidth=1.1)
            axes.plot(x[:1], y[:1], "o", color=shade, markersize=2.5)
            values += [
                Value(at, share, f"task {task + 1}: {100 * share:.1f} % after task {at}")
                for at, share in zip(x.tolist(), y.tolist(), strict=True)
            ]
        axes.set_xlabel("tasks learned")
        axes.set_ylabel("accuracy")
        set_limits(axes, [0, 1], "accuracy")
        axes.set_xlim(0.7, len(matrix) + 0.3)
        number_tasks(axes.xaxis, 1, len(matrix))
    return Plot(figure, axes, values)


def _number(axes: Axes, x: np.ndarray) -> None:
    """Sets the ticks of an x axis: whole tasks, whole updates, or plain numbers."""
    whole = bool((x == np.round(x)).all())
    if whole and x.max() - x.min() < _FEW:
        number_tasks(axes.xaxis, int(x.min()), int(x.max()))
    elif whole:
        count_updates(axes.xaxis)
    else:
        axes.set_xlim(left=0)
        axes.xaxis.set_major_formatter(PLAIN)


def _draw(axes: Axes, line: Series, colour: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draws a line, and returns x, mean and standard deviation of its points."""
    stride = max(1, len(line.x) // _MOST_POINTS)
    count = len(line.x) // stride
    values = line.values[:, : count * stride]
    thinned = values.reshape(len(values), count, stride).mean(axis=2)
    x = line.x[: count * stride : stride]
    mean = thinned.mean(axis=0)
    spread = thinned.std(axis=0, ddof=1) if len(values) > 1 else np.zeros(count)
    marker, size = ("o", 4 if count == 1 else 3) if count <= _MOST_MARKS else (None, None)
    (drawn,) = axes.plot(x, mean, line.dashes, color=colour, marker=marker, markersize=size)
    if line.dashes != "-":  # the second line of a colour stays behind the first
        drawn.set(linewidth=1.2, alpha=0.75)
    if len(values) > 1:
        axes.fill_between(x, mean - spread, mean + spread, color=colour, alpha=0.14, linewidth=0)
    return x, mean, spread


def _values(
    line: Series, x: np.ndarray, mean: np.ndarray, spread: np.ndarray, x_label: str, percent: bool
) -> list[Value]:
    """Returns some points of a line with their text."""
    found, name = [], f"{line.label}: " if line.label else ""
    for at in range(0, len(x), max(1, len(x) // _MOST_VALUES)):
        scale, digits = (100, ".1f") if percent else (1, ".3g")
        text = f"{scale * mean[at]:{digits}}"
        if len(line.values) > 1:
            text += f" ± {scale * spread[at]:{digits}}"
        text = (text + (" %" if percent else "")).replace("-", "−")
        found.append(
            Value(float(x[at]), float(mean[at]), f"{name}{text} ({x_label}: {x[at]:,.6g})")
        )
    return found
