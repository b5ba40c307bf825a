"""Adapter for PyTorch modules, through torchax, and the way back for learned weights.

torchax runs the operations of a module as JAX's, so that gradients of any order are JAX's own.
Names of weights are those of torch: `params["layer1.0.conv1"]["weight"]` is the entry
"layer1.0.conv1.weight" of the module's `state_dict`.
"""

import copy
import importlib
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lamaml.errors import InvalidArgument, require
from lamaml.models.adapters import init_from
from lamaml.types import FirstLayer, Model, Params

INSTALL = 'pip install torch==2.13.0, then pip install "lamaml[torch]"'
_TRACING = threading.RLock()  # a call replaces the weights of its module for as long as it lasts


def from_torch(module: Any, example: Any, *, channels_last: bool = False) -> Model:
    """Return a PyTorch module as a model.

    `init` returns the module's own weights for any key: they are never drawn again. Parameters with
    `requires_grad=False` and buffers keep their values and are not part of the params. The module
    itself is copied, and so stays as it is; `to_torch` writes learned weights back.

    Batch norm is refused unless it is frozen, and so is dropout: `module.eval()` freezes both.

    Args:
      module: a `torch.nn.Module` that maps a batch of rows to a batch of outputs.
      example: rows like those it will read; only their shape and dtype are used.
      channels_last: whether rows are images of (height, width, channels), as the streams of this
        package have them; the module then reads (channels, height, width), as torch does.

    Raises:
      InvalidArgument: torch or torchax is not installed or too old, the module has batch norm or
        dropout in training mode or other mutable state, or it cannot read the example.
    """
    torch, torchax = _libraries()
    require(isinstance(module, torch.nn.Module), "module", module, "a torch.nn.Module")
    _refuse_modes(torch, module)
    try:
        owned = copy.deepcopy(module)
    except RuntimeError as error:  # a tensor that was computed from weights
        message = f"{_name(module)} cannot be copied: {error}; call from_torch before using it"
        raise InvalidArgument(message) from error
    _register_tensors(torch, owned)
    env = torchax.default_env()
    weights, fixed = _state(owned)
    if not weights:
        raise InvalidArgument(f"{_name(module)} has no parameter with requires_grad=True")
    key = jax.random.key(0)  # never drawn from: what needs it is refused

    def run(part: Any, params: Params, fixed: Params, x: jax.Array) -> tuple[Any, Params, bool]:
        """Return the outputs, the state that is not trained, and whether numbers were drawn."""
        with _TRACING, env.override_property(prng=key):
            state = env.j2t_iso({**_by_full_name(params), **fixed})
            with env:
                outputs = torch.func.functional_call(part, state, (env.j2t_iso(x),))
            others = env.t2j_iso({name: state[name] for name in fixed})
            return env.t2j_iso(outputs), others, env.prng_key is not key

    def read(x: jax.Array) -> jax.Array:
        return jnp.moveaxis(x, -1, 1) if channels_last else x

    def apply(params: Params, x: jax.Array) -> jax.Array:
        return run(owned, params, fixed, read(x))[0]

    rows = np.asarray(example)
    require(rows.ndim > 1 or not channels_last, "example", rows.shape, "a batch of images")
    _check_is_function(module, run, owned, weights, fixed, read(jnp.asarray(rows)))
    first = None if channels_last else _first_layer(torch, owned, weights, fixed, run, rows.ndim)
    return Model(init_from(weights), apply, first)


def to_torch(params: Params, module: Any) -> Any:
    """Write learned weights into a module, in place, and return the module.

    Args:
      params: weights of a model that `from_torch` made of this module, or of one like it.
      module: the module; parameters that are not in `params`, and buffers, keep their values.

    Raises:
      InvalidArgument: a weight has no parameter of its name and shape in the module.
    """
    torch, _ = _libraries()
    learned = {name: np.asarray(weight) for name, weight in _by_full_name(params).items()}
    known = dict(module.named_parameters())
    for name, weight in learned.items():
        require(name in known, "params", name, f"named like a parameter of {_name(module)}")
        shape = tuple(known[name].shape)
        require(weight.shape == shape, f"params[{name!r}]", weight.shape, f"of shape {shape}")
    with torch.no_grad():
        for name, weight in learned.items():
            known[name].copy_(torch.from_numpy(weight.copy()))
    return module


def _libraries() -> tuple[Any, Any]:
    """Return torch and torchax; raise an error that says how to install them."""
    try:
        torch = importlib.import_module("torch")
        found = version("torchax")
    except (ModuleNotFoundError, PackageNotFoundError) as error:
        missing = "torchax" if isinstance(error, PackageNotFoundError) else "torch"
        raise InvalidArgument(f"{missing} is not installed: {INSTALL}") from error
    if tuple(map(int, re.findall(r"\d+", found)[:3])) < (0, 0, 14):
        raise InvalidArgument(
            f"torchax {found} does not import with torch 2.13; 0.0.14 or later is needed: {INSTALL}"
        )
    return torch, importlib.import_module("torchax")


