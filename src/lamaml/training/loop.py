"""The training loop: tasks, epochs, batches, glances, evaluation.

It yields checkpoints. The caller draws progress, writes files, or stops.
"""

import functools
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from lamaml._trees import all_finite, pad_rows
from lamaml.errors import Diverged, InvalidArgument, require
from lamaml.evaluation.accuracy import evaluator, row_tasks
from lamaml.training.checkpoint import Checkpoint, Seconds
from lamaml.training.compile import compiled_ahead, compiled_update, prepare
from lamaml.training.keys import RunKeys, fold, keys_from_seed
from lamaml.training.schedule import Schedule
from lamaml.types import Batch, Info, Learner, Model, State, Stream, Task

SPLITS = ("test", "validation")
MOST_FULL_ROWS = 20  # of the accuracy matrix
CLOSED_LOSS = 1e20  # a lower bound of the loss of a row whose class is outside its head


def train(
    stream: Stream,
    model: Model,
    learner: Learner,
    schedule: Schedule,
    seed: int,
    *,
    every: int = 100,
    start: Checkpoint | None = None,
    stop: Callable[[], bool] = lambda: False,
    split: str = "test",
) -> Iterator[Checkpoint]:
    """Train a learner on a stream; yield a checkpoint after every `every` updates and each task.

    Args:
      stream: the tasks.
      model: the network whose weights are learned.
      learner: the algorithm.
      schedule: batch size, epochs and glances.
      seed: determines every random draw of the run.
      every: number of updates between checkpoints.
      start: the checkpoint to continue from; None for the beginning.
      stop: called after every update and task; once it returns True, a last checkpoint follows.
      split: the rows that accuracy is measured on, "test" or "validation".

    Raises:
      Diverged: a loss or a number of the state is no longer finite.
      InvalidArgument: the learner does not fit the stream: its loss lacks the heads of the tasks,
        or it waits for the end of a task where there are no tasks.

    Examples:
      >>> from lamaml import Schedule, learners, load_stream, models
      >>> stream = load_stream("digits_rotations", seed=0, num_tasks=2, num_samples=50)
      >>> model = models.mlp(64, stream.num_classes)
      >>> loss = models.cross_entropy(model)
      >>> learner = learners.er(loss, learning_rate=0.1, memory_size=50)
      >>> for at in train(stream, model, learner, Schedule(epochs=5), seed=0):
      ...     pass
      >>> at.task, bool(at.retained > 0.5)
      (2, True)
    """
    require(every > 0, "every", every, "at least 1")
    require(split in SPLITS, "split", split, " or ".join(SPLITS))
    for number, task in enumerate(stream.tasks):
        what = f"{split} rows of task {number + 1}"
        require(len(getattr(task, split)) > 0, what, 0, "at least 1")
    run = _Run(stream, model, learner, schedule, seed, split)
    at = start._replace(infos={}) if start else run.begin()
    for index in range(at.task, len(stream.tasks)):
        rows = run.load(stream.tasks[index], index)
        while at.update < rows.num_updates:
            end = min(at.update + every, rows.num_updates)
            at = run.advance(at, rows, range(at.update, end), stop)
            stopping = stop()  # before the yield, so that the caller can tell the last checkpoint
            if at.update < rows.num_updates or stopping:
                yield at
            if stopping:
                return
        at = run.finish(at)
        stopping = stop()
        yield at
        if stopping:
            return


def initial_state(stream: Stream, model: Model, learner: Learner, seed: int) -> State:
    """Return the state of a run before its first update."""
    key = keys_from_seed(RunKeys, seed).init
    row = jnp.asarray(stream.tasks[0].train.x[:1])
    one = prepare(row, key, stream.augment, stream.preprocess)
    params = model.init(key)
    num_outputs = jax.eval_shape(model.apply, params, one).shape[-1]
    allowed = f"at least {stream.num_classes}, the stream's classes"
    require(num_outputs >= stream.num_classes, "outputs of the model", num_outputs, allowed)
    label = jnp.zeros(1, jnp.int32)
    state = learner.init(params, Batch(one, label, label, jnp.ones(1)))
    return jax.tree.map(jnp.asarray, state)


class _TaskData(NamedTuple):
    """A task's training rows on the device, padded to the length of the longest task."""

    task: int
    x: jax.Array
    y: jax.Array
    row_task: jax.Array
    num_rows: int
    num_batches: int
    num_updates: int


