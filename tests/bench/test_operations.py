"""The counted operations: small programs by hand, updates against XLA's own cost analysis."""

import jax
import jax.numpy as jnp
import pytest

from lamaml.bench.operations import Operations, count_operations
from lamaml.learners import er, la_maml
from lamaml.models import cnn, cross_entropy, mlp, task_heads
from lamaml.types import Batch

MATRIX = jnp.ones((3, 4))


def test_a_product_counts_two_per_multiply_add():
    assert count_operations(jnp.matmul, MATRIX, MATRIX.T) == Operations(2 * 3 * 4 * 3)


def test_what_no_output_needs_is_not_counted():
    def function(x):
        _unused = x @ x.T
        return x + 1.0

    assert count_operations(jax.jit(function), MATRIX) == Operations(0, 12)


def test_a_loop_counts_once_per_pass():
    def function(x):
        return jax.lax.scan(lambda c, _: (c @ MATRIX @ MATRIX.T, None), x, length=5)[0]

    assert count_operations(function, jnp.ones((2, 3))).products == 5 * 2 * (2 * 3 * 4 + 2 * 4 * 3)


def test_dead_values_inside_a_loop_are_not_counted():
    def step(carry, _):
        return (carry[0] + 1.0, carry[1] @ carry[1]), None

    def function(x, y):
        return jax.lax.scan(step, (x, y), length=5)[0][0]

    assert count_operations(function, 0.0, jnp.ones((3, 3))) == Operations(0, 5)


def test_the_larger_branch_counts():
    def function(x):
        return jax.lax.cond(x[0, 0] > 0, lambda x: x @ x.T, lambda x: jnp.zeros((3, 3)), x)

    assert count_operations(function, MATRIX).products == 2 * 3 * 4 * 3


def test_a_product_in_a_loop_of_unknown_length_is_refused():
    def function(x):
        return jax.lax.while_loop(lambda x: jnp.sum(x) < 9, lambda x: x @ x, x)

    with pytest.raises(ValueError, match="unknown length"):
        count_operations(function, jnp.ones((2, 2)))


RATES = {"initial_rate": 0.1, "hyper_rate": 0.1, "memory_size": 50, "inner_steps": 3}
LEARNERS = {
    "er": lambda loss: er(loss, learning_rate=0.1, memory_size=50),
    "la_maml first": lambda loss: la_maml(loss, **RATES, first_order=True),
    "la_maml second": lambda loss: la_maml(loss, **RATES, first_order=False),
}
NETWORKS = {
    "mlp function_space": ((784,), mlp(784, 10)),
    "mlp general": ((784,), mlp(784, 10, function_space=False)),
    "cnn": ((16, 16, 3), cnn((16, 16, 3), 20, num_convolutions=2, num_filters=32)),
}


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("learner", LEARNERS)
def test_updates_count_as_xla_counts_them(monkeypatch, network, learner):
    shape, model = NETWORKS[network]
    loss = cross_entropy(model, task_heads(20, 5) if network == "cnn" else None)
    algorithm, key = LEARNERS[learner](loss), jax.random.key(0)
    x = jax.random.uniform(key, (10, *shape))
    batch = Batch(x, jnp.arange(10) % 5, jnp.zeros(10, int), jnp.ones(10))
    state = algorithm.init(model.init(key), batch)
    counted = count_operations(algorithm.update, state, batch, key)
    scan = jax.lax.scan
    # XLA counts the body of a loop once, so the loops of the learner are unrolled.
    monkeypatch.setattr(jax.lax, "scan", lambda *a, **k: scan(*a, **k | {"unroll": True}))
    unrolled = LEARNERS[learner](loss)  # traced anew
    program = jax.jit(unrolled.update).lower(state, batch, key).compile()
    assert counted.total == pytest.approx(program.cost_analysis()["flops"], rel=0.05)
    assert counted.products > 0.85 * counted.total
