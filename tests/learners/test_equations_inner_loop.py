"""The look-ahead's gradients: closed forms, finite differences, and autograd over a plain loop."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from problems import (
    BOWLS,
    CURVED_PARAMS,
    assert_close,
    assert_same_bits,
    batch_of,
    bowl,
    bowl_slope,
    curved,
    curved_batch,
    hessian,
    linear,
    network_batch,
    quadratic,
)

from lamaml.errors import InvalidArgument
from lamaml.learners.inner_loop import (
    META_LOSSES,
    check_inner_loop,
    chunks,
    fast_weights,
    meta_gradient,
    step_weights,
)

ORDERS = {"first": True, "second": False}


def all_variants(*problem, **settings):
    """The meta-gradient of every order and meta-loss, in one compilation."""

    @jax.jit
    def run():
        return {
            order: {
                meta_loss: meta_gradient(
                    *problem, first_order=is_first, meta_loss=meta_loss, **settings
                )
                for meta_loss in META_LOSSES
            }
            for order, is_first in ORDERS.items()
        }

    return run()


def plain(
    loss,
    batch,
    meta_batch,
    *,
    inner_steps,
    first_order,
    meta_loss="mean",
    inner_clamp=np.inf,
    inner_max_norm=1e9,
    clip_inner_rates=False,
):
    """The meta-loss as the paper writes it: a loop over slices of the batch, for autograd."""
    size = -(-len(batch.y) // inner_steps)

    def objective(params, rates):
        fast, losses = params, []
        used = jax.tree.map(jax.nn.relu, rates) if clip_inner_rates else rates
        for start in range(0, len(batch.y), size):
            rows = type(batch)(*(part[start : start + size] for part in batch[:4]))
            gradient = jax.grad(loss)(fast, rows)
            gradient = jax.tree.map(lambda g: jnp.clip(g, -inner_clamp, inner_clamp), gradient)
            length = jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(gradient)))
            scale = jnp.minimum(1.0, inner_max_norm / length)
            gradient = jax.tree.map(lambda g, scale=scale: scale * g, gradient)
            gradient = jax.lax.stop_gradient(gradient) if first_order else gradient
            fast = jax.tree.map(lambda p, r, g: p - r * g, fast, used, gradient)
            losses.append(loss(fast, meta_batch))
        total = {"mean": sum(losses) / len(losses), "sum": sum(losses), "last": losses[-1]}
        return total[meta_loss]

    return objective


def test_linear_losses():
    """ℓ = u·θ, L = w·θ: ∇α = −(K, (K + 1)/2 or K(K + 1)/2)·u ⊙ w, and the orders agree."""
    u, w, steps = np.array([1.0, -2.0, 0.5]), np.array([3.0, 1.0, 0.0]), 4
    rates, rows = jnp.array([0.1, 0.2, 0.3]), batch_of([u] * steps)
    found = all_variants(linear, jnp.zeros(3), rates, rows, batch_of([w]), inner_steps=steps)
    losses = {"last": 1, "mean": 1, "sum": steps}
    travelled = {"last": steps, "mean": (steps + 1) / 2, "sum": steps * (steps + 1) / 2}
    for variants in found.values():
        for meta_loss, ahead in variants.items():
            np.testing.assert_allclose(ahead.params, losses[meta_loss] * w, rtol=1e-6)
            np.testing.assert_allclose(ahead.rates, -travelled[meta_loss] * u * w, rtol=1e-6)


@pytest.mark.parametrize("steps", [1, 3])
def test_quadratic_losses(steps):
    """ℓ = ½a(θ − c)², L = ½A(θ − C)² at the last step."""
    a, c, top, middle, theta, rate = 0.8, 0.5, 1.5, -1.0, 2.0, 0.3
    problem = jnp.asarray(theta), jnp.asarray(rate), batch_of([(a, c)] * steps)
    found = all_variants(quadratic, *problem, batch_of([(top, middle)]), inner_steps=steps)
    shrink = 1 - rate * a
    offsets = (theta - c) * shrink ** np.arange(steps + 1)  # θ_i − c
    slope = top * (c + offsets[-1] - middle)  # A(θ_K − C)

    exact = found["second"]["last"]
    assert float(exact.params) == pytest.approx(shrink**steps * slope, rel=1e-5)
    by_rate = -slope * steps * a * shrink ** (steps - 1) * offsets[0]
    assert float(exact.rates) == pytest.approx(by_rate, rel=1e-5)

    near = found["first"]["last"]
    assert float(near.params) == pytest.approx(slope, rel=1e-5)
    assert float(near.rates) == pytest.approx(-slope * a * offsets[:-1].sum(), rel=1e-5)

    # With one step the orders agree on the rates, but never on the weights.
    assert (float(near.rates) == pytest.approx(float(exact.rates), rel=1e-3)) == (steps == 1)
    assert float(near.params) != pytest.approx(float(exact.params), rel=1e-3)


def test_one_step_is_the_gradient_of_loss_minus_rate_times_alignment():
    """∇L(θ₁) = ∇[L − α∇L·∇ℓ] + O(α²): the error quarters when α halves."""
    with jax.enable_x64(True):
        params = jax.tree.map(lambda p: p.astype(float), CURVED_PARAMS)
        batch, meta_batch = curved_batch(1), curved_batch(2)

        @jax.jit
        def error(rate):
            def surrogate(params):
                inner, outer = (jax.grad(curved)(params, rows) for rows in (batch, meta_batch))
                aligned = sum(map(jnp.vdot, jax.tree.leaves(inner), jax.tree.leaves(outer)))
                return curved(params, meta_batch) - rate * aligned

            rates = jax.tree.map(lambda p: jnp.full_like(p, rate), params)
            ahead = meta_gradient(
                curved, params, rates, batch, meta_batch, inner_steps=1, first_order=False
            )
            ours, theirs = (ravel_pytree(g)[0] for g in (ahead.params, jax.grad(surrogate)(params)))
            return jnp.linalg.norm(ours - theirs)

        errors = [float(error(rate)) for rate in (4e-3, 2e-3, 1e-3)]
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.02)
    assert errors[1] / errors[2] == pytest.approx(4, rel=0.02)


INNER, OUTER = BOWLS[:4], BOWLS[4:]
THETA, RATES = np.array([1.5, -0.7]), np.array([0.35, 0.05])


def meta_loss_by_hand(theta, rates):
    """The mean over steps of L(θ_r) on bowls, without a line of the library."""
    total = 0.0
    for row in INNER:
        theta = theta - rates * bowl_slope(theta, [row])
        total += np.mean([0.5 * (theta - o[3:]) @ hessian(o) @ (theta - o[3:]) for o in OUTER])
    return total / len(INNER)


def finite_difference(function, point, width=1e-5):
    steps = width * np.eye(len(point))
    return np.array([(function(point + s) - function(point - s)) / (2 * width) for s in steps])


def test_second_order_equals_finite_differences_without_commuting_curvatures():
    first, second = hessian(INNER[0]), hessian(INNER[1])
    assert np.abs(first @ second - second @ first).max() > 0.1
    with jax.enable_x64(True):
        rows = batch_of(INNER), batch_of(OUTER)
        point = jnp.asarray(THETA), jnp.asarray(RATES)
        look_ahead = partial(meta_gradient, bowl, inner_steps=4, first_order=False)
        ahead = jax.jit(look_ahead)(*point, *rows)
    assert float(ahead.loss) == pytest.approx(meta_loss_by_hand(THETA, RATES), rel=1e-12)
    by_theta = finite_difference(lambda theta: meta_loss_by_hand(theta, RATES), THETA)
    by_rates = finite_difference(lambda rates: meta_loss_by_hand(THETA, rates), RATES)
    np.testing.assert_allclose(ahead.params, by_theta, rtol=1e-8)
    np.testing.assert_allclose(ahead.rates, by_rates, rtol=1e-8)


@pytest.mark.parametrize(("side", "is_right"), [("H·D", True), ("D·H", False)])
def test_finite_differences_tell_on_which_side_the_rates_stand(side, is_right):
    """The negative control of the test above: ∏(I − HD)·L' is the gradient, ∏(I − DH)·L' is not."""
    theta, seen, total = THETA, [], np.zeros(2)
    for row in INNER:
        seen.append(hessian(row))
        theta = theta - RATES * bowl_slope(theta, [row])
        back = bowl_slope(theta, OUTER)
        for h in reversed(seen):
            product = h * RATES if side == "H·D" else RATES[:, None] * h
            back = back - product @ back
        total += back / len(INNER)
    by_theta = finite_difference(lambda theta: meta_loss_by_hand(theta, RATES), THETA)
    error = np.abs(total - by_theta).max()
    assert error < 1e-8 if is_right else error > 0.01


@pytest.mark.parametrize("order", ORDERS)
def test_it_equals_autograd_over_a_plain_loop(order):
    """Plain, with a clamp that saturates, a norm that is clipped, and rates clipped at 0."""
    rates = {"w": jnp.array([0.5, -0.2]), "b": jnp.array(0.3)}
    rows, clamp = (curved_batch(1), curved_batch(2, 9)), 0.2
    cases = [
        {"inner_steps": 3},
        {"inner_steps": 2, "meta_loss": "last", "inner_clamp": clamp},
        {"inner_steps": 3, "inner_max_norm": clamp},
        {"inner_steps": 2, "meta_loss": "sum", "clip_inner_rates": True},
    ]

    @jax.jit
    def both(params, rates):
        first_order = ORDERS[order]
        ours = [
            meta_gradient(curved, params, rates, *rows, first_order=first_order, **case)
            for case in cases
        ]
        theirs = [
            jax.value_and_grad(plain(curved, *rows, first_order=first_order, **case), (0, 1))
            for case in cases
        ]
        return ours, [function(params, rates) for function in theirs]

    for ahead, (value, gradients) in zip(*both(CURVED_PARAMS, rates), strict=True):
        assert_close(tuple(ahead), (value, *gradients), rtol=1e-5)
    # What the second case is about does occur: elements beyond the clamp, and within.
    slope = np.abs(ravel_pytree(jax.grad(curved)(CURVED_PARAMS, rows[0]))[0])
    assert slope.max() > clamp > slope.min()


def test_chunks_keep_the_rows_in_their_order_and_fill_up_with_weight_0():
    batch = network_batch(0, 7)
    steps = chunks(batch, 5)
    assert steps.weight.tolist() == [[1, 1], [1, 1], [1, 1], [1, 0], [0, 0]]
    np.testing.assert_array_equal(steps.x.reshape(10, 4)[:7], batch.x)
    np.testing.assert_array_equal(steps.y.reshape(10)[:7], batch.y)
    np.testing.assert_array_equal(steps.task.reshape(10)[:7], batch.task)


@pytest.mark.parametrize(
    ("meta_loss", "expected"),
    [("mean", [1 / 3, 0, 1 / 3, 1 / 3, 0]), ("sum", [1, 0, 1, 1, 0]), ("last", [0, 0, 0, 1, 0])],
)
def test_step_weights_skip_chunks_without_rows(meta_loss, expected):
    steps = chunks(batch_of(np.ones((5, 1)), [1.0, 0.0, 1.0, 1.0, 0.0]), 5)
    np.testing.assert_allclose(step_weights(steps, meta_loss), expected, rtol=1e-6)


@pytest.mark.parametrize("inner_max_norm", [None, 0.5])
def test_empty_chunks_and_padding_are_as_if_they_were_not_there(inner_max_norm):
    """Five rows make chunks of 2 + 2 + 1, of however many chunks and of whatever padding."""
    padded = batch_of(np.vstack([BOWLS[:5], np.full((3, 5), 1e3)]), [1.0] * 5 + [0.0] * 3)

    ahead = partial(meta_gradient, bowl, inner_max_norm=inner_max_norm)

    @jax.jit
    def run(theta, rates):
        return [
            [
                ahead(theta, rates, rows, batch_of(OUTER), inner_steps=k, first_order=is_first)
                for rows, k in ((batch_of(BOWLS[:5]), 3), (batch_of(BOWLS[:5]), 4), (padded, 4))
            ]
            for is_first in ORDERS.values()
        ]

    for exact, with_an_empty_chunk, with_padding in run(jnp.asarray(THETA), jnp.asarray(RATES)):
        assert_close(exact, with_an_empty_chunk)
        assert_close(exact, with_padding)


def test_a_batch_of_nothing_gives_nothing():
    nothing = batch_of(BOWLS, np.zeros(6))
    point = jnp.asarray(THETA), jnp.asarray(RATES)
    for leaf in jax.tree.leaves(all_variants(bowl, *point, nothing, nothing, inner_steps=2)):
        assert (leaf == 0).all()


def test_the_slow_weights_and_the_rates_are_not_changed():
    theta, rates = jnp.asarray(THETA), jnp.asarray(RATES)
    before = np.array(theta), np.array(rates)
    ahead = all_variants(bowl, theta, rates, batch_of(BOWLS), batch_of(BOWLS), inner_steps=2)
    assert_same_bits((np.array(theta), np.array(rates)), before)
    assert (ahead["first"]["mean"].params != theta).all()


def test_fast_weights_are_those_of_the_plain_loop():
    start = jnp.asarray(THETA), jnp.asarray(RATES)
    fast, travelled = jax.jit(partial(fast_weights, bowl))(*start, chunks(batch_of(INNER), 2))
    theta, total = THETA, np.zeros(2)
    for rows in (INNER[:2], INNER[2:]):
        slope = bowl_slope(theta, rows)
        theta, total = theta - RATES * slope, total + slope
    np.testing.assert_allclose(fast, theta, rtol=1e-5)
    np.testing.assert_allclose(travelled, total, rtol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, "mean", None), "inner_steps = 0: must be at least 1"),
        ((1, "average", None), "unknown meta_loss 'average'"),
        ((1, "mean", 0.0), "inner_clamp = 0.0: must be None or positive"),
        ((1, "mean", None, 0.0), "inner_max_norm = 0.0: must be None or positive"),
    ],
)
def test_nonsense_is_refused(arguments, message):
    with pytest.raises(InvalidArgument, match=message):
        check_inner_loop(*arguments)
