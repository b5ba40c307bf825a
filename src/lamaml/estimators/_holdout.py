"""A slice of the stream that is never learned from, to see what is forgotten.

Of every so many rows one is kept aside, in a reservoir of its own, with the score it got when it
arrived. What it gets today is the difference.
"""

import functools
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from lamaml.estimators._rows import Rows


class HeldOut(NamedTuple):
    """At most P rows of the stream, on the host."""

    x: np.ndarray  # (P, columns) in the memory's dtype
    y: np.ndarray  # (P,)
    task: np.ndarray  # (P,) int32
    place: np.ndarray  # (P,) int64, in the stream
    score: np.ndarray  # (P,) float32, when it arrived
    num_seen: int = 0

    @property
    def size(self) -> int:
        """Rows held."""
        return min(self.num_seen, len(self.y))


def none_held_out(size: int, num_columns: int, dtype: np.dtype, kind: np.dtype) -> HeldOut:
    """Room for so many rows and targets of that kind."""
    return HeldOut(
        np.zeros((size, num_columns), dtype),
        np.zeros(size, kind),
        np.zeros(size, np.int32),
        np.zeros(size, np.int64),
        np.zeros(size, np.float32),
    )


def set_aside(num_rows: int, first: int, share: float) -> np.ndarray:
    """Which rows of a call are held out: so many of the stream, evenly.

    >>> set_aside(5, first=8, share=0.1).tolist()
    [False, True, False, False, False]
    """
    if not share:
        return np.zeros(num_rows, bool)
    exact = _fraction(share)
    due = np.arange(first, first + num_rows + 1) * exact.numerator // exact.denominator
    return due[1:] > due[:-1]


@functools.cache
def _fraction(share: float) -> Fraction:
    return Fraction(float(share)).limit_denominator(10_000)


def with_rows(
    held: HeldOut,
    rows: Rows,
    places: np.ndarray,
    task: int,
    score: Callable[[Rows], np.ndarray],
    seed: int,
) -> HeldOut:
    """With these rows offered one after another, each kept with probability P/n (Vitter, 1985).

    Only those that are kept are scored: late in a stream few are.
    """
    size = len(held.y)
    order = held.num_seen + np.arange(1, rows.size + 1)
    drawn = np.random.default_rng([seed, held.num_seen]).integers(0, order)
    slot = np.where(order <= size, order - 1, drawn)
    kept = slot < size
    num_seen = held.num_seen + rows.size
    if not kept.any():
        return held._replace(num_seen=num_seen)
    new, slot = rows.part(kept), slot[kept]
    x, y, tasks, place, scores = (field.copy() for field in held[:-1])  # the old ones stay
    x[slot], y[slot], tasks[slot] = new.x, new.y, task
    place[slot], scores[slot] = places[kept], score(new)
    return HeldOut(x, y, tasks, place, scores, num_seen)


def widened(held: HeldOut, size: int, dtype: np.dtype, seed: int) -> HeldOut:
    """In another dtype, and in less room if there is to be less: then a uniform sample stays."""
    kept = np.arange(len(held.y))
    if size < len(held.y):
        kept = np.random.default_rng([seed, size]).permutation(held.size)[:size]
        kept = np.pad(kept, (0, size - len(kept)))
    x, y, task, place, score = (field[kept] for field in held[:-1])
    return HeldOut(x.astype(dtype), y, task, place, score, held.num_seen)
