import json

import numpy as np
import pytest
from sklearn.datasets import load_digits

from lamaml.errors import InvalidArgument
from lamaml.streams import digits_permutations, digits_rotations

BOTH = pytest.mark.parametrize("builder", [digits_rotations, digits_permutations])


def unpermuted(examples, permutation):
    return examples.x[:, np.argsort(permutation)]


def keys(x):
    return {row.tobytes() for row in x}


@BOTH
def test_shapes(builder):
    stream = builder(seed=0)
    assert stream.name == builder.__name__
    assert len(stream.tasks) == 10
    assert (stream.num_classes, stream.classes_per_task, stream.augment) == (10, None, None)
    for task in stream.tasks:
        assert [len(part) for part in task[1:]] == [300, 200, 400]
        for part in task[1:]:
            assert part.x.dtype == np.uint8
            assert part.x.shape == (len(part), 64)
            assert part.y.dtype == np.int32


@BOTH
def test_same_seed_same_stream(builder):
    for one, other in zip(builder(seed=3).tasks, builder(seed=3).tasks, strict=True):
        for part, same in zip(one[1:], other[1:], strict=True):
            np.testing.assert_array_equal(part.x, same.x)
            np.testing.assert_array_equal(part.y, same.y)


@BOTH
def test_another_seed_changes_map_and_rows(builder):
    one, other = builder(seed=3), builder(seed=4)
    assert one.facts != other.facts
    assert (one.tasks[0].train.y != other.tasks[0].train.y).any()
    assert (one.tasks[0].train.y != one.tasks[1].train.y).any()
    # A few degrees move no pixel of an 8×8 image, so a task further on is compared.
    assert (one.tasks[5].test.x != other.tasks[5].test.x).any()


@BOTH
def test_fewer_tasks_are_the_first_ones(builder):
    full, short = builder(seed=1), builder(seed=1, num_tasks=3)
    assert [task.name for task in short.tasks] == [task.name for task in full.tasks[:3]]
    np.testing.assert_array_equal(short.tasks[2].train.x, full.tasks[2].train.x)


def test_angles_increase_through_their_shares():
    angles = digits_rotations(seed=5).facts["angles"]
    assert [int(angle // 18) for angle in angles] == list(range(10))


@BOTH
def test_facts_can_be_written(builder):
    facts = builder(seed=0).facts
    assert json.loads(json.dumps(facts)) == facts


def test_images_keep_their_labels_and_parts_are_disjoint():
    x, y = load_digits(return_X_y=True)
    label_of = {row.astype(np.uint8).tobytes(): label for row, label in zip(x, y, strict=True)}
    assert len(label_of) == 1797
    stream = digits_permutations(seed=2, num_samples=1197)
    fixed = None
    for task, permutation in zip(stream.tasks, stream.facts["permutations"], strict=True):
        parts = [unpermuted(part, permutation) for part in task[1:]]
        for part, rows in zip(task[1:], parts, strict=True):
            assert [label_of[row.tobytes()] for row in rows] == part.y.tolist()
        train, validation, test = map(keys, parts)
        assert train | validation | test == label_of.keys()
        assert len(train) + len(validation) + len(test) == 1797
        fixed = fixed or test
        assert test == fixed
    first = unpermuted(digits_permutations(seed=9).tasks[0].test, permutation_of(9))
    assert keys(first) == fixed


def permutation_of(seed):
    return digits_permutations(seed=seed).facts["permutations"][0]


def test_preprocess_gives_the_unit_interval():
    stream = digits_rotations(seed=0, num_tasks=1)
    read = np.asarray(stream.preprocess(stream.tasks[0].test.x))
    assert read.dtype == np.float32
    assert (read.min(), read.max()) == (0, 1)


@BOTH
@pytest.mark.parametrize(
    ("argument", "value", "largest"),
    [
        ("num_tasks", 11, 10),
        ("num_tasks", 0, 10),
        ("num_tasks", -1, 10),
        ("num_tasks", 2.5, 10),
        ("num_samples", 1198, 1197),
        ("num_samples", 0, 1197),
        ("num_samples", -5, 1197),
    ],
)
def test_bad_sizes_are_named(builder, argument, value, largest):
    with pytest.raises(InvalidArgument, match=rf"^{argument} = {value}: .* from 1 to {largest}$"):
        builder(seed=0, **{argument: value})


@BOTH
def test_negative_seed(builder):
    with pytest.raises(InvalidArgument, match=r"^seed = -1"):
        builder(seed=-1)
