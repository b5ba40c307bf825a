"""The memory budget in bytes, and the change of a learner's state to another configuration.

More outputs, a wider dtype and a smaller memory are one operation: a fresh state of the new
configuration, into which everything learned and stored is copied.
"""

import dataclasses
import functools

import jax
import numpy as np

from lamaml.errors import InvalidArgument, require
from lamaml.estimators._compiled import (
    init_learner,
    initial_learner_state,
    network_shaped,
    param_shapes,
)
from lamaml.estimators._config import Config, smallest_batch
from lamaml.memory import StoredRows, can_resize, memories_in, resize, stored_rows
from lamaml.types import State


def all_stored_rows(state: State) -> StoredRows | None:
    """Return all rows in the memories of a state, on the host; None if it has no memory."""
    parts = [stored_rows(memory) for memory in memories_in(state).values()]
    if not parts:
        return None
    return StoredRows(*(np.concatenate(field) for field in zip(*parts, strict=True)))


def num_bytes(tree: object) -> int:
    """Return the total bytes of the arrays in a pytree."""
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))


def memory_bytes(state: State) -> int:
    """Return the bytes of everything in a state that is not shaped like the network."""
    return num_bytes(state) - num_bytes(network_shaped(state))


def state_shapes(config: Config) -> State:
    """Return a learner's state as shapes and dtypes, without values."""
    return jax.eval_shape(functools.partial(initial_learner_state, config), param_shapes(config))


def set_memory_size(config: Config, memory_size: int) -> Config:
    """Return the configuration with another memory size, if its learner has a memory."""
    settings = dict(config.settings)
    if "memory_size" not in settings:
        return config
    settings["memory_size"] = memory_size
    return dataclasses.replace(config, settings=tuple(sorted(settings.items())))


@functools.lru_cache(maxsize=256)
def largest_memory_size(config: Config, budget: int, has_holdout: bool) -> int:
    """Return the largest memory size for which all stored rows fit into `budget` bytes.

    These are the rows of the memory, the held-out rows and the last batch.
    """

    def cost(size: int) -> int:
        holdout = holdout_size(size) * holdout_row_bytes(config) if has_holdout else 0
        last_batch = smallest_batch(config) * 4 * (config.num_columns + config.num_targets + 1)
        return memory_bytes(state_shapes(set_memory_size(config, size))) + holdout + last_batch

    for memory in memories_in(state_shapes(config)).values():
        if not can_resize(memory):
            kind = type(memory).__name__
            message = f"{config.learner_name} stores rows in a {kind}"
            raise InvalidArgument(f"memory_bytes = {budget}: must be None, because {message}")
    require(cost(1) <= budget, "memory_bytes", budget, f"at least {cost(1)}, for one row")
    low, high = 1, budget + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if cost(middle) <= budget else (low, middle)
    return low


def holdout_size(memory_size: int) -> int:
    """Return the number of rows held out: a tenth of the memory size, from 1 to 200."""
    return min(max(memory_size // 10, 1), 200)


def holdout_row_bytes(config: Config) -> int:
    """Return the bytes of one held-out row with its label, task, position and score."""
    return config.num_columns * np.dtype(config.dtype).itemsize + 4 * config.num_targets + 16


def convert_state(state: State, config: Config, seed: int) -> State:
    """Return everything learned and stored in a state of another configuration.

    Where an array has grown, the old part is kept and the new part has its initial values. A
    reservoir that must shrink keeps a uniform sample of its rows.
    """
    new = init_learner(config, seed)
    sizes = {name: len(memory.y) for name, memory in memories_in(new).items()}
    smaller = {}
    for name, memory in memories_in(state).items():
        if len(memory.y) > sizes[name]:
            rng = np.random.default_rng([seed, len(memory.y), sizes[name]])
            smaller[name] = resize(memory, sizes[name], rng)
    return jax.tree.map(_copy_into, state._replace(**smaller), new)


def _copy_into(old: jax.Array, new: jax.Array) -> np.ndarray:
    full = np.array(new)
    full[tuple(slice(size) for size in old.shape)] = old
    return full
