"""Checks of what users pass: the process, parameters, inputs, targets and weights.

scikit-learn's convention is that `__init__` checks nothing: parameters are checked when used.
"""

import functools
import math
import os
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import column_or_1d, validate_data

from lamaml._rows import bad_rows, missing_labels
from lamaml.errors import Forked, InvalidArgument, require
from lamaml.estimators._config import Config, Network
from lamaml.estimators._rows import bad_rows_error
from lamaml.types import Model

MAX_MEAN_WEIGHT = 1e6
"""The most that the rows of a call count, beside rows of weight 1."""


def check_process() -> None:
    """Raise Forked in a child of a process that has used JAX: its threads are missing there."""
    if _first_process() != os.getpid():
        raise Forked(
            "this process was forked from one that has used an estimator and would hang: start "
            "processes with multiprocessing.get_context('spawn'), or with joblib"
        )


@functools.cache
def _first_process() -> int:
    """Return the id of the process that called first; a forked child inherits the answer."""
    return os.getpid()


def check_count(name: str, value: Any) -> None:
    """Raise unless a parameter is an integer of at least 1."""
    is_count = isinstance(value, int | np.integer) and bool(value > 0)
    require(is_count, name, value, "an integer, at least 1")


def check_fraction(name: str, value: Any) -> None:
    """Raise unless a parameter is a number from 0 to 0.5."""
    is_fraction = isinstance(value, int | float | np.number) and bool(0 <= value <= 0.5)
    require(is_fraction, name, value, "in [0, 0.5]")


def check_network(model: Any, hidden_sizes: Any) -> Network:
    """Return the user's network, or the hidden sizes of the default one."""
    if model is not None:
        is_network = isinstance(model, Model) or callable(model)
        require(is_network, "model", model, "a Model, or a function that returns one")
        return model
    is_sequence = isinstance(hidden_sizes, list | tuple | np.ndarray)
    require(is_sequence, "hidden_sizes", hidden_sizes, "integers, such as (100, 100)")
    for size in hidden_sizes:
        check_count("hidden_sizes", size)
    return tuple(int(size) for size in hidden_sizes)


def read_inputs(
    estimator: BaseEstimator, X: Any, config: Config | None = None
) -> tuple[np.ndarray, tuple[int, ...]]:
    """Return the rows as a matrix of numbers, bad rows included, and the shape of one row.

    Args:
      estimator: stores the number and names of columns on the first call, checks them later.
      X: an array, of two or more axes, or a frame.
      config: of the fitted estimator, whose row shape X must have; None on the first call.
    """
    if config is not None:
        numbers = _plain_numbers(estimator, X)
        if _needs_no_check(numbers, config):
            return numbers, config.input_shape  # type: ignore[return-value]
        if has_no_rows(X):
            return np.zeros((0, config.num_columns), np.float32), config.input_shape
    if getattr(X, "ndim", 2) > 2:
        X = np.asarray(X)
    shape = X.shape[1:] if isinstance(X, np.ndarray) and X.ndim > 2 else None
    flat = X if shape is None else X.reshape(len(X), math.prod(shape))
    try:
        x = validate_data(
            estimator, flat, reset=config is None, ensure_all_finite=False, accept_sparse="csr"
        )
    except ValueError as error:
        _name_text_column(flat, error)
        raise
    if scipy.sparse.issparse(x):
        x = x.toarray()
    shape = shape or x.shape[1:]
    if config is not None:
        before = f"{config.input_shape}, as before"
        require(shape == config.input_shape, "shape of a row of X", shape, before)
    return x, shape


def _name_text_column(X: Any, error: ValueError) -> None:
    """Raise InvalidArgument if a column of an array holds strings that are no numbers."""
    if "could not convert" not in str(error):
        return
    for index, column in enumerate(np.asarray(X, object).T):
        for value in column:
            try:
                float(value)
            except ValueError:
                raise InvalidArgument(
                    f"column {index} of X holds {value!r}: must be numbers; a pandas or polars "
                    "frame may have strings, categories and dates"
                ) from error


def has_plain_numbers(estimator: BaseEstimator, X: Any, config: Config | None) -> bool:
    """Return whether a frame is one of NumPy's numbers that `read_inputs` takes as they are."""
    if config is None:
        return False
    return has_no_rows(X) or _needs_no_check(_plain_numbers(estimator, X), config)


