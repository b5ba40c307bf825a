"""Plots of points: labelled ones, and many without labels; y is an accuracy."""

from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.ticker import MaxNLocator, NullLocator

from lamaml.experiments.reporting.canvas import (
    PLAIN,
    Level,
    Plot,
    Value,
    canvas,
    draw_levels,
    set_accuracy_limits,
)
from lamaml.experiments.reporting.palette import Palette

_CLOSE = (0.3, 0.07)  # labels nearer than these shares of the width and height would overlap
_PLACES = (((7, 0), "left"), ((0, 8), "center"), ((0, -9), "center"), ((-7, 0), "right"))


class Point(NamedTuple):
    """A labelled point of a plot."""

    label: str
    x: float
    y: float  # in [0, 1]
    colour: int  # number in `Palette.series`


class Marks(NamedTuple):
    """Points of one colour."""

    points: Sequence[tuple[float, float]]  # (x, y), y in [0, 1]
    colour: int  # number in `Palette.series`
    label: str = ""


def points(
    marks: Sequence[Point], x_label: str, palette: Palette, *, levels: Sequence[Level] = ()
) -> Plot:
    """Returns labelled points; levels are drawn where they are not far from the points."""
    with canvas(palette, 5.0, 2.8) as (figure, axes):
        heights = [mark.y for mark in marks]
        near = [level for level in levels if level.y > min(heights) - 0.25]
        axes.set_xlim(0, 1.25 * max(mark.x for mark in marks))
        set_accuracy_limits(axes, [*heights, *(level.y for level in near)])
        draw_levels(axes, near, palette)
        width, low_high = axes.get_xlim()[1], axes.get_ylim()
        placed: list[tuple[float, float]] = []
        for mark in sorted(marks, key=lambda mark: -mark.y):
            axes.plot(mark.x, mark.y, "o", color=palette.series[mark.colour], markersize=6)
            here = mark.x / width, (mark.y - low_high[0]) / (low_high[1] - low_high[0])
            near_by = sum(
                abs(x - here[0]) < _CLOSE[0] and abs(y - here[1]) < _CLOSE[1] for x, y in placed
            )
            offset, side = _PLACES[min(near_by, len(_PLACES) - 1)]
            text = axes.annotate(
                mark.label.split(" (")[0],  # the rest is shown on hover
                (mark.x, mark.y),
                xytext=offset,
                textcoords="offset points",
                ha=side,
                va="center",
                color=palette.ink,
                size=8,
            )
            text.set_in_layout(False)  # the axes keep their size whatever the labels
            placed.append(here)
        axes.set_xlabel(x_label)
        axes.xaxis.set_major_formatter(PLAIN)
    values = [
        Value(mark.x, mark.y, f"{mark.label}: {100 * mark.y:.1f} % ({x_label}: {mark.x:,.4g})")
        for mark in marks
    ]
    return Plot(figure, axes, values)


def scatter(marks: Sequence[Marks], x_label: str, palette: Palette, *, log: bool = False) -> Plot:
    """Returns points without labels, x on a log scale if `log`."""
    with canvas(palette, 5.0, 2.8) as (figure, axes):
        for group in marks:
            axes.plot(*zip(*group.points, strict=True), "o", color=palette.series[group.colour])
        axes.set_xlabel(x_label)
        axes.margins(x=0.05)
        if log:
            axes.set_xscale("log")
            axes.xaxis.set_minor_locator(NullLocator())
        else:
            axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))
        axes.xaxis.set_major_formatter(PLAIN)
        set_accuracy_limits(axes, [y for group in marks for _, y in group.points])
    values = [
        Value(x, y, f"{group.label}{': ' * bool(group.label)}{100 * y:.1f} % ({x_label}: {x:,.4g})")
        for group in marks
        for x, y in group.points
    ]
    return Plot(figure, axes, values)
