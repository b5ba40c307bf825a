"""Data as it comes: dates, ids, missing labels, weights of rows that are left out, wrong types."""

import multiprocessing
import os

import jax
import jax.numpy as jnp
import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from small_streams import bits, blobs, classifier, regressor

from lamaml import LaMAMLClassifier, LaMAMLRegressor, evaluate_prequential, plot_rates
from lamaml.errors import Forked, InvalidArgument
from lamaml.estimators._holdout import choose_held_out
from lamaml.models import cnn

X, Y = blobs(120)
NAMES = np.array(["ant", "bee", "cat"])[Y]
DATES = 1.7e9 + np.random.default_rng(0).uniform(0, 60, 500)  # seconds of one minute


@pytest.mark.parametrize("rows", [DATES, (DATES * 1e9).astype(np.int64)])
def test_dates_are_told_apart(rows):
    """In float32 all seconds of a minute are one number."""
    late = DATES > 1.7e9 + 30
    model = classifier(hidden_sizes=(16,)).fit(rows[:, None], late)
    assert model.score(rows[:, None], late) > 0.95
    assert len(set(rows[:20].astype(np.float32))) == 1


def test_targets_far_from_zero_are_told_apart():
    x = np.linspace(-1, 1, 300)[:, None]
    assert regressor().fit(x, 1.7e9 + 3 * x[:, 0]).score(x, 1.7e9 + 3 * x[:, 0]) > 0.9


def test_what_dates_are_counted_from_is_saved(tmp_path):
    rows = np.c_[DATES, np.ones(500)]
    late = 1.7e9 + (DATES - 1.7e9) / 2
    model = regressor().partial_fit(rows[:250], late[:250])
    model.save(tmp_path / "model")
    again = LaMAMLRegressor.load(tmp_path / "model")
    assert bits(again) == bits(model)
    assert np.array_equal(again.predict(rows), model.predict(rows))


def test_rows_that_are_not_scaled_are_read_as_they_are():
    assert classifier(scale=False).partial_fit(X + 1e8, Y)._fitted.offsets.inputs is None


def test_the_weight_of_a_bad_row_does_not_count():
    bad = X.copy()
    bad[0] = np.nan
    models = []
    for weight in (1.0, 1e6):
        weights = np.r_[weight, np.full(119, 1.0)]
        models.append(classifier(on_bad_rows="skip").partial_fit(bad, Y, sample_weight=weights))
    assert bits(models[0]) == bits(models[1])


def test_small_weights_are_weights():
    model = classifier(learner="online").partial_fit(X, Y, sample_weight=np.full(120, 1e-50))
    assert model.report_.samples_seen == 120
    fresh = classifier(learner="online").partial_fit(X[:1], Y[:1], sample_weight=[1e-50])
    params = [jax.tree.leaves(one._fitted.learner_state.params) for one in (model, fresh)]
    assert all(np.array_equal(*pair) for pair in zip(*params, strict=True))


def test_a_wrong_weight_is_named():
    with pytest.raises(InvalidArgument, match="sample_weight of row 1 = inf: must be finite"):
        classifier().partial_fit(X[:3], Y[:3], sample_weight=[1, np.inf, 2])


@pytest.mark.parametrize("other", [[7.0] * 4, np.array([7] * 4, np.uint64), [True] * 4])
def test_large_ids_stay_apart_whatever_comes_after(other):
    ids = 2**60 + Y
    model = classifier().partial_fit(X, ids).partial_fit(X[:4], other).partial_fit(X, ids)
    assert model.classes_.dtype.kind == "i"
    assert len(set(model.classes_.tolist())) == 4
    assert set(model.predict(X)) <= {*model.classes_}
    assert model.score(X, ids) > 0.8


def test_ids_that_one_dtype_cannot_tell_apart_are_refused():
    model = classifier().partial_fit(X, 2**60 + Y)
    before = bits(model)
    with pytest.raises(InvalidArgument, match="give all of them in one dtype"):
        model.partial_fit(X[:3], np.full(3, 2**63 + 1, np.uint64))
    assert bits(model) == before


@pytest.mark.parametrize("missing", [[None], np.array([np.nan]), [pd.NA]])
def test_a_call_of_missing_labels_alone_is_skipped(missing):
    model = classifier(on_bad_rows="skip").partial_fit(X, NAMES)
    model.partial_fit(X[:1], missing)
    assert model.report_.bad_rows_skipped == 1
    assert model.partial_fit(X, NAMES, classes=[]).classes_.tolist() == ["ant", "bee", "cat"]


def test_what_is_skipped_in_learning_is_not_tested_either():
    names = NAMES.astype(object)
    names[61] = None
    stream = [(X[:60], NAMES[:60]), (X[60:], names[60:])]
    assert evaluate_prequential(classifier(on_bad_rows="skip"), stream).num_rows.tolist() == [59]
    targets = X[:, 0].copy()
    targets[61] = np.nan
    stream = [(X[:60], targets[:60]), (X[60:], targets[60:])]
    assert evaluate_prequential(regressor(on_bad_rows="skip"), stream).num_rows.tolist() == [59]
    frame = pd.DataFrame({"a": pd.array([1, None, 3] * 10, dtype="Int64"), "b": X[:30, 0]})
    stream = [(frame, Y[:30])] * 2
    assert evaluate_prequential(classifier(on_bad_rows="skip"), stream).num_rows.tolist() == [20]


