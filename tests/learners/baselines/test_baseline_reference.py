"""GEM and MER compute, update by update, what their authors' code computes (tests/references)."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference_files import as_params, difference, read

from lamaml.learners import gem
from lamaml.learners.mer import replay_batches
from lamaml.models import cross_entropy, mlp
from lamaml.types import Batch

LOSS = cross_entropy(mlp(20, 10, hidden_sizes=(16, 16)).apply)
TOLERANCE = 2e-6


def initial_params():
    return as_params(read("problem_mlp")["theta0"], "mlp")


@pytest.mark.parametrize("name", ["gem_mlp_margin0", "gem_mlp_margin05"])
def test_gem(name):
    file = read(name)
    num_tasks = 4
    learner = gem(
        LOSS,
        learning_rate=float(file["lr"]),
        memory_size=num_tasks * int(file["memories_per_task"]),
        num_tasks=num_tasks,
        margin=float(file["margin"]),
    )
    update = jax.jit(learner.update)
    state, num_projections = None, 0
    for s in range(32):
        x, y = jnp.asarray(file["x"][s]), jnp.asarray(file["y"][s], jnp.int32)
        task = jnp.full(1, file["t"][s], jnp.int32)
        batch = Batch(x, y, task, jnp.ones(1), True, True)
        state = state or learner.init(initial_params(), batch)
        state, info = update(state, batch, jax.random.key(s))
        num_projections += int(info["violations"] > 0)
        if s % 4 == 3:
            theta = as_params(file["theta"][s // 4], "mlp")
            assert difference(state.params, theta) < TOLERANCE, f"update {s}"
    assert num_projections == int(file["num_projections"])


def test_mer():
    file = read("mer_mlp")
    num_batches = int(file["batches_per_example"])
    words = {"inner_rate": "alpha", "within_rate": "beta", "across_rate": "gamma"}
    rates = {ours: float(file[theirs]) for ours, theirs in words.items()}
    learn = jax.jit(lambda params, batches: replay_batches(LOSS, params, batches, **rates)[0])
    params = initial_params()
    for s in range(3):
        # The example comes first in each of its batches.
        x, y = (
            jnp.concatenate([np.repeat(file[field][s][None], num_batches, 0), replayed[s]], axis=1)
            for field, replayed in (("x", file["replay_x"]), ("y", file["replay_y"]))
        )
        y = y.astype(jnp.int32)
        flags = jnp.ones(num_batches, bool)
        batches = Batch(x, y, jnp.zeros_like(y), jnp.ones(y.shape), flags, flags)
        params = learn(params, batches)
        assert difference(params, as_params(file["theta"][s], "mlp")) < TOLERANCE, f"example {s}"
