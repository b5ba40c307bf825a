import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamaml.errors import InvalidArgument
from lamaml.streams import arrays


def numbered(count: int) -> np.ndarray:
    """Return rows whose content is their row number."""
    return np.arange(2 * count, dtype=np.float64).reshape(count, 2)


def row_numbers(examples) -> list[int]:
    return (examples.x[:, 0] / 2).astype(int).tolist()


def all_rows(stream) -> list[int]:
    return [row for task in stream.tasks for part in task[1:] for row in row_numbers(part)]


@st.composite
def data_sets(draw):
    kind = draw(st.sampled_from(["labels", "ids", "unbroken"]))
    num_classes = draw(st.integers(1, 6))
    num_rows = draw(st.integers(3 * num_classes, 60))
    names = draw(st.sampled_from([["c", "a", "b", "zz", "é", "0"], [7, -3, 0, 10**9, 4, 5]]))
    y = np.array(names)[np.array(draw(st.permutations(np.arange(num_rows) % num_classes)))]
    options = {}
    if kind == "labels":
        divisors = [size for size in range(1, num_classes + 1) if num_classes % size == 0]
        options["classes_per_task"] = draw(st.sampled_from(divisors))
        options["scenario"] = draw(st.sampled_from([None, "task", "class"]))
    elif kind == "ids":
        num_tasks = draw(st.integers(1, num_rows // 3))
        options["task"] = np.array(draw(st.permutations(np.arange(num_rows) % num_tasks))) * 5 - 9
    options["test_fraction"] = draw(st.sampled_from([0.1, 0.25, 0.6]))
    options["validation_fraction"] = draw(st.sampled_from([0, 0.1, 0.3]))
    return kind, y, options


@settings(max_examples=150, deadline=None)
@given(data_sets(), st.integers(0, 5))
def test_each_row_is_used_once_with_its_label_in_its_task(data_set, seed):
    kind, y, options = data_set
    stream = arrays(numbered(len(y)), y, seed=seed, **options)
    classes = sorted(set(y.tolist()))
    assert stream.facts["classes"] == classes
    assert stream.num_classes == len(classes)
    assert sorted(all_rows(stream)) == list(range(len(y)))
    for number, task in enumerate(stream.tasks):
        assert len(task.train) > 0
        assert len(task.test) > 0
        for part in task[1:]:
            rows = row_numbers(part)
            assert [classes[label] for label in part.y] == y[rows].tolist()
            if kind == "labels":
                assert set(part.y // options["classes_per_task"]) <= {number}
            elif kind == "ids":
                assert set(options["task"][rows]) <= {number * 5 - 9}
        assert stream.shuffled == (kind != "unbroken")
        if kind == "unbroken":
            assert row_numbers(task.train) == sorted(row_numbers(task.train))
        if options["validation_fraction"] == 0:
            assert len(task.validation) == 0
    heads = options.get("classes_per_task") if options.get("scenario") != "class" else None
    assert stream.classes_per_task == heads
    json.dumps(stream.facts)


def test_fractions():
    (task,) = arrays(
        numbered(1000), np.arange(1000) % 3, seed=0, test_fraction=0.3, validation_fraction=0.2
    ).tasks
    assert [len(part) for part in task[1:]] == [500, 200, 300]


def test_seed_decides_the_split():
    x, y = numbered(100), np.arange(100) % 4
    one, same, other = (arrays(x, y, seed=seed).tasks[0] for seed in (0, 0, 1))
    assert row_numbers(one.test) == row_numbers(same.test) != row_numbers(other.test)


def test_unbroken_stream_keeps_its_order_also_when_shortened():
    stream = arrays(numbered(100), np.arange(100) % 4, seed=0, num_samples=20)
    rows = row_numbers(stream.tasks[0].train)
    assert rows == sorted(rows)
    assert len(rows) == 20


def test_tasks_are_shuffled_and_can_be_fewer():
    y = np.repeat(np.arange(4), 50)
    stream = arrays(numbered(200), y, seed=0, classes_per_task=2, num_tasks=1, num_samples=30)
    assert (len(stream.tasks), len(stream.tasks[0].train), stream.num_classes) == (1, 30, 4)
    assert (np.diff(stream.tasks[0].train.y) < 0).any()
    assert [task.name for task in arrays(numbered(200), y, seed=0, task=y // 2).tasks] == ["0", "1"]


def test_bytes_stay_bytes():
    x = np.full((10, 4, 4, 3), 255, np.uint8)
    stream = arrays(x, [0, 1] * 5, seed=0)
    assert stream.tasks[0].train.x.dtype == np.uint8
    assert float(stream.preprocess(stream.tasks[0].train.x).max()) == 1


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int64, bool])
def test_other_numbers_become_float32_and_stay_as_they_are_if_asked(dtype):
    x = np.ones((10, 2), dtype)
    stream = arrays(x, ["a"] * 10, seed=0, standardise=False)
    assert stream.tasks[0].train.x.dtype == np.float32
    assert (stream.preprocess(stream.tasks[0].train.x) == 1).all()
    assert "standardised" not in stream.facts


def test_numbers_are_standardised_by_the_first_tasks_training_rows():
    rng = np.random.default_rng(0)
    x = rng.normal([1e4, -3.0, 7.0], [500.0, 0.01, 0.0], (300, 3))
    x[200:] += [1e6, 0.0, 1.0]  # a later task
    task = np.repeat([0, 1, 2], 100)
    stream = arrays(x, np.arange(300) % 2, task=task, seed=0)
    read = np.asarray(stream.preprocess(stream.tasks[0].train.x))
    assert np.allclose(read.mean(axis=0), 0, atol=0.01)
    assert np.allclose(read[:, :2].std(axis=0), 1, atol=0.01)
    assert (read[:, 2] == 0).all()  # a constant is centred
    assert np.abs(np.asarray(stream.preprocess(stream.tasks[2].test.x))).max() == 5
    changed = x.copy()
    changed[200:] *= -1
    others = [arrays(changed, np.arange(300) % 2, task=task, seed=0), stream]
    assert others[0].facts == others[1].facts
    assert stream.facts["standardised"]["mean"] == stream.preprocess.mean
    json.dumps(stream.facts)


def test_rows_are_copies():
    x = np.ones((10, 2), np.float32)
    stream = arrays(x, [0] * 10, seed=0)
    x[:] = 5
    assert (stream.tasks[0].train.x == 1).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e300])
def test_rows_that_are_not_finite_are_named(bad):
    x = np.zeros((50, 2, 2))
    x[[3, 41], 1, 0] = bad
    with pytest.raises(InvalidArgument, match=r"x is not finite in rows \[3, 41\]: "):
        arrays(x, np.zeros(50, int), seed=0)


def test_many_bad_rows_are_counted():
    with pytest.raises(InvalidArgument, match=r"7, 8, 9\] and 40 more"):
        arrays(np.full((50, 2), np.nan), np.zeros(50, int), seed=0)


X, Y = numbered(12), np.arange(12) % 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y": Y[:11]}, r"shape of y = \(11,\): must be \(12,\)"),
        ({"y": Y * 0.5}, "dtype of y = 'float64': must be whole numbers or strings"),
        ({"x": X[:, 0]}, "shape of x"),
        ({"x": X[:0], "y": Y[:0]}, "shape of x"),
        ({"x": X.astype(str)}, "dtype of x"),
        ({"x": X * 1j}, "dtype of x"),
        ({"task": Y[:5]}, "shape of task"),
        ({"task": Y, "classes_per_task": 2}, "classes_per_task = 2: must be None with task"),
        ({"classes_per_task": 3}, "classes_per_task = 3: must be a divisor of the 4 classes"),
        ({"classes_per_task": 0}, "classes_per_task = 0"),
        ({"classes_per_task": 1.5}, "classes_per_task = 1.5"),
        ({"task": [0] * 10 + [1] * 2}, "number of rows of task 1 = 2: must be at least 3"),
        ({"test_fraction": 0}, r"test_fraction = 0: must be in \(0, 1\)"),
        ({"test_fraction": 1}, "test_fraction = 1"),
        (
            {"test_fraction": 0.5, "validation_fraction": 0.5},
            r"validation_fraction = 0.5: .* 0.5\)",
        ),
        ({"validation_fraction": -0.1}, "validation_fraction = -0.1"),
        ({"num_tasks": 2}, "num_tasks = 2: must be a whole number from 1 to 1"),
        ({"num_samples": 100}, "num_samples = 100: must be a whole number from 1 to 9"),
        ({"path": "data.npz"}, "path = 'data.npz': must be given alone"),
        ({"x": None}, "x and y, or path"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(InvalidArgument, match=message):
        arrays(**({"x": X, "y": Y, "seed": 0} | arguments))


def test_strings_in_an_object_array():
    stream = arrays(X, np.array(["b", "a"] * 6, object), seed=0)
    assert stream.facts["classes"] == ["a", "b"]


def test_label_groups_of_a_domain_share_their_labels():
    y = np.arange(40) % 4
    stream = arrays(numbered(40), y, seed=0, classes_per_task=2, scenario="domain")
    assert (stream.num_classes, stream.classes_per_task, stream.scenario) == (2, None, "domain")
    for number, task in enumerate(stream.tasks):
        for part in task[1:]:
            assert (y[row_numbers(part)] == 2 * number + part.y).all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"scenario": "classes"}, "one of task, domain, class"),
        ({"scenario": "class"}, "None for one unbroken task"),
        ({"scenario": "task", "task": np.arange(40) % 2}, "without classes_per_task"),
    ],
)
def test_scenarios_that_do_not_fit_are_refused(options, words):
    with pytest.raises(InvalidArgument, match=f"scenario = .*{words}"):
        arrays(numbered(40), np.arange(40) % 4, seed=0, **options)
