"""The one training loop: tasks, epochs, batches, glances, evaluation.

It yields checkpoints; whoever consumes them draws progress, writes files, or stops.
"""

import functools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from lamaml.errors import Diverged, require
from lamaml.evaluation.accuracy import evaluator, pad_rows, row_tasks
from lamaml.types import (
    Augment,
    Batch,
    Info,
    Learner,
    Model,
    Preprocess,
    State,
    Stream,
    Task,
)

SPLITS = ("test", "validation")
MOST_FULL_ROWS = 20  # of the accuracy matrix
_PROGRAMS_KEPT = 8  # of learners, for the next run of the same one


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
    def num_new(self) -> int:
        """The updates made since the last checkpoint."""
        return len(self.infos["loss"]) if self.infos else 0

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
    stop: Callable[[], bool] = lambda: False,
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
      stop: asked after every update and task; once it says so, a last checkpoint follows.
      split: the rows accuracy is measured on, "test" or "validation".

    Raises:
      Diverged: a loss or a number of the state is no longer finite.
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
            stopping = stop()  # asked before the yield: whoever is given the last one can know it
            if at.update < rows.num_updates or stopping:
                yield at
            if stopping:
                return
        at = run.finish(at)
        stopping = stop()
        yield at
        if stopping:
            return


def untrained(stream: Stream, model: Model, learner: Learner, seed: int) -> State:
    """The state a run begins with."""
    key = Keys.from_seed(seed).init
    row = jnp.asarray(stream.tasks[0].train.x[:1])
    one = _prepare(row, key, stream.augment, stream.preprocess)
    params = model.init(key)
    num_outputs = jax.eval_shape(model.apply, params, one).shape[-1]
    allowed = f"at least {stream.num_classes}, the stream's classes"
    require(num_outputs >= stream.num_classes, "outputs of the model", num_outputs, allowed)
    label = jnp.zeros(1, jnp.int32)
    state = learner.init(params, Batch(one, label, label, jnp.ones(1)))
    return jax.tree.map(jnp.asarray, state)


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
        self.seed, self.keys = seed, Keys.from_seed(seed)
        self.longest = max(len(task.train) for task in stream.tasks)
        self.accuracy = evaluator(model, learner, stream)
        self.end_task = _compiled_ahead(learner.end_task) if learner.end_task else None
        self.glance = _glance_of(learner, schedule, stream.augment, stream.preprocess)
        self.program: Any = None  # of `glance`, once it is compiled
        self.order = _orders(stream, schedule.batch_size, self.longest, self.keys.order)

    def begin(self) -> Checkpoint:
        """The untrained state and what it scores."""
        tasks = self.stream.tasks
        state = untrained(self.stream, self.model, self.learner, self.seed)
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

    def advance(
        self, at: Checkpoint, rows: _Rows, updates: range, stop: Callable[[], bool]
    ) -> Checkpoint:
        """Make updates of one task, until it is time to stop."""
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
        if not (np.isfinite(gathered["loss"]).all() and _finite(state)):
            raise self.divergence(before, rows, updates)
        past = at.seconds
        return at._replace(
            state=state,
            update=updates[len(infos) - 1] + 1,
            infos=gathered,
            seconds=past._replace(compile=past.compile + compiled, train=past.train + spent),
        )

    def compile(self, state: State, rows: _Rows, update: int) -> None:
        """Have everything compiled that an update needs: that is not training."""
        self.program = self.glance.program_for(*self._arguments(state, rows, update))
        jax.block_until_ready((_copy(state), _finite(state)))

    def step(self, state: State, rows: _Rows, update: int) -> tuple[State, Info]:
        """Make one update."""
        found: tuple[State, Info] = self.program(*self._arguments(state, rows, update))
        return found

    def _arguments(self, state: State, rows: _Rows, update: int) -> tuple[Any, ...]:
        shape = (self.schedule.epochs, rows.num_batches, self.schedule.glances)
        now = np.unravel_index(update, shape)
        order = self.order(rows.task, rows.num_rows, int(now[0]))
        place = np.array([rows.task, update, rows.num_rows, *now], np.int32)
        return (state, rows.x, rows.y, rows.row_task, order, place, self.keys)

    def divergence(self, state: State, rows: _Rows, updates: range) -> Diverged:
        """Make updates again, known to diverge, to find the first that does."""
        for update in updates:
            state, info = self.step(state, rows, update)
            if not (np.isfinite(info["loss"]) and _finite(state)):
                break
        lost = not np.isfinite(info["loss"])
        what = f"the loss is {info['loss']}" if lost else _not_finite(state)
        task, update = rows.task + 1, update + 1
        return Diverged(f"{what} at task {task}, update {update}", task, update)

    def finish(self, at: Checkpoint) -> Checkpoint:
        """End a task: consolidate, then measure what is known of the tasks so far and the next."""
        state, seconds = at.state, at.seconds
        if self.end_task:
            clock, key = time.perf_counter(), _fold(self.keys.update, at.task, at.update)
            program = self.end_task.program_for(state, key)
            compiled, clock = time.perf_counter() - clock, time.perf_counter()
            state = jax.block_until_ready(program(state, key))
            spent = time.perf_counter() - clock
            seconds = seconds._replace(
                compile=seconds.compile + compiled, train=seconds.train + spent
            )
            if not _finite(state):
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


