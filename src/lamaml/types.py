"""The types that all packages share: batches, learners, models, tasks and streams."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple, Protocol

import jax
import numpy as np

from lamaml.errors import require

Params = Any
"""A pytree of arrays: weights, rates or gradients."""
State = Any
"""A learner's own NamedTuple: what its next update needs."""
Info = dict[str, jax.Array]
"""Diagnostics of one update: scalars by name; `loss` is always present."""


@dataclass(frozen=True)
class Range:
    """Where `lamaml tune` searches a setting: between two positive numbers, on a log scale.

    It stands in the annotation of a setting: `penalty: Annotated[float, Range(1.0, 1000.0)]`.
    """

    low: float
    high: float

    def __str__(self) -> str:
        """The range as [low, high]."""
        return f"[{self.low:g}, {self.high:g}]"


@dataclass(frozen=True)
class Choices:
    """The values of a setting that `lamaml tune` tries; it stands in the setting's annotation."""

    values: tuple[Any, ...]

    def __str__(self) -> str:
        """The values as {a, b}."""
        return f"{{{', '.join(map(str, self.values))}}}"


Rate = Annotated[float, Range(1e-4, 0.3)]
"""A learning rate, with the range of the paper's grid search."""

SCENARIOS = ("task", "domain", "class")
"""Task-incremental: new classes, and a row's task is known at prediction. Domain-incremental: the
same classes, other inputs. Class-incremental: new classes, told apart from all others."""


class Batch(NamedTuple):
    """Labelled rows, as a learner receives them.

    Rows of weight 0 are padding: they enter no loss and no memory. `first` and `last` say whether
    this is the first, and the last, glance at these rows in the first pass over them: memories
    store rows in one of the two. Memories store `position` and `extra` as well where a batch has
    them. A loss is a mean by `weight`, in which only ratios count; `scale` is what a row counts on
    top of that, and no memory stores it.
    """

    x: jax.Array  # (n, ...) float32
    y: jax.Array  # (n,) int32, the class among all classes of the stream
    task: jax.Array  # (n,) int32, the task's index in the stream
    weight: jax.Array  # (n,) float32
    first: jax.Array | bool = True
    last: jax.Array | bool = True
    position: jax.Array | None = None  # (n,) int32, the row's number in the stream
    extra: Params = None  # a pytree of (n, ...) arrays: what a learner keeps with each row
    scale: jax.Array | None = None  # (n,) float32, multiplies the loss of each row; None for 1

    def at_glance(
        self, glance: jax.Array | int, glances: int, *, is_first_pass: jax.Array | bool
    ) -> "Batch":
        """Return the batch with `first` and `last` set for one of its glances, counted from 0."""
        return self._replace(
            first=is_first_pass & (glance == 0), last=is_first_pass & (glance == glances - 1)
        )


Loss = Callable[[Params, Batch], jax.Array]
"""The weighted mean loss of the rows of a batch."""


class Learner(NamedTuple):
    """An algorithm: pure functions closed over its hyper-parameters.

    `init` reads only shapes and dtypes from its batch, to size the memory. `update` is one glance
    and takes the rows of its batch in the given order. `end_task` is for algorithms that
    consolidate at a task boundary, `predict` for those whose prediction is not the largest logit
    of `state.params`; both are None otherwise. A learner whose `predict` chooses the largest of
    outputs of its own, such as a mixture, gives these by `outputs`: probabilities and regressions
    need them.
    """

    init: Callable[[Params, Batch], State]  # (params, batch)
    update: Callable[[State, Batch, jax.Array], tuple[State, Info]]  # (state, batch, key)
    end_task: Callable[[State, jax.Array], State] | None = None  # (state, key)
    predict: Callable[[State, jax.Array, jax.Array], jax.Array] | None = None  # (state, x, task)
    outputs: Callable[[State, jax.Array, jax.Array], jax.Array] | None = None  # (state, x, task)


