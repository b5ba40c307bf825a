"""Inputs as they come: arrays, sparse rows and frames, read as a matrix of numbers."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_feature_names, _check_n_features

from lamaml._rows import as_float32, bad_rows
from lamaml.errors import InvalidArgument
from lamaml.estimators._columns import (
    Encoding,
    add_columns,
    check_columns,
    encode_columns,
    encoded_names,
    initial_encoding,
    with_kinds,
)
from lamaml.estimators._frames import (
    CATEGORY,
    NUMBER,
    Column,
    as_kind,
    held,
    is_frame,
    read_columns,
)
from lamaml.estimators._rows import bad_rows_error
from lamaml.estimators._saveable import SaveableEstimator
from lamaml.estimators._state import FittedState
from lamaml.estimators._validation import (
    check_process,
    first_bad_column,
    has_no_rows,
    has_plain_numbers,
    read_inputs,
)

MAX_DENSE = 4_000_000
"""Values of sparse rows that are made dense at once: 32 MB in double precision."""


class Inputs(NamedTuple):
    """The inputs of one call."""

    x: np.ndarray  # (n, columns) numbers, bad rows included
    shape: tuple[int, ...]  # of one row
    encoding: Encoding | None  # of a frame's columns, with those of this call if it is learned from


def read(
    estimator: BaseEstimator, X: Any, fitted: FittedState | None, *, is_learned: bool
) -> Inputs:
    """Return the inputs of a call as numbers.

    Args:
      estimator: stores the number and names of columns on the first call, checks them later.
      X: an array, of two or more axes, sparse rows, or a frame.
      fitted: the state before the call; None on the first one.
      is_learned: whether new values enter the encoding of a frame.
    """
    config = None if fitted is None else fitted.config
    if not is_frame(X):
        if fitted is not None and fitted.encoding is not None and not has_no_rows(X):
            found = f"X is a {type(X).__name__}"
            raise InvalidArgument(f"{found}: must be a frame with the columns of the first call")
        return Inputs(*read_inputs(estimator, X, config), None)
    encoding = None if fitted is None else fitted.encoding
    if encoding is None and has_plain_numbers(estimator, X, config):
        return Inputs(*read_inputs(estimator, X, config), None)
    check_columns(estimator.columns)
    if fitted is not None and encoding is not None:
        _check_feature_names(estimator, X, reset=False)
        _check_n_features(estimator, X, reset=False)
    if encoding is None and X.shape[1] == 0:
        return Inputs(*read_inputs(estimator, X, config), None)  # scikit-learn's message
    fixed = None if encoding is None else encoding.kinds
    columns = with_kinds(read_columns(X), estimator.columns, fixed)
    if encoding is None:
        if fitted is not None or not _needs_encoding(estimator, columns):
            _require_numbers(columns, is_first=fitted is None)
            return Inputs(*read_inputs(estimator, X, config), None)
        if not len(X):
            raise InvalidArgument("X has 0 samples: the first call needs a row")
        _check_feature_names(estimator, X, reset=True)
        _check_n_features(estimator, X, reset=True)
        encoding = initial_encoding(columns)
    if is_learned:
        encoding = add_columns(encoding, columns)
    x = encode_columns(encoding, columns)
    return Inputs(x, x.shape[1:], encoding)


def _needs_encoding(estimator: BaseEstimator, columns: list[Column]) -> bool:
    """Return whether a first frame has more than numbers, or lacks some that must not be skipped.

    Kinds named by the user are a wish to encode.
    """
    if estimator.columns == "numbers":
        return False
    if estimator.columns != "auto" or any(column.kind != NUMBER for column in columns):
        return True
    is_missing = any(np.isnan(column.values).any() for column in columns)
    return is_missing and estimator.on_bad_rows != "skip"


def _require_numbers(columns: list[Column], *, is_first: bool) -> None:
    for column in columns:
        if column.kind not in (NUMBER, None) and not _are_numbers(column):
            reason = "with columns='numbers'" if is_first else "as in the first call"
            raise InvalidArgument(
                f"column {column.name!r} of X holds {held(column.kind)}: must be numbers, {reason}"
            )


def _are_numbers(column: Column) -> bool:
    """Return whether a column of categories holds numbers, as pandas' categories may."""
    try:
        return column.kind == CATEGORY and as_kind(column, NUMBER).kind == NUMBER
    except InvalidArgument:
        return False


def dense_parts(X: Any) -> Iterator[tuple[Any, slice]]:
    """Yield the input in parts that fit into memory, with their rows: sparse rows in blocks."""
    if not scipy.sparse.issparse(X) or X.shape[0] * X.shape[1] <= MAX_DENSE:
        yield X, slice(None)
        return
    rows = X.tocsr()
    size = max(MAX_DENSE // X.shape[1], 1)
    for start in range(0, X.shape[0], size):
        yield rows[start : start + size], slice(start, start + size)


class ReadingEstimator(SaveableEstimator):
    """A saveable estimator that reads rows to predict."""

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: sparse rows are taken."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _by_parts(self, X: Any, predict: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """Return the predictions for all rows; many sparse ones are read block by block."""
        parts = [predict(self._read_rows_to_predict(part)) for part, _ in dense_parts(X)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def bad_rows(self, X: Any) -> np.ndarray:
        """Return the indices of rows with NaN or infinity, which `predict` refuses.

        Args:
          X: rows, as in `predict`.
        """
        return bad_rows(self._read_numbers(X))

    def _read_numbers(self, X: Any) -> np.ndarray:
        """Return float32 rows, bad ones included."""
        fitted = self._require_fitted()
        check_process()
        return as_float32(read(self, X, fitted, is_learned=False).x, fitted.offsets.inputs)

    def _read_rows_to_predict(self, X: Any) -> np.ndarray:
        """Return float32 rows; bad rows raise, because each row needs a prediction."""
        x = self._read_numbers(X)
        bad = bad_rows(x)
        if len(bad):
            advice = "each row needs a prediction: fill these, or leave out the rows of bad_rows(X)"
            where = first_bad_column(x, self._names(self._require_fitted().encoding))
            raise bad_rows_error(bad, "Input X", advice, where)
        return x

    def _names(self, encoding: Encoding | None) -> list[Any]:
        """Return the name of the column that each value of a row comes from, if they have names."""
        names = list(self.__dict__.get("feature_names_in_", ()))
        if encoding is None:
            return names
        return encoded_names(encoding, names or list(range(len(encoding.kinds))))
