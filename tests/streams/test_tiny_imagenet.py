import io
import json
import zipfile
from pathlib import Path

import jax
import numpy as np
import pytest
from PIL import Image

from lamaml.errors import DataCorrupt, DataUnavailable, InvalidArgument
from lamaml.streams import _tiny_imagenet_archive, tiny_imagenet
from lamaml.streams._tiny_imagenet_archive import open_archive

WNIDS = [f"n{number:08d}" for number in np.random.default_rng(0).permutation(200)]
ROOT = "tiny-imagenet-200"
TRAIN, VAL = 4, 2


def jpeg(colour: tuple[int, int, int] | int, side: int = 64) -> bytes:
    file = io.BytesIO()
    mode = "L" if isinstance(colour, int) else "RGB"
    Image.new(mode, (side, side), colour).save(file, "JPEG", quality=95)
    return file.getvalue()


def colour(number: int, copy: int) -> tuple[int, int, int]:
    return number, 128, 20 * copy


@pytest.fixture(scope="session")
def members() -> dict[str, bytes]:
    """An archive of the public layout; red is the class among the sorted names."""
    content = {f"{ROOT}/wnids.txt": "\n".join(WNIDS).encode(), f"{ROOT}/words.txt": b"words"}
    notes = []
    for number, wnid in enumerate(sorted(WNIDS)):
        for copy in range(TRAIN):
            name = f"{ROOT}/train/{wnid}/images/{wnid}_{copy}.JPEG"
            content[name] = jpeg(colour(number, copy))
        for copy in range(VAL):
            file = f"val_{copy * 200 + number}.JPEG"
            content[f"{ROOT}/val/images/{file}"] = jpeg(colour(number, 10 + copy))
            notes.append(f"{file}\t{wnid}\t0\t0\t63\t63")
    content[f"{ROOT}/train/{sorted(WNIDS)[9]}/images/{sorted(WNIDS)[9]}_0.JPEG"] = jpeg(9)
    content[f"{ROOT}/val/val_annotations.txt"] = "\n".join(notes).encode()
    return content


def write(folder: Path, content: dict[str, bytes]) -> Path:
    path = folder / f"{ROOT}.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    return path


@pytest.fixture(scope="session")
def decoded(members, tmp_path_factory) -> Path:
    """A folder with the archive and its cache, not to be changed."""
    folder = tmp_path_factory.mktemp("tiny")
    open_archive(write(folder, members))
    return folder


@pytest.fixture
def small_tiny(decoded, monkeypatch) -> Path:
    monkeypatch.setenv("LAMAML_DATA", str(decoded))
    return decoded


def test_layout(small_tiny):
    stream = tiny_imagenet(seed=0)
    order = stream.facts["class_order"]
    assert (stream.num_classes, stream.classes_per_task, len(stream.tasks)) == (200, 5, 40)
    assert stream.facts["classes"] == [sorted(WNIDS)[number] for number in order]
    assert stream.facts["num_archive_images"] == 200 * (TRAIN + VAL)
    assert json.loads(json.dumps(stream.facts)) == stream.facts
    for number, task in enumerate(stream.tasks):
        for part, per_class in zip(task[1:], (3, 1, 2), strict=True):
            assert part.x.shape == (5 * per_class, 64, 64, 3)
            assert (type(part.x), part.x.dtype) == (np.ndarray, np.uint8)
            assert np.bincount(part.y)[5 * number :].tolist() == [per_class] * 5
            red = part.x[:, 5, 5, 0].astype(int)
            assert np.abs(red - [order[label] for label in part.y]).max() <= 3


def test_grey_images_become_rgb(small_tiny):
    archive = open_archive(small_tiny / f"{ROOT}.zip")
    grey = archive.images[np.flatnonzero(archive.train_classes == 9)[0]]
    assert (grey == 9).all()


def copies(part) -> set[tuple[int, int]]:
    return {(int(y), round(x[0, 0, 2] / 20)) for x, y in zip(part.x, part.y, strict=True)}


def test_authors_split_validates_on_training_images(small_tiny):
    for task in tiny_imagenet(seed=0).tasks:
        train, validation, test = map(copies, task[1:])
        assert not train & validation
        assert {copy for _, copy in test} == {10, 11}
        assert all(copy < 10 for _, copy in train | validation)


def test_paper_split_halves_the_official_folder(small_tiny):
    stream = tiny_imagenet(seed=0, split="paper")
    for task in stream.tasks:
        assert [len(part) for part in task[1:]] == [20, 5, 5]
        train, validation, test = map(copies, task[1:])
        assert all(copy < 10 for _, copy in train)
        assert not validation & test
        assert all(copy >= 10 for _, copy in validation | test)
        assert sorted(label for label, _ in validation) == sorted(label for label, _ in test)
    assert stream.facts["split"] == "paper"
    with pytest.raises(InvalidArgument, match="split = 'half': must be 'authors' or 'paper'"):
        tiny_imagenet(seed=0, split="half")


def test_sizes(small_tiny):
    stream = tiny_imagenet(seed=1, num_tasks=2, num_samples=7)
    assert (len(stream.tasks), len(stream.tasks[0].train), stream.num_classes) == (2, 7, 200)
    for argument, value, largest in [("num_tasks", 41, 40), ("num_samples", 16, 15)]:
        with pytest.raises(InvalidArgument, match=f"{argument} = {value}: .* 1 to {largest}$"):
            tiny_imagenet(seed=0, **{argument: value})


