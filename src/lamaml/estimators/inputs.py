"""Inputs and weights as users give them, as the numbers a network reads."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from lamaml.errors import require
from lamaml.estimators.design import Design
from lamaml.estimators.rows import as_float32


def read_inputs(
    estimator: BaseEstimator, X: Any, design: Design | None = None
) -> tuple[np.ndarray, tuple[int, ...]]:
    """Rows as a float32 matrix, with bad ones still among them, and the shape that each had.

    Args:
      estimator: on which scikit-learn notes number and names of columns, or checks them.
      X: arrays or frames; arrays may have more than two axes.
      design: of what was learned from earlier rows, which these must be like.
    """
    if design is not None and _is_plain(estimator, X, design):
        return as_float32(X), design.input_shape
    shape = X.shape[1:] if isinstance(X, np.ndarray) and X.ndim > 2 else None
    flat = X if shape is None else X.reshape(len(X), -1)
    x = validate_data(estimator, flat, reset=design is None, ensure_all_finite=False)
    shape = shape or x.shape[1:]
    if design is not None:
        before = f"{design.input_shape}, as before"
        require(shape == design.input_shape, "shape of a row of X", shape, before)
    return as_float32(x), shape


def _is_plain(estimator: BaseEstimator, X: Any, design: Design) -> bool:
    """Whether scikit-learn's checks, which take a tenth of a millisecond, could find no fault."""
    return (
        type(X) is np.ndarray
        and len(X) > 0
        and X.shape[1:] == design.input_shape == (design.num_columns,)
        and X.dtype.kind in "fiub"
        and "feature_names_in_" not in vars(estimator)
    )


def read_weights(sample_weight: Any, num_rows: int) -> np.ndarray:
    """A finite weight of at least 0 for each row, 1 on average; 1 where none are given.

    Rows of the memory weigh 1: beside them, only how weights differ within a call can count.
    """
    if sample_weight is None:
        return np.ones(num_rows, np.float32)
    weight = np.asarray(sample_weight, np.float32)
    require(weight.shape == (num_rows,), "shape of sample_weight", weight.shape, f"({num_rows},)")
    good = bool(np.isfinite(weight).all() and (weight >= 0).all())
    require(good, "sample_weight", float(weight.min()), "finite and at least 0")
    counted = weight[weight > 0]
    if not len(counted) or counted.min() == counted.max():
        return (weight > 0).astype(np.float32)
    return (weight / counted.mean(dtype=np.float64)).astype(np.float32)
