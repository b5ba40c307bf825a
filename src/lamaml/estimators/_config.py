"""The static configuration of an estimator, from which network, loss and learner are built.

Learners are built inside compiled programs. Their loss reads `LossInputs`: the running statistics
of the inputs and the classes seen so far. Rows are stored unscaled and scaled with the current
statistics whenever they are read, those in the memory too.
"""

import functools
import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from lamaml._registry import find_learner
from lamaml.errors import InvalidArgument, require, unknown_name
from lamaml.learners import LEARNERS
from lamaml.models import NetworkLoss, cross_entropy, mlp, squared_error
from lamaml.types import Batch, Learner, Loss, Model, Params

Network = Model | Callable[[tuple[int, ...], int], Model] | tuple[int, ...]
"""A network, or (input_shape, num_outputs) -> network, or hidden sizes of the default MLP."""
Builder = Callable[..., Learner]
"""A function (loss, *, settings) -> Learner."""

_MIN_OUTPUTS = 32  # most streams never need more
_BATCH_SIZE, _LARGE_BATCH_SIZE = 10, 50  # only two, because each is a program
_LARGE_BATCH_STEPS = {"inner_steps": 5, "num_steps": 1}  # at most
_PROVIDED = ("apply", "heads", "num_classes", "memory_size")  # settings that the estimator fills in
_LOOK_AHEAD = {"inner_steps": 10, "first_order": True}
_LEARNED_RATES = {"clip_inner_rates": True, **_LOOK_AHEAD}

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
    "sync_la_maml": {"initial_rate": 0.15, "outer_rate": 0.1, "hyper_rate": 0.1, **_LEARNED_RATES},
    "la_er": {"initial_rate": 0.15, "hyper_rate": 0.3, "inner_steps": 10},
    "la_maml": {"initial_rate": 0.15, "hyper_rate": 0.3, **_LEARNED_RATES},
    "dark_la_maml": {"initial_rate": 0.15, "hyper_rate": 0.3, **_LEARNED_RATES},
    "der": {"learning_rate": 0.1},
    "er_ace": {"learning_rate": 0.1},
    "fast_and_slow": {"num_steps": 3},
}
"""Default settings of each learner: those of the digits recipes."""

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
    "fast_and_slow": {"fast_rate": 0.05, "slow_rate": 5e-3},
}
"""Defaults that differ for a squared error, whose gradient is not bounded."""


@dataclass(frozen=True, kw_only=True)
class Config:
    """Everything a compiled program depends on, and nothing that is learned."""

    learner: str | Builder
    settings: tuple[tuple[str, Any], ...]  # of the learner's builder, sorted
    network: Network
    input_shape: tuple[int, ...]
    num_outputs: int  # at least the number of classes
    is_regression: bool
    dtype: str  # of stored rows
    batch_size: int | None  # None: it grows with the call
    glances: int
    num_targets: int = 1  # of a regression

    @property
    def num_columns(self) -> int:
        """The number of values in a row."""
        return math.prod(self.input_shape)

    @property
    def learner_name(self) -> str:
        """The learner's name in messages."""
        return learner_name(self.learner)


class LossInputs(NamedTuple):
    """What a loss reads beside weights and rows."""

    centre: np.ndarray  # (columns,) subtracted from the inputs
    deviation: np.ndarray  # (columns,) divides the inputs
    limit: np.float32  # scaled inputs are clipped to [-limit, limit]
    target_centre: np.ndarray  # (1,) subtracted from the targets of a regression
    target_deviation: np.ndarray  # (1,) divides them
    heads: np.ndarray  # (tasks, outputs) booleans: the outputs that belong to each task
    class_weight: np.ndarray  # (outputs,) multiplies the loss of the rows of each class


def smallest_batch(config: Config) -> int:
    """Return the number of rows per update in a call of few rows."""
    return config.batch_size or _BATCH_SIZE


def choose_batch_size(config: Config, num_rows: int) -> int:
    """Return the number of rows per update in a call.

    Where the user has not fixed it, it is 10, and 50 in calls of more than 50,000 rows. A large
    batch is learned in at most 5 look-ahead steps, and by "auto" in one step instead of three: the
    work grows with rows times steps.
    """
    return smallest_batch(config) if config.batch_size or num_rows <= 50_000 else _LARGE_BATCH_SIZE


def learner_name(learner: str | Builder) -> str:
    """Return the name of a learner in messages."""
    return learner if isinstance(learner, str) else getattr(learner, "__name__", repr(learner))


def learner_settings(
    learner: str | Builder,
    options: Mapping[str, Any],
    memory_size: int,
    is_regression: bool = False,
) -> dict[str, Any]:
    """Return a learner's settings: its defaults, the memory size and the user's options.

    A learner that is not part of this package has no defaults but those of its signature.
    """
    builder, name = find_learner(learner), learner_name(learner)
    parameters = inspect.signature(builder).parameters
    allowed = [option for option in list(parameters)[1:] if option not in _PROVIDED]
    for option in options:
        if option not in allowed:
            raise unknown_name(f"option of {name} in learner_options", option, allowed)
    own = builder.__name__ if LEARNERS.get(getattr(builder, "__name__", "")) is builder else ""
    settings = SETTINGS.get(own, {}) | (REGRESSION.get(own, {}) if is_regression else {})
    if "memory_size" in parameters:
        settings["memory_size"] = memory_size
    settings |= options
    for option in allowed:
        if option not in settings and parameters[option].default is inspect.Parameter.empty:
            message = f"learner_options = {dict(options)!r}: must have {option!r}"
            raise InvalidArgument(f"{message}, for which {name} has no default")
    return settings


