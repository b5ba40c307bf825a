"""What a state holds of the stream: its bytes, and how it takes a new shape.

A head that grows, a wider dtype and a smaller memory are one operation: a fresh state of the new
design, into which everything learned and kept is laid.
"""

import dataclasses
import functools
from typing import NamedTuple

import jax
import numpy as np

from lamaml.errors import InvalidArgument, require
from lamaml.estimators._compiled import begin, fresh, learned_fields
from lamaml.estimators._config import Design
from lamaml.memory import Memory, Reservoir, can_resize, memories_in, stored_rows
from lamaml.types import State


class Kept(NamedTuple):
    """Rows a learner remembers, as they are stored."""

    x: np.ndarray
    y: np.ndarray
    task: np.ndarray


def kept_rows(state: State) -> Kept:
    """All rows that a state holds, on the host; none where its learner remembers none."""
    held = [_held_in(memory) for memory in memories_in(state).values()]
    if not held:
        return Kept(np.zeros((0, 0)), np.zeros(0, np.int32), np.zeros(0, np.int32))
    return Kept(*(np.concatenate(field) for field in zip(*held, strict=True)))


def _held_in(memory: Memory) -> Kept:
    return Kept(*stored_rows(memory)[:3])


def num_bytes(tree: object) -> int:
    """Of all arrays in a tree."""
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))


def memory_bytes(state: State) -> int:
    """Of everything that is not shaped like the network: rows, and what is kept of each."""
    return num_bytes(state) - num_bytes(learned_fields(state))


def shape_of(design: Design) -> State:
    """A state of shapes and dtypes, without numbers."""
    return jax.eval_shape(functools.partial(fresh, design), np.uint32(0))


def with_memory(design: Design, memory_size: int) -> Design:
    """The same design with another number of remembered rows, if its learner remembers any."""
    settings = dict(design.settings)
    if "memory_size" not in settings:
        return design
    settings["memory_size"] = memory_size
    return dataclasses.replace(design, settings=tuple(sorted(settings.items())))


@functools.lru_cache(maxsize=256)
def largest_memory(design: Design, budget: int, holds_out: bool) -> int:
    """The most rows for which all that is kept, held out and last seen is within so many bytes."""

    def cost(size: int) -> int:
        held_out = held_out_size(size) * held_out_row_bytes(design) if holds_out else 0
        last = design.batch_size * (4 * design.num_columns + 8)
        return memory_bytes(shape_of(with_memory(design, size))) + held_out + last

    for part in memories_in(shape_of(design)).values():
        if not can_resize(part):
            kind = type(part).__name__
            raise InvalidArgument(f"{design.learner} keeps {kind}, which memory_bytes cannot bound")
    require(cost(1) <= budget, "memory_bytes", budget, f"at least {cost(1)}, for one row")
    low, high = 1, budget + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if cost(middle) <= budget else (low, middle)
    return low


def held_out_size(memory_size: int) -> int:
    """Rows kept aside to see what is forgotten: a tenth of the memory's, and never many."""
    return min(max(memory_size // 10, 1), 200)


def held_out_row_bytes(design: Design) -> int:
    """Of one row kept aside, with its label, task, place and score."""
    return design.num_columns * np.dtype(design.dtype).itemsize + 20


def reshaped(state: State, design: Design, seed: np.uint32) -> State:
    """What was learned and kept, in a state of another design.

    Where an array has grown, its old part stays and the new one is as at the beginning; a
    reservoir that must shrink keeps a uniform sample of its rows, and so remains one of the stream.
    """
    new = begin(design, seed)
    if hasattr(state, "targets"):  # of distillation: an output that is new was closed to them
        closed = np.min(state.targets, axis=1, keepdims=True) - 1
        new = new._replace(targets=np.broadcast_to(closed, new.targets.shape))
    memory = getattr(state, "memory", None)
    if isinstance(memory, Reservoir) and len(new.memory.y) < len(memory.y):
        state = state._replace(memory=_thinned(memory, len(new.memory.y), seed))
    return jax.tree.map(_laid_into, state, new)


def _laid_into(old: jax.Array, new: jax.Array) -> np.ndarray:
    full = np.array(new)
    full[tuple(slice(size) for size in old.shape)] = old
    return full


def _thinned(memory: Reservoir, size: int, seed: np.uint32) -> Reservoir:
    held = min(int(memory.num_seen), len(memory.y))
    kept = np.random.default_rng([int(seed), held, size]).permutation(held)[:size]
    x, y, task = (np.asarray(field)[kept] for field in (memory.x, memory.y, memory.task))
    return Reservoir(x, y, task, np.asarray(memory.num_seen))  # type: ignore[arg-type]
