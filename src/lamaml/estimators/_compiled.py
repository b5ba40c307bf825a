"""The compiled functions: a few programs per configuration, whatever the number of rows in a call.

One program makes one update with one batch; one predicts a block of rows, and one a chunk of
blocks. `QuickJit` compiles them in a fraction of the time that the fastest code would take.
"""

import enum
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Literal

from lamaml._compilation import QuickJit
from lamaml.estimators._config import (
    Config,
    LossInputs,
    build_apply,
    build_learner,
    build_network,
)
from lamaml.learners.inner_loop import not_unrolled
from lamaml.memory import Memory, memories_in
from lamaml.types import Batch, Model, Params, State

BLOCK = 32
"""Rows per block of a prediction; it is fixed, so that no row's result depends on the others."""
CHUNK = 32 * BLOCK
"""Rows per call of a large prediction: a chunk of blocks."""

_ONE = np.ones(1, np.float32)
_NO_ROWS = LossInputs(
    centre=_ONE,
    deviation=_ONE,
    limit=np.float32(1),
    target_centre=_ONE,
    target_deviation=_ONE,
    heads=np.zeros((1, 1), bool),
    class_weight=_ONE,
)


class Purpose(enum.IntEnum):
    """What random numbers are drawn for."""

    INIT = 0
    UPDATE = 1
    END_TASK = 2


def key_data(seed: int, purpose: Purpose, counter: int = 0) -> jax.Array:
    """Return the data of a random key, hashed on the host: no program need be compiled for it."""
    return np.random.SeedSequence((seed, purpose, counter)).generate_state(2)  # type: ignore[return-value]


def init_learner(config: Config, seed: int) -> State:
    """Return the learner's state before the first row."""
    params = init_params(config, seed)
    state = constants_on_host(partial(initial_learner_state, config), params)
    return _init_state(config, params) if state is None else state


def constants_on_host(function: Callable[..., Any], *args: Any) -> Any:
    """Return what a function returns if that is only arguments, copies and constants, else None.

    So are most initial states: no program need be compiled for them.
    """
    traced, shapes = jax.make_jaxpr(function, return_shape=True)(*args)
    inputs = [*traced.jaxpr.constvars, *traced.jaxpr.invars]
    values = dict(zip(inputs, [*traced.consts, *jax.tree.leaves(args)], strict=True))
    for step in traced.jaxpr.eqns:
        if step.primitive.name == "copy":
            values[step.outvars[0]] = np.array(values[step.invars[0]])
            continue
        if step.primitive.name != "broadcast_in_dim" or not isinstance(step.invars[0], Literal):
            return None
        read, (written,) = step.invars[0], step.outvars
        values[written] = np.full(written.aval.shape, read.val, written.aval.dtype)
    leaves, structure = jax.tree.flatten(shapes)
    results = zip(traced.jaxpr.outvars, leaves, strict=True)
    found = [
        np.asarray(result.val, leaf.dtype) if isinstance(result, Literal) else values[result]
        for result, leaf in results
    ]
    return jax.tree.unflatten(structure, found)


def init_params(config: Config, seed: int) -> Params:
    """Return the initial weights; those of the default network are drawn on the host.

    The latter have the distribution of `mlp`: normal, of variance 2 / inputs, and zero biases.
    """
    if isinstance(config.network, Model) or callable(config.network):
        return _init_network(config, key_data(seed, Purpose.INIT))
    rng = np.random.default_rng((seed, Purpose.INIT))
    params = param_shapes(config)
    for layer in params.values():
        outputs, inputs = layer["weight"].shape
        weight = rng.standard_normal((outputs, inputs), np.float32) * np.float32(
            np.sqrt(2 / inputs)
        )
        layer |= {"weight": weight, "bias": np.zeros(outputs, np.float32)}
    return params


def param_shapes(config: Config) -> Params:
    """Return the weights of the network as shapes and dtypes, without values."""
    init = build_network(config).init
    return jax.eval_shape(lambda: init(jax.random.key(0)))


def initial_learner_state(config: Config, params: Params) -> State:
    """Return the learner's state for initial weights."""
    batch = Batch(
        x=jnp.zeros((1, config.num_columns), config.dtype),
        y=jnp.zeros(
            (1, config.num_targets) if config.num_targets > 1 else 1,
            jnp.float32 if config.is_regression else jnp.int32,
        ),
        task=jnp.zeros(1, jnp.int32),
        weight=jnp.zeros(1),
        position=jnp.zeros(1, jnp.int32),
    )
    return build_learner(config, _NO_ROWS).init(params, batch)


