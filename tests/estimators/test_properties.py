"""Whatever a stream brings: errors change nothing, answers are classes seen, shares sum to one."""

from typing import Any, NamedTuple

import jax
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_streams import bits, classifier

SHAPES = ((1,), (3,), (2, 2, 1))
DTYPES = ("float64", "float32", "float16", "int64", "int8", "uint8", "bool")
LABELS = (np.arange(12), np.array([f"class {number}" for number in range(12)]))
few = settings(
    max_examples=8,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)


class Call(NamedTuple):
    x: np.ndarray
    y: np.ndarray
    sample_weight: np.ndarray | None
    task: Any
    bad: np.ndarray  # which rows hold a number that is none

    def part(self, which):
        weight = None if self.sample_weight is None else self.sample_weight[which]
        return Call(self.x[which], self.y[which], weight, self.task, self.bad[which])

    @property
    def counts(self):
        """Which rows are good and weigh something."""
        return ~self.bad & (True if self.sample_weight is None else self.sample_weight > 0)

    def given_to(self, model):
        model.partial_fit(self.x, self.y, task=self.task, sample_weight=self.sample_weight)


MISTAKES = {
    "features|shape of a row": lambda call: {"x": np.concatenate([call.x, call.x], axis=1)},
    "inconsistent numbers": lambda call: {"y": call.y[:-1]},
    "y mixes": lambda call: {"y": np.resize(LABELS[call.y.dtype.kind != "U"], len(call.y))},
    "sample_weight of row 0 = -1.0": lambda call: {"sample_weight": np.full(len(call.y), -1)},
    "sample_weight of row 0 = nan": lambda call: {"sample_weight": np.full(len(call.y), np.nan)},
    "task = 1.5": lambda call: {"task": 1.5},
}


@st.composite
def calls(draw, labels, shape):
    size = draw(st.integers(1, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    x = (draw(st.sampled_from([1, 100])) * rng.normal(size=(size, *shape))).astype(dtype)
    y = labels[rng.integers(0, draw(st.integers(1, len(labels))), size)]
    weight = draw(st.sampled_from([None, rng.integers(0, 3, size), rng.exponential(size=size)]))
    bad = np.zeros(size, bool)
    if dtype.kind == "f":
        bad = rng.random(size) < draw(st.sampled_from([0.0, 0.3]))
        x.reshape(size, -1)[bad, 0] = rng.choice([np.nan, np.inf, -np.inf])
    return Call(x, y, weight, draw(st.sampled_from([None, "a", "b"])), bad)


@st.composite
def streams(draw, shapes=SHAPES):
    labels, shape = draw(st.sampled_from(LABELS)), draw(st.sampled_from(shapes))
    return draw(st.lists(calls(labels, shape), min_size=1, max_size=5))


@few
@given(streams(), st.sampled_from(sorted(MISTAKES)))
def test_errors_change_nothing(stream, mistake):
    model = classifier(batch_size=40)
    for call in stream:
        if call.bad.any():
            before = bits(model)
            with pytest.raises(ValueError, match="NaN, infinity"):
                call.given_to(model)
            assert bits(model) == before
        good = call.part(call.counts)
        if not len(good.y):
            continue
        good.given_to(model)
        before = bits(model)
        with pytest.raises(ValueError, match=mistake):
            good._replace(**MISTAKES[mistake](good)).given_to(model)
        assert bits(model) == before


@few
@given(streams())
def test_answers_are_classes_seen_and_shares_sum_to_one(stream):
    model = classifier(batch_size=40, on_bad_rows="skip")
    seen: dict = {}
    for call in stream:
        good = call.part(~call.bad)
        if not call.counts.any():
            continue
        call.given_to(model)
        seen.setdefault(call.task, set()).update(call.y[call.counts].tolist())
        everything = set().union(*seen.values())
        assert set(model.classes_.tolist()) == everything
        for task, of_task in seen.items():
            allowed = everything if task is None else of_task
            shares = model.predict_proba(good.x, task=task)
            assert set(model.predict(good.x, task=task).tolist()) <= allowed
            assert shares.shape == (len(good.y), len(everything))
            assert np.allclose(shares.sum(axis=1), 1, rtol=0, atol=1e-12)
            assert (shares >= 0).all()
            assert set(model.classes_[shares.any(axis=0)].tolist()) <= allowed


@few
@given(streams(shapes=((3,),)), st.sampled_from([1800, 4000]))
def test_bad_rows_are_skipped_and_a_budget_is_kept(stream, budget):
    """To the byte, whatever dtype the memory must take."""
    model = classifier(batch_size=40, on_bad_rows="skip", memory_bytes=budget)
    skipped = 0
    for call in stream:
        if call.bad.all() and not model.__sklearn_is_fitted__():
            continue
        model.partial_fit(call.x, call.y)
        skipped += int(call.bad.sum())
        fitted = model._fitted
        kept = (fitted.learner_state.memory, fitted.holdout[:-1], fitted.last_batch[:-1])
        used = sum(leaf.nbytes for leaf in jax.tree.leaves(kept))
        assert used <= budget
        report = model.report_
        assert report.memory_bytes == used
        assert report.bad_rows_skipped == skipped
