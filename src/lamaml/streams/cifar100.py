"""CIFAR-100 as 20 tasks of 5 classes, read from the archive's binary layout."""

import shutil
import tarfile
from pathlib import Path

import numpy as np

from lamaml._io import atomic_write, exclusive, file_digest
from lamaml.errors import DataCorrupt
from lamaml.streams._download import data_folder, fetch
from lamaml.streams._tasks import Selection, generator, hold_out, make_tasks, select_by_class
from lamaml.streams.transforms import CropFlip, Standardise, augmented_by_learner
from lamaml.types import Stream

NUM_CLASSES = 100
CLASSES_PER_TASK = 5
IMAGES_PER_CLASS = {"train": 500, "test": 100}
RECORD_SIZE = 2 + 3 * 32 * 32  # coarse label, fine label, then the red, green and blue planes
STANDARDISE = Standardise(mean=(0.5071, 0.4867, 0.4408), std=(0.2675, 0.2565, 0.2761))
AUGMENT = CropFlip(STANDARDISE, brightness=63 / 255)


def cifar100(
    *,
    seed: int,
    num_tasks: int = 20,
    num_samples: int | None = None,
    augmentation: bool = True,
    fresh_augmentation: bool = False,
) -> Stream:
    """CIFAR-100 as 20 tasks of 5 classes, each with its own head.

    A task has 2250 training, 250 validation and 500 test images.

    Args:
      seed: seed of the order of the classes and of the choice of validation images.
      num_tasks: number of tasks, at most 20.
      num_samples: number of training images per task, at most 2250; None for all.
      augmentation: whether training images are cropped, mirrored and brightened at random.
      fresh_augmentation: whether the learner does so, anew in every update, and remembers bytes; if
        not, an image is changed once, and remembered as it was then.
    """
    order = generator(seed, "class order").permutation(NUM_CLASSES)
    train = _select("train", order)
    validation, train = hold_out(train, train.label, 0.1, seed=seed, purpose="validation")
    tasks = make_tasks(
        train,
        validation,
        _select("test", order),
        names=[f"classes {ids.tolist()}" for ids in order.reshape(-1, CLASSES_PER_TASK)],
        num_tasks=num_tasks,
        num_samples=num_samples,
        seed=seed,
    )
    stream = Stream(
        "cifar100",
        tasks,
        NUM_CLASSES,
        CLASSES_PER_TASK,
        STANDARDISE,
        AUGMENT if augmentation else None,
        facts={"class_order": order.tolist()},
    )
    return augmented_by_learner(stream) if fresh_augmentation else stream


def cifar100_digest() -> str:
    """Return a digest of both files, unpacking them first if they are missing."""
    return " ".join(file_digest(_file(split)) for split in IMAGES_PER_CLASS)


def _select(split: str, order: np.ndarray) -> Selection:
    records = _records(split)

    def read(rows: np.ndarray) -> np.ndarray:
        planes = records[rows, 2:].reshape(-1, 3, 32, 32)
        return np.ascontiguousarray(planes.transpose(0, 2, 3, 1))

    return select_by_class(read, np.array(records[:, 1]), order, CLASSES_PER_TASK)


def _records(split: str) -> np.ndarray:
    """Return the records of a split, memory-mapped, in any order."""
    path = _file(split)
    per_class = IMAGES_PER_CLASS[split]
    size = NUM_CLASSES * per_class * RECORD_SIZE
    if path.stat().st_size != size:
        raise _corrupt(path, f"has {path.stat().st_size} bytes, not {size}")
    records = np.memmap(path, np.uint8, mode="r").reshape(-1, RECORD_SIZE)
    if np.any(np.bincount(records[:, 1], minlength=NUM_CLASSES) != per_class):
        raise _corrupt(path, f"does not hold {per_class} images of each of {NUM_CLASSES} classes")
    return records


def _file(split: str) -> Path:
    path = data_folder() / "cifar-100-binary" / f"{split}.bin"
    if not path.is_file():
        _unpack(fetch("cifar-100-binary.tar.gz"), path)
    return path


def _corrupt(path: Path, finding: str) -> DataCorrupt:
    return DataCorrupt(f"{path} {finding}: delete it and unpack cifar-100-binary.tar.gz again")


def _unpack(archive: Path, path: Path) -> None:
    with exclusive(path), tarfile.open(archive) as members:
        member = members.extractfile(f"cifar-100-binary/{path.name}")
        if member is None:
            raise DataCorrupt(f"{archive} does not contain {path.name}: delete it and run again")
        with member, atomic_write(path) as file:
            shutil.copyfileobj(member, file)
