"""Checks of a caller's rows: conversion to float32, numbers that are not finite, missing labels."""

import numpy as np


def as_float32(values: np.ndarray, offset: np.ndarray | None = None) -> np.ndarray:
    """Return the values minus the offset as float32; values too large become infinite."""
    with np.errstate(over="ignore"):
        if offset is not None:
            values = values - offset
        return np.ascontiguousarray(values, np.float32)


def bad_rows(*columns: np.ndarray) -> np.ndarray:
    """Return the indices of rows in which some number is NaN or infinite."""
    finite = np.ones(len(columns[0]), bool)
    for values in columns:
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            finite &= np.isfinite(values).reshape(len(values), -1).all(axis=1)
    return np.flatnonzero(~finite)


def missing_labels(y: np.ndarray) -> np.ndarray:
    """Return the indices of missing labels (None, NaN, pandas' NA) in an array of objects.

    >>> missing_labels(np.array(["a", None, float("nan"), "nan"], object)).tolist()
    [1, 2]
    """
    if y.dtype != object:
        return np.zeros(0, int)
    names = (type(label).__name__ for label in y)
    missing = [
        label is None or name == "NAType" or (name == "float" and label != label)
        for label, name in zip(y, names, strict=True)
    ]
    return np.flatnonzero(missing)
