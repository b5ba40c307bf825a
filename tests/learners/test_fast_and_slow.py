import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lamaml.learners import er, fast_and_slow, online
from lamaml.learners.adam import adam_step
from lamaml.learners.gradients import clip_to_norm
from lamaml.models import cross_entropy, mlp, squared_error
from lamaml.types import Batch

MODEL = mlp(4, 3, hidden_sizes=(6,))
LOSS = cross_entropy(MODEL)


def batch(seed, size=8):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(size, 4)).astype(np.float32), rng.integers(0, 3, size)
    ones = jnp.ones(size)
    return Batch(jnp.asarray(x), jnp.asarray(y), jnp.zeros(size, jnp.int32), ones)


def learner(**changes):
    settings = {"memory_size": 30, "replay_size": 5} | changes
    return fast_and_slow(LOSS, apply=MODEL.apply, heads=None, **settings)


def run(built, num_batches=6):
    state = built.init(MODEL.init(jax.random.key(0)), batch(0))
    update = jax.jit(built.update)
    for number in range(num_batches):
        state, _ = update(state, batch(number), jax.random.key(number))
    return state


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_adam_is_that_of_optax(decay):
    optax = pytest.importorskip("optax", reason="comes with flax")
    rng = np.random.default_rng(0)
    params = ours = jnp.asarray(rng.normal(size=5), jnp.float32)
    mean = square = jnp.zeros(5)
    reference = optax.adamw(0.01, weight_decay=decay)
    state = reference.init(params)
    for count in range(1, 6):
        gradient = jnp.asarray(rng.normal(size=5), jnp.float32)
        ours, mean, square = adam_step(ours, mean, square, count, gradient, 0.01, decay)
        step, state = reference.update(gradient, state, params)
        params = params + step
    np.testing.assert_allclose(ours, params, rtol=1e-5)