def has_no_rows(X: Any) -> bool:
    """Return whether the input is empty."""
    shape = getattr(X, "shape", None)
    return len(X) == 0 if isinstance(X, list) else bool(shape and shape[0] == 0)


def _plain_numbers(estimator: BaseEstimator, X: Any) -> np.ndarray | None:
    """Return an array, or the numbers of a pandas frame with the columns of the first call.

    None for anything else, for which scikit-learn's checks are needed.
    """
    names = vars(estimator).get("feature_names_in_")
    if names is None:
        return X if type(X) is np.ndarray else None
    pandas = sys.modules.get("pandas")
    is_frame = pandas is not None and type(X) is pandas.DataFrame
    if not is_frame or not np.array_equal(X.columns, names):
        return None
    is_plain = all(isinstance(dtype, np.dtype) for dtype in X.dtypes)
    return X.to_numpy() if is_plain else None


def _needs_no_check(x: np.ndarray | None, config: Config) -> bool:
    """Return whether scikit-learn's checks, which take 0.1 to 0.6 ms, would find nothing."""
    return (
        x is not None
        and x.ndim == 2
        and len(x) > 0
        and x.shape[1:] == config.input_shape == (config.num_columns,)
        and x.dtype.kind in "fiub"
    )


def read_targets(
    y: Any, estimator_name: str, *, may_be_many: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Return y as one column, and the indices of missing labels, each filled with another label.

    Where y `may_be_many`, several columns stay as they are.
    """
    if y is None:
        message = f"{estimator_name} requires y to be passed, but the target y is None"
        raise InvalidArgument(message)
    if may_be_many:
        columns = np.asarray(y)
        if columns.ndim == 2 and columns.shape[1] > 1:
            return columns.astype(np.float64), np.zeros(0, int)
    is_column = type(y) is np.ndarray and y.ndim == 1
    y = y if is_column else column_or_1d(y, warn=True)
    missing = missing_labels(y)
    if len(missing):
        present = np.delete(y, missing)
        y = y.copy()
        y[missing] = present[0] if len(present) else 0
    return y, missing


def find_bad_rows(
    x: np.ndarray, y: np.ndarray, missing: np.ndarray, on_bad_rows: str, names: Sequence[str]
) -> np.ndarray:
    """Return the indices of rows with NaN, infinity or a missing label.

    Args:
      x: the inputs, (n, columns).
      y: the targets.
      missing: the indices of missing labels.
      on_bad_rows: "raise" or "skip".
      names: of the columns, for the message; empty where they have none.

    Raises:
      InvalidArgument: there are some, and `on_bad_rows` is "raise".
    """
    bad = bad_rows(x, y)
    if len(missing):
        bad = np.union1d(bad, missing)
    if len(bad) and on_bad_rows == "raise":
        advice = "correct or drop them, or learn with on_bad_rows='skip'"
        if not len(bad_rows(x)):
            raise bad_rows_error(bad, "Input y", advice)
        raise bad_rows_error(bad, "Input X", advice, first_bad_column(x, names))
    return bad


def first_bad_column(x: np.ndarray, names: Sequence[str]) -> str:
    """Return the first column with NaN or infinity, for a message."""
    column = int(np.flatnonzero(~np.isfinite(x).all(axis=0))[0])
    return f", column {names[column]!r}" if len(names) else f", column {column}"


def read_weights(sample_weight: Any, num_rows: int) -> np.ndarray:
    """Return one finite weight of at least 0 per row; 1 if none are given."""
    if sample_weight is None:
        return np.ones(num_rows)
    weight = np.asarray(sample_weight, np.float64)
    require(weight.shape == (num_rows,), "shape of sample_weight", weight.shape, f"({num_rows},)")
    bad = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
    if len(bad):
        found = f"sample_weight of row {bad[0]} = {weight[bad[0]]}"
        raise InvalidArgument(f"{found}: must be finite and at least 0")
    return weight


def normalise(weight: np.ndarray) -> tuple[np.ndarray, float]:
    """Return positive weights as float32 relative to their mean, and the mean.

    Beyond the largest mean, only the clipping of gradients would decide.
    """
    if not len(weight):
        return np.ones(0, np.float32), 1.0
    if weight.min() == weight.max():
        return np.ones(len(weight), np.float32), min(float(weight[0]), MAX_MEAN_WEIGHT)
    mean = weight.mean()
    return (weight / mean).astype(np.float32), min(float(mean), MAX_MEAN_WEIGHT)
