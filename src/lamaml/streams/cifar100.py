"""CIFAR-100 in groups of classes, read from the archive's binary layout."""

from lamaml.streams._cifar import Layout
from lamaml.streams._splits import Shape, split_stream
from lamaml.streams._tasks import generator, make_tasks
from lamaml.streams.transforms import CropFlip, Standardise, augmented_by_learner
from lamaml.types import Stream

NUM_CLASSES = 100
CLASSES_PER_TASK = 5
IMAGES_PER_CLASS = {"train": 500, "test": 100}
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
    tasks = make_tasks(
        *_layout().parts(order, CLASSES_PER_TASK, seed=seed),
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


def split_cifar100(
    *,
    seed: int,
    scenario: str = "class",
    classes_per_task: int = 5,
    num_tasks: int | None = None,
    num_samples: int | None = None,
    shuffled_classes: bool = True,
    blur: float = 0.0,
    num_visits: int = 1,
    augmentation: bool = True,
    fresh_augmentation: bool = False,
) -> Stream:
    """CIFAR-100 in groups of classes: 20 tasks of 5, or another divisor of 100.

    There are 450 training, 50 validation and 100 test images per class. With scenario "task" the
    rows are those of `cifar100`.

    Args:
      seed: seed of the order of the classes and images, of validation images, and of the blur.
      scenario: "task", "domain" or "class".
      classes_per_task: number of classes per task; it must divide 100.
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
        "split_cifar100",
        lambda order: _layout().parts(order, size, seed=seed),
        Shape(scenario, size, shuffled_classes, num_tasks, num_samples, blur, num_visits),
        seed=seed,
        num_classes=NUM_CLASSES,
        preprocess=STANDARDISE,
        augment=AUGMENT if augmentation else None,
    )
    return augmented_by_learner(stream) if fresh_augmentation else stream


def cifar100_digest() -> str:
    """Return a digest of both files, unpacking them first if they are missing."""
    return _layout().digest()


def _layout() -> Layout:
    return Layout(
        "cifar-100-binary.tar.gz",
        "cifar-100-binary",
        {"train": ["train.bin"], "test": ["test.bin"]},
        NUM_CLASSES,
        IMAGES_PER_CLASS,
        label_bytes=2,  # the superclass, then the class
    )