def test_without_decay_the_average_is_the_slow_weights():
    state = run(learner(average_decay=0.0))
    for one, other in zip(jax.tree.leaves(state.params), jax.tree.leaves(state.slow), strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_average_begins_short_and_ends_at_its_decay():
    early, late = run(learner(num_steps=1), 1), run(learner(num_steps=1, average_decay=0.05), 3)
    start = MODEL.init(jax.random.key(0))
    leaves = map(jax.tree.leaves, (start, early.params, early.slow))
    for first, mean, slow in zip(*leaves, strict=True):
        np.testing.assert_allclose(mean, first / 11 + slow * 10 / 11, rtol=1e-4, atol=1e-6)
    before = run(learner(num_steps=1, average_decay=0.05), 2)
    leaves = map(jax.tree.leaves, (before.params, late.params, late.slow))
    for old, mean, slow in zip(*leaves, strict=True):
        np.testing.assert_allclose(mean, 0.05 * old + 0.95 * slow, rtol=1e-4, atol=1e-6)


def test_the_fast_weights_are_online_with_as_many_glances():
    state = run(learner(num_steps=2, fast_rate=0.1))
    alone = online(LOSS, learning_rate=0.1, max_norm=2.0)
    plain = alone.init(MODEL.init(jax.random.key(0)), batch(0))
    for number in range(6):
        for _ in range(2):
            plain, _ = alone.update(plain, batch(number), jax.random.key(number))
    for one, other in zip(jax.tree.leaves(state.fast), jax.tree.leaves(plain.params), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


def test_without_dark_weight_the_slow_weights_are_adam_on_new_and_replayed_rows():
    state = run(learner(num_steps=1, dark_weight=0.0), num_batches=1)
    params = MODEL.init(jax.random.key(0))
    zeros = jax.tree.map(jnp.zeros_like, params)
    gradient = clip_to_norm(jax.grad(LOSS)(params, batch(0)), 2.0)  # the memory is empty
    expected, _, _ = adam_step(params, zeros, zeros, 1, gradient, 3e-3, 0.3)
    for one, other in zip(jax.tree.leaves(state.slow), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-7)


def test_the_answers_after_learning_are_stored_and_held():
    state = run(learner(), num_batches=1)
    found = MODEL.apply(state.params, state.memory.x[:8])
    np.testing.assert_allclose(state.memory.extra.logits[:8], found, rtol=1e-4, atol=1e-5)

    def gap(dark_weight):
        state = run(learner(dark_weight=dark_weight, slow_rate=0.01, replay_size=10), 60)
        now = MODEL.apply(state.params, state.memory.x)
        return float(jnp.abs(now - state.memory.extra.logits).mean())

    assert gap(10.0) < 0.5 * gap(0.0)


def test_a_regression_stores_no_answers():
    model = mlp(4, 1, hidden_sizes=(6,))
    built = fast_and_slow(
        squared_error(model), apply=model.apply, heads=None, memory_size=30, replay_size=5
    )
    rows = batch(0)._replace(y=jnp.linspace(0.0, 1.0, 8))
    state = built.init(model.init(jax.random.key(0)), rows)
    state, _ = built.update(state, rows, jax.random.key(0))
    assert state.memory.extra is None


def test_the_memory_is_that_of_er():
    replay = er(LOSS, learning_rate=0.1, memory_size=30)
    np.testing.assert_array_equal(run(learner()).memory.x, run(replay).memory.x)


def test_rows_that_the_gate_refuses_are_answered_by_the_slow_weights():
    built = learner(gate_weight=50.0)
    state, asked = run(built), batch(9)
    refusing = jax.tree.map(jnp.zeros_like, state.gate)
    refusing["head"]["bias"] = refusing["head"]["bias"].at[0].set(-9.0)
    state = state._replace(gate=refusing, share=jnp.array(0.98))
    slow = jax.nn.log_softmax(MODEL.apply(state.params, asked.x))
    np.testing.assert_allclose(built.outputs(state, asked.x, asked.task), slow, atol=1e-5)


def test_the_answer_is_the_mixture_by_the_share_where_the_gate_does_not_refuse():
    built = learner(gate_weight=0.0)
    state, asked = run(built)._replace(share=jnp.array(0.3)), batch(9)
    slow, fast = (
        jax.nn.softmax(MODEL.apply(weights, asked.x)) for weights in (state.params, state.fast)
    )
    found = jnp.exp(built.outputs(state, asked.x, asked.task))
    np.testing.assert_allclose(found, 0.7 * slow + 0.3 * fast, rtol=1e-5)


def test_outputs_are_log_probabilities_and_predict_chooses_the_largest():
    built = learner()
    state, asked = run(built), batch(9)
    outputs = built.outputs(state, asked.x, asked.task)
    np.testing.assert_allclose(jnp.exp(outputs).sum(axis=1), 1.0, rtol=1e-5)
    chosen = built.predict(state, asked.x, asked.task)
    np.testing.assert_array_equal(chosen, outputs.argmax(axis=1))


def test_the_share_is_the_step_of_online_em_on_rows_before_they_are_learned():
    built = learner(share_decay=0.9, slow_bias=0.2)
    before = run(built, num_batches=3)
    new = batch(7)
    slow, fast = (
        np.asarray(jax.nn.softmax(MODEL.apply(weights, new.x)))[np.arange(8), new.y]
        for weights in (before.params, before.fast)
    )
    s = float(before.share)
    r = s * fast / (s * fast + np.exp(0.2) * (1 - s) * slow)
    after, info = built.update(before, new, jax.random.key(7))
    expected = 0.9**8 * s + (1 - 0.9**8) * r.mean()
    assert float(after.share) == pytest.approx(expected, abs=1e-5)
    assert float(info["share"]) == float(after.share)
    again, _ = built.update(before, new._replace(first=False), jax.random.key(7))
    assert float(again.share) == float(before.share)


def test_the_share_moves_with_the_number_of_rows_and_padding_does_not_count():
    built = learner()
    before, new = run(built, num_batches=3)._replace(share=jnp.array(0.5)), batch(7)
    fields = (new.x, new.y, new.task, new.weight)
    same = jax.tree.map(lambda rows: jnp.repeat(rows[:1], 8, axis=0), fields)
    alone = jax.tree.map(lambda rows: rows[:1], fields)
    padded = Batch(*same)._replace(weight=jnp.zeros(8).at[0].set(1.0))
    eight, one, one_padded = (
        float(built.update(before, rows, jax.random.key(7))[0].share) - 0.5
        for rows in (Batch(*same), Batch(*alone), padded)
    )
    assert one_padded == pytest.approx(one, abs=1e-6)
    assert abs(one) > 1e-4
    assert eight / one == pytest.approx((1 - 0.95**8) / (1 - 0.95), rel=1e-2)


def test_the_share_of_a_regression_is_that_of_normal_errors():
    model = mlp(4, 1, hidden_sizes=(6,))
    loss = squared_error(model)
    shares = {"share_decay": 0.0, "slow_bias": 0.0}
    built = fast_and_slow(
        loss, apply=model.apply, heads=None, memory_size=30, fast_rate=0.05, **shares
    )
    rows = batch(0)._replace(y=jnp.linspace(0.0, 1.0, 8))
    state = built.init(model.init(jax.random.key(0)), rows)
    state, _ = built.update(state, rows, jax.random.key(0))
    slow, fast = (float(loss(weights, rows)) for weights in (state.params, state.fast))
    odds = np.sqrt(slow / fast) * float(state.share) / (1 - float(state.share))
    after, _ = built.update(state, rows, jax.random.key(1))
    assert float(after.share) == pytest.approx(odds / (1 + odds), rel=1e-4)


def test_labels_that_contradict_the_past_are_followed_by_the_answer():
    def labelled(seed, reverse):
        rows = batch(seed, 10)
        label = (rows.x[:, 0] > 0).astype(int)
        return rows._replace(y=1 - label if reverse else label)

    built = learner(memory_size=300, replay_size=50)
    state = built.init(MODEL.init(jax.random.key(0)), batch(0, 10))
    update = jax.jit(built.update)
    for number in range(150):
        state, _ = update(state, labelled(number, number >= 100), jax.random.key(number))
    asked = labelled(999, reverse=True)
    answers = built.predict(state, asked.x, asked.task)
    slow = MODEL.apply(state.params, asked.x).argmax(axis=1)
    assert float(state.share) > 0.8
    assert np.mean(answers == asked.y) >= 0.9 > np.mean(slow == asked.y)


def test_a_memory_smaller_than_the_number_of_steps_is_enough():
    state = run(learner(memory_size=2, num_steps=3))
    assert int(state.memory.num_seen) == 48
