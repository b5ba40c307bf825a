"""Networks as (init, apply) pairs, and the loss that carries the head mask."""

from lamaml.models.adapters import from_equinox, from_flax, from_keras
from lamaml.models.cnn import cnn
from lamaml.models.losses import cross_entropy, head_mask
from lamaml.models.mlp import mlp

__all__ = [
    "cnn",
    "cross_entropy",
    "from_equinox",
    "from_flax",
    "from_keras",
    "head_mask",
    "mlp",
]
