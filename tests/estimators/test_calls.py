"""Calls that follow each other: from several threads, and with parameters set in between."""

import pickle
import threading

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from lamaml import LaMAMLClassifier, LaMAMLRegressor
from lamaml.errors import InvalidArgument

X = np.random.default_rng(0).normal(size=(40, 3))
Y = (X[:, 0] > 0).astype(int)


def small(**parameters) -> LaMAMLClassifier:
    return LaMAMLClassifier("er", hidden_sizes=(8,), held_out=0.0, **parameters)


def test_no_row_is_lost_between_threads() -> None:
    clf = small()
    clf.partial_fit(X[:10], Y[:10])

    def learn() -> None:
        for start in range(0, 40, 10):
            clf.partial_fit(X[start : start + 10], Y[start : start + 10])

    threads = [threading.Thread(target=learn) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert clf.report_.samples_seen == 10 + 4 * 40


def test_glances_and_batch_size_may_be_set_later() -> None:
    clf = small().partial_fit(X[:10], Y[:10])
    before = clf.report_.updates
    clf.set_params(glances=3).partial_fit(X[10:20], Y[10:20])
    assert clf.report_.updates == before + 3
    clf.set_params(batch_size=5).partial_fit(X[20:30], Y[20:30])
    assert clf.report_.updates == before + 3 + 6
    clf.set_params(glances=0)
    with pytest.raises(InvalidArgument, match="glances = 0"):
        clf.partial_fit(X[:10], Y[:10])


@pytest.mark.parametrize(
    ("name", "value"),
    [("hidden_sizes", (9,)), ("memory_size", 300), ("learner", "online"), ("scale", False)],
)
def test_what_the_state_is_made_of_cannot_change(name, value) -> None:
    clf = small().partial_fit(X[:10], Y[:10])
    before = clf.predict_proba(X)
    clf.set_params(**{name: value})
    with pytest.raises(InvalidArgument, match=rf"{name} = .* cannot change now"):
        clf.partial_fit(X[10:20], Y[10:20])
    np.testing.assert_array_equal(clf.predict_proba(X), before)
    clf.fit(X, Y)  # starts afresh
    clf.partial_fit(X, Y)


def test_equal_values_are_no_change_and_survive_pickling() -> None:
    clf = small(learner_options={"learning_rate": 0.2}).partial_fit(X[:10], Y[:10])
    other = pickle.loads(pickle.dumps(clf))  # noqa: S301
    other.set_params(hidden_sizes=[8], learner_options={"learning_rate": 0.2})
    other.partial_fit(X[10:], Y[10:])
    other.set_params(learner_options={"learning_rate": 0.3})
    with pytest.raises(InvalidArgument, match="learner_options"):
        other.partial_fit(X, Y)


def test_a_loaded_estimator_goes_on(tmp_path) -> None:
    reg = LaMAMLRegressor("er", hidden_sizes=(8,)).partial_fit(X, X[:, 1])
    reg.save(tmp_path / "saved.safetensors")
    loaded = LaMAMLRegressor.load(tmp_path / "saved.safetensors")
    loaded.set_params(glances=2).partial_fit(X, X[:, 1])
    loaded.set_params(memory_size=100)
    with pytest.raises(InvalidArgument, match="memory_size"):
        loaded.partial_fit(X, X[:, 1])


def test_a_grid_search_goes_over_the_learners_settings() -> None:
    rates = [1e-7, 0.3]
    search = GridSearchCV(small(), {"learner_options__learning_rate": rates}, cv=2).fit(X, Y)
    assert search.best_params_ == {"learner_options__learning_rate": 0.3}
    assert search.best_estimator_.learner_options == {"learning_rate": 0.3}


def test_nested_parameters_are_added_to_those_there_are() -> None:
    clf = small(learner_options={"replay_size": 5})
    clf.set_params(learner_options__learning_rate=0.2, glances=2)
    assert clf.get_params()["learner_options__replay_size"] == 5
    assert clone(clf).learner_options == {"replay_size": 5, "learning_rate": 0.2}
    assert "learner_options__replay_size" not in clf.get_params(deep=False)
    with pytest.raises(InvalidArgument, match=r"learnin_rate.*did you mean 'learning_rate'"):
        clf.set_params(learner_options__learnin_rate=1).fit(X, Y)
    with pytest.raises(InvalidArgument, match=r"learner_options = .* cannot change now"):
        small().fit(X, Y).set_params(learner_options__learning_rate=0.2).partial_fit(X, Y)
