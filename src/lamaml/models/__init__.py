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
from lamaml.types import Model

MODELS: dict[str, Callable[..., Model]] = {"mlp": mlp, "cnn": cnn}
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
    "head_mask",
    "mean_loss",
    "mlp",
    "squared_error",
    "surprise",
    "task_heads",
    "weighted_mean",
]
