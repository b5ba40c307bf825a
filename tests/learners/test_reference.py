"""The learners compute, update by update, what the authors' code computes (tests/references)."""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference_files import FOLDER, as_params, difference, read

from lamaml.learners import LEARNERS
from lamaml.memory import Reservoir
from lamaml.models import cnn, cross_entropy, mlp, task_heads
from lamaml.types import Batch

META = ["c_maml", "sync_la_maml", "la_maml"]
CASES = [
    f"{learner}_{net}_{order}"
    for learner in META
    for net in ("mlp", "cnn")
    for order in ("first", "second")
] + ["er_cnn", "la_er_cnn"]
TOLERANCE = 2e-6
SETTINGS = {
    "--alpha_init": "initial_rate",
    "--opt_lr": "hyper_rate",
    "--opt_wt": "outer_rate",
    "--lr": "learning_rate",
    "--grad_clip_norm": "max_norm",
}


def build(name, argv, function_space):
    """Returns the learner of a reference file, with the settings of its command line."""
    words = argv.split()
    found = dict(pairwise(words))
    settings = {ours: float(found[theirs]) for theirs, ours in SETTINGS.items() if theirs in found}
    names = ("sync_la_maml", "la_maml", "c_maml", "la_er", "er")
    learner = next(known for known in names if name.startswith(known))
    is_cnn = "cnn" in name
    settings.setdefault("max_norm", 2.0)
    if learner == "c_maml":
        settings["inner_rate"] = settings.pop("initial_rate")
    if learner != "er":
        settings["inner_steps"] = 5 if is_cnn else 10
        settings["inner_clamp"] = settings["max_norm"] if is_cnn else None
    if learner in META:
        settings["first_order"] = name.endswith("first")
    if learner in ("sync_la_maml", "la_maml"):
        settings["clip_inner_rates"] = not is_cnn
    model = mlp(20, 10, hidden_sizes=(16, 16), function_space=function_space)
    heads = None
    if is_cnn:
        heads = task_heads(20, 5)
        model = cnn((32, 32, 3), 20, num_filters=8, hidden_sizes=(24, 24))
    loss = cross_entropy(model, heads)
    return LEARNERS[learner](loss, memory_size=10, replay_size=10, **settings)


def images(x):
    """Returns rows with the channels last, as our networks take them."""
    return jnp.asarray(x.transpose(0, 2, 3, 1) if x.ndim == 4 else x)


PATHS = [(name, path) for name in CASES for path in ((True, False) if "mlp" in name else (True,))]


@pytest.mark.parametrize(("name", "function_space"), PATHS)
def test_update_by_update(name, function_space):
    net = "cnn" if "cnn" in name else "mlp"
    problem, expected = read(f"problem_{net}"), read(name)
    learner = build(name, str(expected["argv"]), function_space)
    update = jax.jit(learner.update)
    task = jnp.full(10, 2 if net == "cnn" else 0)
    state = None
    assert len(expected["theta"]) == (1 if net == "cnn" else 3)
    for s, theta in enumerate(expected["theta"]):
        y, replay_y, replay_t = (
            jnp.asarray(problem[field][s], jnp.int32) for field in ("y", "replay_y", "replay_t")
        )
        batch = Batch(images(problem["x"][s]), y, task, jnp.ones(10), False, False)
        state = state or learner.init(as_params(problem["theta0"], net), batch)
        # A memory of just the rows that were replayed: a draw without replacement is all of them.
        memory = Reservoir(images(problem["replay_x"][s]), replay_y, replay_t, jnp.int32(10))
        state, info = update(state._replace(memory=memory), batch, jax.random.key(s))
        assert difference(state.params, as_params(theta, net)) < TOLERANCE, f"update {s}"
        assert hasattr(state, "rates") == ("alpha" in expected)
        if "alpha" in expected:
            alpha = as_params(expected["alpha"][s], net)
            assert difference(state.rates, alpha) < TOLERANCE, f"update {s}"
        np.testing.assert_allclose(info["loss"], expected["loss"][s], rtol=2e-5)


def test_every_reference_file_is_compared():
    others = {"problem_mlp", "problem_cnn", "gem_mlp_margin0", "gem_mlp_margin05", "mer_mlp"}
    assert {file.stem for file in FOLDER.glob("*.npz")} == others | set(CASES)
