"""What a learner keeps of what it has seen."""

from lamaml.memory._task_rows import TaskRows, empty_task_rows, forget, keep, kept_rows
from lamaml.memory.exemplars import (
    Exemplars,
    add_sets,
    class_means,
    draw_one_each,
    empty_exemplars,
)
from lamaml.memory.reservoir import Reservoir, empty_reservoir, push, sample
from lamaml.memory.ring import (
    PerTask,
    check_per_task,
    empty_per_task,
    push_per_task,
    rows_before,
    rows_of,
)

__all__ = [
    "Exemplars",
    "PerTask",
    "Reservoir",
    "TaskRows",
    "add_sets",
    "check_per_task",
    "class_means",
    "draw_one_each",
    "empty_exemplars",
    "empty_per_task",
    "empty_reservoir",
    "empty_task_rows",
    "forget",
    "keep",
    "kept_rows",
    "push",
    "push_per_task",
    "rows_before",
    "rows_of",
    "sample",
]