def _orders(
    stream: Stream, batch_size: int, longest: int, key: jax.Array
) -> Callable[[int, int, int], jax.Array]:
    """The order a task's rows are shown in, as (batches, batch_size); its tail repeats row 0."""
    length, shuffled = -(-longest // batch_size) * batch_size, stream.shuffled

    @functools.lru_cache(maxsize=1)
    def order(task: int, num_rows: int, epoch: int) -> jax.Array:
        rows = jnp.arange(num_rows)
        if shuffled:
            rows = jax.random.permutation(_fold(key, task, epoch), rows)
        return jnp.pad(rows, (0, length - num_rows)).reshape(-1, batch_size)

    return order


@functools.lru_cache(maxsize=_PROGRAMS_KEPT)
def _glance_of(
    learner: Learner, schedule: Schedule, augment: Augment | None, preprocess: Preprocess
) -> "_CompiledAhead":
    """One update: fetch and augment the batch, shuffle it for this glance, learn from it."""

    def glance(
        state: State,
        x: jax.Array,
        y: jax.Array,
        row_task: jax.Array,
        order: jax.Array,
        place: jax.Array,
        keys: Keys,
    ) -> tuple[State, Info]:
        task, update, num_rows, epoch, number, look = place
        rows = order[number]
        position = number * schedule.batch_size + jnp.arange(schedule.batch_size)
        weight = (position < num_rows).astype(jnp.float32)
        # The same key in every glance of an epoch: a batch is augmented once.
        seen = _fold(keys.augmentation, task, epoch, number)
        here = _fold(keys.glance, task, update)
        lot = jax.random.uniform(here, weight.shape)
        shuffle = jnp.argsort(jnp.where(weight > 0, lot, 2.0))  # padding stays last
        batch = Batch(
            _prepare(x[rows], seen, augment, preprocess)[shuffle],
            y[rows][shuffle],
            row_task[rows][shuffle],
            weight[shuffle],
            first=(epoch == 0) & (look == 0),
            last=(epoch == 0) & (look == schedule.glances - 1),
        )
        return learner.update(state, batch, _fold(keys.update, task, update))

    return _CompiledAhead(glance)


def _evaluated_after(task: int, num_tasks: int) -> range:
    """The tasks scored after a task: all so far and the next.

    Of more than 20 tasks only every so many-th and the last are followed by all: a row of R costs a
    test set a task, and the metrics need but the diagonals and the last row.
    """
    apart = -(-num_tasks // MOST_FULL_ROWS)
    full = (task + 1) % apart == 0 or task + 1 == num_tasks
    return range(0 if full else task, min(task + 2, num_tasks))


def _prepare(
    x: jax.Array, key: jax.Array, augment: Augment | None, preprocess: Preprocess
) -> jax.Array:
    return augment(x, key) if augment else preprocess(x)


@jax.jit
def _copy(state: State) -> State:
    return jax.tree.map(jnp.copy, state)


@jax.jit
def _finite(tree: Any) -> jax.Array:
    """Whether every number is."""
    numbers = [leaf for leaf in jax.tree.leaves(tree) if jnp.issubdtype(leaf.dtype, jnp.inexact)]
    return jnp.array([jnp.isfinite(leaf).all() for leaf in numbers]).all()


def _not_finite(state: State) -> str:
    """Which fields of a state that has any are not: "rates are not finite"."""
    fields = [name for name, part in state._asdict().items() if not _finite(part)]
    return f"{' and '.join(fields)} are not finite"


def _fold(key: jax.Array, *counters: jax.Array | int) -> jax.Array:
    for counter in counters:
        key = jax.random.fold_in(key, counter)
    return key


class _CompiledAhead:
    """A function compiled ahead of its first call, so that compiling can be timed apart.

    It overwrites its first argument. Runs whose arguments have the same shapes share a program.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = jax.jit(function, donate_argnums=0)
        self.programs: dict[Any, Callable[..., Any]] = {}

    def program_for(self, *arguments: Any) -> Callable[..., Any]:
        """The program for arguments like these."""
        leaves, structure = jax.tree.flatten(arguments)
        shapes = structure, *map(jax.typeof, leaves)
        if shapes not in self.programs:
            self.programs[shapes] = self.function.lower(*arguments).compile()
        return self.programs[shapes]


@functools.lru_cache(maxsize=_PROGRAMS_KEPT)
def _compiled_ahead(function: Callable[..., Any]) -> _CompiledAhead:
    """One for all runs."""
    return _CompiledAhead(function)
