"""What checkpoints cost: how much longer a run takes for them, and how long one takes to write."""

import tempfile
import time
from pathlib import Path

import jax
import numpy as np

from lamaml.experiments.checkpoints import Origin, on_host, write_checkpoint, written_beside
from lamaml.experiments.protocol import Checkpoint, Schedule, Seconds, train
from lamaml.experiments.runs import CHECKPOINT_EVERY
from lamaml.learners import la_maml
from lamaml.models import cross_entropy, mlp
from lamaml.streams.preprocessing import Scale
from lamaml.types import Examples, Learner, Model, State, Stream, Task

ROUNDS = 3
_ORIGIN = Origin({}, {}, "", None)


def slowdown() -> dict[str, float]:
    """A run of the size of two MNIST tasks, with its checkpoints and without; best of several.

    Returns:
      {seconds, seconds_without, slower}, the last as a share.
    """
    stream = _two_tasks()
    model = mlp(784, 10)
    learner = la_maml(
        cross_entropy(model.apply),
        initial_rate=0.01,
        hyper_rate=0.01,
        inner_steps=10,
        memory_size=200,
        first_order=True,
    )
    best = {True: float("inf"), False: float("inf")}
    for _ in range(ROUNDS):
        for is_kept in best:
            best[is_kept] = min(best[is_kept], _seconds(stream, model, learner, is_kept))
    found = {"seconds": best[True], "seconds_without": best[False]}
    return {**found, "slower": best[True] / best[False] - 1}


def milliseconds_to_write(state: State) -> float:
    """To copy a state from the device and have it on the disk; best of several."""
    at = Checkpoint(1, 0, state, np.zeros((20, 20)), np.zeros(20), {}, Seconds())
    best = float("inf")
    with tempfile.TemporaryDirectory(prefix="lamaml-") as folder:
        for update in range(ROUNDS):
            clock = time.perf_counter()
            write_checkpoint(Path(folder), on_host(at._replace(update=update)), _ORIGIN)
            best = min(best, time.perf_counter() - clock)
    return 1e3 * best


def _seconds(stream: Stream, model: Model, learner: Learner, is_kept: bool) -> float:
    """Of a run but for its compilation."""
    with tempfile.TemporaryDirectory(prefix="lamaml-") as name:
        folder = Path(name)
        log = folder / "diagnostics.jsonl"
        log.touch()
        clock, since = time.perf_counter(), 0
        with written_beside(folder, _ORIGIN, log) as write:
            for at in train(stream, model, learner, Schedule(glances=5), seed=0):
                since += at.num_new
                if is_kept and (at.update == 0 or since >= CHECKPOINT_EVERY["mlp"]):
                    write(at)
                    since = 0
        jax.block_until_ready(at.state)
        return time.perf_counter() - clock - at.seconds.compile


def _two_tasks() -> Stream:
    rng = np.random.default_rng(0)

    def rows(count: int) -> Examples:
        x = rng.integers(0, 256, (count, 784), np.uint8)
        return Examples(x, rng.integers(0, 10, count).astype(np.int32))

    tasks = [Task(f"random {number}", rows(1000), rows(1), rows(1)) for number in range(2)]
    return Stream("random", tasks, 10, None, Scale(255))
