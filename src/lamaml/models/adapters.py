"""Adapters for networks of flax, equinox and keras; `torch_modules` has that for PyTorch.

Any (init, apply) pair is a `Model` already.

Weights are copied, because training reuses the buffers it is given. Parameters that are not trained
(frozen layers, integers) are not part of the params.
"""

import functools
import importlib
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from lamaml.errors import InvalidArgument, require
from lamaml.types import Model, Params


def from_flax(module: Any, example: Any, *, variables: Mapping[str, Any] | None = None) -> Model:
    """Return a flax network as a model: a `flax.linen` module, or a `flax.nnx` module with weights.

    Args:
      module: the network. For an nnx module, `init` returns its own weights for any key.
      example: rows like those it will read; only their shape and dtype are used.
      variables: the variables of a linen module, initial or trained; `init` then returns these
        weights for any key. None to draw new ones from the key.

    Raises:
      InvalidArgument: flax is not installed, or the network updates state of its own when it runs.

    Examples:
      >>> import flax.linen, jax, jax.numpy as jnp
      >>> model = from_flax(flax.linen.Dense(3), jnp.zeros((1, 4)))
      >>> model.apply(model.init(jax.random.key(0)), jnp.zeros((2, 4))).shape
      (2, 3)
    """
    nnx = _library("flax.nnx")
    if isinstance(module, nnx.Module):
        require(variables is None, "variables", "given", "None: an nnx module has its weights")
        return _from_nnx(nnx, module, example)
    return _from_linen(module, example, variables)


def from_equinox(module: Any) -> Model:
    """Return an equinox network, which is written for one row, as a model of batches.

    Args:
      module: the network. `init` returns its own weights (`eqx.is_inexact_array`) for any key.

    Raises:
      InvalidArgument: equinox is not installed, or the network needs state or a key to run.

    Examples:
      >>> import equinox, jax, jax.numpy as jnp
      >>> model = from_equinox(equinox.nn.MLP(4, 3, 8, 1, key=jax.random.key(0)))
      >>> model.apply(model.init(jax.random.key(1)), jnp.zeros((2, 4))).shape
      (2, 3)
    """
    nn = _library("equinox").nn

    def is_part(node: Any) -> bool:
        return isinstance(node, nn.StateIndex | nn.Dropout)

    for node in jax.tree.leaves(module, is_leaf=is_part):
        drops = isinstance(node, nn.Dropout) and not node.inference and node.p != 0
        if drops or isinstance(node, nn.StateIndex):
            raise _stateful(module, "equinox.nn.inference_mode")
    weights, fixed = _split(module)

    def apply(params: Params, x: jax.Array) -> jax.Array:
        logits: jax.Array = jax.vmap(_join(params, fixed))(x)
        return logits

    return Model(init_from(weights), apply)


def from_keras(model: Any, example: Any | None = None) -> Model:
    """Return a keras network on the JAX backend as a model, run in inference mode.

    Args:
      model: the network, built. `init` returns the list of its trainable weights for any key;
        layers with `trainable=False` stay unchanged.
      example: rows like those it will read, for a network without a known input shape (a
        subclass of `keras.Model`); only their shape and dtype are used.

    Raises:
      InvalidArgument: keras is not installed or its backend is not JAX, the network is not built,
        or it updates state of its own in training.

    Examples:
      >>> import os
      >>> os.environ["KERAS_BACKEND"] = "jax"  # before keras is imported
      >>> import jax, jax.numpy as jnp, keras
      >>> model = from_keras(keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)]))
      >>> model.apply(model.init(jax.random.key(0)), jnp.zeros((2, 4))).shape
      (2, 3)
    """
    keras = _library("keras")
    if (backend := keras.config.backend()) != "jax":
        raise InvalidArgument(f"keras runs on {backend}: set KERAS_BACKEND=jax before importing it")
    if not model.built:
        raise InvalidArgument(f"model {model.name!r} has no weights yet: call it once on some rows")
    trained, others = model.trainable_variables, model.non_trainable_variables
    weights = [variable.value for variable in trained]
    fixed = _copy([variable.value for variable in others])

    def run(params: Params, fixed: Params, x: jax.Array, training: bool) -> tuple[Any, Params]:
        values = zip([*trained, *others], [*params, *fixed], strict=True)
        with keras.StatelessScope(state_mapping=list(values)) as scope:
            logits = model(x, training=training)
        return logits, [scope.get_current_value(variable) for variable in others]

    def train(fixed: Params, x: jax.Array) -> Params:
        return run(weights, fixed, x, training=True)[1]

    if _changes(train, fixed, _keras_input(model) if example is None else example):
        raise _stateful(model, "trainable=False for batch statistics, rate=0 for dropout")

    def apply(params: Params, x: jax.Array) -> jax.Array:
        logits: jax.Array = run(params, fixed, x, training=False)[0]
        return logits

    return Model(init_from(weights), apply)