@pytest.mark.parametrize("none", [X[:0], pd.DataFrame(X[:0]), [], np.zeros((0, 9))])
def test_an_empty_batch_is_no_work_and_no_error(none):
    model = classifier().partial_fit(X, NAMES)
    before = bits(model)
    assert model.partial_fit(none, NAMES[:0]) is model
    assert bits(model) == before
    assert model.predict(none).shape == (0,)
    assert model.predict_proba(none).shape == (0, 3)
    assert regressor().partial_fit(X, Y).predict(none).shape == (0,)
    with pytest.raises(ValueError, match="inconsistent"):
        model.partial_fit(none, NAMES[:1])


def test_bad_rows_are_named_with_their_column():
    frame = pd.DataFrame({"amount": X[:, 0], "age": X[:, 1]})
    model = classifier(on_bad_rows="skip").partial_fit(frame, Y)
    frame.loc[3, "age"] = np.nan
    with pytest.raises(InvalidArgument, match=r"in rows \[3\], column 'age': each row") as found:
        model.predict(frame)
    assert "on_bad_rows" not in str(found.value)
    assert model.bad_rows(frame).tolist() == [3]
    with pytest.raises(InvalidArgument, match=r"column 'age': .*on_bad_rows='skip'"):
        classifier(columns="numbers").partial_fit(frame, Y)
    with pytest.raises(InvalidArgument, match="column 1: "):
        classifier().partial_fit(frame.to_numpy(), Y)


def test_the_loss_of_the_last_batch_is_of_its_own_task():
    """The fiftieth row is held out: the last batch learned is of the other task then."""
    model = classifier()
    for row in range(100):
        model.partial_fit(X[row : row + 1], [f"{row % 2}{NAMES[row]}"], task=row % 2)
    assert model.report_.loss_new < 100


@pytest.mark.parametrize("share", [0.02, 0.1, 1 / 3, 0.34, 0.4, 0.5])
def test_the_share_held_out_is_the_one_asked_for(share):
    calls = [choose_held_out(7, first, share) for first in range(0, 7000, 7)]
    assert abs(np.concatenate(calls).mean() - share) < 1e-3


def test_a_share_that_is_changed_is_checked():
    model = classifier().partial_fit(X, Y)
    with pytest.raises(InvalidArgument, match=r"held_out = 0.9: must be in \[0, 0.5\]"):
        model.set_params(held_out=0.9).partial_fit(X, Y)


@pytest.mark.parametrize(
    "changes",
    [
        *({name: value} for name in ("memory_size", "batch_size") for value in (1e2, "1", 0)),
        *({name: 2.0} for name in ("glances", "memory_bytes", "epochs")),
        *({"hidden_sizes": sizes} for sizes in (100, "100", (0,), (10.0,))),
        *({"held_out": share} for share in (None, "1", -1)),
        *({"model": "cnn"}, {"learner": None}, {"memory_bytes": "1MB"}),
    ],
)
def test_parameters_of_another_kind_are_named(changes):
    (name,) = changes
    with pytest.raises(InvalidArgument, match=name):
        LaMAMLClassifier(**({"learner": "er"} | changes)).fit(X, Y)


def test_whole_numbers_of_numpy_are_whole_numbers():
    numbers = {"memory_size": np.int64(20), "batch_size": np.int32(10), "held_out": np.float32(0.1)}
    assert classifier(**numbers, hidden_sizes=np.array([8])).fit(X, Y).score(X, Y) > 0.9


def test_classes_may_be_a_set_and_labels_any_strings_of_numpy():
    text = NAMES.astype(np.dtypes.StringDType())
    model = classifier().partial_fit(X, text, classes={"ant", "dog"})
    assert model.classes_.tolist() == ["ant", "bee", "cat", "dog"]


def test_images_of_another_library_and_empty_ones():
    images = np.zeros((4, 4, 4, 1), np.float32)
    model = classifier(model=cnn).partial_fit(jnp.asarray(images), Y[:4])
    assert model.n_features_in_ == 16
    with pytest.raises(ValueError, match="0 sample"):
        classifier(model=cnn).partial_fit(images[:0], [])
    with pytest.raises(ValueError, match="Expected 2D array"):
        classifier().partial_fit(X, Y).predict(np.array(5.0))


def test_a_task_that_is_not_known_is_named_as_it_is():
    model = classifier().partial_fit(X, Y)
    with pytest.raises(InvalidArgument, match="unknown task 'a': no task was named yet"):
        model.predict(X, task="a")
    model.partial_fit(X, Y, task=np.int64(1))
    assert model.predict(X, task=np.int64(1)).tolist() == model.predict(X, task=1).tolist()
    with pytest.raises(InvalidArgument, match=r"unknown task '1': 1$"):
        model.predict(X, task="1")
    with pytest.raises(InvalidArgument, match="must be a string or integer"):
        model.predict(X, task=np.ones(120))


def test_numbers_too_small_for_compiled_code_do_not_diverge():
    assert regressor().fit(X * 1e-39, X[:, 0] * 1e-39).predict(X * 1e-39).shape == (120,)


def test_rates_that_do_not_differ_can_be_drawn():
    mpl.use("agg")
    model = classifier(learner="la_er", learner_options={"hyper_rate": 0.0}).partial_fit(X, Y)
    assert plot_rates(model).patches


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*")
def test_a_forked_process_is_refused_where_it_would_wait_for_ever():
    model = classifier().partial_fit(X, Y)
    answers = multiprocessing.get_context("fork").SimpleQueue()

    def child():
        for call in (model.predict, lambda x: model.partial_fit(x, Y)):
            try:
                call(X)
            except Forked as error:
                answers.put(str(error))

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    process.join(60)
    assert process.exitcode == 0
    assert "spawn" in answers.get()
    assert "spawn" in answers.get()
    assert model.predict(X).shape == (120,)
