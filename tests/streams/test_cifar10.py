"""Split CIFAR-10 from an archive in the public layout, which the test writes itself."""

import hashlib
import importlib
import io
import tarfile
from pathlib import Path

import numpy as np
import pytest

from lamaml.errors import DataCorrupt, DataUnavailable
from lamaml.streams import _download, data_fingerprint, split_cifar10
from lamaml.streams._download import ARCHIVES, Archive

module = importlib.import_module("lamaml.streams.cifar10")
FILES = [*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin"]


def records(per_class: int) -> np.ndarray:
    """Records in random order: red is the class, green the image's number, blue the column."""
    label = np.repeat(np.arange(10), per_class)
    planes = np.empty((len(label), 3, 32, 32), np.uint8)
    planes[:, 0] = label[:, None, None]
    planes[:, 1] = (np.arange(len(label)) % per_class)[:, None, None]
    planes[:, 2] = np.arange(32)
    content = np.concatenate([label[:, None].astype(np.uint8), planes.reshape(len(label), -1)], 1)
    return np.random.default_rng(0).permutation(content)


def write_archive(path: Path, files: dict[str, bytes]) -> str:
    """Write cifar-10-binary.tar.gz and return its checksum."""
    with tarfile.open(path, "w:gz", compresslevel=1) as members:
        for name, content in files.items():
            member = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            member.size = len(content)
            members.addfile(member, io.BytesIO(content))
    return hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()


@pytest.fixture
def archive(empty_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The public layout with 20 training and 4 test images per class, still packed."""
    monkeypatch.setattr(module, "IMAGES_PER_CLASS", {"train": 20, "test": 4})
    contents = [part.tobytes() for part in np.split(records(20), 5)] + [records(4).tobytes()]
    files = {"batches.meta.txt": b"airplane\n", **dict(zip(FILES, contents, strict=True))}
    path = empty_folder / "cifar-10-binary.tar.gz"
    digest = write_archive(path, {**files, "readme.html": b""})
    monkeypatch.setattr(
        _download, "ARCHIVES", {path.name: Archive("http://127.0.0.1:9", f"md5:{digest}")}
    )
    return path


def test_layout(archive):
    stream = split_cifar10(seed=0)
    folder = archive.parent / "cifar-10-batches-bin"
    assert sorted(path.name for path in folder.iterdir()) == sorted(FILES)
    assert (stream.num_classes, len(stream.tasks), stream.scenario) == (10, 5, "class")
    for number, task in enumerate(stream.tasks):
        for part, per_class in zip(task[1:], (18, 2, 4), strict=True):
            assert part.x.shape == (2 * per_class, 32, 32, 3)
            labels, counts = np.unique(part.y, return_counts=True)
            assert labels.tolist() == [2 * number, 2 * number + 1]
            assert (counts == per_class).all()
            assert part.x[:, 3, 4, 0].tolist() == part.y.tolist()
            assert (part.x[:, 7, :, 2] == np.arange(32)).all()
        images = [
            (int(image[0, 0, 0]), int(image[0, 0, 1]))
            for part in (task.train, task.validation)
            for image in part.x
        ]
        assert len(set(images)) == len(images) == 40
    assert len(data_fingerprint("split_cifar10").split()) == 6


def test_scenarios_and_augmentation(archive):
    task, domain = (split_cifar10(seed=0, scenario=word) for word in ("task", "domain"))
    assert (task.classes_per_task, domain.classes_per_task, domain.num_classes) == (2, None, 2)
    assert task.augment.padding == 4
    assert split_cifar10(seed=0, augmentation=False).augment is None


def test_files_that_are_not_the_archives_are_refused(archive):
    split_cifar10(seed=0)
    folder = archive.parent / "cifar-10-batches-bin"
    whole = (folder / FILES[2]).read_bytes()
    (folder / FILES[2]).write_bytes(whole[:-1])
    with pytest.raises(DataCorrupt, match=r"data_batch_3.bin has 122919 bytes, not 122920"):
        split_cifar10(seed=0)
    (folder / FILES[2]).write_bytes(bytes([(whole[0] + 1) % 10]) + whole[1:])
    with pytest.raises(DataCorrupt, match="does not hold 20 images of each of 10 classes"):
        split_cifar10(seed=0)


def test_an_archive_without_a_file_is_refused(archive, monkeypatch):
    digest = write_archive(archive, {"readme.html": b""})
    monkeypatch.setattr(_download, "ARCHIVES", {archive.name: Archive("", f"md5:{digest}")})
    with pytest.raises(DataCorrupt, match=r"does not contain data_batch_1.bin"):
        split_cifar10(seed=0)


def test_missing(empty_folder):
    with pytest.raises(DataUnavailable, match=r"cifar-10-binary.tar.gz is not in"):
        split_cifar10(seed=0)


def test_the_checksum_is_the_public_one():
    assert ARCHIVES["cifar-10-binary.tar.gz"].checksum == "md5:c32a1d4ab5d03f1284b67883e8d87530"
