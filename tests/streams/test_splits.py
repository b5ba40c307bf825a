"""Label groups in the three scenarios, blurred, recurring, and images that turn without tasks."""

import json

import numpy as np
import pytest

from lamaml.errors import InvalidArgument
from lamaml.streams import (
    blurred,
    cifar100,
    digits_drift,
    load_stream,
    mnist_drift,
    recurring,
    split_cifar100,
    split_digits,
    split_mnist,
)
from lamaml.streams.digits import _pool
from lamaml.streams.transforms import rotate


def rows_of(tasks, part="train"):
    """Every row with its label, as bytes, in sorted order."""
    found = [getattr(task, part) for task in tasks]
    return sorted(
        row.tobytes() + bytes([label])
        for rows in found
        for row, label in zip(rows.x, rows.y, strict=True)
    )


def test_each_class_is_in_one_task_and_each_image_in_one_part():
    stream = split_digits(seed=0)
    assert (stream.num_classes, stream.scenario, len(stream.tasks)) == (10, "class", 5)
    for number, task in enumerate(stream.tasks):
        for part in task[1:]:
            assert set(part.y.tolist()) == {2 * number, 2 * number + 1}
    sizes = {
        part: sum(len(getattr(task, part)) for task in stream.tasks)
        for part in ("train", "validation", "test")
    }
    assert sizes == {"train": 1197, "validation": 200, "test": 400}
    pool = _pool()
    assert rows_of(stream.tasks, "test") == sorted(
        row.tobytes() + bytes([label]) for row, label in zip(pool.test.x, pool.test.y, strict=True)
    )


def test_the_scenarios_have_the_same_images():
    streams = {word: split_digits(seed=3, scenario=word) for word in ("task", "domain", "class")}
    for word, stream in streams.items():
        assert stream.scenario == stream.facts["scenario"] == word
        for task, like in zip(stream.tasks, streams["class"].tasks, strict=True):
            np.testing.assert_array_equal(task.train.x, like.train.x)
            wanted = like.train.y % 2 if word == "domain" else like.train.y
            np.testing.assert_array_equal(task.train.y, wanted)
    heads = {word: stream.classes_per_task for word, stream in streams.items()}
    assert heads == {"task": 2, "domain": None, "class": None}
    assert {word: s.num_classes for word, s in streams.items()} == {
        **{"task": 10, "domain": 2},
        "class": 10,
    }


def test_classes_per_task_and_their_order():
    stream = split_digits(seed=0, classes_per_task=5, shuffled_classes=True)
    order = stream.facts["class_order"]
    assert sorted(order) == list(range(10)) != order
    assert stream.tasks[0].name == f"classes {order[:5]}"
    images = _pool().images
    plain = {row.tobytes(): label for row, label in zip(images.x, images.y, strict=True)}
    task = stream.tasks[1]
    assert [order[label] for label in task.test.y] == [plain[row.tobytes()] for row in task.test.x]
    assert split_digits(seed=1, shuffled_classes=True).facts["class_order"] != order


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"scenario": "Class"}, "scenario = 'Class': must be one of task, domain, class"),
        ({"classes_per_task": 3}, "classes_per_task = 3: must be a divisor of the 10 classes"),
        ({"blur": 1.5}, "blur = 1.5"),
        ({"num_visits": 0}, "num_visits = 0"),
        ({"num_visits": 9999}, "num_visits = 9999"),
        ({"num_tasks": 6}, "num_tasks = 6"),
    ],
)
def test_settings_out_of_range_are_refused(options, words):
    with pytest.raises(InvalidArgument, match=words):
        split_digits(seed=0, **options)


