"""A learner under test, and the problems that it is tested on."""

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lamaml.models import cross_entropy, mlp, task_heads
from lamaml.streams import digits_rotations
from lamaml.training import Checkpoint, Schedule, train
from lamaml.types import Batch, Info, Learner, Model, Params, State, Stream

NUM_TASKS, CLASSES_PER_TASK, MEMORY_SIZE, BATCH_SIZE = 3, 2, 12, 10  # of the small problem
NUM_STEPS = 2 * NUM_TASKS
TASK_SIZE = 145  # rows per task of the embedded digits


class Subject:
    """A learner under test, and what it does on a small problem and on the embedded digits.

    The small problem has three tasks of two classes, two batches of ten rows per task: more rows
    than the memory holds.
    """

    def __init__(self, builder: Callable[..., Learner], settings: dict[str, Any]) -> None:
        self.builder, self.settings = builder, settings
        self.name = getattr(builder, "__name__", repr(builder))
        self.parameters = inspect.signature(builder).parameters
        self.model = mlp(4, NUM_TASKS * CLASSES_PER_TASK, hidden_sizes=(5,))

    @functools.cached_property
    def params(self) -> Params:
        """Weights for the small problem."""
        return self.model.init(jax.random.key(0))

    def build(self, model: Model, num_tasks: int, heads: Any, **changes: Any) -> Learner:
        """Returns the learner for a problem, with the facts its signature asks for."""
        num_classes = jax.eval_shape(model.init, jax.random.key(0))["head"]["bias"].shape[0]
        facts = {"apply": model.apply, "heads": heads, "num_tasks": num_tasks}
        facts |= {"num_classes": num_classes, "task_size": TASK_SIZE}
        asked = {name: fact for name, fact in facts.items() if name in self.parameters}
        changed = {name: value for name, value in changes.items() if name in self.parameters}
        return self.builder(cross_entropy(model, heads), **(asked | self.settings | changed))

    def small(self, **changes: Any) -> Learner:
        """Returns a learner, built anew, for the small problem."""
        heads = task_heads(NUM_TASKS * CLASSES_PER_TASK, CLASSES_PER_TASK)
        return self.build(self.model, NUM_TASKS, heads, **({"memory_size": MEMORY_SIZE} | changes))

    @functools.cached_property
    def compiled(self) -> Learner:
        """The learner for the small problem, its functions compiled."""
        return compiled(self.small())

    def start(self, learner: Learner | None = None) -> State:
        """Returns the first state."""
        return (learner or self.compiled).init(self.fresh_params(), small_batch(0))

    def fresh_params(self) -> Params:
        """Returns weights in containers of their own, which a careless learner may change."""
        return jax.tree.map(lambda leaf: leaf, self.params)

    def follow(
        self,
        learner: Learner | None = None,
        state: State = None,
        first_step: int = 0,
        **padding: float,
    ) -> Iterator[tuple[State, Info]]:
        """Yields state and diagnostics after each step of the small problem."""
        learner = learner or self.compiled
        state = self.start(learner) if state is None else state
        for step in range(first_step, NUM_STEPS):
            batch = small_batch(step, **padding)
            state, info = learner.update(state, batch, jax.random.key(step))
            if learner.end_task and step % 2:
                state = learner.end_task(state, jax.random.key(100 + step))
            yield state, info

    @functools.cached_property
    def steps(self) -> list[tuple[State, Info]]:
        """State and diagnostics after each step of the small problem."""
        return list(self.follow())

    @functools.cached_property
    def trained(self) -> Checkpoint:
        """The last checkpoint of a run on the embedded digits."""
        stream, model = digits(), mlp(64, 10, hidden_sizes=(50,))
        learner = self.build(model, len(stream.tasks), None)
        schedule = Schedule(batch_size=BATCH_SIZE, epochs=2, glances=3)
        *_, last = train(stream, model, learner, schedule, seed=0, every=1000)
        return last


def small_batch(step: int, num_real: float = BATCH_SIZE, garbage: float = 0.0) -> Batch:
    """Returns a batch of the small problem.

    Args:
      step: from 0 to `NUM_STEPS` − 1; two per task.
      num_real: rows of weight 1; the others are padding.
      garbage: what the padding holds.
    """
    rng = np.random.default_rng(step)
    task = step // 2
    y = CLASSES_PER_TASK * task + rng.integers(0, CLASSES_PER_TASK, BATCH_SIZE)
    x = rng.normal(size=(BATCH_SIZE, 4))
    x[:, 0] += 2 * (y % CLASSES_PER_TASK)
    real = np.arange(BATCH_SIZE) < num_real
    x[~real] = garbage
    return Batch(
        jnp.asarray(x, jnp.float32),
        jnp.asarray(y, jnp.int32),
        jnp.full(BATCH_SIZE, task, jnp.int32),
        jnp.asarray(real, jnp.float32),
    )


@functools.cache
def digits() -> Stream:
    """Returns the embedded stream."""
    return digits_rotations(seed=0, num_samples=TASK_SIZE)  # the last batch is half padding


def compiled(learner: Learner) -> Learner:
    """Returns the learner with its functions compiled."""
    end_task = jax.jit(learner.end_task) if learner.end_task else None
    return learner._replace(update=jax.jit(learner.update), end_task=end_task)


def difference(one: Any, other: Any) -> str | None:
    """Returns where two trees differ in a bit, or None."""
    leaves, twins = dict(jax.tree.leaves_with_path(one)), dict(jax.tree.leaves_with_path(other))
    if leaves.keys() != twins.keys():
        return "the structure"
    for path, leaf in leaves.items():
        if np.asarray(leaf).tobytes() != np.asarray(twins[path]).tobytes():
            return jax.tree_util.keystr(path).lstrip(".") or "the value"
    return None
