"""Held-out rows: a sample of the stream that is never learned from, to measure forgetting.

A fixed fraction of the stream enters a reservoir of its own, each row with its score on arrival.
Forgetting is the difference from its score now.
"""

import functools
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from lamaml.estimators._rows import Rows


class Holdout(NamedTuple):
    """A reservoir of at most P held-out rows, on the host."""

    x: np.ndarray  # (P, columns) in the memory's dtype
    y: np.ndarray  # (P,), or (P, targets)
    task: np.ndarray  # (P,) int32
    position: np.ndarray  # (P,) int64, in the stream
    score: np.ndarray  # (P,) float32, on arrival
    num_seen: int = 0

    @property
    def size(self) -> int:
        """The number of rows held."""
        return min(self.num_seen, len(self.y))


def empty_holdout(
    size: int, num_columns: int, dtype: np.dtype, target_dtype: np.dtype, num_targets: int = 1
) -> Holdout:
    """Return a holdout with `size` free slots."""
    return Holdout(
        x=np.zeros((size, num_columns), dtype),
        y=np.zeros((size, num_targets) if num_targets > 1 else size, target_dtype),
        task=np.zeros(size, np.int32),
        position=np.zeros(size, np.int64),
        score=np.zeros(size, np.float32),
    )


def choose_held_out(num_rows: int, first: int, fraction: float) -> np.ndarray:
    """Return which rows of a call are held out: evenly spaced over the stream.

    >>> choose_held_out(5, first=8, fraction=0.1).tolist()
    [False, True, False, False, False]
    """
    if not fraction:
        return np.zeros(num_rows, bool)
    exact = _exact(fraction)
    due = np.arange(first, first + num_rows + 1) * exact.numerator // exact.denominator
    return due[1:] > due[:-1]


@functools.cache
def _exact(fraction: float) -> Fraction:
    return Fraction(float(fraction)).limit_denominator(10_000)


def add_rows(
    holdout: Holdout,
    rows: Rows,
    positions: np.ndarray,
    task: int,
    score: Callable[[Rows], np.ndarray],
    seed: int,
) -> Holdout:
    """Return the holdout after each row was offered, and kept with probability P/n (Vitter, 1985).

    Only rows that are kept are scored: late in a stream these are few.
    """
    size = len(holdout.y)
    order = holdout.num_seen + np.arange(1, rows.size + 1)
    drawn = np.random.default_rng([seed, holdout.num_seen]).integers(0, order)
    slot = np.where(order <= size, order - 1, drawn)
    kept = slot < size
    num_seen = holdout.num_seen + rows.size
    if not kept.any():
        return holdout._replace(num_seen=num_seen)
    new, slot = rows.take(kept), slot[kept]
    x, y, tasks, position, scores = (field.copy() for field in holdout[:-1])
    x[slot], y[slot], tasks[slot] = new.x, new.y, task
    position[slot], scores[slot] = positions[kept], score(new)
    return Holdout(x, y, tasks, position, scores, num_seen)


def resize_holdout(holdout: Holdout, size: int, dtype: np.dtype, seed: int) -> Holdout:
    """Return the holdout in another dtype; with fewer slots it keeps a uniform sample."""
    kept = np.arange(len(holdout.y))
    if size < len(holdout.y):
        kept = np.random.default_rng([seed, size]).permutation(holdout.size)[:size]
        kept = np.pad(kept, (0, size - len(kept)))
    x, y, task, position, score = (field[kept] for field in holdout[:-1])
    return Holdout(x.astype(dtype), y, task, position, score, holdout.num_seen)
