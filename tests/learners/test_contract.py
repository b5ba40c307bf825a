"""What every learner keeps to. To add one: register it in `LEARNERS`, give it a line in `CASES`.

Arguments that describe the problem and not the method (`FACTS`) are filled in by name.
"""

import functools
import inspect
import math
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from problems import assert_same_bits

from lamaml.errors import InvalidArgument
from lamaml.evaluation import metrics
from lamaml.experiments.storing.checkpoints import Origin, read_checkpoint, write_checkpoint
from lamaml.learners import LEARNERS
from lamaml.models import cross_entropy, mlp, task_heads
from lamaml.streams import load_stream
from lamaml.training.loop import Checkpoint, Schedule, Seconds, train
from lamaml.types import Batch, Learner


class Case(NamedTuple):
    """Sensible settings of a learner for small problems, and what it may do otherwise."""

    settings: dict[str, Any]
    beats_online: bool = True  # retains more of a stream than plain SGD does
    params_as_given: bool = True  # state.params is a tree like the params given to init


MEMORY = {"memory_size": 150}
META = {**MEMORY, "inner_steps": 2, "first_order": True}

CASES = {
    "online": Case({"learning_rate": 0.1}, beats_online=False),
    "er": Case({"learning_rate": 0.1, **MEMORY}),
    "c_maml": Case({"inner_rate": 0.1, "outer_rate": 0.1, **META}),
    "sync_la_maml": Case({"initial_rate": 0.1, "outer_rate": 0.1, "hyper_rate": 0.1, **META}),
    "la_er": Case({"initial_rate": 0.1, "hyper_rate": 0.1, "inner_steps": 2, **MEMORY}),
    "la_maml": Case({"initial_rate": 0.1, "hyper_rate": 0.1, **META}),
    "independent": Case({"learning_rate": 0.1}),
    "ewc": Case({"learning_rate": 0.1, "penalty": 10.0, "max_norm": 2.0}),
    "gem": Case({"learning_rate": 0.1, **MEMORY}),
    "a_gem": Case({"learning_rate": 0.1, **MEMORY}),
    "mer": Case({"inner_rate": 0.1, "within_rate": 0.1, "num_batches": 2, **MEMORY}),
    "mer_single": Case({"inner_rate": 0.1, "across_rate": 0.1, **MEMORY}),
    "icarl": Case({"learning_rate": 0.1, "task_size": 145, **MEMORY}),
    "meta_bgd": Case({"learning_rate": 50.0, "initial_std": 0.02, "num_monte_carlo": 1, **META}),
}

FACTS = ("apply", "heads", "num_tasks")

NONSENSE: dict[str, tuple[Any, ...]] = {
    "memory_size": (0, -1),
    "replay_size": (-1,),
    "inner_steps": (0, -1),
    "max_norm": (0.0, -1.0, math.nan),
    "inner_clamp": (0.0, -1.0, math.nan),
    "meta_loss": ("median",),
    "penalty": (-1.0, math.nan),
    "margin": (-1.0, math.nan),
    "ridge": (-1.0, math.nan),
    "distillation": (-1.0, math.nan),
    "initial_std": (0.0, -1.0, math.nan),
    "num_batches": (0, -1),
    "num_monte_carlo": (0, -1),
    "ref_size": (0, -1),
    "task_size": (0, -1),
}
"""What an argument must refuse, by its name; rates need no line, nor do `FACTS` and flags."""

every_learner = pytest.mark.parametrize("name", [name for name in LEARNERS if name in CASES])


def test_every_learner_has_a_case():
    missing, unknown = LEARNERS.keys() - CASES.keys(), CASES.keys() - LEARNERS.keys()
    assert not missing, f"give {sorted(missing)} a line in CASES of {__file__}"
    assert not unknown, f"CASES has {sorted(unknown)}, which LEARNERS has not"


def built(name, model, num_tasks, classes_per_task, **changes) -> Learner:
    """The learner, with the arguments that its signature asks for."""
    num_outputs = len(model.init(jax.random.key(0))["head"]["bias"])
    heads = task_heads(num_outputs, classes_per_task)
    facts = {"apply": model.apply, "heads": heads, "num_tasks": num_tasks}
    asked = inspect.signature(LEARNERS[name]).parameters
    settings = {fact: value for fact, value in facts.items() if fact in asked}
    loss = cross_entropy(model.apply, heads)
    return LEARNERS[name](loss, **(settings | CASES[name].settings | changes))


