"""The figures of the paper, drawn from outcomes."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from lamaml.experiments.reporting.figures import Drawing, Key
from lamaml.experiments.reporting.heat_maps import rate_map
from lamaml.experiments.reporting.line_plots import Series, curves
from lamaml.experiments.reporting.palette import colour_of
from lamaml.experiments.reporting.point_plots import Point, points
from lamaml.experiments.reporting.references import chance
from lamaml.experiments.reproduction.outcomes import Outcome
from lamaml.experiments.reproduction.results import CellResult
from lamaml.experiments.reproduction.targets import RATES

Cells = Sequence[CellResult]

_DASHES = ("-", "--", ":")


def figures(outcome: Outcome) -> list[Drawing]:
    """Returns the figures of a target that have something to show."""
    build = _BUILDERS.get(outcome.target)
    return build(outcome.cells) if build else []


def _look_ahead(cells: Cells) -> list[Drawing]:
    drawings = []
    for cell in cells:
        if cell.measured.updates:
            x = np.array(cell.measured.updates)
            legend = [
                Key("at θ_K, after inner updates", colour_of(cell.learner), "--"),
                Key("at θ_0, after the meta-update", colour_of(cell.learner)),
            ]
            series = [
                _series(x, cell.measured.curve(name), key)
                for name, key in zip(("accuracy_inner", "accuracy_after"), legend, strict=True)
            ]
            caption = f"{cell.row} on {cell.data}: accuracy on the tasks seen so far"
            draw = partial(curves, series, "updates", levels=chance(cell.benchmark))
            drawings.append(Drawing("figure-lookahead", caption, legend, draw))
    return drawings


def _inter_task(cells: Cells) -> list[Drawing]:
    series, legend = [], []
    for cell in cells:
        values = cell.measured.curve("inter_task_cosine_trunk")
        if values.size:
            tasks = np.arange(3, 3 + values.shape[1])
            legend.append(Key(cell.row, colour_of(cell.learner)))
            series.append(_series(tasks, values, legend[-1]))
    if not series:
        return []
    draw = partial(curves, series, "task t that is streaming", quantity="signed")
    caption = f"Mean cosine of the gradients of tasks 1 … t−1, {cells[0].data}"
    return [Drawing("figure-intertask", caption, legend, draw)]


def _robustness(cells: Cells) -> list[Drawing]:
    drawings = []
    for learner, rates in RATES.items():
        series, legend, shown = [], [], cells[:1]
        for (symbol, name), dashes in zip(rates.items(), _DASHES, strict=False):
            found = {
                cell.changed[name]: cell
                for cell in cells
                if cell.learner == learner
                and list(cell.changed) == [name]
                and cell.ra.mean is not None
            }
            if found:
                x = np.array(sorted(found))
                y = np.array([[(found[rate].ra.mean or 0.0) / 100 for rate in x]])
                legend.append(Key(symbol, colour_of(learner), dashes))
                series.append(_series(x, y, legend[-1]))
                shown = list(found.values())
        if series:
            levels = chance(shown[0].benchmark)
            draw = partial(curves, series, "learning rate", log=True, levels=levels)
            data = _varied_data(shown[0])
            caption = (
                f"{shown[0].row} on {data}: RA as one rate varies, the others as in the recipe"
            )
            drawings.append(Drawing(f"figure-robustness-{learner}", caption, legend, draw))
    return drawings


def _robustness_grid(cells: Cells) -> list[Drawing]:
    drawings = []
    known = [cell.ra.mean / 100 for cell in cells if cell.ra.mean is not None]
    limits = (min(known), max(known)) if known else None  # one scale for both
    for learner in ("c_maml", "la_maml"):
        (first, one), (second, other) = RATES[learner].items()
        found = [cell for cell in cells if cell.learner == learner]
        if not found:
            continue
        xs = sorted({cell.changed[one] for cell in found})
        ys = sorted({cell.changed[other] for cell in found})
        values = np.full((len(ys), len(xs)), np.nan)
        for cell in found:
            if cell.ra.mean is not None:
                where = ys.index(cell.changed[other]), xs.index(cell.changed[one])
                values[where] = cell.ra.mean / 100
        colour = colour_of(learner)
        draw = partial(rate_map, values, xs, ys, (first, second), limits=limits, colour=colour)
        data = _varied_data(found[0])
        caption = f"{found[0].row} on {data}: RA in percent over {first} and {second}"
        drawings.append(Drawing(f"figure-robustness-grid-{learner}", caption, [], draw))
    return drawings


def _time(cells: Cells) -> list[Drawing]:
    marks = [
        Point(cell.row, cell.mean_train_seconds, cell.ra.mean / 100, colour_of(cell.learner))
        for cell in cells
        if cell.mean_train_seconds is not None and cell.ra.mean is not None
    ]
    if not marks:
        return []
    draw = partial(points, marks, "training seconds per seed")
    caption = f"RA against training time, {cells[0].data}"
    return [Drawing("figure-time", caption, [], draw)]


def _cost(cells: Cells) -> list[Drawing]:
    """RA against training time, one line per method, its points the numbers of glances."""
    drawings = []
    for column in dict.fromkeys(cell.column for cell in cells):
        lines: dict[str, list[CellResult]] = {}
        for cell in cells:
            if cell.column == column and cell.ra.mean is not None:
                lines.setdefault(cell.row, []).append(cell)
        legend = [Key(row, colour_of(found[0].learner)) for row, found in lines.items()]
        series = [
            _series(
                np.array([cell.mean_train_seconds for cell in found], float),
                np.array([[(cell.ra.mean or 0.0) / 100 for cell in found]]),
                key,
            )
            for found, key in zip(lines.values(), legend, strict=True)
        ]
        first = next(iter(lines.values()))[0]
        draw = partial(curves, series, "training seconds per seed", quantity="close accuracy")
        glances = ", ".join(str(cell.changed["glances"]) for cell in next(iter(lines.values())))
        caption = f"{first.data}: RA against training time with {glances} glances"
        drawings.append(Drawing(f"figure-cost-{column.lower()}", caption, legend, draw))
    return drawings


def _dark_weight(cells: Cells) -> list[Drawing]:
    """RA on validation rows against λ, one line per stream."""
    series, legend = [], []
    columns = dict.fromkeys(cell.column for cell in cells)
    for dashes, column in zip(_DASHES, columns, strict=False):
        found = {
            cell.changed["dark_weight"]: cell.ra.mean / 100
            for cell in cells
            if cell.column == column and cell.ra.mean is not None
        }
        legend.append(Key(column, colour_of("dark_la_maml"), dashes))
        series.append(_series(np.array([*found]), np.array([[*found.values()]]), legend[-1]))
    draw = partial(curves, series, "λ", quantity="close accuracy", log=True)
    caption = "RA of Dark La-MAML on validation rows, as λ varies"
    return [Drawing("figure-dark-weight", caption, legend, draw)] if series else []


def _series(x: np.ndarray, values: np.ndarray, key: Key) -> Series:
    return Series(x, values, key.colour, key.dashes, key.word)


def _varied_data(cell: CellResult) -> str:
    """Returns the data of a cell whose column is the rate that varies."""
    return replace(cell, column="CIFAR-100").data


_BUILDERS: dict[str, Callable[[Cells], list[Drawing]]] = {
    "figure-lookahead": _look_ahead,
    "figure-intertask": _inter_task,
    "figure-robustness": _robustness,
    "figure-robustness-grid": _robustness_grid,
    "figure-time": _time,
    "figure-cost": _cost,
    "figure-dark-weight": _dark_weight,
}
