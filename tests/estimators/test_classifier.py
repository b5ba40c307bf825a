"""The classifier on streams: classes that arrive late, tasks, bad rows, every learner."""

import dataclasses

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from small_streams import bits, blobs, classifier

from lamaml import LaMAMLClassifier
from lamaml.errors import Diverged, InvalidArgument
from lamaml.estimators._config import build_learner
from lamaml.estimators.report import stored_bytes
from lamaml.learners import LEARNERS
from lamaml.models import cnn, mlp


def test_it_learns_a_stream():
    x, y = blobs(300)
    model = classifier()
    for start in range(0, 240, 12):
        model.partial_fit(x[start : start + 12], y[start : start + 12])
    assert model.score(x[240:], y[240:]) > 0.95


@pytest.mark.parametrize("learner", sorted(LEARNERS))
def test_any_learner_learns_add_tasks_and_without(learner):
    x, y = blobs(120)
    options = {"icarl": {"task_size": 60}, "mer": {"num_batches": 2}}.get(learner)
    quick = {"learner": learner, "hidden_sizes": (8,), "memory_size": 40, "glances": 3}
    plain = LaMAMLClassifier(**quick, learner_options=options).partial_fit(x, y).partial_fit(x, y)
    assert plain.score(x, y) > 0.8
    tasked = clone(plain)
    for task, low in (("a", 0), ("b", 2)):
        rows = np.isin(y, (low, low + 1))
        tasked.partial_fit(x[rows], y[rows], task=task)
    assert set(tasked.predict(x, task="a")) <= {0, 1}
    assert tasked.predict(x[y == 2], task="b").tolist() == [2] * 40


@pytest.mark.parametrize("learner", sorted(LEARNERS))
def test_probabilities_are_offered_by_learners_that_have_them(learner):
    x, y = blobs(20)
    before = LaMAMLClassifier(learner, hidden_sizes=(8,), memory_size=40)
    after = clone(before).partial_fit(x, y)
    algorithm = build_learner(after._fitted.config, after._fitted.loss_inputs)
    assert hasattr(before, "predict_proba") == hasattr(after, "predict_proba")
    chooses_classes = algorithm.predict is not None and algorithm.outputs is None
    assert hasattr(after, "predict_proba") != chooses_classes


def test_late_classes_leave_what_is_fitted_as_it_is():
    x, y = blobs(200, num_classes=34, num_columns=10)
    names = 100 - y  # the later a class, the earlier in the order
    early = y < 32
    model = classifier(learner="la_er").partial_fit(x[early], names[early])
    before = model._fitted
    model.partial_fit(x[y == 33][:3], names[y == 33][:3])
    assert model.classes_.tolist() == [67, *range(69, 101)]
    assert before.config.num_outputs == 32
    assert model._fitted.config.num_outputs == 64
    grown = model._fitted.labels.outputs[model.classes_ == 67]
    assert grown.tolist() == [32]


def test_growth_keeps_every_bit_and_starts_new_outputs_from_the_seed():
    from lamaml.estimators._budget import convert_state

    x, y = blobs(50)
    known = classifier(learner="la_er").partial_fit(x, y)._fitted
    wider = dataclasses.replace(known.config, num_outputs=64)
    grown, again = (convert_state(known.learner_state, wider, known.seed) for _ in range(2))
    for part in ("params", "rates"):
        old, new = getattr(known.learner_state, part)["head"], getattr(grown, part)["head"]
        assert np.array_equal(new["weight"][:32], old["weight"])  # weights are (outputs, inputs)
        assert np.array_equal(new["weight"], getattr(again, part)["head"]["weight"])
        assert new["weight"][32:].all()
    assert np.array_equal(grown.memory.x, known.learner_state.memory.x)


