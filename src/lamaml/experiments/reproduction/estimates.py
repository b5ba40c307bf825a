"""How long cells will take: their updates at a measured pace."""

import time
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from lamaml.errors import LamamlError
from lamaml.experiments.reproduction.cells import Cell
from lamaml.experiments.storing.results import read_run

ROWS = {
    "mnist_rotations": (20, 1000),
    "mnist_permutations": (20, 1000),
    "mnist_many_permutations": (100, 200),
    "cifar100": (20, 2250),
    "tiny_imagenet": (40, 2250),
    "joint_cifar100": (20, 2250),
    "joint_tiny_imagenet": (40, 2250),
    "digits_rotations": (10, 300),
    "digits_permutations": (10, 300),
    "joint_digits_rotations": (10, 300),
    "joint_digits_permutations": (10, 300),
}
"""Tasks, and training rows of each."""
START = {"mlp": 6.0, "cnn": 25.0}  # seconds to import, build the stream and compile
EVALUATE = {"mlp": 0.04, "cnn": 0.6}  # seconds a task, each time it is tested


def num_updates(cell: Cell) -> int:
    """Of a seed."""
    tasks, rows = ROWS[cell.recipe.benchmark]
    settings = cell.recipe.settings
    size = int(settings.get("batch_size", 10))
    batches = -(-min(cell.num_samples or rows, rows) // size)
    passes = int(settings.get("epochs", 1)) * int(settings.get("glances", 1))
    return min(cell.num_tasks or tasks, tasks) * batches * passes


def seconds_a_seed(cell: Cell, pace: Mapping[tuple[str, str], float]) -> float:
    """Of one process with one thread."""
    model, learner = cell.recipe.model, cell.recipe.learner
    tasks = min(cell.num_tasks or 1000, ROWS[cell.recipe.benchmark][0])
    tested = min(tasks, 20) * tasks / 2
    milliseconds = pace.get((cell.recipe.benchmark, learner)) or _table_pace(model, learner)
    work = num_updates(cell) * milliseconds / 1000
    return START[model] + work + EVALUATE[model] * tested


def seconds_left(
    cells: Sequence[Cell], seeds_left: Sequence[int], store: Path, processes: int
) -> float:
    """Of all cells together, so many processes side by side."""
    pace = measured_pace(store)
    each = [seconds_a_seed(cell, pace) for cell in cells]
    total = sum(one * count for one, count in zip(each, seeds_left, strict=True))
    longest = max((one for one, count in zip(each, seeds_left, strict=True) if count), default=0.0)
    return max(total / max(processes, 1), longest)


def measured_pace(store: Path) -> dict[tuple[str, str], float]:
    """Milliseconds an update by (benchmark, learner), of the cells that have finished there."""
    found: dict[tuple[str, str], list[float]] = {}
    for path in sorted(store.glob("*/summary.json")):
        try:
            brief = read_run(path.parent).summary
        except LamamlError:
            continue
        if brief.ms_per_update is not None:
            found.setdefault((brief.stream, brief.learner), []).append(brief.ms_per_update)
    return {pair: sum(values) / len(values) for pair, values in found.items()}


def in_words(seconds: float) -> str:
    """A duration for a person.

    >>> in_words(42), in_words(200), in_words(7 * 3600), in_words(100 * 3600)
    ('42 seconds', '3 minutes', '7.0 hours', '4.2 days')
    """
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} minutes"
    if seconds < 48 * 3600:
        return f"{seconds / 3600:.1f} hours"
    return f"{seconds / 86400:.1f} days"


def _table_pace(model: str, learner: str) -> float:
    table = _table()
    return float(table[model].get(learner, max(table[model].values()))) / _machine()


@cache
def _table() -> dict[str, Any]:
    path = resources.files("lamaml.experiments.reproduction") / "speeds.toml"
    return tomllib.loads(path.read_text("utf-8"))


@cache
def _machine() -> float:
    """This machine's matrix products, as a multiple of those of the table's."""
    matrix = np.ones((512, 512), np.float32)
    best = min(_timed(matrix) for _ in range(10))
    return float(2 * len(matrix) ** 3 / best / 1e9 / _table()["gemm_gflops"])


def _timed(matrix: np.ndarray) -> float:
    start = time.perf_counter()
    matrix @ matrix
    return time.perf_counter() - start
