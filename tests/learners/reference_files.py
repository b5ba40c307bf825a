"""Reads tests/references: the updates of the authors' code, as pytrees in our layout."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

FOLDER = Path(__file__).parents[1] / "references"
SHAPES = {
    "mlp": {"hidden_1": (16, 20), "hidden_2": (16, 16), "head": (10, 16)},
    "cnn": {
        "convolution_1": (8, 3, 3, 3),
        "convolution_2": (8, 8, 3, 3),
        "convolution_3": (8, 8, 3, 3),
        "hidden_1": (24, 8, 4, 4),  # after the flatten
        "hidden_2": (24, 24),
        "head": (20, 24),
    },
}


def read(name):
    """Returns the arrays of one file."""
    with np.load(FOLDER / f"{name}.npz", allow_pickle=False) as file:
        return dict(file)


def as_params(vector, net):
    """Returns the parameters, or the rates, that the authors' code has as one flat vector."""
    params, start = {}, 0
    for layer, (outputs, *inputs) in SHAPES[net].items():
        end = start + outputs * int(np.prod(inputs))
        weight = vector[start:end].reshape(outputs, *inputs)
        if weight.ndim == 4:  # channels come first there, last here
            weight = weight.transpose(0, 2, 3, 1).reshape(outputs, -1)
        bias, start = vector[end : end + outputs], end + outputs
        params[layer] = {"weight": jnp.asarray(weight), "bias": jnp.asarray(bias)}
    assert start == len(vector)
    return params


def difference(ours, theirs):
    """Returns the largest absolute difference between two pytrees."""
    away = jax.tree.map(lambda a, b: float(jnp.abs(a - b).max()), ours, theirs)
    return max(jax.tree.leaves(away))
