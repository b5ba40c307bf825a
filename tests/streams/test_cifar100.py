import hashlib
import importlib
import io
import tarfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lamaml.errors import DataCorrupt, DataUnavailable, InvalidArgument
from lamaml.experiments.recipes.load import realize, recipe
from lamaml.streams import _download, cifar100
from lamaml.streams._download import Archive
from lamaml.training.loop import initial_state

module = importlib.import_module("lamaml.streams.cifar100")


def records(per_class: int) -> np.ndarray:
    """Records in random order: red is the class, green the image's number, blue the column."""
    label = np.repeat(np.arange(100), per_class)
    planes = np.empty((len(label), 3, 32, 32), np.uint8)
    planes[:, 0] = label[:, None, None]
    planes[:, 1] = (np.arange(len(label)) % per_class)[:, None, None]
    planes[:, 2] = np.arange(32)
    heads = np.stack([label // 5, label], 1).astype(np.uint8)
    content = np.concatenate([heads, planes.reshape(len(label), -1)], 1)
    return np.random.default_rng(0).permutation(content)


@pytest.fixture
def small_cifar(empty_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The binary layout, with 20 training and 4 test images per class."""
    monkeypatch.setattr(module, "IMAGES_PER_CLASS", {"train": 20, "test": 4})
    folder = empty_folder / "cifar-100-binary"
    folder.mkdir()
    records(20).tofile(folder / "train.bin")
    records(4).tofile(folder / "test.bin")
    return folder


def test_layout(small_cifar):
    stream = cifar100(seed=0)
    order = stream.facts["class_order"]
    assert sorted(order) == list(range(100))
    assert (stream.num_classes, stream.classes_per_task, len(stream.tasks)) == (100, 5, 20)
    for number, task in enumerate(stream.tasks):
        for part, per_class in zip(task[1:], (18, 2, 4), strict=True):
            assert part.x.shape == (5 * per_class, 32, 32, 3)
            assert (part.x.dtype, part.y.dtype) == (np.uint8, np.int32)
            labels, counts = np.unique(part.y, return_counts=True)
            assert labels.tolist() == list(range(5 * number, 5 * number + 5))
            assert (counts == per_class).all()
            assert part.x[:, 3, 4, 0].tolist() == [order[label] for label in part.y]
            assert (part.x[:, 7, :, 2] == np.arange(32)).all()


def test_each_image_trains_or_validates(small_cifar):
    for task in cifar100(seed=0).tasks:
        train, validation = (
            {(int(image[0, 0, 0]), int(image[0, 0, 1])) for image in part.x} for part in task[1:3]
        )
        assert not train & validation
        assert len(train | validation) == 100


def test_training_rows_are_shuffled(small_cifar):
    assert (np.diff(cifar100(seed=0).tasks[0].train.y) < 0).any()


def test_seed_decides_classes_and_validation(small_cifar):
    one, same, other = cifar100(seed=0), cifar100(seed=0), cifar100(seed=1)
    np.testing.assert_array_equal(one.tasks[3].train.x, same.tasks[3].train.x)
    assert one.facts == same.facts
    assert one.facts != other.facts


def test_fewer_tasks_and_samples(small_cifar):
    full, short = cifar100(seed=0), cifar100(seed=0, num_tasks=2, num_samples=30)
    assert (short.num_classes, len(short.tasks)) == (100, 2)
    assert len(short.tasks[1].train) == 30
    assert len(set(short.tasks[1].train.y.tolist())) == 5
    np.testing.assert_array_equal(short.tasks[1].test.x, full.tasks[1].test.x)
    for argument, value, largest in [("num_tasks", 21, 20), ("num_samples", 91, 90)]:
        with pytest.raises(InvalidArgument, match=f"{argument} = {value}: .* 1 to {largest}$"):
            cifar100(seed=0, **{argument: value})
    with pytest.raises(InvalidArgument, match="num_samples = 0"):
        cifar100(seed=0, num_samples=0)


def test_preprocess_and_augment(small_cifar):
    stream = cifar100(seed=0, num_tasks=1)
    x = stream.tasks[0].train.x[:10]
    expected = (x / 255 - np.array([0.5071, 0.4867, 0.4408])) / np.array([0.2675, 0.2565, 0.2761])
    np.testing.assert_allclose(stream.preprocess(x), expected, rtol=1e-5, atol=1e-5)
    assert stream.augment.padding == 4
    assert stream.augment.brightness == 63 / 255
    assert stream.augment(x, jax.random.key(0)).shape == x.shape
    assert cifar100(seed=0, num_tasks=1, augmentation=False).augment is None


def test_a_learner_may_augment_the_rows_itself(small_cifar):
    """Rows then reach it as bytes; a learner that would take them for pixels is refused."""
    stream = cifar100(seed=0, num_tasks=2, fresh_augmentation=True)
    rows = jnp.asarray(stream.tasks[0].train.x[:2])
    np.testing.assert_array_equal(stream.augment(rows, jax.random.key(0)), rows)
    assert stream.fresh_augment == cifar100(seed=0, num_tasks=2).augment
    fresh = {"fresh_augmentation": True}
    made = realize(recipe("cifar100", "er", overrides=fresh), 0, num_tasks=2)
    assert initial_state(made.stream, made.model, made.learner, 0).memory.x.dtype == jnp.uint8
    with pytest.raises(InvalidArgument, match="la_maml does not augment rows itself"):
        realize(recipe("cifar100", "la_maml", overrides=fresh), 0, num_tasks=2)


def test_wrong_size(small_cifar):
    path = small_cifar / "train.bin"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DataCorrupt, match=r"train.bin has 6147999 bytes, not 6148000: delete it"):
        cifar100(seed=0)


def test_wrong_label_counts(small_cifar):
    content = records(4)
    content[0, 1] = (content[0, 1] + 1) % 100
    content.tofile(small_cifar / "test.bin")
    with pytest.raises(DataCorrupt, match=r"test.bin does not hold 4 images of each of 100"):
        cifar100(seed=0)


def test_label_out_of_range(small_cifar):
    content = records(4)
    content[0, 1] = 100
    content.tofile(small_cifar / "test.bin")
    with pytest.raises(DataCorrupt, match="delete it"):
        cifar100(seed=0)


def test_missing(empty_folder):
    with pytest.raises(DataUnavailable, match=r"cifar-100-binary.tar.gz is not in"):
        cifar100(seed=0)


def test_archive_is_unpacked(small_cifar, monkeypatch):
    content = {name: (small_cifar / name).read_bytes() for name in ("train.bin", "test.bin")}
    archive = small_cifar.parent / "cifar-100-binary.tar.gz"
    with tarfile.open(archive, "w:gz", compresslevel=1) as members:
        for name, data in content.items():
            member = tarfile.TarInfo(f"cifar-100-binary/{name}")
            member.size = len(data)
            members.addfile(member, io.BytesIO(data))
            (small_cifar / name).unlink()
    digest = hashlib.md5(archive.read_bytes(), usedforsecurity=False).hexdigest()
    monkeypatch.setattr(
        _download, "ARCHIVES", {archive.name: Archive("http://127.0.0.1:9", f"md5:{digest}")}
    )
    assert len(cifar100(seed=0).tasks) == 20
    assert {name: (small_cifar / name).read_bytes() for name in content} == content


def test_real_cifar100(real_data):
    stream = cifar100(seed=0, num_tasks=2)
    for number, task in enumerate(stream.tasks):
        assert [len(part) for part in task[1:]] == [2250, 250, 500]
        for part, per_class in zip(task[1:], (450, 50, 100), strict=True):
            assert np.bincount(part.y)[5 * number :].tolist() == [per_class] * 5
    read = np.asarray(stream.preprocess(stream.tasks[0].train.x))
    assert abs(read.mean()) < 0.5
    assert 0.7 < read.std() < 1.3
