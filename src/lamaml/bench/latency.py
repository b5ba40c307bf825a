"""The latency of `LaMAMLClassifier` beside the bare update, and how many programs it compiles."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lamaml.bench.results import EstimatorLatency
from lamaml.bench.timing import best_seconds
from lamaml.estimators._config import learner_settings
from lamaml.estimators.classifier import LaMAMLClassifier
from lamaml.learners import la_maml
from lamaml.models import cross_entropy, mlp
from lamaml.types import Batch

NUM_SIZES = 200
_COMPILED = "/jax/core/compile/backend_compile_duration"


def estimator_latency(threads: int) -> EstimatorLatency:
    """Measures calls of `LaMAMLClassifier` on rows like MNIST's."""
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
    return EstimatorLatency(
        threads,
        partial_fit_ms=1e3 * best["partial_fit"],
        bare_update_ms=1e3 * best["bare_update"],
        predict_one_ms=1e3 * best["predict_one"],
        ratio=best["partial_fit"] / best["bare_update"],
        programs_compiled=programs_compiled(NUM_SIZES),
        num_sizes=NUM_SIZES,
    )


def bare_update(x: np.ndarray, y: np.ndarray) -> Callable[[], Any]:
    """Returns the compiled update of La-MAML alone, with the settings of the classifier."""
    model = mlp(784, 10)
    learner = la_maml(cross_entropy(model), **learner_settings("la_maml", {}, 200))
    rows = jnp.asarray(x), jnp.asarray(y, jnp.int32), jnp.zeros(10, jnp.int32), jnp.ones(10)
    batch, key = Batch(*rows), jax.random.key(0)
    update = jax.jit(learner.update, donate_argnums=0)
    held = [learner.init(model.init(key), batch)]

    def call() -> Any:
        held[0], info = update(held[0], batch, key)
        return info

    return call


def programs_compiled(num_sizes: int) -> int:
    """Returns the number of programs compiled by calls with 1, 2, ... `num_sizes` rows."""
    compiled = []

    def listen(event: str, duration_secs: float, **_: str | int) -> None:
        if event == _COMPILED:
            compiled.append(duration_secs)

    jax.monitoring.register_event_duration_secs_listener(listen)
    x = np.random.default_rng(1).normal(size=(num_sizes, 3))
    y = np.arange(num_sizes) % 5
    classifier = LaMAMLClassifier(hidden_sizes=(4,), learner_options={"num_steps": 1})
    for size in range(1, num_sizes + 1):
        classifier.partial_fit(x[:size], y[:size], classes=range(5)).predict(x[:size])
    jax.monitoring.unregister_event_duration_listener(listen)
    return len(compiled)
