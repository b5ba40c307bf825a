"""The contract of a learner as checks, for algorithms inside and outside the package.

In a test of your own:

    from lamaml.testing import check_learner, learner_checks

    def test_contract():
        check_learner(my_learner, learning_rate=0.1)

    @pytest.mark.parametrize("check", learner_checks(my_learner, learning_rate=0.1), ids=str)
    def test_contract(check):        # one test per check
        check()
"""

import functools
import inspect
import io
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lamaml._registry import find_learner
from lamaml.errors import ContractViolation
from lamaml.evaluation import metrics
from lamaml.memory import TaskRows
from lamaml.testing._subject import (
    CLASSES_PER_TASK,
    MEMORY_SIZE,
    NUM_STEPS,
    NUM_TASKS,
    TASK_SIZE,
    Subject,
    compiled,
    difference,
    digits,
    small_batch,
)
from lamaml.types import Learner, State

__all__ = ["Check", "check_learner", "learner_checks"]

LEAST_ACCURACY = 0.2  # retained on ten classes: twice chance
ARGUMENTS = {
    "init": ["params", "batch"],
    "update": ["state", "batch", "key"],
    "end_task": ["state", "key"],
    "predict": ["state", "x", "task"],
}


@dataclass(frozen=True)
class Check:
    """One part of the contract, bound to a learner; call it to run it."""

    name: str
    learner: str
    violations: Callable[[], Iterator[str]]

    def __call__(self) -> None:
        """Raise ContractViolation if the learner does not comply."""
        for finding in self.violations():
            raise ContractViolation(f"{self.learner}, {self.name}: {finding}", self.name)

    def __str__(self) -> str:
        """Returns the learner and the check, for a test's id."""
        return f"{self.learner}-{self.name}"


def check_learner(builder: str | Callable[..., Learner], **settings: Any) -> None:
    """Run a learner through the whole contract.

    Args:
      builder: (loss, *, settings) -> Learner, or a name of one.
      **settings: sensible values for its hyper-parameters. What describes the problem and not the
        method (`apply`, `heads`, `num_tasks`, `num_classes`, `task_size`) is filled in by name.

    Raises:
      ContractViolation: the first check that fails, and what it found.

    Examples:
      >>> from lamaml.learners import online
      >>> check_learner(online, learning_rate=0.1)
      >>> def careless(loss, learning_rate):
      ...     return online(loss, learning_rate=learning_rate)
      >>> check_learner(careless, learning_rate=0.1)
      Traceback (most recent call last):
      lamaml.errors.ContractViolation: careless, signature: 'learning_rate' must be keyword-only
    """
    for check in learner_checks(builder, **settings):
        check()


def learner_checks(builder: str | Callable[..., Learner], **settings: Any) -> list[Check]:
    """Returns the checks that `check_learner` runs, to be called one by one; arguments as there."""
    return checks_of(Subject(find_learner(builder), settings))


def checks_of(subject: Subject) -> list[Check]:
    """Returns the checks of a learner under test, which share what it has computed."""
    names = [check.__name__.removeprefix("_check_") for check in CHECKS]
    return [
        Check(name, subject.name, functools.partial(check, subject))
        for name, check in zip(names, CHECKS, strict=True)
    ]


def _check_signature(it: Subject) -> Iterator[str]:
    first, *others = it.parameters.values()
    if first.name != "loss" or first.kind is not first.POSITIONAL_OR_KEYWORD:
        yield f"the first argument must be loss, and positional; it is {first}"
    for other in others:
        if other.kind is not other.KEYWORD_ONLY:
            yield f"{other.name!r} must be keyword-only"
    learner: object = it.small()
    if not isinstance(learner, Learner):
        yield f"it returns {learner!r}, not a Learner"
    for part, expected in ARGUMENTS.items():
        if function := getattr(learner, part):
            found = list(inspect.signature(function).parameters)
            if found != expected:
                yield f"{part} takes {found}, not {expected}"


def _check_state(it: Subject) -> Iterator[str]:
    start = it.start()
    leaves = jax.tree.leaves(start)
    if "params" not in getattr(start, "_fields", ()):
        yield "it must be a NamedTuple with a field 'params'"
    if any(jnp.issubdtype(jnp.result_type(leaf), jax.dtypes.prng_key) for leaf in leaves):
        yield "it holds a random key, which no file can: keep jax.random.key_data of it"
    if where := difference(start.params, it.params):
        yield f"init must keep the params it is given; {where} differs"

    def shapes(state: State) -> Any:
        return jax.tree.map(lambda leaf: (jnp.shape(leaf), jnp.result_type(leaf)), state)

    for step, (state, _) in enumerate(it.steps, 1):
        if type(state) is not type(start) or shapes(state) != shapes(start):
            yield f"step {step} changes its type, a shape or a dtype"