def test_preprocess_and_augment(small_tiny):
    stream = tiny_imagenet(seed=0, num_tasks=1)
    x = stream.tasks[0].train.x[:10]
    expected = (x / 255 - np.array([0.485, 0.456, 0.406])) / np.array([0.229, 0.224, 0.225])
    np.testing.assert_allclose(stream.preprocess(x), expected, rtol=1e-5, atol=1e-5)
    assert (stream.augment.padding, stream.augment.brightness) == (4, 0)
    assert stream.augment(x, jax.random.key(0)).shape == x.shape
    assert tiny_imagenet(seed=0, num_tasks=1, augmentation=False).augment is None


def test_decoded_once(small_tiny, monkeypatch):
    caches = list(small_tiny.glob("*.npy"))
    assert len(caches) == 1
    monkeypatch.setattr(_tiny_imagenet_archive, "_decode", None)
    tiny_imagenet(seed=5, num_tasks=1)


def test_another_archive_has_another_cache_and_a_damaged_one_is_made_again(members, tmp_path):
    path = write(tmp_path, members)
    images = np.array(open_archive(path).images)
    (cache,) = tmp_path.glob("*.npy")
    cache.write_bytes(cache.read_bytes()[:5000])
    np.testing.assert_array_equal(open_archive(path).images, images)
    changed = dict(members) | {f"{ROOT}/train/{WNIDS[0]}/images/{WNIDS[0]}_1.JPEG": jpeg((1, 2, 3))}
    write(tmp_path, changed)
    assert (open_archive(path).images != images).any()
    assert len(list(tmp_path.glob("*.npy"))) == 2


def test_parts_of_workers_form_one_file(members, decoded, tmp_path, monkeypatch):
    monkeypatch.setattr(_tiny_imagenet_archive, "CHUNK_SIZE", 500)
    images = open_archive(write(tmp_path, members)).images
    np.testing.assert_array_equal(images, open_archive(decoded / f"{ROOT}.zip").images)


def test_missing(empty_folder):
    with pytest.raises(DataUnavailable, match=r"tiny-imagenet-200.zip is not in"):
        tiny_imagenet(seed=0)


def refused(path: Path) -> str:
    with pytest.raises(DataCorrupt) as caught:
        open_archive(path)
    message = str(caught.value)
    assert "\n" not in message
    assert str(path) in message
    assert "delete it" in message
    assert not list(path.parent.glob("tiny*.npy*")), "nothing half done is left"
    return message


def test_truncated_archive(members, tmp_path):
    path = write(tmp_path, members)
    path.write_bytes(path.read_bytes()[:-1000])
    refused(path)


def test_flipped_byte(members, tmp_path):
    path = write(tmp_path, members)
    content = bytearray(path.read_bytes())
    place = content.index(members[f"{ROOT}/train/{WNIDS[3]}/images/{WNIDS[3]}_2.JPEG"])
    content[place + 300] ^= 1
    path.write_bytes(bytes(content))
    assert f"{WNIDS[3]}_2.JPEG is damaged" in refused(path)


@pytest.mark.parametrize(
    ("name", "content", "finding"),
    [
        (f"train/{WNIDS[0]}/images/{WNIDS[0]}_0.JPEG", b"text", "is not an image"),
        (f"train/{WNIDS[0]}/images/{WNIDS[0]}_0.JPEG", jpeg(5, side=32), "is not 64×64"),
        ("wnids.txt", b"n1\nn2", "200 classes"),
        ("val/val_annotations.txt", b"val_0.JPEG", ""),
        ("val/val_annotations.txt", None, "val_annotations.txt"),
        ("val/images/val_3.JPEG", None, "val_3.JPEG"),
    ],
)
def test_parts_that_are_wrong_or_missing(members, tmp_path, name, content, finding):
    changed = dict(members)
    del changed[f"{ROOT}/{name}"]
    if content is not None:
        changed[f"{ROOT}/{name}"] = content
    assert finding in refused(write(tmp_path, changed))


def test_worker_that_fails_by_itself_does_not_blame_the_archive(members, tmp_path, monkeypatch):
    path = write(tmp_path, members)
    monkeypatch.setattr(_tiny_imagenet_archive._decoding, "__file__", "no such script")
    with pytest.raises(DataUnavailable, match="could not be written") as caught:
        open_archive(path)
    assert "delete" not in str(caught.value)
    assert not list(tmp_path.glob("tiny*.npy*"))


def test_class_without_training_images(members, tmp_path):
    gone = {name: data for name, data in members.items() if f"train/{WNIDS[7]}/" not in name}
    assert "in train" in refused(write(tmp_path, gone))


def test_real_tiny_imagenet(real_data):
    stream = tiny_imagenet(seed=0, num_tasks=2)
    for number, task in enumerate(stream.tasks):
        assert len(task.test) == 250
        assert len(task.validation) * 9 == len(task.train)
        assert np.bincount(task.test.y)[5 * number :].tolist() == [50] * 5
    read = np.asarray(stream.preprocess(stream.tasks[0].train.x))
    assert abs(read.mean()) < 0.7
