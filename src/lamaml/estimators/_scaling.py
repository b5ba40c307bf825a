"""Running mean and variance of columns (Chan, Golub and LeVeque, 1979), in double precision.

Two sets of n and m rows become one of n + m:
    δ = mean_m − mean_n,   mean = mean_n + δ·m/(n + m),   S = S_n + S_m + δ²·nm/(n + m)
"""

from typing import NamedTuple

import numpy as np

_TINY = float(np.finfo(np.float32).tiny) ** 2  # compiled code rounds smaller deviations to 0
_ROUNDING = 1e-12  # a variance below this fraction of the squared mean is float32 noise


class Moments(NamedTuple):
    """Running statistics of each column."""

    num_rows: int  # n
    mean: np.ndarray  # (columns,) float64
    scatter: np.ndarray  # S, (columns,) float64, the sum of squared deviations


def empty_moments(num_columns: int) -> Moments:
    """Return the statistics of no rows."""
    return Moments(0, np.zeros(num_columns), np.zeros(num_columns))


def add_to_moments(moments: Moments, rows: np.ndarray) -> Moments:
    """Return the statistics with these rows, at least one, added.

    >>> seen = add_to_moments(empty_moments(1), np.array([[1.0]]))
    >>> seen = add_to_moments(seen, np.array([[2.0], [6.0]]))
    >>> seen.mean.tolist(), seen.scatter.tolist()
    ([3.0], [14.0])
    """
    new, total = len(rows), moments.num_rows + len(rows)
    deviations = rows.astype(np.float64)
    mean = deviations.mean(axis=0)
    deviations -= mean
    scatter = np.square(deviations, out=deviations).sum(axis=0)
    step = mean - moments.mean
    return Moments(
        total,
        moments.mean + step * (new / total),
        moments.scatter + scatter + np.square(step) * (moments.num_rows * new / total),
    )


def mean_and_deviation(moments: Moments) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and standard deviation of each column as float32; 1 for a constant column."""
    variance = moments.scatter / max(moments.num_rows, 1)
    varies = variance > np.maximum(_ROUNDING * np.square(moments.mean), _TINY)
    deviation = np.sqrt(np.where(varies, variance, 1.0))
    return moments.mean.astype(np.float32), deviation.astype(np.float32)