def test_blur_keeps_every_row_once_and_mixes_neighbours_only():
    sharp, soft = (
        split_digits(seed=0, num_samples=200),
        split_digits(seed=0, num_samples=200, blur=0.2),
    )
    assert rows_of(soft.tasks) == rows_of(sharp.tasks)
    for part in ("validation", "test"):
        for one, other in zip(sharp.tasks, soft.tasks, strict=True):
            np.testing.assert_array_equal(getattr(one, part).x, getattr(other, part).x)
    for number, task in enumerate(soft.tasks):
        assert len(task.train) == 200
        owner = task.train.y // 2
        assert set(owner - number) <= {-1, 0, 1}
        for neighbour in {number - 1, number + 1} & set(range(5)):
            assert (owner == neighbour).sum() == 20
    other = split_digits(seed=1, num_samples=200, blur=0.2)
    assert rows_of(other.tasks[:1]) != rows_of(soft.tasks[:1])
    again = split_digits(seed=0, num_samples=200, blur=0.2)
    np.testing.assert_array_equal(again.tasks[2].train.x, soft.tasks[2].train.x)


def test_a_full_blur_leaves_no_row_of_an_inner_task():
    tasks = blurred(split_digits(seed=0, num_samples=100), blur=1.0, seed=5).tasks
    assert not np.isin(tasks[2].train.y, [4, 5]).any()


def test_recurring_tasks_return_with_other_rows():
    once, twice = split_digits(seed=0, num_tasks=3), split_digits(seed=0, num_tasks=3, num_visits=2)
    assert [task.name.split(",")[0] for task in twice.tasks] == [
        "classes [0",
        "classes [2",
        "classes [4",
    ] * 2
    assert rows_of(twice.tasks) == rows_of(once.tasks)
    for number, task in enumerate(once.tasks):
        visits = twice.tasks[number], twice.tasks[number + 3]
        assert rows_of(visits) == rows_of([task])
        np.testing.assert_array_equal(visits[0].test.x, visits[1].test.x)
    turning = recurring(load_stream("digits_rotations", num_tasks=2), num_visits=3)
    assert [task.name[-1] for task in turning.tasks] == ["1", "1", "2", "2", "3", "3"]


def test_a_drift_has_no_tasks_and_turns_row_by_row():
    stream = digits_drift(seed=0, num_tasks=2, num_samples=90)
    assert (stream.is_task_free, stream.shuffled, stream.scenario) == (True, False, "domain")
    assert stream.facts["angles"] == [9, 27]
    pool = _pool()
    for number, task in enumerate(stream.tasks):
        np.testing.assert_array_equal(task.test.x, rotate(pool.test.x, 9 + 18 * number))
        for row in (0, 45, 89):
            angle = 18 * number + 18 * row / 90
            turned = rotate(pool.images.x, angle)
            assert (turned == task.train.x[row]).all(axis=1).any()
    with pytest.raises(InvalidArgument, match="no boundaries"):
        blurred(stream, blur=0.1, seed=0)


def test_real_mnist(real_data):
    stream = split_mnist(seed=0, scenario="task", blur=0.1)
    assert [sorted(set(task.test.y.tolist())) for task in stream.tasks] == [
        [2 * number, 2 * number + 1] for number in range(5)
    ]
    assert sum(len(task.train) for task in stream.tasks) == 59_000
    assert sum(len(task.validation) for task in stream.tasks) == 1000
    assert sum(len(task.test) for task in stream.tasks) == 10_000
    assert json.loads(json.dumps(stream.facts)) == stream.facts
    drift = mnist_drift(seed=0, num_tasks=1, num_samples=50)
    assert len(drift.tasks[0].test) == 10_000


def test_real_cifar100(real_data):
    one, other = cifar100(seed=0, num_tasks=2), split_cifar100(seed=0, num_tasks=2, scenario="task")
    for task, like in zip(one.tasks, other.tasks, strict=True):
        for part in ("train", "validation", "test"):
            np.testing.assert_array_equal(getattr(task, part).x, getattr(like, part).x)
    wide = split_cifar100(seed=0, num_tasks=1, classes_per_task=10)
    assert set(wide.tasks[0].test.y.tolist()) == set(range(10))