class _Run:
    """The compiled programs of one run, and the steps of the loop above."""

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
        self.seed, self.keys = seed, keys_from_seed(RunKeys, seed)
        self.longest = max(len(task.train) for task in stream.tasks)
        check_task_ends(stream, learner)
        self.accuracy = evaluator(model, learner, stream)
        self.end_task = compiled_ahead(learner.end_task) if learner.end_task else None
        self.update = compiled_update(
            learner, schedule.batch_size, schedule.glances, stream.augment, stream.preprocess
        )
        self.program: Any = None  # of `update`, once it is compiled
        self.order = _orders(stream, schedule.batch_size, self.longest, self.keys.order)

    def begin(self) -> Checkpoint:
        """Return the checkpoint before the first update, with the accuracy of the initial state."""
        tasks = self.stream.tasks
        state = initial_state(self.stream, self.model, self.learner, self.seed)
        clock = time.perf_counter()
        baseline = np.array([self._score(state, i) for i in range(len(tasks))])
        seconds = Seconds(evaluate=time.perf_counter() - clock)
        matrix = np.full((len(tasks), len(tasks)), np.nan)
        return Checkpoint(0, 0, state, matrix, baseline, {}, seconds)

    def load(self, task: Task, index: int) -> _TaskData:
        """Put a task's training rows on the device."""
        num_batches = -(-len(task.train) // self.schedule.batch_size)
        number = 0 if self.stream.is_task_free else index
        row_task = row_tasks(task.train.y, number, self.stream.classes_per_task)
        return _TaskData(
            index,
            jnp.asarray(pad_rows(task.train.x, self.longest)),
            jnp.asarray(pad_rows(task.train.y.astype(np.int32), self.longest)),
            jnp.asarray(pad_rows(row_task, self.longest)),
            len(task.train),
            num_batches,
            num_batches * self.schedule.epochs * self.schedule.glances,
        )

    def advance(
        self, at: Checkpoint, rows: _TaskData, updates: range, stop: Callable[[], bool]
    ) -> Checkpoint:
        """Make updates of one task until `stop` returns True."""
        clock = time.perf_counter()
        if self.program is None:
            self.compile(at.state, rows, updates[0])
        compiled, clock = time.perf_counter() - clock, time.perf_counter()
        before, state, infos = _copy(at.state), at.state, []
        for update in updates:
            state, info = self.step(state, rows, update)
            infos.append(info)
            if stop():
                break
        require("loss" in infos[0], "diagnostics of an update", sorted(infos[0]), "with a 'loss'")
        gathered = {name: np.array([info[name] for info in infos]) for name in infos[0]}
        spent = time.perf_counter() - clock
        # The loss of an update is that of the weights before it: neither check replaces the other.
        if not (np.isfinite(gathered["loss"]).all() and all_finite(state)):
            raise self.divergence(before, rows, updates)
        past = at.seconds
        return at._replace(
            state=state,
            update=updates[len(infos) - 1] + 1,
            infos=gathered,
            seconds=past._replace(compile=past.compile + compiled, train=past.train + spent),
        )

    def compile(self, state: State, rows: _TaskData, update: int) -> None:
        """Compile everything that an update needs, so that it is not timed as training."""
        self.program = self.update.program_for(*self._arguments(state, rows, update))
        jax.block_until_ready((_copy(state), all_finite(state)))
        if self.stream.classes_per_task is not None:
            self._check_heads(state, rows, update)

    def _check_heads(self, state: State, rows: _TaskData, update: int) -> None:
        """Raise InvalidArgument unless the loss knows which outputs belong to a task.

        Every other row of the next batch is given a class outside its head. A loss with heads
        closes the output of that class, which makes its loss enormous; a loss without them cannot
        tell. The state is a copy, and nothing is learned from it.
        """
        size, num_classes = self.stream.classes_per_task or 1, self.stream.num_classes
        if num_classes <= size:
            return
        copied, x, y, row_task, order, counters, keys = self._arguments(_copy(state), rows, update)
        places = jnp.ravel(order[counters[4]])[::2]
        y = y.at[places].set((y[places] + size) % num_classes)
        _, info = self.program(copied, x, y, row_task, order, counters, keys)
        if 0 < float(info["loss"]) < CLOSED_LOSS:
            raise InvalidArgument(
                f"loss without the heads of {self.stream.name}: its tasks own {size} classes each, "
                "so build it as cross_entropy(model, task_heads(stream.num_classes, "
                "stream.classes_per_task))"
            )

    def step(self, state: State, rows: _TaskData, update: int) -> tuple[State, Info]:
        """Make one update."""
        found: tuple[State, Info] = self.program(*self._arguments(state, rows, update))
        return found

    def _arguments(self, state: State, rows: _TaskData, update: int) -> tuple[Any, ...]:
        shape = (self.schedule.epochs, rows.num_batches, self.schedule.glances)
        now = np.unravel_index(update, shape)
        order = self.order(rows.task, rows.num_rows, int(now[0]))
        counters = np.array([rows.task, update, rows.num_rows, *now], np.int32)
        return (state, rows.x, rows.y, rows.row_task, order, counters, self.keys)

    def divergence(self, state: State, rows: _TaskData, updates: range) -> Diverged:
        """Repeat updates known to diverge, and return the error for the first that does."""
        for update in updates:
            state, info = self.step(state, rows, update)
            if not (np.isfinite(info["loss"]) and all_finite(state)):
                break
        lost = not np.isfinite(info["loss"])
        what = f"the loss is {info['loss']}" if lost else _not_finite(state)
        task, update = rows.task + 1, update + 1
        return Diverged(f"{what} at task {task}, update {update}", task, update)

    def finish(self, at: Checkpoint) -> Checkpoint:
        """End a task: consolidate, then evaluate the tasks so far and the next."""
        state, seconds = at.state, at.seconds
        if self.end_task:  # never without tasks: `check_task_ends`
            clock, key = time.perf_counter(), fold(self.keys.update, at.task, at.update)
            program = self.end_task.program_for(state, key)
            compiled, clock = time.perf_counter() - clock, time.perf_counter()
            state = jax.block_until_ready(program(state, key))
            spent = time.perf_counter() - clock
            seconds = seconds._replace(
                compile=seconds.compile + compiled, train=seconds.train + spent
            )
            if not all_finite(state):
                what = f"{_not_finite(state)} at the end of task {at.task + 1}"
                raise Diverged(what, at.task + 1, at.update)
        clock = time.perf_counter()
        matrix = at.matrix.copy()
        for task in _evaluated_after(at.task, len(matrix)):
            matrix[at.task, task] = self._score(state, task)
        seconds = seconds._replace(evaluate=seconds.evaluate + time.perf_counter() - clock)
        return at._replace(task=at.task + 1, update=0, state=state, matrix=matrix, seconds=seconds)

    def _score(self, state: State, task: int) -> float:
        return self.accuracy(state, getattr(self.stream.tasks[task], self.split), task)


def check_task_ends(stream: Stream, learner: Learner) -> None:
    """Raise InvalidArgument for a learner that waits for task ends which the stream never has."""
    if stream.is_task_free and learner.end_task is not None:
        raise InvalidArgument(
            f"learner with end_task on {stream.name}: it consolidates when a task ends, and this "
            "stream has no tasks; choose one without, such as er, der or la_maml"
        )


def _orders(
    stream: Stream, batch_size: int, longest: int, key: jax.Array
) -> Callable[[int, int, int], jax.Array]:
    """Return the order of a task's rows as (batches, batch_size); the tail repeats row 0."""
    length, shuffled = -(-longest // batch_size) * batch_size, stream.shuffled

    @functools.lru_cache(maxsize=1)
    def order(task: int, num_rows: int, epoch: int) -> jax.Array:
        rows = jnp.arange(num_rows)
        if shuffled:
            rows = jax.random.permutation(fold(key, task, epoch), rows)
        return jnp.pad(rows, (0, length - num_rows)).reshape(-1, batch_size)

    return order


def _evaluated_after(task: int, num_tasks: int) -> range:
    """Return the tasks evaluated after a task: all so far and the next.

    With more than 20 tasks, most rows of R hold only this task and the next: a full row costs one
    test set per task, and the metrics need only the diagonals and the last row.
    """
    apart = -(-num_tasks // MOST_FULL_ROWS)
    full = (task + 1) % apart == 0 or task + 1 == num_tasks
    return range(0 if full else task, min(task + 2, num_tasks))


@jax.jit
def _copy(state: State) -> State:
    return jax.tree.map(jnp.copy, state)


def _not_finite(state: State) -> str:
    """Return which fields of a state are not finite: "rates are not finite"."""
    fields = [name for name, part in state._asdict().items() if not all_finite(part)]
    return f"{' and '.join(fields)} are not finite"
