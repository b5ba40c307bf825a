"""The compiled programs, a few for each design whatever the number of rows in a call.

Rows are padded to one of a few sizes, and loops run only over the batches that hold any. Nothing
here is donated: a call that fails must leave the state as it was, to the bit.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from lamaml.estimators._config import Design, View, learner_of, network_of, reader_of
from lamaml.estimators._rows import DIGITS
from lamaml.learners.icarl import ICaRLState
from lamaml.types import Batch, Params, State

BATCHES = (1, 16, 128, 1024)
"""Batches to a compiled call of `learn`."""
BLOCK = 32
"""Rows answered together: always so many, so that an answer is the same in any company."""
BLOCKS = (1, 16, 256)
"""Blocks to a compiled call of `outputs`."""


class Keys(NamedTuple):
    """An estimator's random draws, by purpose."""

    init: jax.Array
    update: jax.Array
    end_task: jax.Array


def keys_of(seed: jax.Array | np.uint32) -> Keys:
    """One key a purpose."""
    return Keys(*jax.random.split(jax.random.key(seed), len(Keys._fields)))


_ONE = np.ones(1, np.float32)
_UNSEEN = View(_ONE, _ONE, np.float32(1), _ONE, np.zeros((1, 1), bool), np.zeros(1, bool))


def fresh(design: Design, seed: jax.Array | np.uint32) -> State:
    """The state before the first row."""
    learner = learner_of(design, _UNSEEN)
    x = jnp.zeros((1, design.num_columns + DIGITS), design.dtype)
    y = jnp.zeros(1, jnp.float32 if design.is_regression else jnp.int32)
    batch = Batch(x, y, jnp.zeros(1, jnp.int32), jnp.zeros(1))
    return learner.init(network_of(design).init(keys_of(seed).init), batch)


begin = jax.jit(fresh, static_argnums=0)


@lru_cache(maxsize=256)
def consolidates(design: Design) -> bool:
    """Whether the learner has something to do when a task ends."""
    return learner_of(design, _UNSEEN).end_task is not None


@partial(jax.jit, static_argnums=0)
def learn(
    design: Design,
    state: State,
    view: View,
    rows: Batch,
    num_batches: np.int32,
    seed: np.uint32,
    num_updates: np.uint32,
) -> tuple[State, jax.Array]:
    """The state after every glance at every batch, and whether all of it is finite.

    Args:
      design: what to compile for.
      state: the learner's.
      view: what its loss reads.
      rows: one of BATCHES of them, padded; `first` says whether they are shown for the first time.
      num_batches: of them, that hold rows.
      seed: the estimator's.
      num_updates: made so far; it numbers the random draws.
    """
    learner = learner_of(design, view)
    size, glances = design.batch_size, design.glances
    key = keys_of(seed).update

    def update(number: jax.Array, done: tuple[State, jax.Array]) -> tuple[State, jax.Array]:
        state, finite = done
        place, glance = jnp.divmod(number, glances)
        x, y, task, weight = (
            jax.lax.dynamic_slice_in_dim(field, place * size, size) for field in rows[:4]
        )
        first, last = rows.first & (glance == 0), rows.first & (glance == glances - 1)
        batch = Batch(x, y, task, weight, first, last)
        state, info = learner.update(state, batch, jax.random.fold_in(key, num_updates + number))
        return state, finite & jnp.isfinite(info["loss"])

    start = (state, jnp.array(True))
    if len(rows.y) == size and glances == 1:  # the loop of a single turn is not free
        state, finite = update(jnp.int32(0), start)
    else:
        state, finite = jax.lax.fori_loop(0, num_batches * glances, update, start)
    return state, finite & _all_finite(learned_fields(state))


def learned_fields(state: State) -> dict[str, Params]:
    """The parts of a state shaped like the network: weights, rates and their kin."""
    shape: object = jax.tree.structure(state.params)
    parts = state._asdict()
    return {name: part for name, part in parts.items() if jax.tree.structure(part) == shape}


def _all_finite(tree: Params) -> jax.Array:
    return jnp.isfinite(sum((jnp.sum(leaf) for leaf in jax.tree.leaves(tree)), jnp.zeros(())))


@partial(jax.jit, static_argnums=0)
def outputs(
    design: Design, params: Params, view: View, x: np.ndarray, num_blocks: np.int32
) -> jax.Array:
    """The network's outputs for rows in so many blocks; those of padding mean nothing."""
    return _by_block(partial(reader_of(design, view), params), x, num_blocks)


@partial(jax.jit, static_argnums=0)
def answers(
    design: Design, state: State, view: View, x: np.ndarray, num_blocks: np.int32, task: np.int32
) -> jax.Array:
    """The answers of a learner that has its own, instead of the largest output."""
    predict = learner_of(design, view).predict
    if isinstance(state, ICaRLState):  # its classes are those it has exemplars of
        places = state.exemplars
        rank = jnp.where(view.answers[places.y], places.rank, np.iinfo(np.int32).max)
        state = state._replace(exemplars=places._replace(rank=rank))

    def answer(rows: jax.Array) -> jax.Array:
        return predict(state, rows, jnp.full(BLOCK, task))  # type: ignore[misc]

    return _by_block(answer, x, num_blocks)


def _by_block(
    answer: Callable[[jax.Array], jax.Array], x: np.ndarray, num_blocks: np.int32
) -> jax.Array:
    if len(x) == BLOCK:
        return answer(jnp.asarray(x))
    kind = jax.eval_shape(answer, jax.ShapeDtypeStruct((BLOCK, *x.shape[1:]), x.dtype))

    def one(number: jax.Array, done: jax.Array) -> jax.Array:
        rows = jax.lax.dynamic_slice_in_dim(x, number * BLOCK, BLOCK)
        return jax.lax.dynamic_update_slice_in_dim(done, answer(rows), number * BLOCK, 0)

    return jax.lax.fori_loop(0, num_blocks, one, jnp.zeros((len(x), *kind.shape[1:]), kind.dtype))


@partial(jax.jit, static_argnums=0)
def conclude(design: Design, state: State, view: View, seed: np.uint32, number: np.uint32) -> State:
    """The state of a learner that consolidates, after the end of a task."""
    end_task = learner_of(design, view).end_task
    key = jax.random.fold_in(keys_of(seed).end_task, number)
    return state if end_task is None else end_task(state, key)
