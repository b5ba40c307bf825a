"""How fast an update is, as a share of what the machine can do.

The yardstick is the machine's own matrix-product rate, measured in the same process: as noise slows
both, their ratio stays. The work of an update is counted, not measured: one forward and backward
pass is 6 operations a weight use (multiply-add) and row, and a Hessian-vector product, which second
order needs for every inner row, is 12 more. What an update does besides is overhead.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp

from lamaml.experiments.engines import worker_environment
from lamaml.experiments.recipes import MODELS
from lamaml.learners import LEARNERS
from lamaml.models import cross_entropy
from lamaml.types import Batch, Learner, Loss

MATRIX_SIDE = 1024
ROUNDS = 12
SECONDS_A_ROUND = 0.15
BATCH, REPLAY, MEMORY = 10, 10, 200
INNER_STEPS = {"mlp": 10, "cnn": 5}
ROW_SHAPE = {"mlp": (784,), "cnn": (32, 32, 3)}
NUM_OUTPUTS = {"mlp": 10, "cnn": 100}
# Uses of weights (multiply-adds) in a forward pass of one row: full layers, and convolutions on
# 16×16, 8×8 and 4×4 outputs.
MULTIPLY_ADDS = {
    "mlp": 784 * 100 + 100 * 100 + 100 * 10,
    "cnn": 256 * 27 * 160 + 64 * 1440 * 160 + 16 * 1440 * 160 + 2560 * 320 + 320 * 320 + 320 * 100,
}
_META = ("c_maml", "sync_la_maml", "la_maml")
_RATES: dict[str, dict[str, float]] = {
    "online": {"learning_rate": 0.01},
    "er": {"learning_rate": 0.01},
    "c_maml": {"inner_rate": 0.01, "outer_rate": 0.01},
    "sync_la_maml": {"initial_rate": 0.01, "outer_rate": 0.01, "hyper_rate": 0.01},
    "la_er": {"initial_rate": 0.01, "hyper_rate": 0.01},
    "la_maml": {"initial_rate": 0.01, "hyper_rate": 0.01},
}
_START = (
    "import sys; threads = int(sys.argv[1]); sys.path[:] = sys.argv[2:]; "
    "from lamaml.experiments.benchmark import measure_here; measure_here(threads)"
)


def main_measurements(
    threads: tuple[int, ...] = (1, 2), on_progress: Callable[[str], None] = lambda line: None
) -> dict[str, Any]:
    """Measure in fresh processes, one for each number of threads.

    Returns:
      {"gemm_gflops": {"1": .., "2": ..},
       "updates": [{learner, model, order, threads, ms, gflop, share}, ...]}, best of several.
    """
    found: dict[str, Any] = {"gemm_gflops": {}, "updates": []}
    for count in threads:
        process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-P", "-c", _START, str(count), *sys.path],
            env=worker_environment(count),
            stdout=subprocess.PIPE,
            text=True,
        )
        for line in process.stdout or ():
            message = json.loads(line)
            if "working_on" in message:
                on_progress(message["working_on"])
            else:
                found["gemm_gflops"][str(count)] = message["gemm_gflops"]
                found["updates"] += message["updates"]
        if process.wait():
            raise RuntimeError(f"measuring with {count} threads failed")
    return found


def measure_here(threads: int) -> None:
    """Measure everything in this process, and write what was found as JSON lines."""
    calls = {"gemm": matrix_product()}
    for model, learner, order in cases():
        _say({"working_on": f"compiling {learner}, {model}, {order} order, {threads} threads"})
        calls[f"{learner} {model} {order}"] = update_call(model, learner, order)
    _say({"working_on": f"measuring with {threads} threads"})
    best = best_seconds(calls)
    gemm = 2 * MATRIX_SIDE**3 / best["gemm"] / 1e9
    updates = []
    for model, learner, order in cases():
        seconds = best[f"{learner} {model} {order}"]
        gflop = work(model, learner, order) / 1e9
        updates.append(
            {
                "learner": learner,
                "model": model,
                "order": order,
                "threads": threads,
                "ms": 1e3 * seconds,
                "gflop": gflop,
                "share": gflop / seconds / gemm,
            }
        )
    _say({"gemm_gflops": gemm, "updates": updates})


def cases() -> Iterator[tuple[str, str, str]]:
    """What is measured: (model, learner, order)."""
    for model in MULTIPLY_ADDS:
        for learner in _RATES:
            for order in ("first", "second") if learner in _META else ("first",):
                yield model, learner, order


def work(model: str, learner: str, order: str) -> float:
    """Floating-point operations of one update."""
    union, steps = BATCH + REPLAY, INNER_STEPS[model]
    rows = {"online": BATCH, "er": union, "la_er": BATCH + 2 * union}.get(learner)
    rows = BATCH + steps * union if rows is None else rows
    hessian_products = 12 * BATCH if order == "second" else 0
    return MULTIPLY_ADDS[model] * (6.0 * rows + hessian_products)


def update_call(model: str, learner: str, order: str) -> Callable[[], Any]:
    """A function that makes one compiled update, in place, on random rows."""
    network = MODELS[model](784 if model == "mlp" else ROW_SHAPE[model], NUM_OUTPUTS[model])
    heads = None if model == "mlp" else 5
    algorithm = build(learner, model, order, cross_entropy(network.apply, heads))
    key = jax.random.key(0)
    x = jax.random.uniform(key, (BATCH, *ROW_SHAPE[model]))
    batch = Batch(x, jnp.arange(BATCH) % 5, jnp.zeros(BATCH, int), jnp.ones(BATCH), True, True)
    update = jax.jit(algorithm.update, donate_argnums=0)
    held = [algorithm.init(network.init(key), batch)]

    def call() -> Any:
        held[0], info = update(held[0], batch, key)
        return info

    jax.block_until_ready(call())
    return call


def build(learner: str, model: str, order: str, loss: Loss) -> Learner:
    """A learner with the sizes of the paper."""
    settings: dict[str, Any] = dict(_RATES[learner])
    if learner != "online":
        settings |= {"memory_size": MEMORY, "replay_size": REPLAY}
    if learner in (*_META, "la_er"):
        settings["inner_steps"] = INNER_STEPS[model]
    if learner in _META:
        settings["first_order"] = order == "first"
    return LEARNERS[learner](loss, **settings)


def matrix_product() -> Callable[[], Any]:
    """A function that multiplies two square matrices."""
    matrix = jax.random.normal(jax.random.key(0), (MATRIX_SIDE, MATRIX_SIDE))
    multiply = jax.jit(jnp.matmul)
    jax.block_until_ready(multiply(matrix, matrix))
    return lambda: multiply(matrix, matrix)


def best_seconds(calls: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """The best mean time of each call, in rounds that take turns: noise meets all alike."""
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(ROUNDS):
        for name, call in calls.items():
            jax.block_until_ready(call())
            count, clock = 0, time.perf_counter()
            while time.perf_counter() - clock < SECONDS_A_ROUND:
                jax.block_until_ready(call())
                count += 1
            best[name] = min(best[name], (time.perf_counter() - clock) / count)
    return best


def _say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()
