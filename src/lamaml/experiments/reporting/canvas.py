"""The axes that plots are drawn on: style, limits, ticks, reference lines, values to hover over."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

import matplotlib
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator

from lamaml.experiments.reporting.palette import Palette

Quantity = Literal["accuracy", "close accuracy", "share", "positive", "signed"]
"""What a y axis shows. Accuracies span 0 to 100 %, close ones only their own range; shares and
positive values begin at 0."""
IN_PERCENT = ("accuracy", "close accuracy", "share")

PERCENT = FuncFormatter(lambda share, _: f"{100 * share:g} %")
PLAIN = FuncFormatter(lambda value, _: f"{value:g}".replace("-", "−"))
_COUNTS = FuncFormatter(lambda value, _: f"{value:,.0f}")
_ROOM = 1.08  # above the largest value


class Value(NamedTuple):
    """A value of a plot, in the coordinates of its axes, and the text shown beside it."""

    x: float
    y: float
    text: str


class Level(NamedTuple):
    """A horizontal line for reference, such as chance."""

    label: str
    y: float  # in [0, 1]
    dashes: str = ":"


class Plot(NamedTuple):
    """A drawn figure, its axes, and the values that are shown when the pointer is near them."""

    figure: Figure
    axes: Axes
    values: Sequence[Value]

    def places(self) -> list[tuple[int, int, str]]:
        """Returns the values, x and y in thousandths of the picture from its upper left corner."""
        if not self.values:
            return []
        self.figure.draw_without_rendering()  # the layout decides where the axes are
        points = self.axes.transData.transform([(value.x, value.y) for value in self.values])
        shares = self.figure.transFigure.inverted().transform(points)
        return [
            (round(1000 * x), round(1000 * (1 - y)), value.text)
            for (x, y), value in zip(shares, self.values, strict=True)
        ]


Draw = Callable[[Palette], Plot]
"""Draws a figure in the colours of a palette."""


@contextmanager
def canvas(palette: Palette, width: float, height: float) -> Iterator[tuple[Figure, Axes]]:
    """Yields empty axes in the style of the reports; sizes in inches."""
    style: Any = {
        "font.size": 9,
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
        for each in figure.axes:
            each.tick_params(length=0)


def set_limits(axes: Axes, values: Sequence[float], quantity: Quantity) -> None:
    """Sets the limits and ticks of the y axis so that they suit the quantity.

    Args:
      axes: where the values are drawn.
      values: the least and the greatest of them are what matters.
      quantity: what they are.
    """
    low, high = min(values), max(values)
    if quantity == "accuracy":
        axes.set_ylim(0, 1)
    elif quantity == "close accuracy":
        set_accuracy_limits(axes, values)
    elif quantity == "share":
        axes.set_ylim(0, min(max(_ROOM * high, 0.01), 1))
    elif quantity == "positive":
        axes.set_ylim(0, _ROOM * high if high > 0 else 1)
    else:
        room = (_ROOM - 1) * max(high - low, abs(high), abs(low), 1e-9)
        axes.set_ylim(min(low, 0) - room, max(high, 0) + room)
    percent = quantity in IN_PERCENT
    axes.yaxis.set_major_formatter(PERCENT if percent else PLAIN)


def set_accuracy_limits(axes: Axes, values: Sequence[float]) -> None:
    """Sets limits at multiples of 5 % that leave room around values close together."""
    low, high = min(values) - 0.02, max(values) + 0.02
    low, high = math.floor(20 * low) / 20, math.ceil(20 * high) / 20
    axes.set_ylim(max(low, 0), min(high, 1))
    axes.yaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_formatter(PERCENT)


def number_tasks(axis: Axis, first: int, last: int, most: int = 10) -> None:
    """Puts ticks at whole numbers only, at most about `most`."""
    axis.set_major_locator(FixedLocator(whole_numbers(first, last, most)))
    axis.set_major_formatter(_COUNTS)


def whole_numbers(first: int, last: int, most: int = 10) -> list[int]:
    """Returns whole numbers for ticks: all of them, or round ones and the first.

    >>> whole_numbers(1, 4), whole_numbers(1, 20)
    ([1, 2, 3, 4], [2, 4, 6, 8, 10, 12, 14, 16, 18, 20])
    >>> whole_numbers(1, 40)
    [1, 5, 10, 15, 20, 25, 30, 35, 40]
    """
    steps = (base * 10**power for power in range(9) for base in (1, 2, 5))
    step = next(step for step in steps if (last - first + 1) / step <= most)
    return [n for n in range(first, last + 1) if n % step == 0 or (n == first and step > 2)]


def count_updates(axis: Axis) -> None:
    """Puts few ticks at whole numbers, with separators between thousands."""
    axis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    axis.set_major_formatter(_COUNTS)


def draw_levels(axes: Axes, levels: Sequence[Level], palette: Palette) -> None:
    """Draws reference lines over the whole width, each with its label at the right end."""
    for level in levels:
        axes.axhline(level.y, color=palette.soft, linestyle=level.dashes, linewidth=1.1)
        axes.annotate(
            level.label,
            (1, level.y),
            xycoords=("axes fraction", "data"),
            xytext=(-2, 2),
            textcoords="offset points",
            ha="right",
            va="bottom",
            color=palette.soft,
            size=7.5,
        )
