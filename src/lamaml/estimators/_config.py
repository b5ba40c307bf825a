"""What an estimator is made of: the static description that programs are compiled for.

A learner is built inside the compiled program, around a loss that reads the numbers of a `View`:
the running statistics of the inputs and the classes seen so far. Rows are kept as they came and
scaled by today's statistics wherever they are read, in the memory as well.
"""

import functools
import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from lamaml.errors import InvalidArgument, require, unknown_name
from lamaml.estimators._labels import power_of_two
from lamaml.learners import LEARNERS
from lamaml.models import mlp
from lamaml.types import Batch, Learner, Loss, Model, Params

Network = Model | Callable[[tuple[int, ...], int], Model] | tuple[int, ...]
"""A network; or (input_shape, num_outputs) -> network; or hidden sizes of the paper's MLP."""

_CLOSED = -1e30  # a closed output's logit: finite, so that 0 · logit stays 0
_FEWEST = 8  # outputs to begin with: most streams never need more
_FACTS = ("apply", "heads", "num_classes")  # what the estimator alone knows
_LOOK_AHEAD = {"inner_steps": 10, "first_order": True}
_OWN_RATES = {"clip_inner_rates": True, **_LOOK_AHEAD}

SETTINGS: dict[str, dict[str, Any]] = {
    "online": {"learning_rate": 0.1, "max_norm": 2.0},
    "independent": {"learning_rate": 0.1, "max_norm": 2.0, "num_tasks": 20},
    "er": {"learning_rate": 0.1},
    "ewc": {"learning_rate": 0.1, "penalty": 10.0, "max_norm": 2.0},
    "gem": {"learning_rate": 0.1, "max_norm": 2.0, "num_tasks": 20},
    "a_gem": {"learning_rate": 0.1, "num_tasks": 20},
    "icarl": {"learning_rate": 0.1, "task_size": 1000},
    "mer": {"inner_rate": 0.1, "within_rate": 0.1, "num_batches": 5, "max_norm": 2.0},
    "mer_single": {"inner_rate": 0.1, "across_rate": 0.3, "max_norm": 2.0},
    "meta_bgd": {"learning_rate": 50.0, "initial_std": 0.02, **_LOOK_AHEAD},
    "c_maml": {"inner_rate": 0.1, "outer_rate": 0.1, **_LOOK_AHEAD},
    "sync_la_maml": {"initial_rate": 0.15, "outer_rate": 0.1, "hyper_rate": 0.1, **_OWN_RATES},
    "la_er": {"initial_rate": 0.15, "hyper_rate": 0.3, "inner_steps": 10},
    "la_maml": {"initial_rate": 0.15, "hyper_rate": 0.3, **_OWN_RATES},
}
"""Each learner's settings where the user gives none; those of the digits recipes."""

_GENTLE = {"initial_rate": 0.03, "hyper_rate": 0.03, "inner_clamp": 1.0}
REGRESSION: dict[str, dict[str, Any]] = {
    "online": {"learning_rate": 0.03},
    "er": {"learning_rate": 0.03},
    "ewc": {"learning_rate": 0.03},
    "gem": {"learning_rate": 0.03},
    "a_gem": {"learning_rate": 0.03},
    "mer": {"inner_rate": 0.03},
    "mer_single": {"inner_rate": 0.03},
    "meta_bgd": {"inner_rate": 0.03, "inner_clamp": 1.0},
    "c_maml": {"inner_rate": 0.03, "outer_rate": 0.03, "inner_clamp": 1.0},
    "sync_la_maml": {**_GENTLE, "outer_rate": 0.03},
    "la_er": _GENTLE,
    "la_maml": _GENTLE,
}
"""What differs for a squared error, whose gradient has no bound."""


@dataclass(frozen=True)
class Design:
    """Everything a compiled program depends on, and nothing that is learned."""

    learner: str
    settings: tuple[tuple[str, Any], ...]  # of its builder, sorted
    network: Network
    input_shape: tuple[int, ...]
    num_outputs: int  # at least the number of classes
    is_regression: bool
    dtype: str  # of stored rows
    batch_size: int
    glances: int

    @property
    def num_columns(self) -> int:
        """Numbers in a row."""
        return math.prod(self.input_shape)


class View(NamedTuple):
    """What a loss reads beside weights and rows."""

    centre: np.ndarray  # (columns,) subtracted from inputs
    deviation: np.ndarray  # (columns,) which inputs are divided by
    most: np.float32  # deviations at which they are cut off
    target: np.ndarray  # (2,) the same two for the targets of a regression
    heads: np.ndarray  # (tasks, outputs) which outputs compete in a row of a task
    answers: np.ndarray  # (outputs,) which may be answered with


