"""The cost of checkpoints: how much they slow a run, and how long one takes to write."""

import tempfile
import time
from pathlib import Path

import jax
import numpy as np

from lamaml.bench.records import CheckpointCost
from lamaml.bench.updates import build, problem, rows_of
from lamaml.experiments.storing.checkpoints import (
    checkpoint_writer,
    on_host,
    write_checkpoint,
)
from lamaml.experiments.storing.origin import Origin
from lamaml.experiments.storing.records import CHECKPOINT_EVERY
from lamaml.learners import la_maml
from lamaml.models import cross_entropy, mlp
from lamaml.streams.transforms import Scale
from lamaml.training import Checkpoint, Schedule, train
from lamaml.training.checkpoint import Seconds
from lamaml.types import Examples, Learner, Model, State, Stream, Task

ROUNDS = 3
NUM_TASKS = 20  # of MNIST Rotations
_ORIGIN = Origin({}, {}, "", None)


def checkpoint_cost(threads: int) -> CheckpointCost:
    """Measures what checkpoints cost an MNIST run, and how long one of the CIFAR learner takes.

    Two runs differ by more than checkpoints cost. So the waiting itself is timed, on two tasks of
    MNIST's size: for each checkpoint to be handed to the thread that writes it and, once, for the
    last to be on the disk. Best of several rounds.
    """
    stream, model = _two_tasks(), mlp(784, 10)
    learner = la_maml(
        cross_entropy(model),
        initial_rate=0.01,
        hyper_rate=0.01,
        inner_steps=10,
        memory_size=200,
        first_order=True,
    )
    rounds = [_seconds(stream, model, learner) for _ in range(ROUNDS)]
    learning = min(total - handed_over - last for total, handed_over, last in rounds)
    handed_over = min(handed_over for _, handed_over, _ in rounds)
    last = min(last for _, _, last in rounds)
    share = (handed_over + last / (NUM_TASKS / 2)) / learning
    cifar = _milliseconds_to_write(_cifar_state())
    return CheckpointCost(threads, learning * (1 + share), learning, share, cifar)


def _cifar_state() -> State:
    network, loss = problem("cnn")
    learner = build("la_maml", "cnn", "first", loss)
    return learner.init(network.init(jax.random.key(0)), rows_of("cnn", 1))


def _milliseconds_to_write(state: State) -> float:
    """Returns the time to copy a state from the device and write it; best of several rounds."""
    at = Checkpoint(1, 0, state, np.zeros((20, 20)), np.zeros(20), {}, Seconds())
    best = float("inf")
    with tempfile.TemporaryDirectory(prefix="lamaml-") as folder:
        for update in range(ROUNDS):
            clock = time.perf_counter()
            write_checkpoint(Path(folder), on_host(at._replace(update=update)), _ORIGIN)
            best = min(best, time.perf_counter() - clock)
    return 1e3 * best


def _seconds(stream: Stream, model: Model, learner: Learner) -> tuple[float, float, float]:
    """Returns seconds: of the run without compilation, of handing over, of writing the last."""
    with tempfile.TemporaryDirectory(prefix="lamaml-") as name:
        folder = Path(name)
        log = folder / "diagnostics.jsonl"
        log.touch()
        clock, since, handed_over = time.perf_counter(), 0, 0.0
        with checkpoint_writer(folder, _ORIGIN, log) as write:
            for at in train(stream, model, learner, Schedule(glances=5), seed=0):
                since += at.num_new
                if at.update == 0 or since >= CHECKPOINT_EVERY["mlp"]:
                    jax.block_until_ready(at.state)
                    before, since = time.perf_counter(), 0
                    write(at)
                    handed_over += time.perf_counter() - before
            jax.block_until_ready(at.state)
            done = time.perf_counter()
        end = time.perf_counter()
        return end - clock - at.seconds.compile, handed_over, end - done


def _two_tasks() -> Stream:
    rng = np.random.default_rng(0)

    def rows(count: int) -> Examples:
        x = rng.integers(0, 256, (count, 784), np.uint8)
        return Examples(x, rng.integers(0, 10, count).astype(np.int32))

    tasks = [Task(f"random {number}", rows(1000), rows(1), rows(1)) for number in range(2)]
    return Stream("random", tasks, 10, None, Scale(255))
