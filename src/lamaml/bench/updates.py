"""How fast an update is, as a share of what the machine can do.

The yardstick is the machine's own matrix-product rate, measured in turns with the update: as noise
slows both, their ratio stays. Each learner has a process of its own, as in a run: where several
share one, an update has been seen to take half as long again. The work of an update is counted, not
measured: one forward and backward pass is 6 operations a weight use (multiply-add) and row, and a
Hessian-vector product, which second order needs for every inner row, is 12 more. What an update
does besides is overhead.

Two comparisons stand beside the shares: ten examples of MER, as in its paper, against one glance of
La-MAML at ten; and GEM after more and more tasks, which should cost what it has seen. Last come
what checkpoints cost, and what the scikit-learn estimator adds to the bare update.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from lamaml.bench.checkpoint_cost import milliseconds_to_write, slowdown
from lamaml.bench.latency import measure as measure_estimator
from lamaml.experiments.running.engines import worker_environment
from lamaml.experiments.storing.environment import environment
from lamaml.learners import LEARNERS
from lamaml.models import MODELS, cross_entropy, task_heads
from lamaml.types import Batch, Learner, Loss, Model

MATRIX_SIDE = 1024
ROUNDS = 10
SECONDS_A_ROUND = 0.1
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
GEM_TASKS = 20
GEM_TASKS_SEEN = (1, 10, 20)
_META = ("c_maml", "sync_la_maml", "la_maml")
_RATES: dict[str, dict[str, float]] = {
    "online": {"learning_rate": 0.01},
    "er": {"learning_rate": 0.01},
    "c_maml": {"inner_rate": 0.01, "outer_rate": 0.01},
    "sync_la_maml": {"initial_rate": 0.01, "outer_rate": 0.01, "hyper_rate": 0.01},
    "la_er": {"initial_rate": 0.01, "hyper_rate": 0.01},
    "la_maml": {"initial_rate": 0.01, "hyper_rate": 0.01},
}
Call = Callable[[], Any]
"""Does what is measured; returns arrays to wait for."""

_START = (
    "import sys; part = sys.argv[1]; sys.path[:] = sys.argv[2:]; "
    "from lamaml.bench.updates import measure_here; measure_here(part)"
)


def main_measurements(
    threads: tuple[int, ...] = (1, 2), on_progress: Callable[[str], None] = lambda line: None
) -> dict[str, Any]:
    """Measure every part in a fresh process, with each number of threads.

    Returns:
      {"gemm_gflops": {"1": .., "2": ..},
       "updates": [{learner, model, order, threads, ms, gflop, gemm_gflops, share}, ...],
       "mer": [{threads, ms, la_maml_ms, ratio}, ...],
       "gem": [{threads, tasks_seen, ms}, ...],
       "checkpoints": [{threads, seconds, seconds_without, slower, cifar_ms}, ...],
       "estimator": [{threads, partial_fit_ms, bare_update_ms, ratio, predict_one_ms,
                      programs_compiled}, ...],
       "environment": {versions, platform, machine, cpus, revision, dirty}},
      the best of several; a share is of the matrix products beside it.
    """
    found: dict[str, Any] = {"gemm_gflops": {}, "updates": [], "mer": [], "gem": []}
    found |= {"checkpoints": [], "estimator": [], "environment": environment()}
    with tempfile.TemporaryDirectory(prefix="lamaml-") as compiled:
        for count in threads:
            for number, part in enumerate(PARTS, 1):
                on_progress(f"{count} threads: {number} of {len(PARTS)}, {part}")
                done = subprocess.run(  # noqa: S603
                    [sys.executable, "-P", "-c", _START, part, *sys.path],
                    env=worker_environment(count, compiled),
                    stdout=subprocess.PIPE,
                    text=True,
                    check=False,
                )
                if done.returncode:
                    raise RuntimeError(f"measuring {part} with {count} threads failed")
                for name, rows in json.loads(done.stdout).items():
                    found[name] += [{"threads": count, **row} for row in rows]
            rates = [row["gemm_gflops"] for row in found["updates"] if row["threads"] == count]
            found["gemm_gflops"][str(count)] = max(rates)
    return found


def measure_here(part: str) -> None:
    """Measure one of `PARTS` in this process, and write what was found as JSON."""
    json.dump(PARTS[part](), sys.stdout)


def updates(model: str, learner: str) -> dict[str, Any]:
    """One update of a learner, of each order, beside matrix products."""
    orders = ("first", "second") if learner in _META else ("first",)
    calls = {order: update_call(model, learner, order) for order in orders}
    best = best_seconds({"matrix product": matrix_product(), **calls})
    gemm = 2 * MATRIX_SIDE**3 / best["matrix product"] / 1e9
    rows = []
    for order in orders:
        gflop = work(model, learner, order) / 1e9
        rows.append(
            {
                "learner": learner,
                "model": model,
                "order": order,
                "ms": 1e3 * best[order],
                "gflop": gflop,
                "gemm_gflops": gemm,
                "share": gflop / best[order] / gemm,
            }
        )
    return {"updates": rows}


def mer() -> dict[str, Any]:
    """Ten examples of MER beside a glance of La-MAML."""
    calls = {"mer": ten_examples_of_mer(), "glance": update_call("mlp", "la_maml", "first")}
    best = best_seconds(calls)
    milliseconds = {"ms": 1e3 * best["mer"], "la_maml_ms": 1e3 * best["glance"]}
    return {"mer": [{**milliseconds, "ratio": best["mer"] / best["glance"]}]}


def gem() -> dict[str, Any]:
    """GEM after more and more tasks."""
    best = best_seconds({str(seen): gem_call(seen) for seen in GEM_TASKS_SEEN})
    return {"gem": [{"tasks_seen": int(seen), "ms": 1e3 * s} for seen, s in best.items()]}


def checkpoints() -> dict[str, Any]:
    """What they cost an MNIST run, and how long one of the CIFAR learner takes."""
    network, loss = problem("cnn")
    learner = build("la_maml", "cnn", "first", loss)
    state = learner.init(network.init(jax.random.key(0)), rows_of("cnn", 1))
    return {"checkpoints": [{**slowdown(), "cifar_ms": milliseconds_to_write(state)}]}


def estimator() -> dict[str, Any]:
    """What the scikit-learn estimator adds."""
    return {"estimator": [measure_estimator()]}


def work(model: str, learner: str, order: str) -> float:
    """Floating-point operations of one update."""
    union, steps = BATCH + REPLAY, INNER_STEPS[model]
    rows = {"online": BATCH, "er": union, "la_er": BATCH + 2 * union}.get(learner)
    rows = BATCH + steps * union if rows is None else rows
    hessian_products = 12 * BATCH if order == "second" else 0
    return MULTIPLY_ADDS[model] * (6.0 * rows + hessian_products)


def update_call(model: str, learner: str, order: str) -> Call:
    """A function that makes one compiled update, in place, on random rows."""
    network, loss = problem(model)
    return repeated(build(learner, model, order, loss), network, rows_of(model, BATCH))


def ten_examples_of_mer() -> Call:
    """A function that shows MER's Algorithm 1 ten examples: five batches of eleven steps each."""
    network, loss = problem("mlp")
    sizes = {"num_batches": 5, "memory_size": MEMORY, "replay_size": REPLAY}
    algorithm = LEARNERS["mer"](loss, inner_rate=0.01, within_rate=0.1, across_rate=1.0, **sizes)
    update = repeated(algorithm, network, rows_of("mlp", 1))

    def call() -> Any:
        for _ in range(9):
            update()
        return update()

    return call


