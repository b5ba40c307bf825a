"""The catalogue: benchmarks, learners, networks and recipes, as data and as tables."""

import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table

from lamaml.experiments.recipes import load
from lamaml.learners import LEARNERS
from lamaml.models import MODELS


class Cell(NamedTuple):
    """One recipe."""

    protocol: str
    learner: str
    presets: list[str]
    default: str
    published: Mapping[str, Sequence[float]]  # the paper's [mean, sd] by metric, in percent


class Benchmark(NamedTuple):
    """One recipe file."""

    name: str
    about: str
    stream: str
    cells: list[Cell]


def learners() -> dict[str, str]:
    """What each learner is, in one line, by name."""
    return _first_lines(LEARNERS)


def models() -> dict[str, str]:
    """What each network is, in one line, by name."""
    return _first_lines(MODELS)


def benchmarks() -> list[Benchmark]:
    """The benchmarks and their recipes."""
    return [
        Benchmark(
            name,
            load.about(name),
            load.stream_of(name),
            [_cell(name, protocol, learner) for protocol, learner in load.cells(name)],
        )
        for name in load.benchmarks()
    ]


def listing(
    benchmarks: Sequence[Benchmark], learners: Mapping[str, str], models: Mapping[str, str]
) -> RenderableType:
    """Tables of benchmarks, learners, networks and recipes."""
    streams = _table("Benchmarks", "name", "what it is")
    for benchmark in benchmarks:
        streams.add_row(benchmark.name, benchmark.about)
    algorithms = _table("Learners", "name", "what it is")
    for name, about in learners.items():
        algorithms.add_row(name, about)
    networks = _table("Networks (--model)", "name", "what it is")
    for name, about in models.items():
        networks.add_row(name, about)
    return Group(streams, algorithms, networks, _recipes(benchmarks))


def _first_lines(builders: Mapping[str, Callable[..., Any]]) -> dict[str, str]:
    """The first line of each builder's module, by name."""
    docs = {name: sys.modules[built.__module__].__doc__ or "" for name, built in builders.items()}
    return {name: docs[name].partition("\n")[0] for name in sorted(docs)}


def _cell(benchmark: str, protocol: str, learner: str) -> Cell:
    found = load.recipe(benchmark, learner, protocol=protocol)
    presets = load.presets(benchmark, protocol, learner)
    published = {metric: list(pair) for metric, pair in found.published.items()}
    return Cell(protocol, learner, presets, found.preset, published)


def _recipes(benchmarks: Sequence[Benchmark]) -> Table:
    title = "Recipes, with the paper's retained accuracy in %"
    table = _table(title, "benchmark", "protocol", "learners (preset: authors, † paper, ‡ tuned)")
    for benchmark in benchmarks:
        for protocol, cells in groupby(benchmark.cells, key=lambda cell: cell.protocol):
            words = ", ".join(_words(cell) for cell in cells)
            table.add_row(benchmark.name, protocol, textwrap.fill(words, 38))
    return table


def _words(cell: Cell) -> str:
    """One recipe; its parts never break across lines."""
    mark = {"paper": "†", "tuned": "‡"}.get(cell.default, "")
    paper = f"\u00a0{cell.published['ra'][0]:.1f}" if "ra" in cell.published else ""
    return f"{cell.learner}{mark}{paper}"


def _table(title: str, *columns: str) -> Table:
    table = Table(
        title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False
    )
    for column in columns:
        first = column == columns[0]
        table.add_column(column, style="cyan" if first else "", no_wrap=first)
    return table
