"""What there is to run, as tables for a terminal."""

import textwrap
from itertools import groupby

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table

from lamaml.experiments.recipes.catalogue import Benchmark, Cell


def listing(benchmarks: list[Benchmark], learners: dict[str, str]) -> RenderableType:
    """Benchmarks, learners and recipes."""
    streams = _table("Benchmarks", "name", "what it is")
    for benchmark in benchmarks:
        streams.add_row(benchmark.name, benchmark.about)
    algorithms = _table("Learners", "name", "what it is")
    for name, about in learners.items():
        algorithms.add_row(name, about)
    return Group(streams, algorithms, _recipes(benchmarks))


def _recipes(benchmarks: list[Benchmark]) -> Table:
    title = "Recipes, with the paper's retained accuracy in %"
    table = _table(title, "benchmark", "protocol", "learners (preset: authors, † paper, ‡ tuned)")
    for benchmark in benchmarks:
        for protocol, cells in groupby(benchmark.cells, key=lambda cell: cell.protocol):
            words = ", ".join(_words(cell) for cell in cells)
            table.add_row(benchmark.name, protocol, textwrap.fill(words, 42))
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