def has_own_predict(learner: str | Builder, options: Mapping[str, Any], memory_size: int) -> bool:
    """Return whether a learner predicts classes itself; False where the parameters are invalid."""
    try:
        settings = learner_settings(learner, options, memory_size)
        built = _build(learner, settings, _no_loss, _no_loss, None, 2)
        return built.predict is not None and built.outputs is None
    except (TypeError, ValueError):
        return False


def _no_loss(params: Params, batch: Any) -> jax.Array:
    return jnp.zeros(())


def _build(
    learner: str | Builder,
    settings: Mapping[str, Any],
    loss: Loss,
    apply: Callable[[Params, jax.Array], jax.Array],
    heads: np.ndarray | None,
    num_classes: int,
) -> Learner:
    builder = find_learner(learner)
    known = {"apply": apply, "heads": heads, "num_classes": num_classes}
    parameters = inspect.signature(builder).parameters
    provided = {name: value for name, value in known.items() if name in parameters}
    return builder(loss, **provided, **settings)


def build_learner(config: Config, inputs: LossInputs, num_rows: int = 0) -> Learner:
    """Return the learner of a configuration, for rows as they are stored.

    Args:
      config: the configuration.
      inputs: what the loss reads.
      num_rows: number of rows per batch: the function-space look-ahead, whose cost grows with its
        square, is faster than the general one up to ten.
    """
    apply = build_apply(config, inputs)
    loss = build_loss(config, inputs, in_function_space=0 < num_rows <= 10)
    settings = dict(config.settings)
    if num_rows > smallest_batch(config) and config.learner in LEARNERS:  # names of our own alone
        limits = {name: most for name, most in _LARGE_BATCH_STEPS.items() if name in settings}
        settings |= {name: min(settings[name], most) for name, most in limits.items()}
    return _build(config.learner, settings, loss, apply, inputs.heads, config.num_outputs)


def build_loss(config: Config, inputs: LossInputs, in_function_space: bool = False) -> Loss:
    """Return the loss of rows as they are stored; a regression's is in deviations of the target.

    Args:
      config: the configuration.
      inputs: what the loss reads.
      in_function_space: whether the loss knows the network's first layer.
    """
    model = build_network(config)
    first = model.first_layer if in_function_space else None
    if first is not None:
        read = first.inputs
        first = first._replace(inputs=lambda x: read(_scaled(config, inputs, x)))
    network = Model(model.init, build_apply(config, inputs), first)
    if not config.is_regression:
        return _weighted_by_class(cross_entropy(network, inputs.heads), inputs.class_weight)
    error = squared_error(network)

    def of_outputs(outputs: jax.Array, batch: Batch) -> jax.Array:
        target = (batch.y - inputs.target_centre) / inputs.target_deviation
        return error.of_outputs(outputs, batch._replace(y=target))

    return replace(error, of_outputs=of_outputs)


def _weighted_by_class(loss: NetworkLoss, class_weight: np.ndarray) -> NetworkLoss:
    """Return the loss with the weight of its class on each row, new and replayed alike."""

    def of_outputs(outputs: jax.Array, batch: Batch) -> jax.Array:
        scale = jnp.asarray(class_weight)[batch.y]
        if batch.scale is not None:
            scale = scale * batch.scale
        return loss.of_outputs(outputs, batch._replace(scale=scale))

    return replace(loss, of_outputs=of_outputs)


def build_apply(config: Config, inputs: LossInputs) -> Callable[[Params, jax.Array], jax.Array]:
    """Return the network on rows as they are stored: (params, x) -> outputs."""
    model = build_network(config)
    return lambda params, x: model.apply(params, _scaled(config, inputs, x))


def _scaled(config: Config, inputs: LossInputs, x: jax.Array) -> jax.Array:
    scaled = (x.astype(jnp.float32) - inputs.centre) / inputs.deviation
    clipped = jnp.clip(scaled, -inputs.limit, inputs.limit)
    return clipped.reshape(-1, *config.input_shape)


@functools.lru_cache(maxsize=256)
def build_network(config: Config) -> Model:
    """Return the network of a configuration."""
    given, outputs = config.network, config.num_outputs
    if isinstance(given, Model):
        return given
    if callable(given):
        return given(config.input_shape, outputs)
    return mlp(config.num_columns, outputs, hidden_sizes=given)


def choose_num_outputs(
    network: Network, input_shape: tuple[int, ...], needed: int, *, is_exact: bool = False
) -> int:
    """Return the number of outputs for `needed` classes: it doubles, so that growth is rare.

    It is `needed` itself for the targets of a regression, which `is_exact`.
    """
    if not isinstance(network, Model):
        return needed if is_exact else power_of_two(max(needed, _MIN_OUTPUTS))
    rows = jax.ShapeDtypeStruct((1, *input_shape), jnp.float32)
    try:
        params = jax.eval_shape(network.init, jax.random.key(0))
        found = jax.eval_shape(network.apply, params, rows).shape[-1]
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"model cannot read rows of shape {input_shape}: {error}") from error
    allowed = f"at least {needed}; a function (input_shape, num_outputs) -> Model can grow"
    require(found >= needed, "outputs of model", found, allowed)
    return found


def power_of_two(number: int) -> int:
    """Return the smallest power of two that is at least `number`.

    >>> [power_of_two(number) for number in (1, 2, 3, 10)]
    [1, 2, 4, 16]
    """
    return 1 << max(number - 1, 0).bit_length()