def test_declared_classes_are_not_answered_before_they_are_seen():
    x, y = blobs(60, num_classes=2)
    model = classifier().partial_fit(x, y, classes=[0, 1, 2])
    shares = model.predict_proba(x)
    assert model.classes_.tolist() == [0, 1, 2]
    assert (shares[:, 2] == 0).all()
    assert np.allclose(shares.sum(axis=1), 1)


def test_a_task_answers_with_its_own_classes():
    x, y = blobs(120, num_classes=4)
    model = classifier()
    model.partial_fit(x[y < 2], y[y < 2], task="first").partial_fit(x[y > 1], y[y > 1], task="next")
    assert set(model.predict(x, task="first")) <= {0, 1}
    assert set(model.predict(x, task="next")) <= {2, 3}
    assert (model.predict_proba(x, task="next")[:, :2] == 0).all()
    with pytest.raises(InvalidArgument, match="did you mean 'first'"):
        model.predict(x, task="frist")


@pytest.mark.parametrize("size", [1, 9, 10, 11, 160, 161, 700])
def test_any_number_of_rows(size):
    x, y = blobs(700)
    model = classifier(held_out=0).partial_fit(x[:size], y[:size])
    assert model._fitted.num_updates == -(-size // 10)
    assert len(model.predict(x[:size])) == size


def test_zero_weights_are_absent_rows():
    x, y = blobs(40)
    some = np.arange(40) % 3 > 0
    weighted = classifier().partial_fit(x, y, sample_weight=some.astype(float))
    absent = classifier().partial_fit(x[some], y[some])
    assert bits(weighted) == bits(absent)


def test_weights_count():
    x, y = blobs(40, num_classes=2)
    x[:] = 0.0
    heavy = classifier().partial_fit(x, y, sample_weight=np.where(y == 1, 9.0, 1.0))
    assert heavy.predict(x).tolist() == [1] * 40


def test_bad_rows_are_named_or_skipped():
    x, y = blobs(40)
    x[[3, 7], 1] = np.nan, np.inf
    good = np.delete(np.arange(40), [3, 7])
    with pytest.raises(InvalidArgument, match=r"rows \[3, 7\]"):
        classifier().partial_fit(x, y)
    skipping = classifier(on_bad_rows="skip").partial_fit(x, y)
    clean = classifier(on_bad_rows="skip").partial_fit(x[good], y[good])
    assert skipping._num_bad_rows == 2
    assert np.array_equal(skipping.predict_proba(x[good]), clean.predict_proba(x[good]))
    with pytest.raises(InvalidArgument, match=r"rows \[3, 7\]"):
        skipping.predict(x)


@pytest.mark.parametrize(
    ("changes", "call", "words"),
    [
        ({}, {"y": np.arange(40.0) + 0.5}, "Unknown label type"),
        ({}, {"y": np.array(["a"] * 40)}, "all labels as numbers"),
        ({}, {"x": np.zeros((40, 5))}, "5 features"),
        ({}, {"x": np.full((40, 4), 1e300)}, "too large"),
        ({}, {"sample_weight": -np.ones(40)}, "sample_weight"),
        ({}, {"task": 1.5}, "task"),
        ({"on_bad_rows": "skp"}, {}, "did you mean 'skip'"),
    ],
)
def test_a_refused_call_changes_nothing(changes, call, words):
    x, y = blobs(40)
    model = classifier().partial_fit(x, y).set_params(**changes)
    before = bits(model)
    with pytest.raises(ValueError, match=words):
        model.partial_fit(**({"X": call.pop("x", x), "y": y} | call))
    assert bits(model) == before


def test_a_call_that_diverges_changes_nothing():
    x, y = blobs(40)
    model = classifier(scale=False, learner_options={"max_norm": None, "learning_rate": 1e4})
    model.partial_fit(x[:1], y[:1])
    before = bits(model)
    with pytest.raises(Diverged, match="diverged; the previous state was restored"):
        model.partial_fit(1e30 * x, y)
    assert bits(model) == before


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"learner": "lamaml"}, "did you mean 'la_maml'"),
        ({"learner_options": {"lerning_rate": 1}}, "did you mean 'learning_rate'"),
        ({"batch_size": 0}, "batch_size = 0"),
        ({"held_out": 0.9}, "held_out"),
        ({"memory_bytes": 10}, "memory_bytes = 10: must be at least"),
        ({"memory_bytes": 10**6, "learner": "gem"}, "memory_bytes = 1000000: must be None"),
        ({"memory_bytes": 10**6, "learner": "ewc"}, "memory_bytes = 1000000: must be None"),
    ],
)
def test_nonsense_is_refused_by_name(parameters, words):
    with pytest.raises(InvalidArgument, match=words):
        classifier(**parameters).fit(*blobs(10))