def settings_of(
    name: str, options: Mapping[str, Any], memory_size: int, is_regression: bool
) -> dict[str, Any]:
    """A learner's settings: its defaults, the memory's size, and what the user asks for."""
    if name not in LEARNERS:
        raise unknown_name("learner", str(name), LEARNERS)
    asked = inspect.signature(LEARNERS[name]).parameters
    allowed = [option for option in asked if option not in ("loss", "memory_size", *_FACTS)]
    for option in options:
        if option not in allowed:
            raise unknown_name(f"option of {name} in learner_options", option, allowed)
    memory = {"memory_size": memory_size} if "memory_size" in asked else {}
    gentler = REGRESSION.get(name, {}) if is_regression else {}
    return SETTINGS.get(name, {}) | gentler | memory | dict(options)


@functools.lru_cache(maxsize=256)
def answers_itself(learner: str) -> bool:
    """Whether a learner answers otherwise than with its largest output: it asks for the network."""
    return learner in LEARNERS and "apply" in inspect.signature(LEARNERS[learner]).parameters


@functools.lru_cache(maxsize=256)
def network_of(design: Design) -> Model:
    """The network itself, checked to have the outputs that the design counts on."""
    given, outputs = design.network, design.num_outputs
    if isinstance(given, Model):
        return given
    if callable(given):
        return given(design.input_shape, outputs)
    return mlp(design.num_columns, outputs, hidden_sizes=given)


def num_outputs_of(network: Network, input_shape: tuple[int, ...], needed: int) -> int:
    """How many outputs there are where so many are needed: capacities double, so growth is rare."""
    if not isinstance(network, Model):
        return 1 if needed == 1 else power_of_two(max(needed, _FEWEST))
    rows = jax.ShapeDtypeStruct((1, *input_shape), jnp.float32)
    try:
        params = jax.eval_shape(network.init, jax.random.key(0))
        there = jax.eval_shape(network.apply, params, rows).shape[-1]
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"model cannot read rows of shape {input_shape}: {error}") from error
    allowed = f"at least {needed}; a function (input_shape, num_outputs) -> Model can grow"
    require(there >= needed, "outputs of model", there, allowed)
    return there


def reader_of(design: Design, view: View) -> Callable[[Params, jax.Array], jax.Array]:
    """The network on rows as they are stored: (params, x) -> outputs."""
    model = network_of(design)

    def read(params: Params, x: jax.Array) -> jax.Array:
        scaled = (x[:, : design.num_columns].astype(jnp.float32) - view.centre) / view.deviation
        cut = jnp.clip(scaled, -view.most, view.most)
        return model.apply(params, cut.reshape(-1, *design.input_shape))

    return read


def learner_of(design: Design, view: View) -> Learner:
    """The algorithm, around a loss that scales its rows and closes the outputs of other tasks."""
    read = reader_of(design, view)

    def apply(params: Params, x: jax.Array) -> jax.Array:
        outputs = read(params, x)
        below = jax.lax.stop_gradient(jnp.min(outputs, axis=-1, keepdims=True) - 1)
        return jnp.where(view.answers, outputs, below)

    builder = LEARNERS[design.learner]
    facts = {"apply": apply, "heads": None, "num_classes": design.num_outputs}
    asked = inspect.signature(builder).parameters
    known = {name: fact for name, fact in facts.items() if name in asked}
    return builder(loss_of(design, view), **known, **dict(design.settings))


def loss_of(design: Design, view: View) -> Loss:
    """What is learned from rows as they are stored."""
    read = reader_of(design, view)
    return squared_error(read, view) if design.is_regression else cross_entropy(read, view)


def cross_entropy(read: Callable[[Params, jax.Array], jax.Array], view: View) -> Loss:
    """The weighted mean cross-entropy, each row over the classes seen in its task."""

    def loss(params: Params, batch: Batch) -> jax.Array:
        logits = jnp.where(jnp.asarray(view.heads)[batch.task], read(params, batch.x), _CLOSED)
        label = jax.nn.one_hot(batch.y, logits.shape[-1])
        surprise = jax.nn.logsumexp(logits, axis=-1) - jnp.sum(label * logits, axis=-1)
        return weighted_mean(surprise, batch.weight)

    return loss


def squared_error(read: Callable[[Params, jax.Array], jax.Array], view: View) -> Loss:
    """Half the weighted mean squared error, in deviations of the targets seen so far."""

    def loss(params: Params, batch: Batch) -> jax.Array:
        wanted = (batch.y - view.target[0]) / view.target[1]
        return weighted_mean(jnp.square(read(params, batch.x)[:, 0] - wanted) / 2, batch.weight)

    return loss


def weighted_mean(values: jax.Array, weight: jax.Array) -> jax.Array:
    """Over the rows; 0 where none has a weight."""
    total = jnp.sum(weight)
    return jnp.vdot(weight, values) / jnp.where(total > 0, total, 1.0)
