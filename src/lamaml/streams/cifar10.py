"""CIFAR-10 in pairs of classes, read from the archive's binary layout."""

from lamaml.streams._cifar import Layout
from lamaml.streams._splits import Shape, split_stream
from lamaml.streams.transforms import CropFlip, Standardise, augmented_by_learner
from lamaml.types import Stream

NUM_CLASSES = 10
IMAGES_PER_CLASS = {"train": 5000, "test": 1000}
STANDARDISE = Standardise(mean=(0.4914, 0.4822, 0.4465), std=(0.2470, 0.2435, 0.2616))
AUGMENT = CropFlip(STANDARDISE, brightness=63 / 255)


def split_cifar10(
    *,
    seed: int,
    scenario: str = "class",
    classes_per_task: int = 2,
    num_tasks: int | None = None,
    num_samples: int | None = None,
    shuffled_classes: bool = False,
    blur: float = 0.0,
    num_visits: int = 1,
    augmentation: bool = True,
    fresh_augmentation: bool = False,
) -> Stream:
    """CIFAR-10 in groups of classes: 5 tasks of 2, or another divisor of 10.

    There are 4500 training, 500 validation and 1000 test images per class.

    Args:
      seed: seed of the order of the images, of validation images, and of the blur.
      scenario: "task", "domain" or "class".
      classes_per_task: number of classes per task; it must divide 10.
      num_tasks: number of tasks, the first ones; None for all.
      num_samples: number of training images per task; None for all.
      shuffled_classes: whether the order of the classes is random.
      blur: part of a task's training images that comes from its neighbours, in [0, 1].
      num_visits: number of visits to each task, each with its own part of the images.
      augmentation: whether training images are cropped, mirrored and brightened at random.
      fresh_augmentation: whether the learner does so, anew in every update, and remembers bytes.
    """
    size = classes_per_task
    stream = split_stream(
        "split_cifar10",
        lambda order: _layout().parts(order, size, seed=seed),
        Shape(scenario, size, shuffled_classes, num_tasks, num_samples, blur, num_visits),
        seed=seed,
        num_classes=NUM_CLASSES,
        preprocess=STANDARDISE,
        augment=AUGMENT if augmentation else None,
    )
    return augmented_by_learner(stream) if fresh_augmentation else stream


def cifar10_digest() -> str:
    """Return a digest of the six files, unpacking them first if they are missing."""
    return _layout().digest()


def _layout() -> Layout:
    return Layout(
        "cifar-10-binary.tar.gz",
        "cifar-10-batches-bin",
        {"train": [f"data_batch_{n}.bin" for n in range(1, 6)], "test": ["test_batch.bin"]},
        NUM_CLASSES,
        IMAGES_PER_CLASS,
        label_bytes=1,
    )
