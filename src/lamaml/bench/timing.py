"""The clock of the benchmarks: the best mean time of several calls that take turns."""

import time
from collections.abc import Callable, Mapping
from typing import Any

import jax

ROUNDS = 6
SECONDS_PER_ROUND = 0.1

Call = Callable[[], Any]
"""Does what is measured, and returns arrays to wait for."""


def best_seconds(calls: Mapping[str, Call]) -> dict[str, float]:
    """Returns the best mean time of each call over the rounds, in seconds.

    The calls take turns within a round, so that noise meets all of them alike.
    """
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(ROUNDS):
        for name, call in calls.items():
            jax.block_until_ready(call())
            count, clock = 0, time.perf_counter()
            while time.perf_counter() - clock < SECONDS_PER_ROUND:
                jax.block_until_ready(call())
                count += 1
            best[name] = min(best[name], (time.perf_counter() - clock) / count)
    return best
