"""How long a call takes beside the bare update, and how many programs a stream compiles."""

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lamaml.estimators._config import settings_of
from lamaml.estimators.classifier import LaMAMLClassifier
from lamaml.learners import la_maml
from lamaml.models import cross_entropy, mlp
from lamaml.types import Batch

ROUNDS = 60
CALLS_A_ROUND = 10
COMPILED = "/jax/core/compile/backend_compile_duration"


def measure(num_sizes: int = 1000) -> dict[str, float]:
    """The latencies of `LaMAMLClassifier` on rows like MNIST's, and the programs it compiles.

    Args:
      num_sizes: calls of `partial_fit`, each with another number of rows, that programs are
        counted over.

    Returns:
      partial_fit_ms and bare_update_ms of 10 rows, their ratio, predict_one_ms, and
      programs_compiled; times are the best of several rounds that take turns.
    """
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 256, (10, 784), np.uint8), np.arange(10)
    classifier = LaMAMLClassifier(glances=1).partial_fit(x, y)
    best = best_seconds(
        {
            "partial_fit": lambda: classifier.partial_fit(x, y),
            "bare_update": bare_update(x.astype(np.float32) / 255, y),
            "predict_one": lambda: classifier.predict(x[:1]),
        }
    )
    return {f"{name}_ms": 1e3 * seconds for name, seconds in best.items()} | {
        "ratio": best["partial_fit"] / best["bare_update"],
        "programs_compiled": programs_compiled(num_sizes),
    }


def bare_update(x: np.ndarray, y: np.ndarray) -> Callable[[], Any]:
    """La-MAML's update alone, compiled and in place, with the settings of the classifier."""
    model = mlp(784, 10)
    learner = la_maml(cross_entropy(model.apply), **settings_of("la_maml", {}, 200, False))
    rows = jnp.asarray(x), jnp.asarray(y, jnp.int32), jnp.zeros(10, jnp.int32), jnp.ones(10)
    batch, key = Batch(*rows), jax.random.key(0)
    update = jax.jit(learner.update, donate_argnums=0)
    held = [learner.init(model.init(key), batch)]

    def call() -> Any:
        held[0], info = update(held[0], batch, key)
        return info

    return call


def best_seconds(calls: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """The best mean time of each call."""
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(ROUNDS):
        for name, call in calls.items():
            jax.block_until_ready(call())
            clock = time.perf_counter()
            for _ in range(CALLS_A_ROUND):
                jax.block_until_ready(call())
            best[name] = min(best[name], (time.perf_counter() - clock) / CALLS_A_ROUND)
    return best


def programs_compiled(num_sizes: int) -> int:
    """Programs compiled for a new classifier by `partial_fit` and `predict` of 1, 2, 3 ... rows."""
    compiled = []

    def listen(event: str, duration_secs: float, **_: str | int) -> None:
        if event == COMPILED:
            compiled.append(duration_secs)

    jax.monitoring.register_event_duration_secs_listener(listen)
    x = np.random.default_rng(1).normal(size=(num_sizes, 3))
    y = np.arange(num_sizes) % 5
    classifier = LaMAMLClassifier(hidden_sizes=(4,), learner_options={"inner_steps": 1})
    for size in range(1, num_sizes + 1):
        classifier.partial_fit(x[:size], y[:size], classes=range(5)).predict(x[:size])
    jax.monitoring.unregister_event_duration_listener(listen)
    return len(compiled)