def _from_linen(module: Any, example: Any, variables: Mapping[str, Any] | None) -> Model:
    is_new = variables is None
    drawn = functools.partial(module.init, jax.random.key(0), example)
    known = jax.eval_shape(drawn) if variables is None else _copy(dict(variables))
    require("params" in known, "variables", sorted(known), "what module.init gives, with 'params'")
    weights, fixed = _split(known["params"])
    others = {name: tree for name, tree in known.items() if name != "params"}
    if _linen_changes(module, known["params"], others, example):
        raise _stateful(module, "use_running_average=True, deterministic=True")
    only_weights = not others and not jax.tree.leaves(fixed)
    require(only_weights or not is_new, "variables", None, "given: there is more than weights")

    def init(key: jax.Array) -> Params:
        return module.init(key, example)["params"]

    def apply(params: Params, x: jax.Array) -> jax.Array:
        logits: jax.Array = module.apply({"params": _join(params, fixed), **others}, x)
        return logits

    return Model(init if is_new else init_from(weights), apply)


def _linen_changes(module: Any, params: Params, others: Params, example: Any) -> bool:
    def run(others: Params, params: Params, x: jax.Array) -> Params:
        return module.apply({"params": params, **others}, x, mutable=list(others))[1]

    try:
        return _changes(run, others, params, example)
    except _library("flax.errors").InvalidRngError:  # dropout that is not deterministic
        return True


def _from_nnx(nnx: Any, module: Any, example: Any) -> Model:
    graph, parameters, others = nnx.split(module, nnx.Param, ...)
    weights, fixed = _split(_copy(parameters))
    others = _copy(others)

    def run(others: Params, x: jax.Array) -> Params:
        copy = nnx.merge(graph, parameters, others, copy=True)
        copy(x)
        return nnx.split(copy, nnx.Param, ...)[2]

    if _changes(run, others, example):
        raise _stateful(module, "module.eval()")

    def apply(params: Params, x: jax.Array) -> jax.Array:
        logits: jax.Array = nnx.merge(graph, _join(params, fixed), others, copy=True)(x)
        return logits

    return Model(init_from(weights), apply)


def _library(name: str) -> Any:
    """Return an optional library; raise an error that says how to install it."""
    package = name.partition(".")[0]
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if package == "keras" and error.name != "keras":  # its default backend is not installed
            raise InvalidArgument(f"keras needs {error.name}: set KERAS_BACKEND=jax") from error
        install = "pip install lamaml[networks]"
        raise InvalidArgument(f"{package} is not installed: {install}") from error


def _stateful(network: Any, advice: str) -> InvalidArgument:
    return InvalidArgument(
        f"{type(network).__name__} has mutable state (batch statistics, dropout's random numbers):"
        " a learner evaluates weights as a pure function, so such networks are not supported;"
        f" freeze that state ({advice}) or leave those layers out"
    )


def _changes(step: Callable[..., Params], state: Params, *arguments: Any) -> bool:
    """Return whether step(state, ...) -> state differs from the identity, found by tracing."""
    traced = jax.make_jaxpr(step)(state, *arguments).jaxpr
    before = traced.invars[: len(jax.tree.leaves(state))]
    return len(before) != len(traced.outvars) or any(
        old is not new for old, new in zip(before, traced.outvars, strict=True)
    )


def _keras_input(model: Any) -> jax.Array:
    """Return one row of the shape that a keras network declares."""
    inputs = getattr(model, "inputs", None) or []
    if len(inputs) != 1 or None in inputs[0].shape[1:]:
        raise InvalidArgument(f"model {model.name!r} does not tell its input shape: pass example=")
    return jnp.zeros((1, *inputs[0].shape[1:]), inputs[0].dtype)


def _split(tree: Params) -> tuple[Params, Params]:
    """Return the floating-point leaves and all others, each with None in place of the other."""

    def is_weight(leaf: Any) -> bool:
        return hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jnp.inexact)

    weights = jax.tree.map(lambda leaf: leaf if is_weight(leaf) else None, tree)
    return weights, jax.tree.map(lambda leaf: None if is_weight(leaf) else leaf, tree)


def _join(weights: Params, fixed: Params) -> Params:
    """Undo `_split`."""
    is_gap = lambda leaf: leaf is None  # noqa: E731
    return jax.tree.map(lambda w, f: f if w is None else w, weights, fixed, is_leaf=is_gap)


def _copy(tree: Params) -> Params:
    return jax.tree.map(lambda leaf: jnp.array(leaf) if hasattr(leaf, "dtype") else leaf, tree)


def init_from(weights: Params) -> Callable[[jax.Array], Params]:
    """Return an init that copies these weights: training reuses the buffers it is given."""
    kept = _copy(weights)
    return lambda key: _copy(kept)
