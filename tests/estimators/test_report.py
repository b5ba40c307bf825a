"""The report and the pictures tell what is there."""

import re

import matplotlib as mpl
import numpy as np
import pytest
from small_streams import blobs, classifier, regressor

from lamaml import plot_forgetting, plot_rates
from lamaml.errors import InvalidArgument

mpl.use("Agg")

X, Y = blobs(400, num_classes=4)


def streamed(estimator, y=Y):
    for start in range(0, 400, 20):
        estimator.partial_fit(X[start : start + 20], y[start : start + 20])
    return estimator


@pytest.fixture(scope="module")
def model():
    return streamed(classifier(learner="la_er", on_bad_rows="skip").partial_fit(X[:20], Y[:20]))


def test_it_counts(model):
    report = model.report_
    assert report.samples_seen == 420
    assert report.classes == [0, 1, 2, 3]
    assert report.memory_rows == sum(report.memory_by_class.values()) == 20
    youngest, median, oldest = report.memory_ages
    assert 0 <= youngest <= median <= oldest < 420
    held = model._fitted.learner_state.memory
    assert report.updates == 42
    assert report.held_out_rows == 2  # of 8 set aside: a tenth of the memory
    sizes = [held.x.nbytes, held.y.nbytes, held.task.nbytes, held.num_seen.nbytes]
    sizes.append(held.position.nbytes)
    last = 10 * (4 * 4 + 8)
    assert report.memory_bytes == sum(sizes) + 2 * (4 * 4 + 20) + last
    assert report.bytes > report.memory_bytes
    assert report.seconds > 0


def test_it_tells_rates_losses_and_alignment(model):
    report = model.report_
    assert list(report.rates) == ["head", "hidden_1"]
    spread = report.rates["head"]
    assert spread.lowest <= spread.quarter <= spread.median <= spread.highest
    assert 0 <= report.rates_at_zero <= 1
    assert 0 <= report.loss_new < 1
    assert 0 <= report.loss_replayed < 1
    assert -1 <= report.alignment <= 1
    assert report.score_then - report.score_now == pytest.approx(report.forgetting)
    text = str(report)
    assert re.search(r"rates of head .*\(lowest, quartiles, highest\), \d+\.\d% at zero", text)
    assert "memory by class" in text


def test_ages_are_those_of_the_rows():
    x = np.arange(50, dtype=float)[:, None]
    model = classifier(memory_size=1000, held_out=0).partial_fit(x, np.arange(50) % 2)
    assert model.report_.memory_ages == (0, 25, 49)


def test_a_learner_without_memory_and_rates_has_none_to_tell():
    report = streamed(classifier(learner="online", held_out=0)).report_
    assert report.memory_rows == 0
    assert report.memory_ages is None
    assert report.rates is None
    assert report.alignment is None
    assert report.forgetting is None


@pytest.mark.parametrize("learner", ["gem", "ewc", "icarl"])
def test_other_memories_are_counted_too(learner):
    model = classifier(learner=learner, memory_size=40)
    report = model.partial_fit(X[:100], Y[:100], task="a").report_
    assert report.memory_rows == sum(report.memory_by_class.values()) > 0


def test_forgetting_is_seen():
    """Two classes, then only the other two, without memory: the first are lost."""
    model = classifier(learner="online", memory_size=500, held_out=0.1, random_state=1)
    first = Y < 2
    for _ in range(3):
        model.partial_fit(X[first], Y[first])
    learned = model.report_
    assert learned.score_then > 0.5
    for _ in range(3):
        model.partial_fit(X[~first], Y[~first])
    assert model.report_.forgetting > learned.forgetting + 0.1


def test_a_regression_reports_its_errors():
    report = streamed(regressor(held_out=0.1), 3.0 * X[:, 0]).report_
    assert report.classes is None
    assert report.memory_by_class is None
    assert report.score_now - report.score_then == pytest.approx(report.forgetting)


def test_the_pictures_show_what_the_report_tells(model):
    ax = plot_rates(model)
    assert [text.get_text().split()[0] for text in ax.get_legend().get_texts()] == list(
        model.report_.rates
    )
    ax = plot_forgetting(model, ax=ax.figure.add_subplot())
    then, now = ax.get_lines()
    assert np.mean(then.get_ydata()) == pytest.approx(model.report_.score_then)
    assert np.mean(now.get_ydata()) == pytest.approx(model.report_.score_now)
    mpl.pyplot.close("all")


def test_there_is_no_picture_of_nothing():
    model = classifier(held_out=0).partial_fit(X, Y)
    with pytest.raises(InvalidArgument, match="learns no rates"):
        plot_rates(model)
    with pytest.raises(InvalidArgument, match="held_out above 0"):
        plot_forgetting(model)