# A small stream: three tasks of two classes, two batches of ten rows each, more than are held

TASKS, CLASSES, CAPACITY = 3, 2, 12
MODEL = mlp(4, TASKS * CLASSES, hidden_sizes=(5,))
PARAMS = MODEL.init(jax.random.key(0))
STEPS = range(2 * TASKS)


def small_batch(step, num_real=10, garbage=0.0):
    rng = np.random.default_rng(step)
    task = step // 2
    y = CLASSES * task + rng.integers(0, CLASSES, 10)
    x = rng.normal(size=(10, 4))
    x[:, 0] += 2 * (y % CLASSES)
    x[num_real:] = garbage
    weight = np.arange(10) < num_real
    parts = x.astype(np.float32), y.astype(np.int32), np.full(10, task, np.int32), weight
    return Batch(*(jnp.asarray(part) for part in parts[:3]), jnp.asarray(weight, jnp.float32))


@functools.cache
def small(name) -> Learner:
    """The learner for it, compiled once for all tests."""
    remembers = "memory_size" in inspect.signature(LEARNERS[name]).parameters
    memory = {"memory_size": CAPACITY} if remembers else {}
    learner = built(name, MODEL, TASKS, CLASSES, **memory)
    end_task = jax.jit(learner.end_task) if learner.end_task else None
    return learner._replace(update=jax.jit(learner.update), end_task=end_task)


def follow(name, state=None, steps=STEPS, **padding):
    """Each step's state and info."""
    learner = small(name)
    state = learner.init(PARAMS, small_batch(0)) if state is None else state
    for step in steps:
        state, info = learner.update(state, small_batch(step, **padding), jax.random.key(step))
        if learner.end_task and step % 2:
            state = learner.end_task(state, jax.random.key(100 + step))
        yield state, info


@functools.cache
def followed(name):
    return list(follow(name))


@every_learner
def test_signatures(name):
    first, *others = inspect.signature(LEARNERS[name]).parameters.values()
    assert first.name == "loss"
    assert first.kind is first.POSITIONAL_OR_KEYWORD
    assert all(parameter.kind is parameter.KEYWORD_ONLY for parameter in others)
    assert LEARNERS[name].__name__ == name
    learner = built(name, MODEL, TASKS, CLASSES)
    expected = {
        "init": ["params", "batch"],
        "update": ["state", "batch", "key"],
        "end_task": ["state", "key"],
        "predict": ["state", "x", "task"],
    }
    for part, arguments in expected.items():
        function = getattr(learner, part)
        assert function is None or list(inspect.signature(function).parameters) == arguments


@every_learner
def test_the_state_is_a_named_tuple_that_keeps_its_shape(name):
    start = small(name).init(PARAMS, small_batch(0))
    assert isinstance(start, tuple)
    assert "params" in start._fields
    if CASES[name].params_as_given:
        assert_same_bits(start.params, PARAMS)

    def shapes(state):
        return jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), state)

    for state, _ in followed(name):
        assert type(state) is type(start)
        assert shapes(state) == shapes(start)


@every_learner
def test_the_same_keys_give_the_same_bits(name):
    for (state, info), (again, info_again) in zip(followed(name), follow(name), strict=True):
        assert_same_bits(state, again)
        assert_same_bits(info, info_again)


@every_learner
def test_it_moves_the_weights(name):
    before = small(name).init(PARAMS, small_batch(0)).params
    after = followed(name)[-1][0].params
    pairs = zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True)
    assert any((old != new).any() for old, new in pairs)


@every_learner
def test_what_it_is_given_is_not_changed(name):
    state, _ = followed(name)[2]
    given = state, small_batch(3)
    before = jax.tree.map(np.array, given)
    small(name).update(*given, jax.random.key(3))
    assert_same_bits(before, jax.tree.map(np.array, given))


# In another process: loads what was saved after three steps, and writes what it is after the last.
ELSEWHERE = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
import test_contract as contract
for folder in Path(sys.argv[2]).iterdir():
    *_, (state, _) = contract.follow(folder.name, contract.loaded(folder), contract.STEPS[3:])
    contract.write_checkpoint(folder, contract.at_step(len(contract.STEPS), state), contract.ORIGIN)
