import gzip
import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lamaml.errors import DataCorrupt, DataUnavailable, InvalidArgument
from lamaml.streams import (
    _download,
    mnist,
    mnist_many_permutations,
    mnist_permutations,
    mnist_rotations,
)
from lamaml.streams._download import Archive

TRAIN_IMAGES = "mnist/train-images-idx3-ubyte.gz"


def rows_of(examples, permutation):
    return [row.tobytes() for row in examples.x[:, np.argsort(permutation)]]


def idx(array: np.ndarray) -> bytes:
    shape = b"".join(size.to_bytes(4, "big") for size in array.shape)
    return gzip.compress(bytes([0, 0, 8, array.ndim]) + shape + array.tobytes())


@pytest.fixture
def small_mnist(empty_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four files in the original layout, with 300 images to train on and 50 to test."""
    draw = np.random.default_rng(0)
    (empty_folder / "mnist").mkdir()
    archives = {}
    for split, count in (("train", 300), ("t10k", 50)):
        arrays = {
            f"mnist/{split}-images-idx3-ubyte.gz": (count, 28, 28),
            f"mnist/{split}-labels-idx1-ubyte.gz": (count,),
        }
        for name, shape in arrays.items():
            content = idx(draw.integers(0, 10 if len(shape) == 1 else 256, shape, np.uint8))
            (empty_folder / name).write_bytes(content)
            digest = hashlib.md5(content, usedforsecurity=False).hexdigest()
            archives[name] = Archive(f"http://127.0.0.1:9/{name}", f"md5:{digest}")
    monkeypatch.setattr(_download, "ARCHIVES", archives)
    monkeypatch.setattr(mnist, "NUM_VALIDATION", 40)
    return empty_folder


@pytest.mark.parametrize(
    ("builder", "num_tasks"),
    [(mnist_rotations, 20), (mnist_permutations, 20), (mnist_many_permutations, 100)],
)
def test_layout(small_mnist, builder, num_tasks):
    stream = builder(seed=0, num_samples=30)
    assert stream.name == builder.__name__
    assert len(stream.tasks) == num_tasks
    assert (stream.num_classes, stream.classes_per_task, stream.augment) == (10, None, None)
    assert [part.x.shape for part in stream.tasks[-1][1:]] == [(30, 784), (40, 784), (50, 784)]
    assert json.loads(json.dumps(stream.facts)) == stream.facts
    with pytest.raises(InvalidArgument, match=f"num_tasks = {num_tasks + 1}: .* to {num_tasks}$"):
        builder(seed=0, num_tasks=num_tasks + 1)
    with pytest.raises(InvalidArgument, match=r"num_samples = 261: .* to 260$"):
        builder(seed=0, num_samples=261)


def test_tasks_train_on_images_that_neither_validate_nor_test(small_mnist):
    stream = mnist_permutations(seed=0, num_samples=30)
    train, validation, test = set(), [], []
    for task, permutation in zip(stream.tasks, stream.facts["permutations"], strict=True):
        rows = rows_of(task.train, permutation)
        assert len(set(rows)) == 30
        train |= set(rows)
        validation.append(set(rows_of(task.validation, permutation)))
        test.append(rows_of(task.test, permutation))
    assert len(train) > 200, "tasks draw their images independently"
    assert all(rows == validation[0] for rows in validation)
    assert all(rows == test[0] for rows in test)
    assert not train & validation[0]
    assert not (train | validation[0]) & set(test[0])


def test_validation_images_depend_on_the_seed(small_mnist):
    one, other = (mnist_permutations(seed=seed, num_tasks=1, num_samples=30) for seed in (0, 1))
    rows = [
        set(rows_of(stream.tasks[0].validation, stream.facts["permutations"][0]))
        for stream in (one, other)
    ]
    assert rows[0] != rows[1]


def test_first_task_is_permuted_and_all_differ(small_mnist):
    permutations = mnist_many_permutations(seed=0, num_samples=30).facts["permutations"]
    assert permutations[0] != sorted(permutations[0])
    assert len({tuple(order) for order in permutations}) == 100
    assert all(sorted(order) == list(range(784)) for order in permutations)


def test_missing_file(small_mnist):
    (small_mnist / TRAIN_IMAGES).unlink()
    with pytest.raises(DataUnavailable, match=TRAIN_IMAGES):
        mnist_rotations(seed=0)


@pytest.mark.parametrize("damage", [lambda b: b[: len(b) // 2], lambda b: b[:-9] + b"x" + b[-8:]])
def test_truncated_or_altered_file(small_mnist, damage):
    path = small_mnist / TRAIN_IMAGES
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DataCorrupt, match=f"{TRAIN_IMAGES} is truncated or altered .* delete it"):
        mnist_rotations(seed=0)


def test_sizes_are_checked_before_files_are_read(empty_folder):
    with pytest.raises(InvalidArgument):
        mnist_rotations(seed=0, num_tasks=21)


def test_real_rotations(real_data):
    stream = mnist_rotations(seed=0)
    assert [int(angle // 9) for angle in stream.facts["angles"]] == list(range(20))
    assert [len(part) for part in stream.tasks[7][1:]] == [1000, 1000, 10_000]
    original = mnist._images("t10k-images-idx3-ubyte.gz")
    for angle, task in zip(stream.facts["angles"], stream.tasks, strict=True):
        for row in (0, 4321, 9999):
            image = Image.fromarray(original[row].reshape(28, 28))
            np.testing.assert_array_equal(
                task.test.x[row].reshape(28, 28), np.asarray(image.rotate(angle))
            )
        assert task.test.y[:5].tolist() == [7, 2, 1, 0, 4]
    assert float(np.max(stream.preprocess(stream.tasks[0].test.x[:100]))) == 1


def test_real_permutations(real_data):
    stream = mnist_many_permutations(seed=0, num_tasks=2)
    assert [len(part) for part in stream.tasks[1][1:]] == [200, 200, 10_000]
    pool = mnist._pool(0)
    assert len(pool.train) == 59_000
    assert not set(pool.train) & set(pool.validation)
    label_of = dict(
        zip((row.tobytes() for row in pool.images.x), pool.images.y.tolist(), strict=True)
    )
    for task, permutation in zip(stream.tasks, stream.facts["permutations"], strict=True):
        for part in (task.train, task.validation):
            assert [label_of[row] for row in rows_of(part, permutation)] == part.y.tolist()
