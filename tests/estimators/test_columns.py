"""Frames as they come: strings, categories, dates, missing values, pandas and polars alike."""

import threading

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_streams import bits, blobs, classifier, regressor

from lamaml import LaMAMLClassifier, evaluate_prequential
from lamaml.errors import InvalidArgument
from lamaml.estimators import _reading
from lamaml.estimators._columns import NUM_KNOWN, WIDTHS, hash_text
from lamaml.estimators._frames import read_columns

RNG = np.random.default_rng(0)
CITIES = np.array(["Rome", "Oslo", "Lima"])
TIMES = pd.date_range("2026-01-01", periods=90, freq="7h")


def table(num_rows=90, first=0):
    """A frame whose city says the class, and the class."""
    y = np.arange(first, first + num_rows) % 3
    frame = pd.DataFrame(
        {
            "city": CITIES[y],
            "amount": RNG.normal(size=num_rows),
            "is_new": y == 1,
            "when": TIMES[np.arange(num_rows) % 90],
            "size": pd.Categorical(["S", "M"] * (num_rows // 2) + ["S"] * (num_rows % 2)),
        }
    )
    frame.loc[::7, "amount"] = np.nan
    frame.loc[::11, "city"] = None
    frame.loc[::13, "when"] = pd.NaT
    return frame, y


def as_polars(frame):
    def plain(value):
        if value is None or value is pd.NaT or value is pd.NA or value != value:
            return None
        if isinstance(value, pd.Timestamp):
            return value.to_pydatetime()
        return value.item() if isinstance(value, np.generic) else value

    return pl.DataFrame({name: [plain(value) for value in frame[name]] for name in frame})


FRAME, Y = table()


def test_a_frame_is_learned_as_it_comes():
    model = LaMAMLClassifier(hidden_sizes=(16,), columns="auto").fit(FRAME, Y)
    assert model.score(FRAME, Y) > 0.9
    assert model.n_features_in_ == 5
    assert model.feature_names_in_.tolist() == list(FRAME.columns)
    widths = [WIDTHS[kind] for kind in ("category", "number", "number", "date", "category")]
    assert model._fitted.config.num_columns == sum(widths)


def test_pandas_and_polars_are_read_alike():
    other = as_polars(FRAME)
    for one, two in zip(read_columns(FRAME), read_columns(other), strict=True):
        assert (one.name, one.kind) == (two.name, two.kind)
        if one.kind == "category":
            assert one.values.tolist() == two.values.tolist()
        else:
            assert np.array_equal(one.values, two.values, equal_nan=True)
    models = [classifier().partial_fit(frame, Y) for frame in (FRAME, other)]
    assert np.array_equal(models[0].predict_proba(other), models[1].predict_proba(FRAME))


@pytest.mark.parametrize("zone", [None, "Europe/Rome"])
def test_dates_are_seconds_of_1970_whatever_their_type(zone):
    moments = pd.Series(
        pd.to_datetime(["1970-01-02", None, "2026-05-05T06:00"], utc=True, format="ISO8601")
    )
    zoned = moments if zone is None else moments.dt.tz_convert(zone)
    for dates in (zoned, zoned.dt.as_unit("s"), zoned.astype(object)):
        (column,) = read_columns(pd.DataFrame({"t": dates}))
        assert column.kind == "date"
        assert np.array_equal(column.values, [86400.0, np.nan, 1777960800.0], equal_nan=True)


def test_a_column_of_the_wrong_kind_is_named():
    with pytest.raises(InvalidArgument, match="column 'city' of X holds strings or categories"):
        classifier(columns="numbers").partial_fit(FRAME, Y)
    with pytest.raises(InvalidArgument, match="column 'when' of X holds dates"):
        classifier(columns="numbers").partial_fit(as_polars(FRAME[["when"]]), Y)
    with pytest.raises(InvalidArgument, match="column 'l' of X holds values of type list"):
        classifier().partial_fit(pd.DataFrame({"l": [[1], [2]]}), [0, 1])
    with pytest.raises(InvalidArgument, match="column 'l' of X holds List"):
        classifier().partial_fit(pl.DataFrame({"l": [[1], [2]]}), [0, 1])
    with pytest.raises(InvalidArgument, match="column 'n' of X has no value in the first call"):
        classifier().partial_fit(pd.DataFrame({"n": [None, None], "c": ["a", "b"]}), [0, 1])
    with pytest.raises(InvalidArgument, match="column 1 of X holds 'a': must be numbers"):
        classifier().partial_fit(np.array([[1, "a"], [2, "b"]], object), [0, 1])
    model = classifier().partial_fit(FRAME, Y)
    before = bits(model)
    with pytest.raises(InvalidArgument, match=r"column 'amount' of X holds strings.*held numbers"):
        model.partial_fit(FRAME.assign(amount="much"), Y)
    with pytest.raises(InvalidArgument, match="X is a ndarray: must be a frame"):
        model.predict(np.zeros((2, 5)))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(FRAME.rename(columns={"city": "town"}))
    infinite = FRAME.assign(amount=np.inf)
    with pytest.raises(InvalidArgument, match="column 'amount': each row"):
        model.predict(infinite)
    assert bits(model) == before
    numbers = classifier().partial_fit(FRAME[["is_new"]].astype(float), Y)
    with pytest.raises(InvalidArgument, match=r"'is_new' of X holds strings.*as in the first call"):
        numbers.partial_fit(pd.DataFrame({"is_new": ["yes"]}), [0])


def test_kinds_can_be_named():
    frame = pd.DataFrame({"zip": [10, 20, 30] * 20, "day": ["2026-01-01", "2026-02-01", None] * 20})
    y = np.arange(60) % 3
    model = classifier(columns={"zip": "category", "day": "date"}).fit(frame, y)
    assert model._fitted.encoding.kinds == ("category", "date")
    assert hash_text("10") in model._fitted.encoding.known[0]
    assert model.score(frame, y) > 0.9
    with pytest.raises(InvalidArgument, match="unknown column in columns 'zap'"):
        classifier(columns={"zap": "category"}).fit(frame, y)
    with pytest.raises(InvalidArgument, match="unknown kind in columns 'text'"):
        classifier(columns={"zip": "text"}).fit(frame, y)
    with pytest.raises(InvalidArgument, match="column 'day' of X cannot be read as a number"):
        classifier(columns={"day": "number"}).fit(frame, y)


def test_new_categories_widen_nothing_and_are_learned():
    model = classifier(hidden_sizes=(16,), glances=3).partial_fit(FRAME, Y)
    width = model._fitted.config.num_columns
    names = [f"city {number}" for number in range(NUM_KNOWN + 9)]
    many = pd.concat([FRAME.assign(city=name) for name in names[:NUM_KNOWN]])
    model.partial_fit(many, np.resize(Y, len(many)))
    assert model._fitted.encoding.num_known[0] == NUM_KNOWN
    late = pd.concat([FRAME[:10].assign(city=names[-2]), FRAME[:10].assign(city=names[-1])])
    wanted = np.repeat([0, 2], 10)
    for _ in range(60):
        model.partial_fit(late, wanted)
    assert model.score(late, wanted) > 0.9  # both share columns with others
    assert model._fitted.config.num_columns == width


def test_the_encoding_is_saved_and_within_the_budget(tmp_path):
    model = classifier(memory_bytes=60_000).partial_fit(FRAME, Y)
    report = model.report_
    assert model._fitted.encoding.num_bytes < report.memory_bytes <= 60_000
    model.save(tmp_path / "model")
    again = LaMAMLClassifier.load(tmp_path / "model")
    assert again.n_features_in_ == 5
    more, labels = table(first=1)
    for one in (model, again):
        one.partial_fit(more.assign(city="Bern"), labels)
    assert bits(again) == bits(model)
    with pytest.raises(InvalidArgument, match="the bytes of the encoding"):
        classifier(memory_bytes=100).partial_fit(FRAME, Y)


def test_missing_numbers_are_the_running_mean_and_a_flag():
    frame = pd.DataFrame({"a": [1.0, np.nan, 3.0, 8.0]})
    model = regressor(scale=False, held_out=0.0).partial_fit(frame, [0.0, 1, 2, 3])
    assert model._fitted.learner_state.memory.x[:4].tolist() == [[1, 0], [4, 1], [3, 0], [8, 0]]
    skipping = classifier(on_bad_rows="skip").partial_fit(frame, [0, 1, 0, 1])
    assert skipping.report_.bad_rows_skipped == 1
    assert skipping._fitted.encoding is None


def test_dictionaries_with_strings_are_evaluated():
    frame, y = table(60)
    rows = [(row, int(label)) for row, label in zip(frame.to_dict("records"), y, strict=True)]
    found = evaluate_prequential(classifier(on_bad_rows="skip"), rows[1:])
    assert found.num_rows[-1] == 58


def test_sparse_rows_are_read_as_dense_ones(monkeypatch):
    x, y = blobs(60)
    dense = classifier(held_out=0.0).partial_fit(x[:30], y[:30]).partial_fit(x[30:], y[30:])
    monkeypatch.setattr(_reading, "MAX_DENSE", 30 * 4)  # two blocks
    rows = scipy.sparse.csr_array(x)
    sparse = classifier(held_out=0.0).partial_fit(rows, y, sample_weight=np.ones(60))
    assert np.array_equal(sparse.predict_proba(rows), dense.predict_proba(x))


@st.composite
def frames(draw):
    size = draw(st.integers(1, 12))
    kinds = {
        "text": lambda: draw(
            st.lists(st.one_of(st.none(), st.text()), min_size=size, max_size=size)
        ),
        "number": lambda: RNG.choice([np.nan, 1.5, -1e30, 7], size),
        "date": lambda: pd.Series(RNG.choice(TIMES.to_numpy(), size)),
        "flag": lambda: pd.array(RNG.choice([True, False, None], size), "boolean"),
        "count": lambda: pd.array(RNG.choice([1, 2, None], size), "Int64"),
    }
    frame = pd.DataFrame({name: make() for name, make in kinds.items()})
    return frame, RNG.choice([0, 1, 2], size), RNG.exponential(size=size) + 0.01


@settings(
    max_examples=8,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(st.lists(frames(), min_size=1, max_size=4), st.booleans())
def test_whatever_columns_weights_and_threads_bring(stream, is_polars):
    """Rows are counted whichever thread brings them, and every row has an answer."""
    kinds = dict.fromkeys(("number", "flag", "count"), "number")
    model = classifier(columns=kinds | {"text": "category", "date": "date"}, batch_size=12)
    calls = [(as_polars(x) if is_polars else x, y, w) for x, y, w in stream]
    model.partial_fit(*calls[0][:2], sample_weight=calls[0][2])
    threads = [
        threading.Thread(target=model.partial_fit, args=(x, y), kwargs={"sample_weight": w})
        for x, y, w in calls
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert model.report_.samples_seen == len(calls[0][1]) + sum(len(y) for _, y, _ in calls)
    for x, _, _ in calls:
        shares = model.predict_proba(x)
        assert np.isfinite(shares).all()
        assert np.allclose(shares.sum(axis=1), 1)
