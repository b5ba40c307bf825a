"""The regressor: targets of any scale, streams, tasks, what it refuses."""

import numpy as np
import pytest
from small_streams import bits, regressor

from lamaml import LaMAMLRegressor
from lamaml.errors import InvalidArgument

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (600, 3))
Y = np.sin(2 * X[:, 0]) + X[:, 1]


def streamed(model, y, size=30):
    for start in range(0, len(y), size):
        model.partial_fit(X[start : start + size], y[start : start + size])
    return model


@pytest.mark.parametrize("learner", ["er", "la_maml"])
def test_it_learns_a_stream(learner):
    model = streamed(LaMAMLRegressor(learner, hidden_sizes=(20,), glances=3), Y)
    assert model.score(X, Y) > 0.8


def test_the_scale_of_targets_does_not_matter():
    small, large = (streamed(regressor(), y).predict(X) for y in (Y, 5e4 + 1e3 * Y))
    assert np.corrcoef(small, large)[0, 1] > 0.999
    assert abs((large - 5e4).mean() / 1e3 - small.mean()) < 0.05


def test_a_constant_target_is_fitted_as_it_is():
    assert np.allclose(regressor().fit(X[:50], np.full(50, 7.0)).predict(X), 7, atol=1)


def test_bad_targets_are_rows_that_are_bad():
    y = Y[:40].copy()
    y[5] = np.nan
    model = regressor().partial_fit(X[:40], Y[:40])
    before = bits(model)
    with pytest.raises(InvalidArgument, match=r"rows \[5\]"):
        model.partial_fit(X[:40], y)
    assert bits(model) == before
    model.set_params(on_bad_rows="skip").partial_fit(X[:40], y)
    assert model.report_.bad_rows_skipped == 1


def test_a_learner_that_answers_add_classes_is_refused():
    with pytest.raises(InvalidArgument, match="icarl"):
        regressor(learner="icarl").fit(X, Y)
    with pytest.raises(InvalidArgument, match="real numbers"):
        regressor().fit(X[:3], ["a", "b", "c"])


@pytest.mark.parametrize("learner", ["er", "auto", "la_maml"])
def test_several_targets_at_once(learner, tmp_path):
    targets = np.c_[Y, 1e3 - 5e2 * X[:, 2], 1.7e9 + X[:, 0]]
    model = streamed(LaMAMLRegressor(learner, hidden_sizes=(20,), glances=3), targets)
    assert model.predict(X).shape == (600, 3)
    assert model.score(X, targets) > 0.7
    assert model.predict(X[:0]).shape == (0, 3)
    model.save(tmp_path / "model")
    again = LaMAMLRegressor.load(tmp_path / "model")
    for one in (model, again):
        one.partial_fit(X[:30], targets[:30], sample_weight=np.arange(1.0, 31))
    assert bits(again) == bits(model)
    assert model.report_.score_now > 0


def test_the_number_of_targets_stays():
    model = regressor(memory_bytes=3000).partial_fit(X[:40], np.c_[Y, Y][:40])
    assert model.report_.memory_bytes <= 3000
    before = bits(model)
    with pytest.raises(InvalidArgument, match="y has 1 targets: must be 2, as in the first call"):
        model.partial_fit(X[:5], Y[:5])
    bad = np.c_[Y, Y][:5].copy()
    bad[3, 1] = np.nan
    with pytest.raises(InvalidArgument, match=r"Input y contains NaN.*rows \[3\]"):
        model.partial_fit(X[:5], bad)
    assert bits(model) == before
    one = regressor().partial_fit(X[:40], Y[:40])
    with pytest.raises(InvalidArgument, match="y has 2 targets"):
        one.partial_fit(X[:5], np.c_[Y, Y][:5])
