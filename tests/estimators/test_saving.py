"""Saved and loaded an estimator goes on to the same bits; anything else in a file is refused."""

import os
import pickle
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from small_streams import bits, blobs, classifier, regressor

from lamaml import LaMAMLClassifier, LaMAMLRegressor
from lamaml.errors import DataCorrupt, DataUnavailable, InvalidArgument, Mismatch
from lamaml.estimators import _saving
from lamaml.learners import online
from lamaml.models import mlp

X, Y = blobs(130, num_classes=4)
NAMES = np.array(["ant", "bee", "cat", "doe"])[Y]


def there_and_back(estimator, path):
    estimator.save(path)
    return type(estimator).load(path)


def through_pickle(estimator, path):
    return pickle.loads(pickle.dumps(estimator))  # noqa: S301


def through_joblib(estimator, path):
    joblib.dump(estimator, path)
    return joblib.load(path)


@pytest.mark.parametrize("travel", [there_and_back, through_pickle, through_joblib])
def test_it_goes_on_to_the_same_bits(travel, tmp_path):
    model = classifier(learner="la_er", on_bad_rows="skip")
    model.partial_fit(X[:60], NAMES[:60], task="one").partial_fit([[np.nan] * 4], ["ant"])
    again = travel(model, tmp_path / "model")
    assert bits(again) == bits(model)
    for estimator in (model, again):
        estimator.partial_fit(X[60:], NAMES[60:], task="two")
    assert bits(again) == bits(model)
    assert np.array_equal(model.predict_proba(X), again.predict_proba(X))


def test_a_regressor_and_names_of_features_too(tmp_path):
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = regressor(memory_bytes=2000).partial_fit(frame, X[:, 0])
    again = there_and_back(model, tmp_path / "model")
    assert bits(again) == bits(model)
    assert again.feature_names_in_.tolist() == list("abcd")
    assert again.get_params() == model.get_params()


@pytest.mark.parametrize("learner", ["la_maml", "ewc", "gem", "icarl"])
def test_loaded_it_reports_grows_and_holds_wider_numbers(learner, tmp_path):
    options = {"inner_steps": 2} if learner == "la_maml" else {}
    model = classifier(learner=learner, learner_options=options).partial_fit(np.round(X), Y)
    again = there_and_back(model, tmp_path / "model")
    assert bits(again) == bits(model)
    for estimator in (model, again):
        assert estimator.report_.samples_seen == len(X)
        estimator.partial_fit(X, Y + 8)  # twelve classes, and fractions
    assert bits(again) == bits(model)


def test_another_network_is_refused_and_numpys_numbers_are_not(tmp_path):
    network, path = mlp(4, 4, hidden_sizes=(8,)), tmp_path / "model"
    classifier(model=network, memory_size=np.int64(20)).partial_fit(X, Y).save(path)
    for other in ((9,), (8, 8), ()):
        with pytest.raises(Mismatch, match="the model it was saved with"):
            LaMAMLClassifier.load(path, model=mlp(4, 4, hidden_sizes=other))
    assert LaMAMLClassifier.load(path, model=network).memory_size == 20
    assert path.stat().st_mode & 0o777 == 0o666 & ~umask()


def umask():
    now = os.umask(0)
    os.umask(now)
    return now


def test_an_own_network_must_be_given_again(tmp_path):
    network = mlp(4, 4, hidden_sizes=(8,))
    model = classifier(model=network).partial_fit(X, Y)
    model.save(tmp_path / "model")
    with pytest.raises(InvalidArgument, match="model="):
        LaMAMLClassifier.load(tmp_path / "model")
    again = LaMAMLClassifier.load(tmp_path / "model", model=network)
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))


@pytest.fixture
def saved(tmp_path) -> Path:
    path = tmp_path / "model"
    classifier().partial_fit(X, NAMES).save(path)
    return path


def test_every_damaged_file_is_refused(saved):
    whole = saved.read_bytes()
    damaged = [b"", b"{}", whole[: len(whole) // 2], whole[:-1], whole + b"\0"]
    for place in np.linspace(0, len(whole) - 1, 60).astype(int):
        flipped = bytearray(whole)
        flipped[place] ^= 1
        damaged.append(bytes(flipped))
    for content in damaged:
        saved.write_bytes(content)
        with pytest.raises(DataCorrupt, match="model"):
            LaMAMLClassifier.load(saved)


def test_foreign_files_are_refused(saved, tmp_path, monkeypatch):
    with pytest.raises(DataUnavailable, match="no such file"):
        LaMAMLClassifier.load(tmp_path / "nothing")
    with pytest.raises(DataCorrupt, match="holds a LaMAMLClassifier, not a LaMAMLRegressor"):
        LaMAMLRegressor.load(saved)
    pickled = tmp_path / "pickle"
    pickled.write_bytes(pickle.dumps(classifier()))
    with pytest.raises(DataCorrupt, match="not a complete safetensors file"):
        LaMAMLClassifier.load(pickled)
    monkeypatch.setattr(_saving, "VERSION", _saving.VERSION + 1)
    classifier().partial_fit(X, NAMES).save(saved)
    monkeypatch.undo()
    with pytest.raises(DataCorrupt, match=f"expected format {_saving.VERSION}"):
        LaMAMLClassifier.load(saved)


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(saved, monkeypatch):
    before = saved.read_bytes()
    model = LaMAMLClassifier.load(saved).partial_fit(X, NAMES)

    def full(descriptor):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        model.save(saved)
    assert saved.read_bytes() == before
    assert [path.name for path in saved.parent.iterdir()] == ["model"]


def test_what_json_cannot_hold_is_refused(tmp_path):
    model = classifier(random_state=np.random.RandomState(0)).partial_fit(X, Y)
    with pytest.raises(InvalidArgument, match="cannot be saved"):
        model.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


def own_learner(loss, *, learning_rate):
    return online(loss, learning_rate=learning_rate)


def local_learner():
    def own_learner(loss, *, learning_rate):
        return online(loss, learning_rate=learning_rate)

    return own_learner


@pytest.mark.parametrize("learner", [own_learner, local_learner(), f"{__name__}:own_learner"])
def test_a_learner_of_another_module_must_be_given_again(learner, tmp_path):
    """A file that could name a module to import could run code."""
    options = {"learning_rate": 0.1}
    model = classifier(learner=learner, learner_options=options).partial_fit(X, Y)
    model.save(tmp_path / "model")
    with pytest.raises(InvalidArgument, match=r"own_learner.*pass it as learner="):
        LaMAMLClassifier.load(tmp_path / "model")
    again = LaMAMLClassifier.load(tmp_path / "model", learner=learner)
    assert bits(again) == bits(model)


def test_a_file_of_the_first_format_is_read(tmp_path):
    """Written by revision 06223d9, after thirty rows of three classes."""
    model = LaMAMLClassifier.load(Path(__file__).with_name("format_1.safetensors"))
    shares = model.predict_proba(np.eye(3))
    assert np.allclose(shares.diagonal(), [0.8241304, 0.90991099, 0.73858315], rtol=1e-4)
    model.set_params(class_weight="balanced").partial_fit(np.eye(3), ["ant", "bee", "dog"])
    assert bits(there_and_back(model, tmp_path / "model")) == bits(model)
    assert model.classes_.tolist() == ["ant", "bee", "cat", "dog"]
