"""Cell results for tests."""

import statistics
from typing import Any

from lamaml.experiments.reproduction.results import CellResult, Measured
from lamaml.experiments.storing.summary import Spread

LEARNERS = {"La-MAML": "la_maml", "C-MAML": "c_maml"}


def spread(*values: float) -> Spread:
    """Values of one metric, one per seed."""
    sd = statistics.stdev(values) if len(values) > 1 else None
    return Spread(statistics.fmean(values) if values else None, sd, list(values))


def cell(row: str, column: str, *values: float, **fields: Any) -> CellResult:
    """A cell with these retained accuracies, one per seed; full size unless told otherwise."""
    known: dict[str, Any] = {
        "row": row,
        "column": column,
        "cell": f"{row}-{column}",
        "benchmark": "mnist_rotations",
        "protocol": "single",
        "learner": LEARNERS.get(row, "er"),
        "preset": "authors",
        "revision": "0123456789ab",
        "changed": {},
        "cut": {},
        "num_tasks": None,
        "num_samples": None,
        "statuses": ["finished"] * len(values),
        **dict.fromkeys(("ra", "bti", "la", "fwt"), spread(*values)),
        "paper": {},
        "paper_seeds": 5,
        "verdicts": {},
        "seconds": {"compile": 1.0, "train": 40.0, "evaluate": 1.0},
        "train_seconds": [40.0] * len(values),
        "ms_per_update": 4.0,
        "measured": Measured({}),
    }
    return CellResult(**known | fields)