def test_frames_and_their_names():
    x, y = blobs(60)
    columns = list("abcd")
    plain = classifier().partial_fit(x, y).predict_proba(x)
    for frame in (pd.DataFrame(x, columns=columns), pl.DataFrame(x, schema=columns)):
        model = classifier().partial_fit(frame, y)
        assert model.feature_names_in_.tolist() == columns
        assert np.array_equal(model.predict_proba(frame), plain)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(pd.DataFrame(x, columns=list("abce")))
    for kind in ("category", "Float64", object):  # columns that are no plain numbers
        frame = pd.DataFrame(x, columns=columns).astype({"b": kind})
        assert np.array_equal(model.predict_proba(frame), plain)


def test_images_and_own_networks():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    x = rng.integers(0, 40, (60, 4, 4, 1), np.uint8)
    x[y == 1, :2] += 200

    def network(shape, num_outputs):
        return cnn(shape, num_outputs, num_convolutions=1, num_filters=4, hidden_sizes=(8,))

    model = classifier(model=network).partial_fit(x, y)
    assert model.score(x, y) > 0.9
    assert model.n_features_in_ == 16
    with pytest.raises(InvalidArgument, match=r"\(4, 4, 1\), as before"):
        model.predict(x.reshape(60, 16))


def test_a_network_of_fixed_size_refuses_more_classes_than_outputs():
    x, y = blobs(60)
    model = classifier(model=mlp(4, 2, hidden_sizes=(8,))).partial_fit(x[y < 2], y[y < 2])
    with pytest.raises(InvalidArgument, match="outputs of model = 2: must be at least 3"):
        model.partial_fit(x, y)
    assert model.classes_.tolist() == [0, 1]


def test_pipelines_and_grid_search():
    x, y = blobs(90)
    steps = make_pipeline(StandardScaler(), classifier(epochs=3))
    grid = {"laMAMLclassifier__glances".lower(): [1, 2]}
    search = GridSearchCV(steps, grid, cv=3).fit(x, y)
    assert search.best_score_ > 0.9


def test_the_memory_keeps_bytes_as_bytes_until_other_numbers_arrive():
    x, y = blobs(40)
    images = (np.round(x[:20]) + 3).astype(np.uint8)
    model = classifier(memory_size=60).partial_fit(images, y[:20])
    kept = model._fitted.learner_state.memory.x
    assert kept.dtype == np.uint8
    model.partial_fit(images.astype(float), y[:20])
    assert model._fitted.learner_state.memory.x.dtype == np.uint8
    model.partial_fit(x[20:], y[20:])
    assert model._fitted.learner_state.memory.x.dtype == np.float32
    assert np.array_equal(model._fitted.learner_state.memory.x[:20], kept[:20])


def test_scaling_can_be_switched_off():
    x, y = blobs(60)
    huge, small = x * 1000 + 5e4, x
    scaled = [classifier().partial_fit(rows, y).predict(rows) for rows in (huge, small)]
    assert np.mean(scaled[0] == scaled[1]) > 0.9
    raw = classifier(scale=False).partial_fit(small, y)._fitted
    assert raw.input_moments.num_rows == 0
    assert raw.loss_inputs.deviation.tolist() == [1] * 4