def gem_call(tasks_seen: int) -> Call:
    """A function that makes one update of GEM in the last of the tasks it has seen."""
    network, loss = problem("mlp")
    algorithm = LEARNERS["gem"](loss, learning_rate=0.01, memory_size=MEMORY, num_tasks=GEM_TASKS)
    batches = [rows_of("mlp", BATCH, task) for task in range(tasks_seen)]
    return repeated(algorithm, network, *batches)


def problem(model: str) -> tuple[Model, Loss]:
    """A benchmark's network and loss."""
    network = MODELS[model](ROW_SHAPE[model], NUM_OUTPUTS[model])
    heads = task_heads(NUM_OUTPUTS[model], None if model == "mlp" else 5)
    return network, cross_entropy(network.apply, heads)


def rows_of(model: str, count: int, task: int = 0) -> Batch:
    """Random rows of a task."""
    x = jax.random.uniform(jax.random.key(task), (count, *ROW_SHAPE[model]))
    return Batch(x, jnp.arange(count) % 5, jnp.full(count, task), jnp.ones(count), True, True)


def repeated(learner: Learner, network: Model, *batches: Batch) -> Call:
    """A function that learns the last batch once more, after all have been learned."""
    key = jax.random.key(0)
    update = jax.jit(learner.update, donate_argnums=0)
    held = [learner.init(network.init(key), batches[-1])]
    for batch in batches:
        held[0], _ = update(held[0], batch, key)

    def call() -> Any:
        held[0], info = update(held[0], batches[-1], key)
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


def matrix_product() -> Call:
    """A function that multiplies two square matrices."""
    matrix = jax.random.normal(jax.random.key(0), (MATRIX_SIDE, MATRIX_SIDE))
    multiply = jax.jit(jnp.matmul)
    jax.block_until_ready(multiply(matrix, matrix))
    return lambda: multiply(matrix, matrix)


def best_seconds(calls: dict[str, Call]) -> dict[str, float]:
    """The best mean time of each call, in rounds that take turns: noise meets all alike."""
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(ROUNDS):
        for name, call in calls.items():
            count, clock = 0, time.perf_counter()
            while time.perf_counter() - clock < SECONDS_A_ROUND:
                jax.block_until_ready(call())
                count += 1
            best[name] = min(best[name], (time.perf_counter() - clock) / count)
    return best


PARTS: dict[str, Callable[[], dict[str, Any]]] = {
    f"{learner} on the {model}": partial(updates, model, learner)
    for model in MULTIPLY_ADDS
    for learner in _RATES
} | {"mer": mer, "gem": gem, "checkpoints": checkpoints, "estimator": estimator}
"""What is measured, each in a process of its own."""
