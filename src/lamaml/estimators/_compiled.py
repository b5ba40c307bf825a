"""The compiled functions: a few programs per configuration, whatever the number of rows in a call.

Rows are padded to one of a few sizes, and loops run only over batches that hold rows. No argument
is donated: a call that fails must leave the state as it was, to the bit.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from lamaml.estimators._config import (
    Config,
    LossInputs,
    build_apply,
    build_learner,
    build_network,
)
from lamaml.training.keys import keys_from_seed
from lamaml.types import Batch, Params, State

BATCHES = (1, 16, 128, 1024)
"""Numbers of batches that `update_batches` is compiled for."""
BLOCK = 32
"""Rows per block of a prediction; it is fixed, so that no row's result depends on the others."""
BLOCKS = (1, 16, 256)
"""Numbers of blocks that predictions are compiled for."""

_ONE = np.ones(1, np.float32)
_NO_ROWS = LossInputs(
    centre=_ONE,
    deviation=_ONE,
    limit=np.float32(1),
    target_centre=_ONE,
    target_deviation=_ONE,
    heads=np.zeros((1, 1), bool),
)


class EstimatorKeys(NamedTuple):
    """The random keys of an estimator, by purpose."""

    init: jax.Array
    update: jax.Array
    end_task: jax.Array


def initial_learner_state(config: Config, seed: jax.Array | np.uint32) -> State:
    """Return the learner's state before the first row."""
    batch = Batch(
        x=jnp.zeros((1, config.num_columns), config.dtype),
        y=jnp.zeros(1, jnp.float32 if config.is_regression else jnp.int32),
        task=jnp.zeros(1, jnp.int32),
        weight=jnp.zeros(1),
        position=jnp.zeros(1, jnp.int32),
    )
    params = build_network(config).init(keys_from_seed(EstimatorKeys, seed).init)
    return build_learner(config, _NO_ROWS).init(params, batch)


init_learner = jax.jit(initial_learner_state, static_argnums=0)


@lru_cache(maxsize=256)
def has_end_task(config: Config) -> bool:
    """Return whether the learner consolidates when a task ends."""
    return build_learner(config, _NO_ROWS).end_task is not None


@lru_cache(maxsize=256)
def has_predict(config: Config) -> bool:
    """Return whether the learner predicts classes itself, not by its largest output."""
    return build_learner(config, _NO_ROWS).predict is not None


@partial(jax.jit, static_argnums=0)
def update_batches(
    config: Config,
    state: State,
    inputs: LossInputs,
    rows: Batch,
    num_batches: np.int32,
    seed: np.uint32,
    num_updates: np.uint32,
) -> tuple[State, jax.Array]:
    """Return the state after all glances at all batches, and whether it is finite.

    Args:
      config: the static configuration.
      state: the learner's state.
      inputs: what the loss reads.
      rows: padded to one of BATCHES; `first` says whether this is the first pass over them.
      num_batches: the number of batches that hold rows.
      seed: of the estimator.
      num_updates: updates made so far; they number the random draws.
    """
    learner = build_learner(config, inputs)
    size, glances = config.batch_size, config.glances
    key = keys_from_seed(EstimatorKeys, seed).update

    def update(number: jax.Array, done: tuple[State, jax.Array]) -> tuple[State, jax.Array]:
        state, finite = done
        index, glance = jnp.divmod(number, glances)
        x, y, task, weight, position = jax.tree.map(
            lambda field: jax.lax.dynamic_slice_in_dim(field, index * size, size),
            (rows.x, rows.y, rows.task, rows.weight, rows.position),
        )
        first, last = rows.first & (glance == 0), rows.first & (glance == glances - 1)
        batch = Batch(x, y, task, weight, first, last, position)
        state, info = learner.update(state, batch, jax.random.fold_in(key, num_updates + number))
        return state, finite & jnp.isfinite(info["loss"])

    start = (state, jnp.array(True))
    if len(rows.y) == size and glances == 1:  # a loop of one iteration costs time
        state, finite = update(jnp.int32(0), start)
    else:
        state, finite = jax.lax.fori_loop(0, num_batches * glances, update, start)
    # A sum is finite only if its numbers are; it is a little faster than `all_finite`.
    totals = (jnp.sum(leaf) for leaf in jax.tree.leaves(network_shaped(state)))
    return state, finite & jnp.isfinite(sum(totals, jnp.zeros(())))


def network_shaped(state: State) -> dict[str, Params]:
    """Return the fields of a state that are shaped like the network: weights, learning rates."""
    shape: object = jax.tree.structure(state.params)
    fields = state._asdict()
    return {name: field for name, field in fields.items() if jax.tree.structure(field) == shape}


@partial(jax.jit, static_argnums=0)
def end_task(
    config: Config, state: State, inputs: LossInputs, seed: np.uint32, task: np.uint32
) -> State:
    """Return the state after the end of a task, for a learner that consolidates."""
    finish = build_learner(config, inputs).end_task
    key = jax.random.fold_in(keys_from_seed(EstimatorKeys, seed).end_task, task)
    return state if finish is None else finish(state, key)


@partial(jax.jit, static_argnums=0)
def network_outputs(
    config: Config, params: Params, inputs: LossInputs, x: np.ndarray, num_blocks: np.int32
) -> jax.Array:
    """Return the network's outputs for the rows of the first blocks."""
    return _by_block(partial(build_apply(config, inputs), params), x, num_blocks)


@partial(jax.jit, static_argnums=0)
def learner_predictions(
    config: Config,
    state: State,
    inputs: LossInputs,
    x: np.ndarray,
    num_blocks: np.int32,
    task: np.int32,
) -> jax.Array:
    """Return the outputs that a learner with `predict` chooses for the rows of the first blocks."""
    predict = build_learner(config, inputs).predict

    def predict_block(rows: jax.Array) -> jax.Array:
        return predict(state, rows, jnp.full(BLOCK, task))  # type: ignore[misc]

    return _by_block(predict_block, x, num_blocks)


def _by_block(
    compute: Callable[[jax.Array], jax.Array], x: np.ndarray, num_blocks: np.int32
) -> jax.Array:
    if len(x) == BLOCK:
        return compute(jnp.asarray(x))
    result = jax.eval_shape(compute, jax.ShapeDtypeStruct((BLOCK, *x.shape[1:]), x.dtype))

    def step(number: jax.Array, done: jax.Array) -> jax.Array:
        rows = jax.lax.dynamic_slice_in_dim(x, number * BLOCK, BLOCK)
        return jax.lax.dynamic_update_slice_in_dim(done, compute(rows), number * BLOCK, 0)

    start = jnp.zeros((len(x), *result.shape[1:]), result.dtype)
    return jax.lax.fori_loop(0, num_blocks, step, start)