def test_the_same_seed_gives_the_same_bits_and_another_does_not():
    x, y = blobs(40)
    one, same, other = (classifier(random_state=seed).partial_fit(x, y) for seed in (1, 1, 2))
    assert bits(one) == bits(same)
    assert not np.array_equal(one.predict_proba(x), other.predict_proba(x))


def test_labels_that_are_missing_are_bad_rows():
    x, labels = np.eye(4), np.array(["ant", "bee", None, np.nan], object)
    with pytest.raises(InvalidArgument, match=r"Input y .* in rows \[2, 3\]"):
        classifier().partial_fit(x, labels)
    model = classifier(on_bad_rows="skip")
    for y in (labels, pd.Series(labels), pd.Series(labels, dtype="string")):
        model.partial_fit(x, y)
    assert model.classes_.tolist() == ["ant", "bee"]
    assert model.report_.bad_rows_skipped == 6
    with pytest.raises(InvalidArgument, match="y mixes"):
        model.partial_fit(x[:2], np.array(["ant", 1], object))


def test_weights_are_relative_to_one():
    x, y = blobs(60)
    models = [classifier().partial_fit(x, y, sample_weight=w) for w in (None, np.ones(60))]
    assert bits(models[0]) == bits(models[1])
    models = [classifier().partial_fit(x, y, sample_weight=np.full(60, w)) for w in (1, 0.1)]
    assert bits(models[0]) != bits(models[1])


def test_what_is_kept_is_a_copy():
    x, y = (values.astype(np.float32) for values in blobs(40))
    model = classifier().partial_fit(x, y)
    before = bits(model)
    x[:] = 0
    assert bits(model) == before


def test_a_budget_holds_when_numbers_widen_though_nothing_is_replayed():
    x, y = blobs(400)
    model = classifier(learner="online", memory_bytes=6000, batch_size=1, held_out=0.5)
    model.partial_fit(np.round(x), y).partial_fit(x, y)
    assert stored_bytes(model._fitted) <= 6000


def test_icarl_keeps_the_head_of_a_task_when_outputs_are_added():
    x, y = blobs(80, num_classes=8, num_columns=8)
    model = classifier(learner="icarl", memory_size=80, glances=5)
    model.partial_fit(x, y, task="a").partial_fit(x, y + 8, task="b")
    assert set(model.predict(x, task="b")) <= set(range(8, 16))
    assert np.mean(model.predict(x, task="a") == y) > 0.8


def test_arguments_are_in_the_order_of_scikit_learn():
    x, y = blobs(40)
    by_position = classifier().partial_fit(x, y, [0, 1, 2], 1.0 + y)
    by_name = classifier().partial_fit(x, y, classes=[0, 1, 2], sample_weight=1.0 + y)
    assert bits(by_position) == bits(by_name)
    with pytest.raises(TypeError, match="positional"):
        by_name.predict(x, "a")


def plain_sgd(loss, *, learning_rate):
    return LEARNERS["online"](loss, learning_rate=learning_rate)


@pytest.mark.parametrize("learner", [plain_sgd, f"{__name__}:plain_sgd"])
def test_a_learner_may_be_a_function(learner):
    x, y = blobs(120)
    options = {"learning_rate": 0.1}
    own = classifier(learner=learner, learner_options=options).partial_fit(x, y)
    ours = classifier(learner="online", learner_options=options | {"max_norm": None})
    assert np.array_equal(own.predict_proba(x), ours.partial_fit(x, y).predict_proba(x))
    assert clone(own).learner is learner
    with pytest.raises(InvalidArgument, match="must have 'learning_rate'"):
        classifier(learner=learner).fit(x, y)


def test_a_function_of_the_package_is_the_learner_of_its_name():
    x, y = blobs(40)
    models = [classifier(learner=er).partial_fit(x, y) for er in ("er", LEARNERS["er"])]
    assert np.array_equal(*(model.predict_proba(x) for model in models))
