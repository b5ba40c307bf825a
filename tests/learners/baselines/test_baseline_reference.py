"""GEM and MER, update by update: the numbers that their authors' code computes."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lamaml.learners import gem
from lamaml.learners.mer import replay_batches
from lamaml.models import cross_entropy, mlp
from lamaml.types import Batch

FOLDER = Path(__file__).parents[4] / "shared" / "reference"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason=f"no reference numbers in {FOLDER}")

LOSS = cross_entropy(mlp(20, 10, hidden_sizes=(16, 16)).apply)
TOLERANCE = 2e-6


def read_params(file, prefix):
    return {
        layer: {
            "weight": jnp.asarray(file[f"{prefix}_{2 * i}"]),
            "bias": jnp.asarray(file[f"{prefix}_{2 * i + 1}"]),
        }
        for i, layer in enumerate(("hidden_1", "hidden_2", "head"))
    }


def difference(ours, theirs):
    return max(
        jax.tree.leaves(jax.tree.map(lambda a, b: float(jnp.abs(a - b).max()), ours, theirs))
    )


@pytest.mark.parametrize("name", ["gem_mlp_margin0", "gem_mlp_margin05"])
def test_gem(name):
    file = np.load(FOLDER / f"{name}.npz", allow_pickle=False)
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
        task = jnp.asarray(file[f"t_{s}"]).reshape(1)
        batch = Batch(
            jnp.asarray(file[f"x_{s}"]), jnp.asarray(file[f"y_{s}"]), task, jnp.ones(1), True, True
        )
        state = state or learner.init(read_params(file, "theta0"), batch)
        state, info = update(state, batch, jax.random.key(s))
        num_projections += int(info["violations"] > 0)
        if f"theta_{s}_0" in file:
            assert difference(state.params, read_params(file, f"theta_{s}")) < TOLERANCE, (
                f"update {s}"
            )
    assert num_projections == int(file["num_projections"])


def test_mer():
    file = np.load(FOLDER / "mer_mlp.npz", allow_pickle=False)
    num_batches = int(file["batches_per_example"])
    words = {"inner_rate": "alpha", "within_rate": "beta", "across_rate": "gamma"}
    rates = {ours: float(file[theirs]) for ours, theirs in words.items()}
    learn = jax.jit(lambda params, batches: replay_batches(LOSS, params, batches, **rates)[0])
    params = read_params(file, "theta0")
    for s in range(3):
        fields = []
        for field in ("x", "y"):
            example, replayed = file[f"{field}_{s}"], file[f"replay_{field}_{s}"]
            example = np.broadcast_to(example, (num_batches, *example.shape))
            fields.append(
                jnp.asarray(np.concatenate([example, replayed], axis=1))
            )  # the example first
        x, y = fields
        flags = jnp.ones(num_batches, bool)
        batches = Batch(x, y, jnp.zeros_like(y), jnp.ones(y.shape), flags, flags)
        params = learn(params, batches)
        assert difference(params, read_params(file, f"theta_{s}")) < TOLERANCE, f"example {s}"
