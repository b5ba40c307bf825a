"""Test-then-train, and the same through river's own bridge to scikit-learn."""

import numpy as np
import pytest
from river import compat, datasets, evaluate, metrics
from river import stream as river_stream
from sklearn.base import BaseEstimator
from sklearn.linear_model import SGDClassifier
from small_streams import blobs, classifier, regressor

from lamaml import evaluate_prequential
from lamaml.errors import InvalidArgument

X, Y = blobs(200)


def stream(x, y, size=20):
    return [(x[i : i + size], y[i : i + size]) for i in range(0, len(y), size)]


def test_answers_come_before_labels():
    class Recorder(BaseEstimator):
        """Answers with the number of rows it has learned."""

        rows_ = 0

        def fit(self, x, y):
            raise NotImplementedError

        def __sklearn_is_fitted__(self):
            return self.rows_ > 0

        def partial_fit(self, x, y):
            self.rows_ += len(y)

        def predict(self, x):
            return np.full(len(x), self.rows_)

    calls = [(np.zeros((2, 1)), np.full(2, 0)), (np.zeros((3, 1)), np.full(3, 5))]
    found = evaluate_prequential(Recorder(), calls, metric=lambda y, answer: (y - answer).mean())
    assert found.num_rows.tolist() == [3]
    assert found.scores.tolist() == [5 - 2]
    assert found.final == 3


def test_the_running_mean_counts_rows():
    found = evaluate_prequential(classifier(), stream(X, Y, 30))
    assert found.num_rows.tolist() == [30, 60, 90, 120, 150, 170]
    assert found.final == pytest.approx(np.average(found.scores, weights=[30] * 5 + [20]))
    assert found.scores[-1] > 0.9


def test_rows_that_are_skipped_are_not_asked_for():
    x = X.copy()
    x[40, 1] = np.nan
    x[60:80] = np.inf  # all rows of a call
    found = evaluate_prequential(classifier(on_bad_rows="skip"), stream(x, Y))
    assert found.num_rows.tolist() == [20, 39, *range(59, 160, 20)]


def test_any_estimator_can_be_compared():
    sgd = evaluate_prequential(SGDClassifier(random_state=0), stream(X, Y), classes=[0, 1, 2])
    assert sgd.final > 0.8
    errors = evaluate_prequential(regressor(random_state=1), stream(X, X.sum(axis=1)))
    assert errors.scores[-1] < errors.scores[0]


def test_river_learns_and_predicts_one_row_at_a_time():
    model = compat.convert_sklearn_to_river(classifier(), classes=[0, 1, 2])
    rows = river_stream.iter_array(X, Y)
    metric = evaluate.progressive_val_score(rows, model, metrics.Accuracy())
    assert metric.get() > 0.8
    shares = model.predict_proba_one(dict(enumerate(X[0])))
    assert sum(shares.values()) == pytest.approx(1)


def test_river_regression():
    model = compat.convert_sklearn_to_river(regressor())
    for x, y in river_stream.iter_array(X[:60], 2 * X[:60, 0]):
        model.learn_one(x, y)
    assert model.predict_one(dict(enumerate([3.0, 0, 0, 0]))) > 3


def test_rivers_own_streams_are_read():
    found = evaluate_prequential(classifier(), datasets.Phishing().take(300))
    assert found.num_rows[-1] == 299
    assert found.final > 0.7


def test_dictionaries_keep_their_columns_whatever_their_order():
    rows = [dict(zip("abcd", row, strict=True)) for row in X.tolist()]
    turned = [dict(reversed(row.items())) if n % 3 else row for n, row in enumerate(rows)]
    expected = evaluate_prequential(classifier(), stream(X, Y, 20))
    found = evaluate_prequential(classifier(), stream(turned, Y.tolist(), 20))
    assert found.scores.tolist() == expected.scores.tolist()
    with pytest.raises(InvalidArgument, match="the key 'e', which is new"):
        evaluate_prequential(classifier(), [(rows[0], 0), ({**rows[1], "e": 1.0}, 1)])


def test_an_object_with_partial_fit_and_predict_alone_will_do():
    class Last:
        """Predicts the last label it was given."""

        def partial_fit(self, x, y):
            self.label = y[-1]

        def predict(self, x):
            return np.full(len(x), self.label)

    calls = [(np.zeros((2, 1)), np.array([0, 1])), (np.zeros((4, 1)), np.array([1, 1, 1, 0]))]
    assert evaluate_prequential(Last(), calls).final == 0.75
