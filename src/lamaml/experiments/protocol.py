"""The one training loop: tasks, epochs, batches, glances, evaluation.

It yields checkpoints; whoever consumes them draws progress, writes files, or stops.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from lamaml.errors import Diverged, require
from lamaml.evaluation import evaluator
from lamaml.evaluation.accuracy import pad_rows, row_tasks
from lamaml.types import Batch, Info, Learner, Model, State, Stream, Task

MOST_FULL_ROWS = 20  # of the accuracy matrix


@dataclass(frozen=True)
class Schedule:
    """How a stream is shown: single pass is one epoch with glances, multiple passes are epochs."""

    batch_size: int = 10
    epochs: int = 1
    glances: int = 1

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            require(value > 0, name, value, "at least 1")


class Keys(NamedTuple):
    """The random streams of a run, by purpose; each is folded with a counter where it is used."""

    init: jax.Array
    order: jax.Array
    augmentation: jax.Array
    glance: jax.Array
    update: jax.Array

    @classmethod
    def from_seed(cls, seed: int) -> "Keys":
        """The keys of a run."""
        return cls(*jax.random.split(jax.random.key(seed), len(cls._fields)))


class Seconds(NamedTuple):
    """Where the time went."""

    compile: float = 0.0
    train: float = 0.0
    evaluate: float = 0.0


class Checkpoint(NamedTuple):
    """Everything the loop needs to go on from here, and what it has found out so far.

    The state's buffers are reused by the next update: copy what must outlive it.
    """

    task: int  # the task the next update belongs to; after the last one, the number of tasks
    update: int  # updates of that task already made
    state: State
    matrix: np.ndarray  # R[i, t], NaN where not evaluated
    baseline: np.ndarray  # b[t]
    infos: dict[str, np.ndarray]  # diagnostics of the updates since the last checkpoint
    seconds: Seconds

    @property
    def retained(self) -> float:
        """Mean accuracy over the tasks finished so far, at the last evaluation of all of them."""
        rows = [self.matrix[task, : task + 1] for task in range(self.task)]
        complete = [row.mean() for row in rows if np.isfinite(row).all()]
        return float(complete[-1]) if complete else float("nan")


def updates_per_task(stream: Stream, schedule: Schedule) -> list[int]:
    """How many updates each task takes."""
    passes = schedule.epochs * schedule.glances
    return [-(-len(task.train) // schedule.batch_size) * passes for task in stream.tasks]


def train(
    stream: Stream,
    model: Model,
    learner: Learner,
    schedule: Schedule,
    seed: int,
    *,
    every: int = 100,
    start: Checkpoint | None = None,
    split: str = "test",
) -> Iterator[Checkpoint]:
    """Show a stream to a learner, and yield a checkpoint every so many updates and at task ends.

    Args:
      stream: the tasks.
      model: the network whose weights are learned.
      learner: the algorithm.
      schedule: batch size, epochs and glances.
      seed: decides every random draw of the run.
      every: updates from one checkpoint to the next.
      start: where to go on from; None for the beginning.
      split: the rows accuracy is measured on, "test" or "validation".

    Raises:
      Diverged: a loss is no longer a finite number.
    """
    run = _Run(stream, model, learner, schedule, seed, split)
    at = start or run.begin()
    for index in range(at.task, len(stream.tasks)):
        task = stream.tasks[index]
        rows = run.load(task, index)
        for first in range(at.update, rows.num_updates, every):
            at = run.advance(at, rows, range(first, min(first + every, rows.num_updates)))
            if at.update < rows.num_updates:
                yield at
        at = run.finish(at)
        yield at


class _Rows(NamedTuple):
    """A task's training rows on the device, filled up to the longest task's number."""

    task: int
    x: jax.Array
    y: jax.Array
    row_task: jax.Array
    num_rows: int
    num_batches: int
    num_updates: int


class _Run:
    """The compiled pieces of one run, and the steps the loop above is made of."""

    def __init__(
        self,
        stream: Stream,
        model: Model,
        learner: Learner,
        schedule: Schedule,
        seed: int,
        split: str,
    ) -> None:
        self.stream, self.schedule, self.split = stream, schedule, split
        self.learner, self.model = learner, model
        self.keys = Keys.from_seed(seed)
        self.longest = max(len(task.train) for task in stream.tasks)
        self.accuracy = evaluator(model, learner, stream)
        self.end_task = jax.jit(learner.end_task, donate_argnums=0) if learner.end_task else None
        self.glance = _compiled_once(jax.jit(self._glance, donate_argnums=0))

    def begin(self) -> Checkpoint:
        """The untrained state and what it scores."""
        tasks = self.stream.tasks
        one = self._prepare(jnp.asarray(tasks[0].train.x[:1]), self.keys.init)
        label = jnp.zeros(1, jnp.int32)
        batch = Batch(one, label, label, jnp.ones(1))
        state = self.learner.init(self.model.init(self.keys.init), batch)
        clock = time.perf_counter()
        baseline = np.array([self._score(state, i) for i in range(len(tasks))])
        seconds = Seconds(evaluate=time.perf_counter() - clock)
        matrix = np.full((len(tasks), len(tasks)), np.nan)
        return Checkpoint(0, 0, state, matrix, baseline, {}, seconds)

    def load(self, task: Task, index: int) -> _Rows:
        """Put a task's training rows on the device."""
        num_batches = -(-len(task.train) // self.schedule.batch_size)
        return _Rows(
            index,
            jnp.asarray(pad_rows(task.train.x, self.longest)),
            jnp.asarray(pad_rows(task.train.y.astype(np.int32), self.longest)),
            jnp.asarray(
                pad_rows(row_tasks(task.train.y, index, self.stream.classes_per_task), self.longest)
            ),
            len(task.train),
            num_batches,
            num_batches * self.schedule.epochs * self.schedule.glances,
        )

    def advance(self, at: Checkpoint, rows: _Rows, updates: range) -> Checkpoint:
        """Make updates of one task."""
        clock, compiling = time.perf_counter(), self.glance.seconds
        state, infos, epoch, order = at.state, [], -1, None
        shape = (self.schedule.epochs, rows.num_batches, self.schedule.glances)
        for update in updates:
            now = np.unravel_index(update, shape)
            if now[0] != epoch:
                epoch = int(now[0])
                order = self._order(rows, epoch)
            place = np.array([rows.task, update, rows.num_rows, *now], np.int32)
            state, info = self.glance(state, rows.x, rows.y, rows.row_task, order, place, self.keys)
            infos.append(info)
        gathered = {name: np.array([info[name] for info in infos]) for name in infos[0]}
        compiled = self.glance.seconds - compiling
        spent = time.perf_counter() - clock - compiled
        wrong = np.flatnonzero(~np.isfinite(gathered["loss"]))
        if len(wrong):
            place_text = f"task {rows.task + 1}, update {updates[int(wrong[0])] + 1}"
            raise Diverged(f"the loss is {gathered['loss'][wrong[0]]} at {place_text}")
        past = at.seconds
        return at._replace(
            state=state,
            update=updates[-1] + 1,
            infos=gathered,
            seconds=past._replace(compile=past.compile + compiled, train=past.train + spent),
        )

    def finish(self, at: Checkpoint) -> Checkpoint:
        """End a task: consolidate, then measure what is known of the tasks so far and the next."""
        state = at.state
        if self.end_task:
            state = self.end_task(state, _fold(self.keys.update, at.task, at.update))
        clock = time.perf_counter()
        matrix = at.matrix.copy()
        for task in _evaluated_after(at.task, len(matrix)):
            matrix[at.task, task] = self._score(state, task)
        spent = at.seconds.evaluate + time.perf_counter() - clock
        seconds = at.seconds._replace(evaluate=spent)
        return at._replace(task=at.task + 1, update=0, state=state, matrix=matrix, seconds=seconds)

    def _score(self, state: State, task: int) -> float:
        return self.accuracy(state, getattr(self.stream.tasks[task], self.split), task)

    def _prepare(self, x: jax.Array, key: jax.Array) -> jax.Array:
        return self.stream.augment(x, key) if self.stream.augment else self.stream.preprocess(x)

    def _order(self, rows: _Rows, epoch: int) -> jax.Array:
        """The order rows are shown in, as (batches, batch_size); its tail repeats row 0."""
        order = jnp.arange(rows.num_rows)
        if self.stream.shuffled:
            key = jax.random.fold_in(jax.random.fold_in(self.keys.order, rows.task), epoch)
            order = jax.random.permutation(key, order)
        length = -(-self.longest // self.schedule.batch_size) * self.schedule.batch_size
        return jnp.pad(order, (0, length - rows.num_rows)).reshape(-1, self.schedule.batch_size)

    def _glance(
        self,
        state: State,
        x: jax.Array,
        y: jax.Array,
        row_task: jax.Array,
        order: jax.Array,
        place: jax.Array,
        keys: Keys,
    ) -> tuple[State, Info]:
        """One update: fetch and augment the batch, shuffle it for this glance, learn from it."""
        task, update, num_rows, epoch, number, glance = place
        rows = order[number]
        position = number * self.schedule.batch_size + jnp.arange(self.schedule.batch_size)
        weight = (position < num_rows).astype(jnp.float32)
        # The same key in every glance of an epoch: a batch is augmented once.
        seen = _fold(keys.augmentation, task, epoch, number)
        here = _fold(keys.glance, task, update)
        lot = jax.random.uniform(here, weight.shape)
        shuffle = jnp.argsort(jnp.where(weight > 0, lot, 2.0))  # padding stays last
        batch = Batch(
            self._prepare(x[rows], seen)[shuffle],
            y[rows][shuffle],
            row_task[rows][shuffle],
            weight[shuffle],
            first=(epoch == 0) & (glance == 0),
            last=(epoch == 0) & (glance == self.schedule.glances - 1),
        )
        return self.learner.update(state, batch, _fold(keys.update, task, update))


def _evaluated_after(task: int, num_tasks: int) -> range:
    """The tasks scored after a task: all so far and the next.

    Of more than 20 tasks only every so many-th and the last are followed by all: a row of R costs a
    test set a task, and the metrics need but the diagonals and the last row.
    """
    apart = -(-num_tasks // MOST_FULL_ROWS)
    full = (task + 1) % apart == 0 or task + 1 == num_tasks
    return range(0 if full else task, min(task + 2, num_tasks))


def _fold(key: jax.Array, *counters: jax.Array | int) -> jax.Array:
    for counter in counters:
        key = jax.random.fold_in(key, counter)
    return key


class _compiled_once:  # noqa: N801  (reads as the decorator it is)
    """A jitted function, compiled ahead of its first call, so that compiling can be timed apart."""

    def __init__(self, function: Any) -> None:
        self.function, self.seconds = function, 0.0
        self.compiled: Callable[..., Any] | None = None

    def __call__(self, *arguments: Any) -> Any:
        if self.compiled is None:
            clock = time.perf_counter()
            self.compiled = self.function.lower(*arguments).compile()
            self.seconds += time.perf_counter() - clock
        return self.compiled(*arguments)
