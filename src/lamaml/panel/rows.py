"""The rows of a stream of the panel, and the places where it is known to drift."""

from typing import NamedTuple

import numpy as np


class LabelledRows(NamedTuple):
    """Rows in the order in which they arrive."""

    x: np.ndarray  # (n, columns) float32
    y: np.ndarray  # (n,) classes from 0, or float targets
    drifts: tuple[int, ...] = ()  # the first row of each new concept


class Split(NamedTuple):
    """A stream of which a tenth is held out."""

    x: np.ndarray  # to be predicted, then learned
    y: np.ndarray
    held_x: np.ndarray  # never learned
    held_y: np.ndarray
    drifts: tuple[int, ...]  # among the rows to be learned


def hold_out(rows: LabelledRows, seed: int, share: float = 0.1) -> Split:
    """Return the stream with a random share of all its rows held out.

    >>> rows = LabelledRows(np.zeros((20, 1)), np.zeros(20), drifts=(10,))
    >>> split = hold_out(rows, seed=0)
    >>> len(split.y), len(split.held_y)
    (18, 2)
    """
    num_rows = len(rows.y)
    held = np.zeros(num_rows, bool)
    held[np.random.default_rng([seed, 1]).permutation(num_rows)[: round(share * num_rows)]] = True
    drifts = tuple(int((~held[:drift]).sum()) for drift in rows.drifts)
    return Split(rows.x[~held], rows.y[~held], rows.x[held], rows.y[held], drifts)
