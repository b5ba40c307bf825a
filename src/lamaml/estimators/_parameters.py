"""What a user may set, checked where it is first used; scikit-learn's `__init__` checks nothing."""

from typing import Any

import numpy as np

from lamaml.errors import require
from lamaml.estimators._config import Network
from lamaml.types import Model


def check_count(name: str, value: Any) -> None:
    """Refuse what is no whole number above 0."""
    is_count = isinstance(value, int | np.integer) and bool(value > 0)
    require(is_count, name, value, "a whole number, at least 1")


def check_share(name: str, value: Any) -> None:
    """Refuse what is no share of a stream that leaves half of it."""
    is_share = isinstance(value, int | float | np.number) and bool(0 <= value <= 0.5)
    require(is_share, name, value, "in [0, 0.5]")


def network_given(model: Any, hidden_sizes: Any) -> Network:
    """The user's network, or the sizes of the paper's."""
    if model is not None:
        is_network = isinstance(model, Model) or callable(model)
        require(is_network, "model", model, "a Model, or a function that makes one")
        return model
    is_several = isinstance(hidden_sizes, list | tuple | np.ndarray)
    require(is_several, "hidden_sizes", hidden_sizes, "whole numbers, such as (100, 100)")
    for size in hidden_sizes:
        check_count("hidden_sizes", size)
    return tuple(int(size) for size in hidden_sizes)
