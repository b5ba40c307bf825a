"""Memories: the rows of a stream that a learner stores."""

from lamaml.memory.exemplars import (
    Exemplars,
    add_sets,
    class_means,
    draw_one_each,
    empty_exemplars,
)
from lamaml.memory.reservoir import Reservoir, can_resize, empty_reservoir, push, resize, sample
from lamaml.memory.ring import (
    RingBuffer,
    check_ring,
    empty_ring,
    push_to_ring,
    rows_before,
    rows_of,
)
from lamaml.memory.rows import Memory, StoredRows, memories_in, stored_rows
from lamaml.memory.task_rows import TaskRows, clear, empty_task_rows, keep, kept_rows

__all__ = [
    "Exemplars",
    "Memory",
    "Reservoir",
    "RingBuffer",
    "StoredRows",
    "TaskRows",
    "add_sets",
    "can_resize",
    "check_ring",
    "class_means",
    "clear",
    "draw_one_each",
    "empty_exemplars",
    "empty_reservoir",
    "empty_ring",
    "empty_task_rows",
    "keep",
    "kept_rows",
    "memories_in",
    "push",
    "push_to_ring",
    "resize",
    "rows_before",
    "rows_of",
    "sample",
    "stored_rows",
]
