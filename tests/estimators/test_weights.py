"""Weights of rows and of classes: what they count, in calls of one row and of many."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_streams import bits, blobs, classifier, regressor

from lamaml import LaMAMLClassifier
from lamaml.errors import InvalidArgument
from lamaml.estimators._class_weight import with_class_weight
from lamaml.estimators._labels import add_classes, empty_labels
from lamaml.estimators._validation import normalise

X, Y = blobs(60, num_classes=2)


def step(learner, weight, rows=slice(20, 21), **options):
    """How far the weights of the network go in the call with these rows."""
    options |= {"max_norm": None}
    kept = {"memory_size": 20, "held_out": 0.0, "hidden_sizes": (8,), "learner_options": options}
    model = LaMAMLClassifier(learner, **kept).partial_fit(X[:20], Y[:20])
    before = network(model)
    y = Y[rows]
    model.partial_fit(X[rows], y, sample_weight=np.full(len(y), weight))
    return network(model) - before


def network(model):
    """All weights of the network as one vector."""
    leaves = jax.tree.leaves(model._fitted.learner_state.params)
    return np.concatenate([np.ravel(leaf) for leaf in leaves])


def test_a_weight_scales_the_update_of_its_row():
    """Nothing is replayed by `online`: its step is the gradient of the row, times its weight."""
    one = step("online", 1.0)
    assert np.abs(one).max() > 0
    for weight in (0.25, 3.0):
        assert np.allclose(step("online", weight), weight * one, rtol=1e-3, atol=1e-7)
    many = slice(20, 40)  # two batches
    assert not np.allclose(step("online", 3.0, many), step("online", 1.0, many), rtol=0.1)


@pytest.mark.parametrize("learner", ["er", "auto", "la_maml"])
def test_weights_count_where_rows_come_one_by_one(learner):
    def learned(weights):
        model = LaMAMLClassifier(learner, hidden_sizes=(8,), memory_size=20, held_out=0.0)
        for row in range(20):
            weight = None if weights is None else weights[row : row + 1]
            model.partial_fit(X[row : row + 1], Y[row : row + 1], sample_weight=weight)
        return model.predict_proba(np.zeros((1, 4)))[0]

    alike = learned(np.ones(20))
    assert np.array_equal(alike, learned(None))
    more, less = (learned(np.where(Y[:20] == 1, w, 1 / w))[1] for w in (5.0, 0.2))
    assert more > less if learner != "la_maml" else more != less
    assert len({more, less, alike[1]}) == 3


def test_rows_of_one_batch_share_by_their_weights():
    relative, mean = normalise(np.array([1.0, 3.0]))
    assert relative.tolist() == [0.5, 1.5]
    assert mean == 2.0
    assert normalise(np.full(3, 1e-50))[1] == 1e-50


def test_balanced_weights_follow_the_rows_seen():
    labels = add_classes(empty_labels(np.dtype(int)), np.array([7, 5]))
    labels = with_class_weight(labels, "balanced", np.array([0, 0, 0, 1]))
    assert labels.num_rows.tolist() == [3, 1]
    assert np.allclose(labels.class_weight, [4 / (2 * 3), 4 / 2])
    labels = with_class_weight(add_classes(labels, np.array([6])), {6: 9, 7.0: 3}, np.array([2]))
    assert np.allclose(labels.class_weight, [1 / 3, 1.0, 3.0])  # of mean 1 over the five rows


@pytest.mark.parametrize("learner", ["er", "auto"])
def test_a_rare_class_gains_by_its_weight(learner):
    rng = np.random.default_rng(0)
    y = (rng.random(600) < 0.05).astype(int)
    x = rng.normal(size=(600, 2)) + y[:, None]

    def found(class_weight):
        model = LaMAMLClassifier(learner, hidden_sizes=(8,), class_weight=class_weight)
        for start in range(0, 600, 10):
            model.partial_fit(x[start : start + 10], y[start : start + 10])
        return model.predict_proba(x[y == 1])[:, 1].mean()

    plain = found(None)
    assert found("balanced") > plain + 0.2
    assert found({1: 20.0}) > plain + 0.2


def test_class_weights_are_saved_and_may_change(tmp_path):
    model = classifier(class_weight={0: 2.0, 1: 0.5}).partial_fit(X, Y)
    model.save(tmp_path / "model")
    again = LaMAMLClassifier.load(tmp_path / "model")
    assert again.class_weight == {0: 2.0, 1: 0.5}
    assert bits(again) == bits(model)
    for one in (model, again):
        one.set_params(class_weight="balanced").partial_fit(X, Y)
    assert bits(again) == bits(model)


@pytest.mark.parametrize("wrong", ["balance", 2.0, {0: -1.0}, {0: "a"}])
def test_other_class_weights_are_refused(wrong):
    with pytest.raises(InvalidArgument, match=r"class_weight = .*'balanced'"):
        classifier(class_weight=wrong).partial_fit(X, Y)


@settings(max_examples=10, deadline=None, derandomize=True)
@given(st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=12), st.integers(1, 6))
def test_any_weights_leave_finite_numbers(weights, size):
    model = regressor(batch_size=4)
    for start in range(0, len(weights), size):
        part = slice(start, start + size)
        model.partial_fit(X[: len(weights)][part], Y[: len(weights)][part], weights[part])
    assert np.isfinite(model.predict(X)).all()
    assert model.report_.samples_seen == len(weights)


def test_class_weights_are_refused_where_they_would_not_count():
    with pytest.raises(InvalidArgument, match="must be None, because icarl predicts"):
        classifier(learner="icarl", class_weight="balanced").partial_fit(X, Y)
