"""Retained accuracy and its companions, from the accuracy matrix or from counts of answers.

    R[i, t]   test accuracy on task t after task i,      b[t]   before any training
    RA  = mean_t R[T, t]                  retained accuracy
    LA  = mean_t R[t, t]                  learning accuracy, right after each task
    BTI = mean_t (R[T, t] − R[t, t])      backward transfer and interference = RA − LA
    FWT = (1/T) Σ_{t≥2} (R[t−1, t] − b[t])  forward transfer
    f_t = max_{i<T} R[i, t] − R[T, t]     what is lost of task t since it was at its best
    FM  = mean_{t<T} f_t                  forgetting (Chaudhry et al., 2018)
    MF  = max_{t<T} f_t                   maximum forgetting, that of the task that lost most
    AAA = mean_i mean_{t≤i} R[i, t]       any-time average accuracy (Caccia et al., 2020)

    N[c, k]   test rows of class c that are answered k
    accuracy of class c = N[c, c] / Σ_k N[c, k]

The maximum in f_t is over the evaluations i ≥ t, the mean in AAA over those of all tasks so far.
Deviation: the GEM paper's backward transfer divides by T − 1; this is the La-MAML paper's, over T.
"""

import math
from typing import NamedTuple

import numpy as np

from lamaml.errors import require


class Metrics(NamedTuple):
    """Numbers in [−1, 1]; those that need two tasks are NaN for a single one."""

    ra: float
    bti: float
    la: float
    fwt: float
    fm: float = math.nan
    mf: float = math.nan
    aaa: float = math.nan


def metrics(matrix: np.ndarray, baseline: np.ndarray) -> Metrics:
    """Return the metrics of an accuracy matrix.

    Args:
      matrix: R, (T, T); entries above the first superdiagonal are not read. NaN where a task was
        not evaluated, which is allowed between the diagonal and the last row.
      baseline: b, (T,), accuracy at initialisation.

    Examples:
      >>> R = np.array([[0.8, 0.2, 0.0], [0.6, 0.9, 0.4], [0.5, 0.7, 1.0]])
      >>> [round(float(value), 3) for value in metrics(R, np.full(3, 0.1))]
      [0.733, -0.167, 0.9, 0.133, 0.25, 0.3, 0.761]
    """
    num_tasks = len(matrix)
    require(matrix.shape == (num_tasks, num_tasks), "matrix", matrix.shape, "square")
    require(baseline.shape == (num_tasks,), "baseline", baseline.shape, f"({num_tasks},)")
    final, learned = matrix[-1], np.diagonal(matrix)
    ahead = np.diagonal(matrix, offset=1) - baseline[1:]
    several = num_tasks > 1
    lost = [np.nanmax(matrix[task:-1, task]) - final[task] for task in range(num_tasks - 1)]
    seen = [matrix[task, : task + 1].mean() for task in range(num_tasks)]
    return Metrics(
        ra=float(final.mean()),
        bti=float((final - learned).mean()) if several else math.nan,
        la=float(learned.mean()),
        fwt=float(ahead.sum() / num_tasks) if several else math.nan,
        fm=float(np.mean(lost)) if several else math.nan,
        mf=float(np.max(lost)) if several else math.nan,
        aaa=float(np.nanmean(seen)),
    )


def class_accuracies(counts: np.ndarray) -> np.ndarray:
    """Return the accuracy of each class in [0, 1]; NaN for a class without test rows.

    Args:
      counts: N, (C, C), as `confusion_matrix` returns it.

    Examples:
      >>> class_accuracies(np.array([[3, 1, 0], [0, 5, 0], [0, 0, 0]])).tolist()
      [0.75, 1.0, nan]
    """
    num_classes = len(counts)
    require(counts.shape == (num_classes, num_classes), "counts", counts.shape, "square")
    total = counts.sum(axis=1)
    return np.where(total > 0, np.diagonal(counts) / np.maximum(total, 1), math.nan)