def _refuse_modes(torch: Any, module: Any) -> None:
    """Raise an error for batch norm and dropout in training mode, with the way out."""
    nn = torch.nn
    norms, drops = [], []
    for name, part in module.named_modules():
        is_batch_norm = isinstance(part, nn.modules.batchnorm._BatchNorm)
        if is_batch_norm and (part.training or part.running_mean is None):
            norms.append(name or _name(part))
        rate = part.p if isinstance(part, nn.modules.dropout._DropoutNd) else 0
        rate = part.dropout if isinstance(part, nn.MultiheadAttention) else rate
        if part.training and rate > 0:
            drops.append(name or _name(part))
    if norms:
        raise InvalidArgument(
            f"{_name(module)} has batch norm in training mode ({_listed(norms)}): its statistics "
            "would mix new rows with replayed rows of earlier tasks, and change with every step of "
            "the look-ahead; use torch.nn.GroupNorm(num_groups, num_channels) in its place, or "
            "call module.eval() first, which keeps the running statistics as they are"
        )
    if drops:
        raise InvalidArgument(
            f"{_name(module)} has dropout in training mode ({_listed(drops)}): a learner compares "
            "losses of one network at several weights, and dropout would draw another network each "
            "time; call module.eval() first, which turns it off, or set its rate to 0"
        )


def _register_tensors(torch: Any, module: Any) -> None:
    """Make buffers of tensors that are plain attributes, so that they are replaced like weights."""
    for part in module.modules():
        for name, value in list(vars(part).items()):
            if isinstance(value, torch.Tensor):
                delattr(part, name)
                part.register_buffer(name, value, persistent=False)


def _state(module: Any) -> tuple[Params, Params]:
    """Return the trained weights by layer and name, and all else by full name."""
    weights: Params = {}
    fixed = {name: _to_jax(tensor) for name, tensor in module.named_buffers()}
    for full_name, parameter in module.named_parameters():
        value = _to_jax(parameter)
        layer, _, name = full_name.rpartition(".")
        if not parameter.requires_grad:
            fixed[full_name] = value
        elif layer:
            weights.setdefault(layer, {})[name] = value
        else:  # a parameter of the module itself
            weights[name] = value
    return weights, fixed


def _to_jax(tensor: Any) -> jax.Array:
    return jnp.array(tensor.detach().cpu().numpy())


def _by_full_name(params: Params) -> dict[str, jax.Array]:
    """Return the weights under their names in `state_dict`."""

    def named() -> Iterator[tuple[str, jax.Array]]:
        for layer, value in params.items():
            if isinstance(value, Mapping):
                yield from ((f"{layer}.{name}", weight) for name, weight in value.items())
            else:
                yield layer, value

    return dict(named())


def _check_is_function(
    module: Any,
    run: Callable[..., tuple[Any, Params, bool]],
    owned: Any,
    weights: Params,
    fixed: Params,
    x: jax.Array,
) -> None:
    """Trace the module once; raise an error if it fails, draws random numbers or keeps state."""
    changed: list[str] = []

    def trace(weights: Params, fixed: Params, x: jax.Array) -> Any:
        outputs, others, is_random = run(owned, weights, fixed, x)
        changed.extend(name for name in fixed if others[name] is not fixed[name])
        changed.extend(["random numbers"] if is_random else [])
        return outputs

    try:
        outputs = jax.eval_shape(trace, weights, fixed, x)
    except Exception as error:  # of torch, torchax, jax or the module itself
        message = f"torchax cannot run {_name(module)} on rows of shape {x.shape[1:]}"
        raise InvalidArgument(f"{message}: {type(error).__name__}: {error}") from error
    if changed:
        raise InvalidArgument(
            f"{_name(module)} has mutable state ({_listed(changed)}): a learner evaluates weights "
            "as a pure function, so such networks are not supported; freeze that state "
            "(module.eval()) or leave those layers out"
        )
    shape = getattr(outputs, "shape", None)
    allowed = "one array with a row of outputs per row"
    require(shape is not None and len(shape) == 2, "outputs of module", shape or outputs, allowed)


def _first_layer(
    torch: Any,
    module: Any,
    weights: Params,
    fixed: Params,
    run: Callable[..., tuple[Any, Params, bool]],
    num_axes: int,
) -> FirstLayer | None:
    """Return the first layer of a `Sequential` that begins with a trained `Linear`, else None."""
    nn = torch.nn
    # `named_children` would leave out the second place of an activation that stands in two.
    parts = list(module._modules.items()) if type(module) is nn.Sequential else []
    flattens = bool(parts) and type(parts[0][1]) is nn.Flatten
    if flattens and (parts[0][1].start_dim, parts[0][1].end_dim) != (1, -1):
        return None
    parts = parts[1:] if flattens else parts
    if len(parts) < 2 or type(parts[0][1]) is not nn.Linear or not (flattens or num_axes == 2):
        return None
    (name, layer), *rest = parts
    above = nn.Sequential(OrderedDict(rest))
    is_shared = bool({*map(id, layer.parameters())} & {*map(id, above.parameters())})
    has_hooks = bool(layer._forward_hooks or layer._forward_pre_hooks)
    if is_shared or has_hooks or set(weights.get(name, {})) != {"weight", "bias"}:
        return None

    def inputs(x: jax.Array) -> jax.Array:
        return x.reshape(len(x), -1) if flattens else x

    def outputs(params: Params, z: jax.Array) -> jax.Array:
        others = {key: value for key, value in params.items() if key != name}
        return run(above, others, fixed, z)[0]

    return FirstLayer(name, inputs, outputs)


def _name(module: Any) -> str:
    return type(module).__name__


def _listed(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
