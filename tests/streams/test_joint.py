import json

import numpy as np

from lamaml.streams import arrays, digits_permutations, digits_rotations, joint, load_stream


def rows(examples):
    return sorted((row.tobytes(), int(y)) for row, y in zip(examples.x, examples.y, strict=True))


def test_every_row_once():
    stream = digits_permutations(seed=0, num_tasks=4)
    (task,) = joint(stream, seed=0).tasks
    for place, part in enumerate(task[1:], start=1):
        assert rows(part) == sorted(row for one in stream.tasks for row in rows(one[place]))


def test_training_rows_are_shuffled_across_tasks_and_test_rows_are_not():
    x = np.repeat(np.arange(5), 100)[:, None].astype(np.float32)
    stream = arrays(x, np.arange(500) % 2, task=x[:, 0].astype(int), seed=0)
    (task,) = joint(stream, seed=0).tasks
    first = np.bincount(task.train.x[:100, 0].astype(int), minlength=5)
    assert (first > 8).all()
    assert task.test.x[:, 0].tolist() == sorted(task.test.x[:, 0])


def test_seed_decides_the_order():
    stream = digits_rotations(seed=0, num_tasks=2)
    one, same, other = (joint(stream, seed=seed).tasks[0].train.y for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()


def test_heads_and_facts_are_kept():
    y = np.arange(90) % 6
    stream = arrays(np.ones((90, 1)), y, classes_per_task=2, seed=0)
    joined = joint(stream, seed=0)
    assert (joined.name, joined.num_classes, joined.classes_per_task) == ("joint", 6, 2)
    assert joined.preprocess is stream.preprocess
    assert joined.facts["stream"] == "arrays"
    assert joined.facts["num_tasks"] == 3
    assert joined.facts["test_sizes"] == [6, 6, 6]
    assert joined.facts["classes"] == list(range(6))
    json.dumps(joined.facts)
    start = 0
    for number, size in enumerate(joined.facts["test_sizes"]):
        assert set(joined.tasks[0].test.y[start : start + size] // 2) == {number}
        start += size


def test_by_name():
    stream = load_stream("joint", seed=3, of="digits_permutations", num_tasks=2, num_samples=50)
    expected = joint(digits_permutations(seed=3, num_tasks=2, num_samples=50), seed=3)
    np.testing.assert_array_equal(stream.tasks[0].train.x, expected.tasks[0].train.x)
