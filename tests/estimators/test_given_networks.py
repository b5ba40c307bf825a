"""A network that is given with its weights starts from them and gives the learned ones back."""

import equinox
import flax.linen
import jax
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from lamaml import LaMAMLClassifier
from lamaml.models import from_equinox, from_flax

X = np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32)
Y = np.arange(20) % 3
STILL = {"learning_rate": 1e-12}


def of_equinox():
    return from_equinox(equinox.nn.MLP(4, 3, 8, 1, key=jax.random.key(5)))


def of_flax():
    module = flax.linen.Dense(3)
    return from_flax(module, X, variables=module.init(jax.random.key(5), X))


@pytest.mark.parametrize("build", [of_equinox, of_flax])
def test_the_weights_of_a_given_network_are_the_initial_ones(build):
    model = build()
    classifier = LaMAMLClassifier("online", model=model, learner_options=STILL, scale=False)
    with pytest.raises(NotFittedError):
        classifier.params_  # noqa: B018
    classifier.partial_fit(X, Y)
    params = model.init(jax.random.key(0))
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), classifier.params_, params
    )
    logits = np.asarray(model.apply(params, X))
    np.testing.assert_array_equal(classifier.predict(X), logits.argmax(axis=1))


def test_params_are_a_copy():
    classifier = LaMAMLClassifier("online", model=of_flax()).partial_fit(X, Y)
    before = classifier.predict_proba(X)
    for weight in jax.tree.leaves(classifier.params_):
        weight[...] = 0
    np.testing.assert_array_equal(classifier.predict_proba(X), before)
