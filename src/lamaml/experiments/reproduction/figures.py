"""The paper's figures, drawn from what was found."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from lamaml.experiments.reporting.figures import Drawing, Key
from lamaml.experiments.reporting.plots import Point, Series, curves, points, rate_map
from lamaml.experiments.reproduction.targets import RATES

Cells = Sequence[Mapping[str, Any]]

COLOURS = {
    "La-MAML": 0,
    "C-MAML": 1,
    "Sync": 2,
    "La-ER": 3,
    "ER": 4,
    "Online": 5,
    "MER": 6,
    "GEM": 7,
    "A-GEM": 8,
    "EWC": 9,
    "iCaRL": 9,
}
"""Of a method, the same everywhere."""


def figures(outcome: Mapping[str, Any]) -> list[Drawing]:
    """Each figure of a target there is something to show in."""
    build = _BUILDERS.get(outcome["target"])
    return build(outcome["cells"]) if build else []


def _look_ahead(cells: Cells) -> list[Drawing]:
    found = []
    for cell in cells:
        if (measured := cell["measured"]) and measured["updates"]:
            x, names = np.array(measured["updates"]), ("accuracy_inner", "accuracy_after")
            colours = (6, 0)
            series = [
                Series(x, np.array(measured[name]), colour)
                for name, colour in zip(names, colours, strict=True)
            ]
            legend = [Key("at θ_K, after inner updates", colours[0])]
            legend += [Key("at θ_0, after the meta-update", colours[1])]
            caption = f"{cell['row']} on {cell['column']}: accuracy on the tasks seen so far"
            draw = partial(curves, series, "updates")
            found.append(Drawing("figure-lookahead", caption, legend, draw))
    return found


def _inter_task(cells: Cells) -> list[Drawing]:
    series, legend = [], []
    for cell in cells:
        if cell["measured"].get("updates"):
            values = np.array(cell["measured"]["inter_task_cosine_trunk"], float)
            tasks = np.arange(3, 3 + values.shape[1])
            series.append(Series(tasks, values, COLOURS[cell["row"]]))
            legend.append(Key(cell["row"], COLOURS[cell["row"]]))
    if not series:
        return []
    draw = partial(curves, series, "task t that is streaming", percent=False)
    caption = "Mean cosine of the gradients of tasks 1 … t−1"
    return [Drawing("figure-intertask", caption, legend, draw)]


def _robustness(cells: Cells) -> list[Drawing]:
    colours, found = (0, 1, 4), []
    for learner, rates in RATES.items():
        series, legend, row = [], [], ""
        for (symbol, name), colour in zip(rates.items(), colours, strict=False):
            there = [
                cell
                for cell in cells
                if cell["learner"] == learner
                and list(cell["changed"]) == [name]
                and cell["ra"]["mean"] is not None
            ]
            if there:
                row = there[0]["row"]
                there.sort(key=lambda cell: cell["changed"][name])
                x = np.array([cell["changed"][name] for cell in there])
                y = np.array([[cell["ra"]["mean"] / 100 for cell in there]])
                series.append(Series(x, y, colour))
                legend.append(Key(symbol, colour))
        if series:
            draw = partial(curves, series, "learning rate", log=True)
            caption = f"{row}: RA as one rate varies, the others at their optimum"
            found.append(Drawing(f"figure-robustness-{learner}", caption, legend, draw))
    return found


def _robustness_grid(cells: Cells) -> list[Drawing]:
    found: list[Drawing] = []
    for learner in ("c_maml", "la_maml"):
        (first, one), (second, other) = RATES[learner].items()
        there = [cell for cell in cells if cell["learner"] == learner]
        if not there:
            continue
        xs = sorted({cell["changed"][one] for cell in there})
        ys = sorted({cell["changed"][other] for cell in there})
        values = np.full((len(ys), len(xs)), np.nan)
        for cell in there:
            if cell["ra"]["mean"] is not None:
                place = ys.index(cell["changed"][other]), xs.index(cell["changed"][one])
                values[place] = cell["ra"]["mean"] / 100
        draw = partial(rate_map, values, xs, ys, (first, second))
        caption = f"{there[0]['row']}: RA in percent over {first} and {second}"
        found.append(Drawing(f"figure-robustness-grid-{learner}", caption, [], draw))
    return found


def _time(cells: Cells) -> list[Drawing]:
    marks = [
        Point(
            cell["row"],
            float(np.mean(cell["train_seconds"])),
            cell["ra"]["mean"] / 100,
            COLOURS[cell["row"]],
        )
        for cell in cells
        if cell["train_seconds"]
    ]
    if not marks:
        return []
    draw = partial(points, marks, "training seconds a seed")
    return [Drawing("figure-time", "RA against training time", [], draw)]


_BUILDERS: dict[str, Callable[[Cells], list[Drawing]]] = {
    "figure-lookahead": _look_ahead,
    "figure-intertask": _inter_task,
    "figure-robustness": _robustness,
    "figure-robustness-grid": _robustness_grid,
    "figure-time": _time,
}
