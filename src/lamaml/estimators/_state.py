"""Everything an estimator has learned.

`Learned` is never changed, only replaced: whatever fails on the way leaves the old one as it was.
"""

from typing import NamedTuple

import numpy as np

from lamaml.estimators import _compiled
from lamaml.estimators._budget import held_out_size, largest_memory, with_memory
from lamaml.estimators._config import Design, View
from lamaml.estimators._holdout import HeldOut, none_held_out
from lamaml.estimators._labels import Labels, power_of_two
from lamaml.estimators._rows import Origins, Rows
from lamaml.estimators._scaling import Moments, no_moments, scaling
from lamaml.types import State

MOST_DEVIATIONS = 5.0
"""Where a scaled input is cut off: a column that wakes up late must not shout."""


_NO_TARGET = np.array([0, 1], np.float32)  # a classification's, which no loss reads


class Learned(NamedTuple):
    """What the next call needs."""

    design: Design
    state: State  # the learner's
    labels: Labels
    inputs: Moments
    targets: Moments  # of a regression
    held_out: HeldOut
    view: View  # what labels and moments come to
    last: Rows  # the last batch, for the report
    origins: Origins
    seed: int
    is_scaled: bool
    memory_budget: int | None  # in bytes
    task: int = 0  # the place of the task under way among labels.tasks
    num_rows: int = 0
    num_updates: int = 0
    last_task: int = 0  # of the last batch


def started(
    design: Design,
    labels: Labels,
    seed: int,
    *,
    origins: Origins,
    is_scaled: bool,
    memory_size: int,
    memory_budget: int | None,
    holds_out: bool,
) -> Learned:
    """Before the first row."""
    if memory_budget is not None:
        memory_size = largest_memory(design, memory_budget, holds_out)
    design = with_memory(design, memory_size)
    kind = np.dtype(np.float32 if design.is_regression else np.int32)
    aside = none_held_out(
        held_out_size(memory_size) if holds_out else 0,
        design.num_columns,
        np.dtype(design.dtype),
        kind,
    )
    columns = design.num_columns
    nothing = Rows(np.zeros((0, columns), np.float32), np.zeros(0, kind), np.zeros(0, np.float32))
    inputs, targets = no_moments(columns), no_moments(1)
    return Learned(
        design,
        _compiled.begin(design, np.uint32(seed)),
        labels,
        inputs,
        targets,
        aside,
        view_of(design, labels, inputs, targets),
        nothing,
        origins,
        seed,
        is_scaled,
        memory_budget,
    )


def view_of(design: Design, labels: Labels, inputs: Moments, targets: Moments) -> View:
    """What a loss reads, of what is known by now."""
    heads = np.zeros((power_of_two(max(len(labels.tasks), 4)), design.num_outputs), bool)
    heads[: len(labels.heads), : labels.heads.shape[1]] = labels.heads
    if design.is_regression:
        heads[:] = True
    target = np.concatenate(scaling(targets)) if design.is_regression else _NO_TARGET
    most = MOST_DEVIATIONS if inputs.num_rows else np.inf
    answers = np.asarray(heads.any(axis=0))
    return View(*scaling(inputs), np.float32(most), target, heads, answers)