def _check_info(it: Subject) -> Iterator[str]:
    for step, (_, info) in enumerate(it.steps, 1):
        if "loss" not in info:
            yield f"there is no 'loss' in {sorted(info)}"
        for name, value in info.items():
            if jnp.shape(value) != ():
                yield f"{name!r} is not a scalar"
        if not jnp.isfinite(info["loss"]):
            yield f"the loss is not finite at step {step}"


def _check_determinism(it: Subject) -> Iterator[str]:
    again = it.follow(compiled(it.small()))
    for step, (one, other) in enumerate(zip(it.steps, again, strict=True), 1):
        if where := difference(one, other):
            yield f"the same key gives another {where} at step {step}; draw from `key` alone"


def _check_learning(it: Subject) -> Iterator[str]:
    if not difference(it.start().params, it.steps[-1][0].params):
        yield "the weights never change"


def _check_inputs(it: Subject) -> Iterator[str]:
    learner, batch, key = it.small(), small_batch(0), jax.random.key(0)
    params, state = it.fresh_params(), it.start()
    calls: dict[str, tuple[Callable[..., Any] | None, tuple[Any, ...]]] = {
        "init": (learner.init, (params, batch)),
        "update": (learner.update, (state, batch, key)),
        "end_task": (learner.end_task, (state, key)),
    }
    for part, (function, given) in calls.items():
        before = jax.tree.leaves(given)
        if function is not None:  # traced, but in the very containers that it is given
            jax.eval_shape(functools.partial(function, *given))
        after = jax.tree.leaves(given)
        if len(before) != len(after) or any(map(operator.is_not, before, after)):
            yield f"{part} changes what it is given; return new values instead"


def _check_saving(it: Subject) -> Iterator[str]:
    leaves = jax.tree.leaves(it.steps[2][0])
    file = io.BytesIO()
    np.savez(file, *(np.asarray(leaf) for leaf in leaves))
    file.seek(0)
    with np.load(file) as stored:
        loaded = [jnp.asarray(stored[name]) for name in stored.files]
    restored = jax.tree.unflatten(jax.tree.structure(it.start()), loaded)
    *_, last = it.follow(compiled(it.small()), restored, 3)
    if where := difference(last, it.steps[-1]):
        yield f"after saving, loading and further updates, {where} is another"


def _check_memory(it: Subject) -> Iterator[str]:
    if "memory_size" not in it.parameters:
        return
    task_size = it.settings.get("task_size", TASK_SIZE)
    for state, _ in it.steps:
        for field, part in state._asdict().items():
            of_task = isinstance(part, TaskRows) and "task_size" in it.parameters
            most, rows = task_size if of_task else MEMORY_SIZE, getattr(part, "y", np.empty(0)).size
            if rows > most:
                yield f"{field} holds {rows} rows, more than {most}"


def _check_padding(it: Subject) -> Iterator[str]:
    blank, garbage = (it.follow(num_real=7, garbage=value) for value in (0.0, 1e3))
    for (one, info), (other, other_info) in zip(blank, garbage, strict=True):
        if difference((one.params, info["loss"]), (other.params, other_info["loss"])):
            yield "rows of weight 0 change what is learned"
    after, info = next(it.follow(num_real=0))
    if difference(it.start().params, after.params):
        yield "a batch of padding alone changes the weights"
    if float(info["loss"]) != 0:
        yield "the loss of a batch of padding is not 0"


def _check_predict(it: Subject) -> Iterator[str]:
    predict, batch = it.compiled.predict, small_batch(NUM_STEPS - 1)
    if predict is None:
        return
    answer, num_classes = (
        predict(it.steps[-1][0], batch.x, batch.task),
        NUM_TASKS * CLASSES_PER_TASK,
    )
    if answer.shape != batch.y.shape or not jnp.issubdtype(answer.dtype, jnp.integer):
        yield "it must return one class per row, as whole numbers"
    if not jnp.all((answer >= 0) & (answer < num_classes)):
        yield f"a class is not among 0..{num_classes - 1}"


def _check_digits(it: Subject) -> Iterator[str]:
    retained = metrics(it.trained.matrix, it.trained.baseline).ra
    if retained <= LEAST_ACCURACY:
        required = f"more than {LEAST_ACCURACY} is required (chance: 0.1)"
        yield f"it retains {retained:.2f} of ten tasks of rotated digits; {required}"


def _check_offered_once(it: Subject) -> Iterator[str]:
    seen = getattr(getattr(it.trained.state, "memory", None), "num_seen", None)
    num_rows = sum(len(task.train) for task in digits().tasks)
    # None: it keeps no rows across tasks, or does not count them.
    if seen is not None and (num_seen := int(jnp.sum(seen))) != num_rows:
        finding = f"{num_seen} rows were offered to the memory, the stream has {num_rows}"
        yield f"{finding}; push when batch.first or when batch.last"


CHECKS = (
    *(_check_signature, _check_state, _check_info, _check_determinism, _check_learning),
    *(_check_inputs, _check_saving, _check_memory, _check_padding, _check_predict),
    *(_check_digits, _check_offered_once),
)
