"""The time of one update, as a share of the machine's own matrix-product rate.

Matrix products are measured in turns with the update: noise slows both, and their ratio stays. The
work of an update is counted, not measured: one forward and backward pass takes 6 operations per
weight use (multiply-add) and row, and a Hessian-vector product, which second order needs for every
inner row, 12 more. Everything else an update does is overhead.

Two comparisons stand beside the shares: ten examples of MER, as in its paper, against one glance of
La-MAML at ten rows; and GEM after more and more tasks, whose cost grows with the tasks it has seen.
"""

from typing import Any

import jax
import jax.numpy as jnp

from lamaml.bench.results import GemTime, MerTime, UpdateTime
from lamaml.bench.timing import Call, best_seconds
from lamaml.learners import LEARNERS
from lamaml.models import MODELS, cross_entropy, task_heads
from lamaml.types import Batch, Learner, Loss, Model

MATRIX_SIDE = 1024
BATCH, REPLAY, MEMORY = 10, 10, 200
INNER_STEPS = {"mlp": 10, "cnn": 5}
ROW_SHAPE = {"mlp": (784,), "cnn": (32, 32, 3)}
NUM_OUTPUTS = {"mlp": 10, "cnn": 100}
# Multiply-adds in a forward pass of one row: full layers, and convolutions on 16×16, 8×8 and 4×4
# outputs.
MULTIPLY_ADDS = {
    "mlp": 784 * 100 + 100 * 100 + 100 * 10,
    "cnn": 256 * 27 * 160 + 64 * 1440 * 160 + 16 * 1440 * 160 + 2560 * 320 + 320 * 320 + 320 * 100,
}
NETWORKS = tuple(MULTIPLY_ADDS)
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
LEARNERS_MEASURED = tuple(_RATES)


def update_times(model: str, learner: str, threads: int) -> list[UpdateTime]:
    """Measures one update of a learner, of each order, beside matrix products."""
    orders = ("first", "second") if learner in _META else ("first",)
    calls = {order: update_call(model, learner, order) for order in orders}
    best = best_seconds({"matrix product": matrix_product(), **calls})
    gemm = 2 * MATRIX_SIDE**3 / best["matrix product"] / 1e9
    times = []
    for order in orders:
        gflop = num_operations(model, learner, order) / 1e9
        share = gflop / best[order] / gemm
        milliseconds = 1e3 * best[order]
        times.append(UpdateTime(threads, learner, model, order, milliseconds, gflop, gemm, share))
    return times


def mer_time(threads: int) -> MerTime:
    """Measures ten examples of MER beside one glance of La-MAML."""
    calls = {"mer": mer_call(), "glance": update_call("mlp", "la_maml", "first")}
    best = best_seconds(calls)
    ratio = best["mer"] / best["glance"]
    return MerTime(threads, 1e3 * best["mer"], 1e3 * best["glance"], ratio)


def gem_times(threads: int) -> list[GemTime]:
    """Measures one update of GEM after more and more tasks."""
    best = best_seconds({str(seen): gem_call(seen) for seen in GEM_TASKS_SEEN})
    return [GemTime(threads, int(seen), 1e3 * seconds) for seen, seconds in best.items()]


def num_operations(model: str, learner: str, order: str) -> float:
    """Returns the floating-point operations of one update."""
    union, steps = BATCH + REPLAY, INNER_STEPS[model]
    rows = {"online": BATCH, "er": union, "la_er": BATCH + 2 * union}.get(learner)
    rows = BATCH + steps * union if rows is None else rows
    hessian_products = 12 * BATCH if order == "second" else 0
    return MULTIPLY_ADDS[model] * (6.0 * rows + hessian_products)


def update_call(model: str, learner: str, order: str) -> Call:
    """Returns a function that makes one compiled update, in place, on random rows."""
    network, loss = problem(model)
    return repeated(build(learner, model, order, loss), network, rows_of(model, BATCH))


def mer_call() -> Call:
    """Returns a function that trains MER (Algorithm 1) on ten examples: 5 batches of 11 steps."""
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
    """Returns a function that makes one update of GEM in the last of `tasks_seen` tasks."""
    network, loss = problem("mlp")
    algorithm = LEARNERS["gem"](loss, learning_rate=0.01, memory_size=MEMORY, num_tasks=GEM_TASKS)
    batches = [rows_of("mlp", BATCH, task) for task in range(tasks_seen)]
    return repeated(algorithm, network, *batches)


def problem(model: str) -> tuple[Model, Loss]:
    """Returns the network and loss of MNIST (`mlp`) or CIFAR-100 (`cnn`)."""
    network = MODELS[model](ROW_SHAPE[model], NUM_OUTPUTS[model])
    heads = task_heads(NUM_OUTPUTS[model], None if model == "mlp" else 5)
    return network, cross_entropy(network, heads)


def rows_of(model: str, count: int, task: int = 0) -> Batch:
    """Returns `count` random rows of a task."""
    x = jax.random.uniform(jax.random.key(task), (count, *ROW_SHAPE[model]))
    return Batch(x, jnp.arange(count) % 5, jnp.full(count, task), jnp.ones(count), True, True)


def repeated(learner: Learner, network: Model, *batches: Batch) -> Call:
    """Returns a function that learns the last batch again; all batches are learned once before."""
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
    """Returns a learner with the sizes of the paper."""
    settings: dict[str, Any] = dict(_RATES[learner])
    if learner != "online":
        settings |= {"memory_size": MEMORY, "replay_size": REPLAY}
    if learner in (*_META, "la_er"):
        settings["inner_steps"] = INNER_STEPS[model]
    if learner in _META:
        settings["first_order"] = order == "first"
    return LEARNERS[learner](loss, **settings)


def matrix_product() -> Call:
    """Returns a function that multiplies two square matrices."""
    matrix = jax.random.normal(jax.random.key(0), (MATRIX_SIDE, MATRIX_SIDE))
    multiply = jax.jit(jnp.matmul)
    jax.block_until_ready(multiply(matrix, matrix))
    return lambda: multiply(matrix, matrix)
