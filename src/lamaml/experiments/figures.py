"""Figures as inline SVG whose colours are the page's, so that they follow light and dark.

Matplotlib draws with stand-in colours, which are then replaced by CSS variables.
"""

import io
import re
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

INK, LINE, NUMBER, HEAT = "#010101", "#020202", "#040404", "#3f74e0"
_VARIABLES = {INK: "var(--soft)", LINE: "var(--line)", NUMBER: "var(--ink)"}
_STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "lamaml",
    "font.size": 8.5,
    "axes.edgecolor": LINE,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": LINE,
    "grid.linewidth": 0.6,
    "xtick.color": LINE,
    "ytick.color": LINE,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "lines.linewidth": 1.7,
}
_MOST_POINTS = 300  # of a curve: more cannot be seen
_MOST_NUMBERED = 12  # tasks up to which the cells of a heat map are numbered


class Series(NamedTuple):
    """A line: where its points are, their values, the CSS variable of its colour, its dashes."""

    x: np.ndarray  # (points,)
    values: np.ndarray  # (seeds, points)
    colour: str
    dashes: str = "-"


def curves(name: str, series: Sequence[Series], x_label: str, *, percent: bool = True) -> str:
    """Means over seeds as lines, ± one standard deviation as bands.

    Args:
      name: that no other drawing on the page has.
      series: the lines.
      x_label: what x counts.
      percent: whether values are shares.
    """
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(5.2, 2.9), layout="constrained")
        axes = figure.subplots()
        for number, line in enumerate(series):
            _draw(axes, line, f"#0300{number:02x}")
        axes.set_xlabel(x_label)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.margins(x=0.02)
        if percent:
            low, high = axes.get_ylim()
            axes.set_ylim(min(low, (low + high) / 2 - 0.05), max(high, (low + high) / 2 + 0.05))
            axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        axes.tick_params(length=0)
        colours = {f"#0300{i:02x}": f"var({line.colour})" for i, line in enumerate(series)}
        return _svg(figure, name, colours)


def heat_map(name: str, matrix: np.ndarray) -> str:
    """R[i, t]: a row for each task learned, a column for each task tested.

    Where a task was not tested again, its last accuracy stands.
    """
    size = len(matrix)
    matrix = _carried_on(matrix)
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(2.9, 2.8), layout="constrained")
        axes = figure.subplots()
        axes.grid(False)
        image = np.empty((size, size, 4))
        image[..., :3] = matplotlib.colors.to_rgb(HEAT)
        image[..., 3] = np.nan_to_num(matrix)
        edges = (0.5, size + 0.5)
        axes.imshow(image, interpolation="none", extent=(*edges, *edges[::-1]))
        if size <= _MOST_NUMBERED:
            _number_cells(axes, matrix)
        axes.set_xlabel("tested on task")
        axes.set_ylabel("after task")
        axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True, prune=None))
        axes.yaxis.set_major_locator(MaxNLocator(nbins=6, integer=True, prune=None))
        axes.tick_params(length=0)
        return _svg(figure, name, {})


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


def _number_cells(axes: Axes, matrix: np.ndarray) -> None:
    for row, column in np.argwhere(np.isfinite(matrix)):
        value = matrix[row, column]
        colour = "#ffffff" if value > 0.55 else NUMBER
        where = (column + 1, row + 1)
        axes.text(*where, f"{100 * value:.0f}", ha="center", va="center", color=colour, size=6.5)


def _svg(figure: Figure, name: str, colours: dict[str, str]) -> str:
    """The drawing alone, as a part of a page: no prologue, no namespaces, no fixed size."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r' (xmlns(:\w+)?|version|width|height)="[^"]*"', "", text, count=5)
    for stand_in, variable in (_VARIABLES | colours).items():
        text = text.replace(stand_in, variable)
    return _with_own_ids(text.strip(), name)


def _with_own_ids(text: str, name: str) -> str:
    """The names that are used, made such that no other drawing on the page has them."""
    mark = f"f{zlib.crc32(name.encode()):08x}"
    used = set(re.findall(r'(?:url\(#|xlink:href="#)([^)"]+)', text))

    def renamed(match: re.Match[str]) -> str:
        return f' id="{mark}-{match[1]}"' if match[1] in used else ""

    text = re.sub(r' id="([^"]+)"', renamed, text)
    return re.sub(r'(url\(#|xlink:href="#)', rf"\g<1>{mark}-", text)