def _draw(config: Config, key: jax.Array) -> Params:
    return build_network(config).init(jax.random.wrap_key_data(key))


_init_state = QuickJit(initial_learner_state)
_init_network = QuickJit(_draw)


@lru_cache(maxsize=256)
def has_end_task(config: Config) -> bool:
    """Return whether the learner consolidates when a task ends."""
    return build_learner(config, _NO_ROWS).end_task is not None


@lru_cache(maxsize=256)
def has_predict(config: Config) -> bool:
    """Return whether the learner predicts classes itself, not by its largest output."""
    learner = build_learner(config, _NO_ROWS)
    return learner.predict is not None and learner.outputs is None


@lru_cache(maxsize=256)
def has_outputs(config: Config) -> bool:
    """Return whether the learner computes outputs itself, not as those of one network."""
    return build_learner(config, _NO_ROWS).outputs is not None


def _update(
    config: Config,
    state: State,
    memories: dict[str, Memory],
    inputs: LossInputs,
    batch: Batch,
    is_finite: bool | jax.Array,
    key: jax.Array,
) -> tuple[State, dict[str, Memory], jax.Array]:
    with not_unrolled():
        learner = build_learner(config, inputs, num_rows=len(batch.y))
        state = state._replace(**memories)
        state, info = learner.update(state, batch, jax.random.wrap_key_data(key))
    return *split_memories(state), is_finite & jnp.isfinite(info["loss"])


update = QuickJit(_update, donated=(2,))
"""(config, state, memories, inputs, batch, is_finite, key): the state and its memories after one
update, and whether this and all earlier losses are finite. Only memories are overwritten: of these
an update changes a few rows, while it writes new weights anyway."""


def split_memories(state: State) -> tuple[State, dict[str, Memory]]:
    """Return a state without its memories, and these by the name of their fields."""
    memories = memories_in(state)
    return state._replace(**dict.fromkeys(memories)), memories


def network_shaped(state: State) -> dict[str, Params]:
    """Return the fields of a state that are shaped like the network: weights, learning rates."""
    shape: object = jax.tree.structure(state.params)
    fields = state._asdict()
    return {name: field for name, field in fields.items() if jax.tree.structure(field) == shape}


def _end_task(config: Config, state: State, inputs: LossInputs, key: jax.Array) -> State:
    finish = build_learner(config, inputs).end_task
    return state if finish is None else finish(state, jax.random.wrap_key_data(key))


end_task = QuickJit(_end_task)
"""(config, state, inputs, key): the state after the end of a task, if the learner consolidates."""


def _network_outputs(
    config: Config, params: Params, inputs: LossInputs, x: np.ndarray
) -> jax.Array:
    return _by_block(partial(build_apply(config, inputs), params), x)


network_outputs = QuickJit(_network_outputs)
"""(config, params, inputs, x): the network's outputs for a block or a chunk of rows."""


def _learner_outputs(config: Config, state: State, inputs: LossInputs, x: np.ndarray) -> jax.Array:
    outputs = build_learner(config, inputs).outputs

    def compute_block(rows: jax.Array) -> jax.Array:
        return outputs(state, rows, jnp.zeros(BLOCK, jnp.int32))  # type: ignore[misc]

    return _by_block(compute_block, x)


learner_outputs = QuickJit(_learner_outputs)
"""(config, state, inputs, x): the outputs of a learner with `outputs`, by the heads of task 0."""


def _learner_predictions(
    config: Config, state: State, inputs: LossInputs, x: np.ndarray, task: np.int32
) -> jax.Array:
    predict = build_learner(config, inputs).predict

    def predict_block(rows: jax.Array) -> jax.Array:
        return predict(state, rows, jnp.full(BLOCK, task))  # type: ignore[misc]

    return _by_block(predict_block, x)


learner_predictions = QuickJit(_learner_predictions)
"""(config, state, inputs, x, task): the outputs that a learner with `predict` chooses."""


def _by_block(compute: Callable[[jax.Array], jax.Array], x: np.ndarray) -> jax.Array:
    if len(x) == BLOCK:
        return compute(jnp.asarray(x))
    results = jax.lax.map(compute, x.reshape(-1, BLOCK, *x.shape[1:]))
    return results.reshape(len(x), *results.shape[2:])
