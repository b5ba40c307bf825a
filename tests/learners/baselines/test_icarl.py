"""iCaRL: distillation, exemplars at a task's end, and answers by the nearest class mean."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from problems import HEADS, KEY, MODEL, assert_close, network, network_batch, network_params

from lamaml.errors import InvalidArgument
from lamaml.learners import icarl, online
from lamaml.models import cross_entropy, task_heads

SETTINGS = {"apply": MODEL.apply, "learning_rate": 0.3, "memory_size": 12, "task_size": 30}


@functools.cache
def compiled(classes_per_task=2, **settings):
    heads = task_heads(6, classes_per_task)
    loss = cross_entropy(MODEL.apply, heads)
    learner = icarl(loss, heads=heads, **{**SETTINGS, **settings})
    return learner._replace(
        update=jax.jit(learner.update),
        end_task=jax.jit(learner.end_task, donate_argnums=0),
        predict=jax.jit(learner.predict),
    )


def on_task(seed, task, num_rows=6):
    batch = network_batch(seed, num_rows)
    y = jnp.arange(num_rows, dtype=jnp.int32) % 2 + 2 * task
    return batch._replace(task=jnp.full_like(y, task), y=y)


def trained(learner, num_tasks, updates=4):
    state = learner.init(network_params(), network_batch(0))
    for task in range(num_tasks):
        for seed in range(updates):
            state, _ = learner.update(state, on_task(10 * task + seed, task), KEY)
        state = learner.end_task(state, KEY)
    return state


def nothing(state, learner):
    """An update without a row: what is left of the loss is distillation."""
    empty = on_task(0, 2)._replace(weight=jnp.zeros(6))
    return learner.update(state, empty, KEY)


def test_the_first_task_is_sgd():
    learner, plain = compiled(max_norm=0.5), online(network, learning_rate=0.3, max_norm=0.5)
    batch, params = on_task(0, 0), network_params()
    ours, info = learner.update(learner.init(params, batch), batch, KEY)
    theirs, expected = jax.jit(plain.update)(plain.init(params, batch), batch, KEY)
    assert_close(ours.params, theirs.params)
    np.testing.assert_allclose(info["loss"], expected["loss"], rtol=1e-6)


def test_exemplars_are_shared_out_over_the_classes_seen():
    learner = compiled()
    for num_tasks in (1, 2, 3):
        exemplars = trained(learner, num_tasks).exemplars
        present = np.asarray(exemplars.held())
        counts = np.bincount(np.asarray(exemplars.y)[present], minlength=6)
        assert counts.tolist() == [12 // (2 * num_tasks)] * 2 * num_tasks + [0] * (
            6 - 2 * num_tasks
        )


def test_the_rows_of_a_finished_task_are_forgotten():
    learner = compiled()
    assert int(trained(learner, 1).rows.num_kept) == 0
    state, _ = learner.update(trained(learner, 1), on_task(30, 1), KEY)
    assert int(state.rows.num_kept) == 6
    state, _ = learner.update(state, on_task(31, 1)._replace(first=False), KEY)
    assert int(state.rows.num_kept) == 6


def test_targets_are_the_outputs_of_all_exemplars_at_the_last_tasks_end():
    state = trained(compiled(), 2)
    present = np.asarray(state.exemplars.held())
    outputs = MODEL.apply(state.params, state.exemplars.x)
    np.testing.assert_allclose(state.targets[present], outputs[present], rtol=1e-5, atol=1e-6)


def test_right_after_a_tasks_end_there_is_nothing_to_distil():
    learner = compiled()
    _, info = nothing(trained(learner, 2), learner)
    np.testing.assert_allclose(info["gradient_norm"], 0, atol=1e-6)
    np.testing.assert_allclose(info["loss"], 0, atol=1e-6)


@pytest.mark.parametrize("weight", [1.0, 0.5])
def test_distillation_is_the_divergence_of_each_tasks_outputs(weight):
    """Σ_τ mean over classes of KL(softmax z_τ ‖ softmax f_τ), of one exemplar a class."""
    learner = compiled(memory_size=4, distillation=weight, max_norm=None)
    state = trained(learner, 2)
    moved = jax.tree.map(jnp.negative, state.params)
    after, info = nothing(state._replace(params=moved), learner)

    def divergence(params):
        total = 0.0
        for task in range(2):
            rows = np.flatnonzero(np.asarray(state.exemplars.task) == task)
            own = slice(2 * task, 2 * task + 2)
            wanted = jax.nn.log_softmax(state.targets[rows][:, own])
            given = jax.nn.log_softmax(MODEL.apply(params, state.exemplars.x[rows])[:, own])
            elements = jnp.exp(wanted) * (wanted - given)
            # GEM's code takes the mean over elements, times the number of columns.
            total += 2 * jnp.mean(elements)
        return weight * total

    value, gradient = jax.jit(jax.value_and_grad(divergence))(moved)
    assert value > 0.01
    np.testing.assert_allclose(info["loss"], value, rtol=1e-4)
    expected = jax.tree.map(lambda p, g: p - 0.3 * g, moved, gradient)
    assert_close(after.params, expected, rtol=1e-4, atol=1e-6)


def test_more_sets_than_a_block_are_all_distilled_once():
    """One shared head, six tasks of two classes: twelve sets, of one exemplar each."""
    learner = compiled(None, max_norm=None)
    state = learner.init(network_params(), network_batch(0))
    for task in range(6):
        rows = on_task(task, task)
        state, _ = learner.update(state, rows._replace(y=rows.y % 2), KEY)
        state = learner.end_task(state, KEY)
    assert int(state.exemplars.held().sum()) == 12
    moved = jax.tree.map(lambda p: p + 0.3, state.params)
    _, info = nothing(state._replace(params=moved), learner)
    wanted, given = (
        jax.nn.log_softmax(z) for z in (state.targets, MODEL.apply(moved, state.exemplars.x))
    )
    expected = jnp.sum(jnp.exp(wanted) * (wanted - given)) / 2  # two sets a task
    np.testing.assert_allclose(info["loss"], expected, rtol=1e-4)


def test_without_distillation_later_tasks_are_sgd_too():
    learner = compiled(distillation=0.0, max_norm=None)
    state = trained(learner, 1)
    batch = on_task(50, 1)
    moved = jax.tree.map(lambda p: p + 0.3, state.params)
    after, _ = learner.update(state._replace(params=moved), batch, KEY)
    gradient = jax.jit(jax.grad(network))(moved, batch)
    assert_close(after.params, jax.tree.map(lambda p, g: p - 0.3 * g, moved, gradient), rtol=1e-5)


def test_a_row_is_answered_with_the_nearest_mean_of_its_own_task():
    learner = compiled()
    state = trained(learner, 3)
    x, task = network_batch(90, 20).x, jnp.arange(20) % 3
    answers = np.asarray(learner.predict(state, x, task))
    outputs = np.asarray(MODEL.apply(state.params, x))
    remembered = np.asarray(MODEL.apply(state.params, state.exemplars.x))
    means = [remembered[np.asarray(state.exemplars.y) == label].mean(axis=0) for label in range(6)]
    for row, own in enumerate(np.asarray(task)):
        gaps = [np.linalg.norm(outputs[row] - means[label]) for label in (2 * own, 2 * own + 1)]
        assert answers[row] == 2 * own + np.argmin(gaps)


def test_answers_do_not_change_when_all_outputs_are_moved_alike():
    learner = compiled()
    state = trained(learner, 3)
    x, task = network_batch(91, 30).x, jnp.arange(30) % 3
    moved = jax.tree.map(jnp.copy, state.params)
    moved["head"]["bias"] += jnp.arange(6.0)
    answers = [
        learner.predict(state._replace(params=params), x, task) for params in (state.params, moved)
    ]
    np.testing.assert_array_equal(*answers)


def test_a_task_without_exemplars_is_answered_with_its_first_class():
    learner = compiled()
    x, task = network_batch(92, 6).x, jnp.array([0, 1, 2, 2, 1, 0])
    unseen = learner.predict(trained(learner, 0), x, task)
    np.testing.assert_array_equal(unseen, 2 * np.asarray(task))
    partly = np.asarray(learner.predict(trained(learner, 1), x, task))
    np.testing.assert_array_equal(partly[1:5], [2, 4, 4, 2])


def test_a_shared_head_answers_with_any_class_that_has_exemplars():
    learner = compiled(None)
    state = learner.init(network_params(), network_batch(0))
    for task in range(2):
        state, _ = learner.update(state, on_task(task, task), KEY)
        state = learner.end_task(state, KEY)
    answers = np.asarray(learner.predict(state, network_batch(93, 40).x, jnp.full(40, 2)))
    assert set(answers) <= {0, 1, 2, 3}
    assert len(set(answers)) > 1


def test_an_output_added_later_does_not_enter_the_distillation():
    """Targets of three outputs, laid into a state of six as an estimator grows its head."""
    grown = compiled(None, max_norm=None)
    state = trained(grown, 1)
    fresh = grown.init(state.params, network_batch(0))
    old = state.has_target.at[:, 3:].set(False)
    state = state._replace(targets=state.targets.at[:, 3:].set(99.0), has_target=old)
    assert not fresh.has_target.any()  # so that new columns are closed
    moved = jax.tree.map(lambda p: p + 0.3, state.params)
    after, info = nothing(state._replace(params=moved), grown)
    other = state._replace(params=moved, targets=state.targets.at[:, 3:].set(-7.0))
    same, expected = nothing(other, grown)
    assert float(info["loss"]) == float(expected["loss"]) > 0
    assert_close(after.params, same.params)
    np.testing.assert_array_equal(after.params["head"]["bias"][3:], moved["head"]["bias"][3:])


def test_a_class_in_no_head_is_never_predicted_and_its_output_not_compared():
    table = np.array([[True, True, False, True, False, False]] * 3)
    learner = icarl(cross_entropy(MODEL.apply, table), heads=table, **SETTINGS)
    state = trained(compiled(None), 3)
    x, task = network_batch(94, 40).x, jnp.arange(40) % 3
    answers = np.asarray(learner.predict(state, x, task))
    assert set(answers) <= {0, 1, 3}
    moved = jax.tree.map(jnp.copy, state.params)
    moved["head"]["weight"] = moved["head"]["weight"].at[4].set(50.0)
    np.testing.assert_array_equal(learner.predict(state._replace(params=moved), x, task), answers)


@pytest.mark.parametrize(
    "wrong",
    [
        {"learning_rate": 0},
        {"memory_size": 0},
        {"task_size": 0},
        {"distillation": -1},
        {"max_norm": 0},
    ],
)
def test_settings_out_of_range_are_named(wrong):
    with pytest.raises(InvalidArgument, match=next(iter(wrong))):
        icarl(network, heads=HEADS, **{**SETTINGS, **wrong})
