"""TinyImagenet-200 as 40 tasks of 5 classes, read from the public archive or a part of it."""

import numpy as np

from lamaml._io import file_digest
from lamaml.errors import require
from lamaml.streams._download import fetch
from lamaml.streams._tasks import generator, hold_out, make_tasks, select_by_class
from lamaml.streams._tiny_imagenet_archive import NUM_CLASSES, open_archive
from lamaml.streams.transforms import CropFlip, Standardise, augmented_by_learner
from lamaml.types import Stream

CLASSES_PER_TASK = 5
STANDARDISE = Standardise(mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
AUGMENT = CropFlip(STANDARDISE)


def tiny_imagenet(
    *,
    seed: int,
    num_tasks: int = 40,
    num_samples: int | None = None,
    augmentation: bool = True,
    fresh_augmentation: bool = False,
    split: str = "authors",
) -> Stream:
    """TinyImagenet-200 as 40 tasks of 5 classes, each with its own head.

    Args:
      seed: seed of the order of the classes and of the choice of validation images.
      num_tasks: number of tasks, at most 40.
      num_samples: number of training images per task; None for all.
      augmentation: whether training images are cropped and mirrored at random.
      fresh_augmentation: whether the learner does so, anew in every update, and remembers bytes; if
        not, an image is changed once, and remembered as it was then.
      split: "authors" uses a tenth of the training images for validation and the whole official
        validation folder for testing; "paper" trains on all training images and uses half of that
        folder's images of each class for validation, half for testing.
    """
    require(split in ("authors", "paper"), "split", split, "'authors' or 'paper'")
    archive = open_archive(fetch("tiny-imagenet-200.zip"))
    order = generator(seed, "class order").permutation(NUM_CLASSES)

    train_images, val_images = np.split(archive.images, [len(archive.train_classes)])
    train = select_by_class(
        train_images.__getitem__, archive.train_classes, order, CLASSES_PER_TASK
    )
    test = select_by_class(val_images.__getitem__, archive.val_classes, order, CLASSES_PER_TASK)
    if split == "authors":
        validation, train = hold_out(train, train.label, 0.1, seed=seed, purpose="validation")
    else:
        validation, test = hold_out(test, test.label, 0.5, seed=seed, purpose="validation")
    wnids = np.array(archive.wnids)[order]
    tasks = make_tasks(
        train,
        validation,
        test,
        names=[f"classes {' '.join(ids)}" for ids in wnids.reshape(-1, CLASSES_PER_TASK)],
        num_tasks=num_tasks,
        num_samples=num_samples,
        seed=seed,
    )
    stream = Stream(
        "tiny_imagenet",
        tasks,
        NUM_CLASSES,
        CLASSES_PER_TASK,
        STANDARDISE,
        AUGMENT if augmentation else None,
        facts={
            "class_order": order.tolist(),
            "classes": wnids.tolist(),
            "split": split,
            "num_archive_images": len(archive.images),
        },
    )
    return augmented_by_learner(stream) if fresh_augmentation else stream


def tiny_imagenet_digest() -> str:
    """Return a digest of the archive, which may be a part of the public one."""
    return file_digest(fetch("tiny-imagenet-200.zip"))
