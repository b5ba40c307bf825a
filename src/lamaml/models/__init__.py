"""Networks as (init, apply) pairs, and the losses they are trained with."""

from collections.abc import Callable

from lamaml.models.adapters import from_equinox, from_flax, from_keras
from lamaml.models.cnn import cnn
from lamaml.models.losses import (
    Heads,
    NetworkLoss,
    add_term,
    cross_entropy,
    head_mask,
    mean_loss,
    squared_error,
    surprise,
    task_heads,
    weighted_mean,
)
from lamaml.models.mlp import mlp
from lamaml.models.resnet18 import resnet18
from lamaml.models.torch_modules import from_torch, to_torch
from lamaml.types import Model

MODELS: dict[str, Callable[..., Model]] = {"mlp": mlp, "cnn": cnn, "resnet18": resnet18}
"""Networks by name, each built as (input_shape, num_outputs, *, settings)."""

__all__ = [
    "MODELS",
    "Heads",
    "NetworkLoss",
    "add_term",
    "cnn",
    "cross_entropy",
    "from_equinox",
    "from_flax",
    "from_keras",
    "from_torch",
    "head_mask",
    "mean_loss",
    "mlp",
    "resnet18",
    "squared_error",
    "surprise",
    "task_heads",
    "to_torch",
    "weighted_mean",
]
