import numpy as np
from small_streams import blobs

from lamaml import LaMAMLClassifier, LaMAMLRegressor
from lamaml.estimators._choice import default_memory_size

X, Y = blobs(60)
LIGHT = {"hidden_sizes": (8,)}


def test_auto_is_the_default_and_says_what_it_has_chosen():
    model = LaMAMLClassifier(**LIGHT).partial_fit(X, Y)
    report = model.report_
    assert model.learner == "auto"
    assert report.learner == "fast_and_slow"
    assert report.choice.startswith("auto: ")
    assert set(report.diagnostics) == {"share"}
    assert "share" in str(report)
    chosen = LaMAMLClassifier("er", **LIGHT).partial_fit(X, Y).report_
    assert (chosen.learner, chosen.choice, chosen.diagnostics) == ("er", None, None)


def test_its_memory_is_larger_than_the_papers_unless_rows_are_wide():
    assert default_memory_size("auto", row_bytes=400) == 1_000
    assert default_memory_size("auto", row_bytes=40_000) == 400
    assert default_memory_size("la_maml", row_bytes=400) == 200
    stored = LaMAMLClassifier(**LIGHT)
    stored.partial_fit(np.tile(X, (20, 1)), np.tile(Y, 20))
    assert stored.report_.memory_rows == 1_000


def test_probabilities_and_classes_agree():
    model = LaMAMLClassifier(**LIGHT, memory_size=40)
    for _ in range(3):
        model.partial_fit(X, Y)
    shares = model.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-6)
    np.testing.assert_array_equal(model.classes_[shares.argmax(axis=1)], model.predict(X))
    assert np.mean(model.predict(X) == Y) > 0.9


def test_it_continues_bit_for_bit_after_saving(tmp_path):
    model = LaMAMLClassifier(**LIGHT, memory_size=40).partial_fit(X, Y)
    model.save(tmp_path / "model.lamaml")
    again = LaMAMLClassifier.load(tmp_path / "model.lamaml")
    for one in (model, again):
        one.partial_fit(X, Y)
    np.testing.assert_array_equal(model.predict_proba(X), again.predict_proba(X))


def test_a_regression_follows_a_change_of_sign():
    x = np.random.default_rng(0).normal(size=(900, 3))
    y = np.where(np.arange(900) < 600, 1, -1) * x[:, 0]
    model = LaMAMLRegressor(hidden_sizes=(20,))
    for start in range(0, 900, 30):
        model.partial_fit(x[start : start + 30], y[start : start + 30])
    assert np.corrcoef(model.predict(x[:200]), -x[:200, 0])[0, 1] > 0.8