"""
ORIGIN = Origin({}, {}, "", None)


def at_step(step, state) -> Checkpoint:
    return Checkpoint(0, step, state, np.zeros((1, 1)), np.zeros(1), {}, Seconds())


def loaded(folder):
    """The last state saved there."""
    name = folder.name
    path = max(folder.iterdir())
    return read_checkpoint(path, small(name).init(PARAMS, small_batch(0)), 1, ORIGIN).state


def test_every_learner_continues_identically_in_another_process(tmp_path):
    names = [name for name in LEARNERS if name in CASES]
    for name in names:
        folder = tmp_path / name
        folder.mkdir()
        write_checkpoint(folder, at_step(3, followed(name)[2][0]), ORIGIN)
    here = str(Path(__file__).parent)
    subprocess.run([sys.executable, "-c", ELSEWHERE, here, str(tmp_path)], check=True)
    for name in names:
        assert_same_bits(loaded(tmp_path / name), followed(name)[-1][0])


@every_learner
def test_the_memory_is_never_above_its_capacity(name):
    task_size = CASES[name].settings.get("task_size", CAPACITY)
    for state, _ in followed(name):
        for field, part in state._asdict().items():
            if hasattr(part, "y"):
                assert part.y.size <= (task_size if field == "rows" else CAPACITY), field


@every_learner
def test_it_tells_a_finite_loss_and_else_scalars(name):
    for _, info in followed(name):
        assert jnp.isfinite(info["loss"])
        assert all(jnp.shape(value) == () for value in info.values())


@every_learner
def test_padding_does_not_change_what_is_learned(name):
    """Whatever the rows of weight 0 hold, in the batch itself and in later draws from memory."""
    blank, garbage = (follow(name, num_real=7, garbage=value) for value in (0.0, 1e3))
    for (one, info), (other, other_info) in zip(blank, garbage, strict=True):
        assert_same_bits(one.params, other.params)
        assert float(info["loss"]) == float(other_info["loss"])


@every_learner
def test_a_batch_of_padding_leaves_the_weights_as_they_are(name):
    start = small(name).init(PARAMS, small_batch(0))
    before = jax.tree.map(np.array, start.params)
    ((after, info),) = follow(name, start, STEPS[:1], num_real=0)
    assert_same_bits(before, jax.tree.map(np.array, after.params))
    assert float(info["loss"]) == 0


# The embedded stream, through the training loop

SCHEDULE = Schedule(batch_size=10, epochs=2, glances=3)


@functools.cache
def digits():
    return load_stream(
        "digits_rotations", seed=0, num_samples=145
    )  # the last batch is half padding


@functools.cache
def learned(name):
    """The last checkpoint of a run."""
    stream = digits()
    model = mlp(64, stream.num_classes, hidden_sizes=(50,))
    learner = built(name, model, len(stream.tasks), stream.classes_per_task)
    *_, last = train(stream, model, learner, SCHEDULE, seed=0, every=1000)
    return last


@every_learner
def test_it_retains_more_than_chance_and_than_online(name):
    last = learned(name)
    retained = metrics(last.matrix, last.baseline).ra
    assert retained > 0.3  # of ten classes
    if CASES[name].beats_online:
        online = learned("online")
        assert retained > metrics(online.matrix, online.baseline).ra + 0.05


@every_learner
def test_a_row_is_offered_to_the_memory_once_in_all_epochs_and_glances(name):
    memory = getattr(learned(name).state, "memory", None)
    if memory is not None:  # else it keeps no rows across tasks, or no count of them
        assert int(jnp.sum(memory.num_seen)) == sum(len(task.train) for task in digits().tasks)


# Nonsense


def nonsense():
    for name in sorted(CASES.keys() & LEARNERS.keys()):
        for argument in inspect.signature(LEARNERS[name]).parameters.values():
            if argument.name in ("loss", *FACTS) or argument.annotation is bool:
                continue
            yield pytest.param(name, argument.name, id=f"{name}-{argument.name}")


@pytest.mark.parametrize(("name", "argument"), list(nonsense()))
def test_nonsense_is_refused_by_name(name, argument):
    is_rate = argument.endswith("_rate")
    values = NONSENSE.get(argument, (-0.1, math.nan) if is_rate else None)
    assert values is not None, f"say in NONSENSE of {__file__} what {argument} must not be"
    for value in values:
        with pytest.raises(InvalidArgument, match=argument):
            built(name, MODEL, TASKS, CLASSES, **{argument: value})
