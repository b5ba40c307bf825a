"""A learner from outside the package, registered as CONTRIBUTING says, keeps the whole contract."""

from typing import NamedTuple

import jax
import pytest
import test_contract
from test_contract import CASES, Case

from lamaml.errors import require
from lamaml.experiments.recipes.load import Recipe, realize
from lamaml.learners import LEARNERS
from lamaml.learners.gradients import descend, join, named_keys
from lamaml.memory import Reservoir, empty_reservoir, push, sample
from lamaml.testing import learner_checks
from lamaml.training import train
from lamaml.types import Batch, Learner, Loss, Params


class HeavyBallState(NamedTuple):
    params: Params
    velocity: Params
    memory: Reservoir


def heavy_ball(
    loss: Loss, *, learning_rate: float, decay_rate: float, memory_size: int, replay_size: int = 10
) -> Learner:
    """Experience replay with momentum."""
    require(learning_rate > 0, "learning_rate", learning_rate, "positive")
    require(0 <= decay_rate < 1, "decay_rate", decay_rate, "in [0, 1)")
    require(memory_size > 0, "memory_size", memory_size, "at least 1")
    require(replay_size >= 0, "replay_size", replay_size, "at least 0")

    def init(params: Params, batch: Batch) -> HeavyBallState:
        still = jax.tree.map(lambda leaf: 0 * leaf, params)
        return HeavyBallState(params, still, empty_reservoir(batch, memory_size))

    def update(state: HeavyBallState, batch: Batch, key: jax.Array):
        keys = named_keys(key)
        rows = join(sample(state.memory, replay_size, keys.replay), batch)
        value, gradient = jax.value_and_grad(loss)(state.params, rows)
        velocity = jax.tree.map(lambda v, g: decay_rate * v + g, state.velocity, gradient)
        memory = push(state.memory, batch, keys.reservoir, when=batch.last)
        params = descend(state.params, velocity, learning_rate)
        return HeavyBallState(params, velocity, memory), {"loss": value}

    return Learner(init, update)


SETTINGS = {"learning_rate": 0.03, "decay_rate": 0.5, "memory_size": 150}


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    monkeypatch.setitem(LEARNERS, "heavy_ball", heavy_ball)
    monkeypatch.setitem(CASES, "heavy_ball", Case(SETTINGS))


@pytest.mark.parametrize("check", learner_checks(heavy_ball, **SETTINGS), ids=str)
def test_it_keeps_the_contract(check):
    check()


@pytest.mark.parametrize("argument", [*SETTINGS, "replay_size"])
def test_it_refuses_nonsense(argument):
    test_contract.test_nonsense_is_refused_by_name("heavy_ball", argument)


def test_an_experiment_runs_it():
    settings = {**SETTINGS, "epochs": 5}
    recipe = Recipe(
        "mine", "heavy_ball", "single", "authors", "digits_rotations", "mlp", settings, {}
    )
    made = realize(recipe, 0, num_tasks=2, num_samples=100)
    *_, last = train(made.stream, made.model, made.learner, made.schedule, 0)
    assert last.retained > 0.3