class FirstLayer(NamedTuple):
    """A first layer that is affine in the data, and the rest of its network.

    apply(params, x) = above(params, inputs(x) @ weight.T + bias), with weight and bias from
    params[name]; `above` reads the other layers of params only.
    """

    name: str  # of the layer in params: {"weight": (units, inputs), "bias": (units,)}
    inputs: Callable[[jax.Array], jax.Array]  # (x) -> (n, inputs)
    above: Callable[[Params, jax.Array], jax.Array]  # (params, pre-activations) -> outputs


class Model(NamedTuple):
    """A network as a pair of pure functions.

    A network whose first layer is affine in the data may say so in `first_layer`: the look-ahead is
    then computed without unrolling that layer.
    """

    init: Callable[[jax.Array], Params]  # (key)
    apply: Callable[[Params, jax.Array], jax.Array]  # (params, x) -> outputs
    first_layer: FirstLayer | None = None


@dataclass(frozen=True)
class Examples:
    """Rows on the host, in the smallest exact dtype."""

    x: np.ndarray
    y: np.ndarray

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.y)


class Task(NamedTuple):
    """One task of a stream. Validation rows are used neither for training nor for testing."""

    name: str
    train: Examples
    validation: Examples
    test: Examples


class Preprocess(Protocol):
    """Converts stored rows to network inputs, on the device.

    It must be hashable, as functions are: compiled programs are cached by it.
    """

    def __call__(self, x: jax.Array, /) -> jax.Array:
        """Return the rows as float32."""

    def __hash__(self) -> int:
        """Return the same number for the same function."""


class Augment(Protocol):
    """Converts stored training rows to network inputs with random changes, on the device."""

    def __call__(self, x: jax.Array, key: jax.Array, /) -> jax.Array:
        """Return the rows as float32."""

    def __hash__(self) -> int:
        """Return the same number for the same function."""


@dataclass(frozen=True)
class Stream:
    """Tasks in order, and how their rows are preprocessed.

    Attributes:
      name: its name on the command line and in recipes.
      tasks: the tasks in the order they arrive.
      num_classes: the number of outputs a network needs.
      classes_per_task: None where all tasks share one head; else task τ owns the outputs
        [classes_per_task·τ, classes_per_task·(τ+1)).
      preprocess: converts stored rows to network inputs.
      augment: the same for training rows, with random changes; None for no augmentation.
      shuffled: whether the rows of a task arrive in random order, or as stored.
      facts: what the seed determined (angles, class order, ...), for the run folder.
      fresh_augment: what the learner does to new and replayed rows in every update, where `augment`
        leaves them as they are stored; None where the learner has nothing to do.
      scenario: one of `SCENARIOS`; None where the builder does not say. It is "task" where tasks
        own their classes, and only there. In "class" no learner is told the task of a test row.
      is_task_free: whether the learner is not told of tasks: every row has task 0, and no task
        ends. Accuracy is measured after each of them all the same.
    """

    name: str
    tasks: Sequence[Task]
    num_classes: int
    classes_per_task: int | None
    preprocess: Preprocess
    augment: Augment | None = None
    shuffled: bool = True
    facts: Mapping[str, Any] = field(default_factory=dict)
    fresh_augment: Augment | None = None
    scenario: str | None = None
    is_task_free: bool = False

    def __post_init__(self) -> None:
        owned = self.classes_per_task is not None
        if owned and self.scenario is None:
            object.__setattr__(self, "scenario", "task")
        known = self.scenario in (None, *SCENARIOS)
        require(known, "scenario", self.scenario, f"one of {', '.join(SCENARIOS)}")
        allowed = "'task' with classes_per_task, and 'domain' or 'class' without"
        require(owned == (self.scenario == "task"), "scenario", self.scenario, allowed)
        require(not (owned and self.is_task_free), "is_task_free", True, "False with heads")
