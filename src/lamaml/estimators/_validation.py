"""Inputs and weights as users give them, as the numbers a network reads."""

import math
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from lamaml.errors import InvalidArgument, require
from lamaml.estimators._config import Design


def read_inputs(
    estimator: BaseEstimator, X: Any, design: Design | None = None
) -> tuple[np.ndarray, tuple[int, ...]]:
    """Rows as a matrix of numbers, with bad ones still among them, and the shape that each had.

    Args:
      estimator: on which scikit-learn notes number and names of columns, or checks them.
      X: arrays or frames; arrays may have more than two axes.
      design: of what was learned from earlier rows, which these must be like.
    """
    if design is not None and _is_plain(estimator, X, design):
        return X, design.input_shape
    if getattr(X, "ndim", 2) > 2:
        X = np.asarray(X)
    shape = X.shape[1:] if isinstance(X, np.ndarray) and X.ndim > 2 else None
    flat = X if shape is None else X.reshape(len(X), math.prod(shape))
    x = validate_data(estimator, flat, reset=design is None, ensure_all_finite=False)
    shape = shape or x.shape[1:]
    if design is not None:
        before = f"{design.input_shape}, as before"
        require(shape == design.input_shape, "shape of a row of X", shape, before)
    return x, shape


def _is_plain(estimator: BaseEstimator, X: Any, design: Design) -> bool:
    """Whether scikit-learn's checks, which take a tenth of a millisecond, could find no fault."""
    return (
        type(X) is np.ndarray
        and X.ndim == 2
        and len(X) > 0
        and X.shape[1:] == design.input_shape == (design.num_columns,)
        and X.dtype.kind in "fiub"
        and "feature_names_in_" not in vars(estimator)
    )


def read_weights(sample_weight: Any, num_rows: int) -> np.ndarray:
    """A finite weight of at least 0 for each row; 1 where none are given."""
    if sample_weight is None:
        return np.ones(num_rows)
    weight = np.asarray(sample_weight, np.float64)
    require(weight.shape == (num_rows,), "shape of sample_weight", weight.shape, f"({num_rows},)")
    bad = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
    if len(bad):
        found = f"sample_weight of row {bad[0]} = {weight[bad[0]]}"
        raise InvalidArgument(f"{found}: must be finite and at least 0")
    return weight


def relative(weight: np.ndarray) -> np.ndarray:
    """Positive weights as float32, 1 on average.

    Rows of the memory weigh 1: beside them, only how weights differ within a call can count.
    """
    if not len(weight) or weight.min() == weight.max():
        return np.ones(len(weight), np.float32)
    return (weight / weight.mean()).astype(np.float32)
