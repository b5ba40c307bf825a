"""Retained accuracy and its companions, from the accuracy matrix.

    R[i, t]   test accuracy on task t after task i,      b[t]   before any training
    RA  = mean_t R[T, t]                  retained accuracy
    LA  = mean_t R[t, t]                  learning accuracy, right after each task
    BTI = mean_t (R[T, t] − R[t, t])      backward transfer and interference = RA − LA
    FWT = (1/T) Σ_{t≥2} (R[t−1, t] − b[t])  forward transfer

Deviation: the GEM paper's backward transfer divides by T − 1; this is the La-MAML paper's, over T.
"""

import math
from typing import NamedTuple

import numpy as np

from lamaml.errors import require


class Metrics(NamedTuple):
    """Numbers in [−1, 1]; BTI and FWT of a single task are NaN."""

    ra: float
    bti: float
    la: float
    fwt: float


def metrics(matrix: np.ndarray, baseline: np.ndarray) -> Metrics:
    """Return the metrics of an accuracy matrix.

    Args:
      matrix: R, (T, T); entries above the first superdiagonal are not read.
      baseline: b, (T,), accuracy at initialisation.

    Examples:
      >>> R = np.array([[0.8, 0.2, 0.0], [0.6, 0.9, 0.4], [0.5, 0.7, 1.0]])
      >>> [round(float(value), 3) for value in metrics(R, np.full(3, 0.1))]
      [0.733, -0.167, 0.9, 0.133]
    """
    num_tasks = len(matrix)
    require(matrix.shape == (num_tasks, num_tasks), "matrix", matrix.shape, "square")
    require(baseline.shape == (num_tasks,), "baseline", baseline.shape, f"({num_tasks},)")
    final, learned = matrix[-1], np.diagonal(matrix)
    ahead = np.diagonal(matrix, offset=1) - baseline[1:]
    several = num_tasks > 1
    return Metrics(
        ra=float(final.mean()),
        bti=float((final - learned).mean()) if several else math.nan,
        la=float(learned.mean()),
        fwt=float(ahead.sum() / num_tasks) if several else math.nan,
    )
