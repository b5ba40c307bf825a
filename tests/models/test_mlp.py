"""The paper's MLP: its sizes, its initial weights, its function."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lamaml.errors import InvalidArgument
from lamaml.models import mlp

KEY = jax.random.key(0)


def count(params):
    return sum(leaf.size for leaf in jax.tree.leaves(params))


def test_the_mnist_network_has_89610_weights():
    params = mlp(784, 10).init(KEY)
    assert count(params) == 89_610
    assert {name: layer["weight"].shape for name, layer in params.items()} == {
        "hidden_1": (100, 784),
        "hidden_2": (100, 100),
        "head": (10, 100),
    }


def test_it_flattens_rows_and_is_affine_rectified_affine():
    model = mlp(6, 2, hidden_sizes=(3,))
    params = jax.tree.map(lambda p: p + 0.1, model.init(KEY))
    rows = np.random.default_rng(0).normal(size=(4, 2, 3)).astype(np.float32)
    hidden, head = params["hidden_1"], params["head"]
    flat = rows.reshape(4, 6)
    by_hand = np.maximum(flat @ np.asarray(hidden["weight"]).T + np.asarray(hidden["bias"]), 0)
    by_hand = by_hand @ np.asarray(head["weight"]).T + np.asarray(head["bias"])
    np.testing.assert_allclose(model.apply(params, jnp.asarray(rows)), by_hand, rtol=1e-5)


def test_without_hidden_layers_it_is_affine():
    assert count(mlp(6, 2, hidden_sizes=()).init(KEY)) == 6 * 2 + 2


@pytest.mark.parametrize(
    ("initializer", "variance"),
    [("kaiming_normal", 2 / 784), ("xavier_uniform", 2 / (784 + 100))],
)
def test_initial_weights_have_the_variance_of_their_initializer(initializer, variance):
    params = mlp(784, 10, initializer=initializer).init(KEY)
    weight = np.asarray(params["hidden_1"]["weight"], np.float64)
    # 78,400 draws: the variance has a standard error of 0.5 %, the mean one of 0.4 % of σ.
    assert weight.var() == pytest.approx(variance, rel=0.02)
    assert abs(weight.mean()) < 0.015 * np.sqrt(variance)
    for layer in params.values():
        assert not layer["bias"].any()
    kurtosis = ((weight - weight.mean()) ** 4).mean() / weight.var() ** 2
    assert kurtosis == pytest.approx(3.0 if initializer == "kaiming_normal" else 1.8, rel=0.05)


def test_a_key_gives_the_same_weights_and_another_key_others():
    model = mlp(8, 3)
    first, again, other = (model.init(jax.random.key(k)) for k in (1, 1, 2))
    jax.tree.map(np.testing.assert_array_equal, first, again)
    assert (first["head"]["weight"] != other["head"]["weight"]).all()
    # Layers do not share draws either.
    assert first["hidden_1"]["weight"][0, 0] != first["hidden_2"]["weight"][0, 0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"hidden_sizes": (10, 0)}, "hidden_sizes"),
        (
            {"initializer": "kaiming"},
            "unknown initializer 'kaiming': did you mean 'kaiming_normal'",
        ),
    ],
)
def test_nonsense_is_refused(arguments, message):
    with pytest.raises(InvalidArgument, match=message):
        mlp(8, 3, **arguments)
