import numpy as np
import pytest
from PIL import Image

from lamaml.errors import DataCorrupt, DataUnavailable
from lamaml.streams import load_stream
from lamaml.streams.arrays import load


def test_npz(tmp_path):
    x, y, task = np.ones((6, 2), np.float32), np.arange(6) % 2, np.arange(6) // 3
    np.savez(tmp_path / "data.npz", x=x, y=y, task=task)
    loaded = load(tmp_path / "data.npz")
    for given, got in zip((x, y, task), loaded, strict=True):
        np.testing.assert_array_equal(given, got)
    stream = load_stream("arrays", seed=0, path=tmp_path / "data.npz")
    assert len(stream.tasks) == 2


def test_label_groups_win_over_task_ids_in_the_file(tmp_path):
    np.savez(tmp_path / "data.npz", x=np.ones((9, 2)), y=np.arange(9) // 3, task=np.arange(9) % 3)
    stream = load_stream("arrays", seed=0, path=str(tmp_path / "data.npz"), classes_per_task=1)
    assert [task.name for task in stream.tasks] == ["0", "1", "2"]
    assert stream.classes_per_task == 1


def test_npz_without_task(tmp_path):
    np.savez_compressed(tmp_path / "data.npz", x=np.ones((6, 2)), y=np.arange(6), other=[1])
    assert load(tmp_path / "data.npz").task is None


def test_npz_without_labels(tmp_path):
    np.savez(tmp_path / "data.npz", x=np.ones((6, 2)), labels=np.arange(6))
    with pytest.raises(DataCorrupt, match=r"holds \['labels', 'x'\]: it must hold x and y"):
        load(tmp_path / "data.npz")


class Bomb:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was run",))


def test_pickles_are_never_run(tmp_path):
    np.savez(tmp_path / "data.npz", x=np.array([Bomb()], object), y=np.arange(1))
    with pytest.raises(DataCorrupt, match="without objects"):
        load(tmp_path / "data.npz")


@pytest.mark.parametrize("damage", [lambda b: b[:-40], lambda b: b"text", lambda b: b""])
def test_damaged_npz(tmp_path, damage):
    path = tmp_path / "data.npz"
    np.savez(path, x=np.ones((6, 2)), y=np.arange(6))
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DataCorrupt, match=r"data.npz cannot be read"):
        load(path)


def test_flipped_byte_in_npz(tmp_path):
    path = tmp_path / "data.npz"
    np.savez(path, x=np.ones((600, 2)), y=np.arange(600))
    content = bytearray(path.read_bytes())
    content[3000] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(DataCorrupt, match="CRC"):
        load(path)


def test_array_file_is_not_an_npz(tmp_path):
    np.save(tmp_path / "data.npy", np.ones(3))
    with pytest.raises(DataCorrupt, match=r"numpy\.savez"):
        load(tmp_path / "data.npy")


@pytest.fixture
def folder(tmp_path):
    """Two classes of three images; notes and hidden folders do not matter."""
    for label, colour in (("cat", (200, 0, 0)), ("ant", (0, 100, 0))):
        (tmp_path / label).mkdir()
        for number in range(3):
            Image.new("RGB", (6, 4), colour).save(tmp_path / label / f"{number}.png")
        (tmp_path / label / "notes.txt").write_text("not an image")
    (tmp_path / "README").write_text("not a class")
    (tmp_path / ".ipynb_checkpoints").mkdir()
    for hidden in (".ipynb_checkpoints/0.png", "cat/._0.png"):
        Image.new("RGB", (6, 4)).save(tmp_path / hidden)
    (tmp_path / "cat" / "older.png").mkdir()
    return tmp_path


def test_image_folder(folder):
    Image.new("L", (6, 4), 7).save(folder / "ant" / "grey.PNG")
    loaded = load(folder)
    assert loaded.x.shape == (7, 4, 6, 3)
    assert loaded.x.dtype == np.uint8
    assert loaded.y.tolist() == ["ant"] * 4 + ["cat"] * 3
    assert loaded.x[[0, 3, 4], 0, 0].tolist() == [[0, 100, 0], [7, 7, 7], [200, 0, 0]]
    stream = load_stream("arrays", seed=0, path=folder, classes_per_task=1)
    assert stream.facts["classes"] == ["ant", "cat"]
    assert stream.tasks[1].train.y.tolist() == [1]


def test_image_of_another_size(folder):
    Image.new("RGB", (5, 4)).save(folder / "cat" / "9.png")
    with pytest.raises(DataCorrupt, match=r"9.png is \(4, 5\), but .*0.png is \(4, 6\)"):
        load(folder)


def test_image_that_cannot_be_read(folder):
    (folder / "ant" / "1.png").write_bytes((folder / "ant" / "1.png").read_bytes()[:30])
    with pytest.raises(DataCorrupt, match=r"ant/1.png is not an image"):
        load(folder)


@pytest.mark.parametrize(("kind", "suffix"), [("I;16", "png"), ("I", "tif"), ("F", "tif")])
def test_image_of_more_than_bytes_is_refused_not_cut_off(folder, kind, suffix):
    deep = Image.fromarray(np.arange(24, dtype=np.int32).reshape(4, 6) * 2000)
    deep.convert(kind).save(folder / "ant" / f"deep.{suffix}")
    with pytest.raises(DataCorrupt, match=rf"deep.{suffix} has more than 8 bits.*\.npz"):
        load(folder)


def test_image_of_too_many_pixels_is_named(folder, monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 10)
    with pytest.raises(DataCorrupt, match=r"ant/0.png is not an image that can be read"):
        load(folder)


def test_nothing_there(tmp_path):
    with pytest.raises(DataUnavailable, match="nowhere does not exist"):
        load(tmp_path / "nowhere")
    with pytest.raises(DataUnavailable, match="has no images"):
        load(tmp_path)
