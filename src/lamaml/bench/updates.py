"""The time of one update, as a share of the machine's own matrix-product rate.

Matrix products are measured in turns with the update: noise slows both, and their ratio stays. The
work of an update is what its own matrix products need, counted by `operations`; everything else it
does is overhead. Where the first layer is affine in the data, a look-ahead has two paths with
different work; for La-MAML both are measured.

Two comparisons stand beside the shares: ten examples of MER, as in its paper, against one glance of
La-MAML at ten rows; and GEM after more and more tasks, whose cost grows with the tasks it has seen.
"""

from typing import Any

import jax
import jax.numpy as jnp

from lamaml.bench.operations import Operations, count_operations
from lamaml.bench.records import GemTime, MerTime, UpdateTime
from lamaml.bench.timing import Call, best_seconds
from lamaml.learners import LEARNERS
from lamaml.models import MODELS, Heads, NetworkLoss, cross_entropy, task_heads
from lamaml.types import Batch, Learner, Model

MATRIX_SIDE = 1024
BATCH, REPLAY, MEMORY = 10, 10, 200
INNER_STEPS = {"mlp": 10, "cnn": 5}
ROW_SHAPE = {"mlp": (784,), "cnn": (32, 32, 3)}
NUM_OUTPUTS = {"mlp": 10, "cnn": 100}
NETWORKS = tuple(ROW_SHAPE)
FUNCTION_SPACE, GENERAL = "function_space", "general"
GEM_TASKS = 20
GEM_TASKS_SEEN = (1, 10, 20)
_META = ("c_maml", "sync_la_maml", "la_maml", "dark_la_maml")
_DARK = ("der", "dark_la_maml")  # they store the network's answers
_RATES: dict[str, dict[str, float]] = {
    "online": {"learning_rate": 0.01},
    "er": {"learning_rate": 0.01},
    "c_maml": {"inner_rate": 0.01, "outer_rate": 0.01},
    "sync_la_maml": {"initial_rate": 0.01, "outer_rate": 0.01, "hyper_rate": 0.01},
    "la_er": {"initial_rate": 0.01, "hyper_rate": 0.01},
    "la_maml": {"initial_rate": 0.01, "hyper_rate": 0.01},
    "der": {"learning_rate": 0.01},
    "dark_la_maml": {"initial_rate": 0.01, "hyper_rate": 0.01},
}
LEARNERS_MEASURED = tuple(_RATES)


def paths(model: str, learner: str) -> tuple[str, ...]:
    """Returns the paths to measure: the default one and, for La-MAML on the MLP, the other."""
    if model != "mlp" or learner not in _META:
        return (GENERAL,)
    return (FUNCTION_SPACE, GENERAL) if learner == "la_maml" else (FUNCTION_SPACE,)


def update_times(model: str, learner: str, path: str, threads: int) -> list[UpdateTime]:
    """Measures one update of a learner, of each order, beside matrix products."""
    orders = ("first", "second") if learner in _META else ("first",)
    calls = {order: update_call(model, learner, order, path) for order in orders}
    best = best_seconds({"matrix product": matrix_product(), **calls})
    gemm = 2 * MATRIX_SIDE**3 / best["matrix product"] / 1e9
    times = []
    for order in orders:
        counted = update_operations(model, learner, order, path)
        gflop, elementwise = counted.products / 1e9, counted.elementwise / 1e9
        ms, share = 1e3 * best[order], gflop / best[order] / gemm
        case = (threads, learner, model, order, path)
        times.append(UpdateTime(*case, ms, gflop, elementwise, gemm, share))
    return times


def mer_time(threads: int) -> MerTime:
    """Measures ten examples of MER beside one glance of La-MAML."""
    calls = {"mer": mer_call(), "glance": update_call("mlp", "la_maml", "first", FUNCTION_SPACE)}
    best = best_seconds(calls)
    ratio = best["mer"] / best["glance"]
    return MerTime(threads, 1e3 * best["mer"], 1e3 * best["glance"], ratio)


def gem_times(threads: int) -> list[GemTime]:
    """Measures one update of GEM after more and more tasks."""
    best = best_seconds({str(seen): gem_call(seen) for seen in GEM_TASKS_SEEN})
    return [GemTime(threads, int(seen), 1e3 * seconds) for seen, seconds in best.items()]


def update_operations(model: str, learner: str, order: str, path: str) -> Operations:
    """Returns the operations of one update."""
    network, loss = problem(model, path)
    algorithm, batch = build(learner, model, order, loss), rows_of(model, BATCH)
    key = jax.random.key(0)
    state = jax.eval_shape(lambda key: algorithm.init(network.init(key), batch), key)
    return count_operations(algorithm.update, state, batch, key)


def update_call(model: str, learner: str, order: str, path: str) -> Call:
    """Returns a function that makes one compiled update, in place, on random rows."""
    network, loss = problem(model, path)
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


def problem(model: str, path: str = FUNCTION_SPACE) -> tuple[Model, NetworkLoss]:
    """Returns the network and loss of MNIST (`mlp`) or CIFAR-100 (`cnn`).

    Args:
      model: `mlp` or `cnn`.
      path: of the look-ahead; the MLP alone has a choice.
    """
    choice = {"function_space": path == FUNCTION_SPACE} if model == "mlp" else {}
    network = MODELS[model](ROW_SHAPE[model], NUM_OUTPUTS[model], **choice)
    return network, cross_entropy(network, heads_of(model))


def heads_of(model: str) -> Heads:
    """Returns the heads of MNIST (`mlp`) or CIFAR-100 (`cnn`)."""
    return task_heads(NUM_OUTPUTS[model], None if model == "mlp" else 5)


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


def build(learner: str, model: str, order: str, loss: NetworkLoss) -> Learner:
    """Returns a learner with the sizes of the paper."""
    settings: dict[str, Any] = dict(_RATES[learner])
    if learner != "online":
        settings |= {"memory_size": MEMORY, "replay_size": REPLAY}
    if learner in (*_META, "la_er"):
        settings["inner_steps"] = INNER_STEPS[model]
    if learner in _META:
        settings["first_order"] = order == "first"
    if learner in _DARK:
        settings |= {"apply": loss.apply, "heads": heads_of(model)}
    return LEARNERS[learner](loss, **settings)


def matrix_product() -> Call:
    """Returns a function that multiplies two square matrices."""
    matrix = jax.random.normal(jax.random.key(0), (MATRIX_SIDE, MATRIX_SIDE))
    multiply = jax.jit(jnp.matmul)
    jax.block_until_ready(multiply(matrix, matrix))
    return lambda: multiply(matrix, matrix)
