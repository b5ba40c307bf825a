"""Probabilities: their logarithm, and the temperature found on held-out rows."""

import numpy as np
import pytest
from sklearn.metrics import log_loss
from small_streams import bits, blobs, classifier

from lamaml import LaMAMLClassifier
from lamaml.estimators._calibration import best_temperature, find_temperature

RNG = np.random.default_rng(0)
X = RNG.normal(size=(1200, 4))
Y = (X[:, 0] + 2 * RNG.normal(size=1200) > 0).astype(int)  # hardly more than chance


def overconfident(**changes):
    settings = {"memory_size": 1000, "held_out": 0.1, "glances": 8, "hidden_sizes": (32,)}
    settings |= {"calibrate": False}
    model = classifier(**(settings | changes))
    for start in range(0, 800, 10):
        model.partial_fit(X[start : start + 10], Y[start : start + 10])
    return model


def test_the_logarithm_of_the_probabilities():
    x, y = blobs(60)
    model = classifier().partial_fit(x, y, task="a").partial_fit(x[:9], y[:9] + 5, task="b")
    for task in (None, "a"):
        logs, shares = model.predict_log_proba(x, task=task), model.predict_proba(x, task=task)
        assert np.allclose(np.exp(logs), shares)
        assert np.allclose(shares.sum(axis=1), 1, rtol=0, atol=1e-12)
    assert (model.predict_log_proba(x, task="a")[:, 3:] == -np.inf).all()
    assert not hasattr(classifier(learner="icarl"), "predict_log_proba")


def test_a_temperature_lowers_the_log_loss_and_changes_no_answer():
    model = overconfident()
    raw = model.predict_proba(X[800:])
    answers = model.predict(X[800:])
    assert find_temperature(model._fitted) > 1
    model.set_params(calibrate=True)
    calibrated = model.predict_proba(X[800:])
    assert log_loss(Y[800:], calibrated) < log_loss(Y[800:], raw)
    assert np.array_equal(model.predict(X[800:]), answers)
    assert np.array_equal(calibrated.argmax(axis=1), raw.argmax(axis=1))


def test_it_is_a_function_of_what_is_saved(tmp_path):
    model = overconfident(calibrate=True)
    before, shares = bits(model), model.predict_proba(X[:50])
    assert bits(model) == before
    model.save(tmp_path / "model")
    assert np.array_equal(LaMAMLClassifier.load(tmp_path / "model").predict_proba(X[:50]), shares)
    model.partial_fit(X[800:], Y[800:])  # another state, another temperature
    assert not np.array_equal(model.predict_proba(X[:50]), shares)


@pytest.mark.parametrize("changes", [{"held_out": 0.0}, {"memory_size": 400}])
def test_few_held_out_rows_leave_probabilities_as_they_are(changes):
    model = overconfident(**changes)
    assert find_temperature(model._fitted) == 1
    raw = model.predict_proba(X)
    assert np.array_equal(model.set_params(calibrate=True).predict_proba(X), raw)


def test_the_best_temperature_undoes_a_known_one():
    logits = RNG.normal(size=(5000, 3))
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    label = (shares.cumsum(axis=1) < RNG.random((5000, 1))).sum(axis=1)
    assert best_temperature(2.5 * logits, label) == pytest.approx(2.5, rel=0.1)
