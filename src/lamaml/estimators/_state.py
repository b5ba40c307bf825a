"""The fitted state: everything an estimator has learned and stored.

It is never changed, only replaced, so that a call that fails leaves the old one as it was.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from lamaml.errors import require
from lamaml.estimators._budget import holdout_size, largest_memory_size, set_memory_size
from lamaml.estimators._columns import Encoding
from lamaml.estimators._compiled import init_learner
from lamaml.estimators._config import Config, LossInputs, power_of_two
from lamaml.estimators._holdout import Holdout, empty_holdout
from lamaml.estimators._labels import Labels
from lamaml.estimators._rows import Offsets
from lamaml.estimators._scaling import Moments, empty_moments, mean_and_deviation
from lamaml.types import State

MAX_DEVIATIONS = 5.0
"""Scaled inputs are clipped here, so that a feature that varies late cannot dominate."""


_MIN_TASKS = 32  # programs are compiled again where there are more


class LastBatch(NamedTuple):
    """The last batch learned from, for the report."""

    x: np.ndarray  # (n, columns) float32
    y: np.ndarray  # (n,)
    weight: np.ndarray  # (n,)
    task: int = 0  # its index


@dataclass(frozen=True, kw_only=True)
class FittedState:
    """What the next call needs."""

    config: Config
    learner_state: State
    labels: Labels
    input_moments: Moments
    target_moments: Moments  # of a regression
    loss_inputs: LossInputs  # computed from labels and moments
    holdout: Holdout
    last_batch: LastBatch
    offsets: Offsets
    seed: int
    is_scaled: bool
    memory_budget: int | None  # in bytes, without those of the encoding
    encoding: Encoding | None = None  # of a frame's columns
    task: int = 0  # index of the current task in labels.tasks
    num_rows: int = 0  # rows seen, those held out included
    num_updates: int = 0


def initial_state(
    config: Config,
    labels: Labels,
    *,
    offsets: Offsets,
    seed: int,
    is_scaled: bool,
    memory_size: int,
    memory_budget: int | None,
    has_holdout: bool,
    encoding: Encoding | None = None,
) -> FittedState:
    """Return the state before the first row."""
    if memory_budget is not None and encoding is not None:
        allowed = f"more than {encoding.num_bytes}, the bytes of the encoding of the columns"
        require(memory_budget > encoding.num_bytes, "memory_bytes", memory_budget, allowed)
        memory_budget -= encoding.num_bytes
    if memory_budget is not None:
        memory_size = largest_memory_size(config, memory_budget, has_holdout)
    config = set_memory_size(config, memory_size)
    target_dtype = np.dtype(np.float32 if config.is_regression else np.int32)
    num_held_out = holdout_size(memory_size) if has_holdout else 0
    columns = config.num_columns
    inputs, targets = empty_moments(columns), empty_moments(config.num_targets)
    held = (num_held_out, columns, np.dtype(config.dtype), target_dtype, config.num_targets)
    return FittedState(
        config=config,
        learner_state=init_learner(config, seed),
        labels=labels,
        input_moments=inputs,
        target_moments=targets,
        loss_inputs=make_loss_inputs(config, labels, inputs, targets),
        holdout=empty_holdout(*held),
        last_batch=LastBatch(
            x=np.zeros((0, columns), np.float32),
            y=np.zeros((0, config.num_targets) if config.num_targets > 1 else 0, target_dtype),
            weight=np.zeros(0, np.float32),
        ),
        offsets=offsets,
        seed=seed,
        is_scaled=is_scaled,
        memory_budget=memory_budget,
        encoding=encoding,
    )


def make_loss_inputs(
    config: Config, labels: Labels, inputs: Moments, targets: Moments
) -> LossInputs:
    """Return what the loss reads, from the labels and statistics so far."""
    num_tasks = power_of_two(max(len(labels.tasks), _MIN_TASKS))
    heads = np.zeros((num_tasks, config.num_outputs), bool)
    heads[: len(labels.heads), : labels.heads.shape[1]] = labels.heads
    if config.is_regression:
        heads[:] = True
    class_weight = np.ones(config.num_outputs, np.float32)
    class_weight[: len(labels.class_weight)] = labels.class_weight
    centre, deviation = mean_and_deviation(inputs)
    target_centre, target_deviation = mean_and_deviation(targets)
    return LossInputs(
        centre=centre,
        deviation=deviation,
        limit=np.float32(MAX_DEVIATIONS if inputs.num_rows else np.inf),
        target_centre=target_centre,
        target_deviation=target_deviation,
        heads=heads,
        class_weight=class_weight,
    )
