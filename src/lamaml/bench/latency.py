"""The latency of `LaMAMLClassifier` beside the bare update, and how many programs it compiles.

The bare update is the classifier's own learner with its settings, network, memory and scaling. Its
rows are on the device, nothing is checked, and it is compiled for speed. The classifier's program
does the same work and is compiled quickly (`lamaml._compilation`), so a call differs from the bare
update in two ways, which are measured apart: the program, and everything around it.

    python -c "from lamaml.bench.latency import print_latencies; print_latencies()"
"""

import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lamaml._compilation import use_compilation_cache
from lamaml.bench.records import EstimatorLatency
from lamaml.bench.timing import best_seconds
from lamaml.estimators import _compiled
from lamaml.estimators._config import LossInputs, build_learner
from lamaml.estimators._state import FittedState
from lamaml.estimators.classifier import LaMAMLClassifier
from lamaml.types import Batch, Info, State

LEARNERS = ("auto", "la_maml")
NUM_COLUMNS = (50, 784)
NUM_SIZES = 200
LARGE_CALL_ROWS = 90_000
_FEW_STEPS = {"auto": {"num_steps": 1}, "la_maml": {"inner_steps": 2}}  # options that compile fast
_COMPILED = "/jax/core/compile/backend_compile_duration"


def estimator_latencies(learner: str, threads: int) -> list[EstimatorLatency]:
    """Returns the latencies of a learner for each of NUM_COLUMNS."""
    num_programs = programs_compiled(NUM_SIZES, learner)
    return [
        estimator_latency(learner, columns, threads, num_programs=num_programs)
        for columns in NUM_COLUMNS
    ]


def estimator_latency(
    learner: str, num_columns: int, threads: int, *, num_programs: int
) -> EstimatorLatency:
    """Measures calls of `LaMAMLClassifier` with pixels, 10 rows at a time.

    Args:
      learner: name of the learner.
      num_columns: per row.
      threads: for the record.
      num_programs: for the record, what `programs_compiled` returned.
    """
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 256, (10, num_columns), np.uint8), np.arange(10)
    classifier = LaMAMLClassifier(learner).partial_fit(x, y)
    fitted = classifier._fitted
    assert fitted is not None  # noqa: S101 - it has learned from these rows
    calls = {
        "partial_fit": lambda: classifier.partial_fit(x, y) and None,
        "bare_update": bare_update(fitted, x, y),
        "program": quick_program(fitted, x, y),
        "predict_one": lambda: classifier.predict(x[:1]),
    }
    if find_spec("pandas"):
        calls["frame"] = _partial_fit_of_frame(learner, x, y)
    ms = {name: 1e3 * seconds for name, seconds in best_seconds(calls).items()}
    return EstimatorLatency(
        threads,
        partial_fit_ms=ms["partial_fit"],
        bare_update_ms=ms["bare_update"],
        predict_one_ms=ms["predict_one"],
        ratio=ms["partial_fit"] / ms["bare_update"],
        programs_compiled=num_programs,
        num_sizes=NUM_SIZES,
        learner=learner,
        num_columns=num_columns,
        program_ms=ms["program"],
        partial_fit_frame_ms=ms.get("frame"),
    )


def bare_update(fitted: FittedState, x: np.ndarray, y: np.ndarray) -> Callable[[], Any]:
    """Returns the update of a classifier's learner alone, compiled for speed."""
    batch, inputs, state = _on_device(fitted, x, y)
    held, key = [state], jax.random.key(0)

    @partial(jax.jit, donate_argnums=0)
    def update(
        state: State, inputs: LossInputs, batch: Batch, key: jax.Array
    ) -> tuple[State, Info]:
        return build_learner(fitted.config, inputs, num_rows=len(y)).update(state, batch, key)

    def call() -> Any:
        held[0], info = update(held[0], inputs, batch, key)
        return info

    return call


def quick_program(fitted: FittedState, x: np.ndarray, y: np.ndarray) -> Callable[[], Any]:
    """Returns the program that the classifier runs, with its arguments on the device."""
    batch, inputs, state = _on_device(fitted, x, y)
    held = [_compiled.split_memories(state)]
    key = jax.device_put(_compiled.key_data(0, _compiled.Purpose.UPDATE))
    batch = batch.at_glance(0, 1, is_first_pass=True)

    def call() -> Any:
        *after, is_finite = _compiled.update(fitted.config, *held[0], inputs, batch, True, key)
        held[0] = after[0], after[1]
        return is_finite

    return call


def _on_device(
    fitted: FittedState, x: np.ndarray, y: np.ndarray
) -> tuple[Batch, LossInputs, State]:
    """Returns the rows, what the loss reads, and a copy of the learner's state."""
    size = len(y)
    batch = Batch(
        x=jnp.asarray(x, fitted.config.dtype),
        y=jnp.asarray(y, jnp.int32),
        task=jnp.zeros(size, jnp.int32),
        weight=jnp.ones(size),
        position=jnp.arange(size, dtype=jnp.int32),
    )
    state = jax.tree.map(jnp.array, fitted.learner_state)
    return batch, jax.device_put(fitted.loss_inputs), state


def _partial_fit_of_frame(learner: str, x: np.ndarray, y: np.ndarray) -> Callable[[], Any]:
    import pandas

    frame = pandas.DataFrame(x, columns=[f"pixel_{column}" for column in range(x.shape[1])])
    classifier = LaMAMLClassifier(learner).partial_fit(frame, y)
    return lambda: classifier.partial_fit(frame, y) and None


def programs_compiled(num_sizes: int, learner: str = "auto") -> int:
    """Returns the number of programs compiled by calls with 1, 2, ... `num_sizes` rows."""
    compiled = []

    def listen(event: str, duration_secs: float, **_: str | int) -> None:
        if event == _COMPILED:
            compiled.append(duration_secs)

    jax.monitoring.register_event_duration_secs_listener(listen)
    x = np.random.default_rng(1).normal(size=(num_sizes, 3))
    y = np.arange(num_sizes) % 5
    classifier = LaMAMLClassifier(learner, hidden_sizes=(4,), learner_options=_FEW_STEPS[learner])
    for size in range(1, num_sizes + 1):
        classifier.partial_fit(x[:size], y[:size], classes=range(5)).predict(x[:size])
    jax.monitoring.unregister_event_duration_listener(listen)
    return len(compiled)


def large_call_seconds(learner: str, num_rows: int = LARGE_CALL_ROWS, rounds: int = 2) -> float:
    """Returns the seconds of one `partial_fit` of many rows of 50 columns, compilation apart."""
    x = np.random.default_rng(0).normal(size=(num_rows, 50)).astype(np.float32)
    y = (x[:, 0] > 0).astype(int)
    LaMAMLClassifier(learner).partial_fit(x, y)  # compiles

    def timed() -> float:
        start = time.perf_counter()
        LaMAMLClassifier(learner).partial_fit(x, y)
        return time.perf_counter() - start

    return min(timed() for _ in range(rounds))


def print_latencies(learners: Sequence[str] = LEARNERS, threads: int = 1) -> None:
    """Prints the latencies of each learner, a line per number of columns, and a large call."""
    use_compilation_cache()
    for learner in learners:
        for found in estimator_latencies(learner, threads):
            sys.stdout.write(f"{found}\n")
        call = f'LaMAMLClassifier("{learner}"), 50 columns: partial_fit of {LARGE_CALL_ROWS:,} rows'
        sys.stdout.write(f"{call} takes {large_call_seconds(learner):.1f} s\n")
