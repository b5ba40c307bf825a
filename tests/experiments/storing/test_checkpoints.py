"""Checkpoints: the same bits again, or a refusal in one line; never anything in between."""

import json
import os
import re
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

from lamaml.errors import DataCorrupt, LamamlError, Mismatch, Unwritable
from lamaml.experiments.storing import checkpoints
from lamaml.experiments.storing.checkpoints import (
    checkpoint_writer,
    newest_good,
    read_checkpoint,
    set_aside,
    write_checkpoint,
)
from lamaml.experiments.storing.origin import Origin
from lamaml.training import Checkpoint
from lamaml.training.checkpoint import Seconds

NUM_TASKS = 3
ORIGIN = Origin({"learner": "er", "seed": 0, "sizes": (5, 5)}, {"jax": "1.0"}, "rows", "abc")


class State(NamedTuple):
    """A state with every kind of leaf."""

    params: dict[str, Any]
    memory: list[jax.Array]
    key: jax.Array
    half: jax.Array


def a_state(number: float = 1.0) -> State:
    weights = number * jax.random.normal(jax.random.key(0), (4, 3))
    memory = [jnp.arange(6, dtype=jnp.uint8), jnp.array([True, False]), jnp.zeros((0, 2))]
    return State(
        {"w": weights, "a/b": jnp.float32(0.1)},
        memory,
        jax.random.key(7),
        jnp.full(3, number, jnp.bfloat16),
    )


def a_checkpoint(update: int = 5, number: float = 1.0) -> Checkpoint:
    matrix = np.full((NUM_TASKS, NUM_TASKS), np.nan)
    matrix[0, 0] = 1 / 3
    baseline = np.full(NUM_TASKS, 0.1)
    return Checkpoint(1, update, a_state(number), matrix, baseline, {}, Seconds(0.1, 2.0, 3.0))


def bits(at: Checkpoint) -> list[bytes]:
    key = jax.random.key_data(at.state.key)
    leaves = jax.tree.leaves((at.state._replace(key=key), at.matrix, at.baseline))
    return [np.asarray(leaf).tobytes() for leaf in leaves]


def read(path: Path, origin: Origin = ORIGIN, like: Any = None) -> Checkpoint:
    return read_checkpoint(path, a_state(0.0) if like is None else like, NUM_TASKS, origin)[0]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A good checkpoint."""
    return write_checkpoint(tmp_path, a_checkpoint(), ORIGIN)


def test_what_is_read_is_what_was_written(path: Path) -> None:
    there, here = a_checkpoint(), read(path)
    assert bits(here) == bits(there)
    assert (here.task, here.update, here.seconds) == (1, 5, there.seconds)
    assert jax.tree.structure(here.state) == jax.tree.structure(there.state)
    for old, new in zip(jax.tree.leaves(there.state), jax.tree.leaves(here.state), strict=True):
        assert (old.dtype, old.shape) == (new.dtype, new.shape)


def test_any_reader_of_the_format_can_read_it(path: Path) -> None:
    with safe_open(path, "numpy") as file:
        assert set(file.metadata()) == {
            *("format", "settings", "versions", "data", "code", "place", "seconds", "sha256")
        }
        assert json.loads(file.metadata()["settings"])["sizes"] == [5, 5]
        weights = file.get_tensor(".state.params['w']")
    np.testing.assert_array_equal(weights, a_state().params["w"])


def test_the_last_two_are_kept(tmp_path: Path) -> None:
    for update in range(5):
        write_checkpoint(tmp_path, a_checkpoint(update), ORIGIN)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [f"checkpoint-00001-00000000{update}.safetensors" for update in (3, 4)]
    found = newest_good(tmp_path, a_state, NUM_TASKS, ORIGIN).checkpoint
    assert found
    assert found.update == 4


def test_an_empty_folder_has_none(tmp_path: Path) -> None:
    def never() -> Any:
        pytest.fail("made a state for nothing")

    assert newest_good(tmp_path, never, NUM_TASKS, ORIGIN) == (None, [], [])


def damages(whole: bytes) -> Iterator[bytes]:
    """200 ways to flip a bit or cut the end off, all over the file and dense in its header."""
    rng = np.random.default_rng(0)
    header = 8 + int.from_bytes(whole[:8], "little")
    places = [*range(8), *rng.integers(8, header, 72), *rng.integers(header, len(whole), 60)]
    for place in places:
        flipped = bytearray(whole)
        flipped[place] ^= 1 << rng.integers(8)
        yield bytes(flipped)
    for length in (0, 1, 7, 8, header, len(whole) - 1, *rng.integers(0, len(whole), 54)):
        yield whole[:length]


def test_damage_is_always_noticed_and_the_older_one_used(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, a_checkpoint(5, number=5.0), ORIGIN)
    newest = write_checkpoint(tmp_path, a_checkpoint(6, number=6.0), ORIGIN)
    whole = newest.read_bytes()
    assert len(list(damages(whole))) == 200
    for damaged in damages(whole):
        assert damaged != whole
        newest.write_bytes(damaged)
        with pytest.raises(DataCorrupt, match=newest.name):
            read(newest)
        found = newest_good(tmp_path, a_state, NUM_TASKS, ORIGIN)
        assert found.checkpoint
        assert bits(found.checkpoint) == bits(a_checkpoint(5, number=5.0))
        (note,) = found.notes
        assert note.endswith("; checkpoint-00001-000000005.safetensors is used instead")
        assert "\n" not in note
    newest.write_bytes(whole)
    assert bits(read(newest)) == bits(a_checkpoint(6, number=6.0))


def test_bytes_behind_the_end_are_noticed(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\0")
    with pytest.raises(DataCorrupt):
        read(path)


def test_without_a_good_one_the_seed_starts_again(path: Path) -> None:
    path.write_bytes(b"")
    found = newest_good(path.parent, a_state, NUM_TASKS, ORIGIN)
    assert found.checkpoint is None
    assert found.notes[0].endswith("; the seed starts again")
    assert path.exists()
    set_aside(found)
    assert [left.name for left in path.parent.iterdir()] == [f"{path.name}.refused"]


def test_one_that_does_not_match_the_folder_is_refused(tmp_path: Path) -> None:
    for update in (5, 6):
        write_checkpoint(tmp_path, a_checkpoint(update), ORIGIN)

    def check(at: Checkpoint) -> None:
        if at.update == 6:
            raise DataCorrupt("the log has 5 of 6 lines")

    found = newest_good(tmp_path, a_state, NUM_TASKS, ORIGIN, check=check).checkpoint
    assert found
    assert found.update == 5


@pytest.mark.parametrize(
    ("origin", "words"),
    [
        (
            ORIGIN._replace(settings={**ORIGIN.settings, "seed": 1}),
            "settings: seed 0 there, 1 here",
        ),
        (ORIGIN._replace(settings={}), r"learner er there, None here; seed 0 there"),
        (ORIGIN._replace(versions={"jax": "2.0"}), "versions: jax 1.0 there, 2.0 here"),
        (ORIGIN._replace(data="others"), "rows have changed"),
    ],
)
def test_another_origin_is_named(path: Path, origin: Origin, words: str) -> None:
    with pytest.raises(Mismatch, match=words):
        read(path, origin)
    with pytest.raises(Mismatch, match=words):
        newest_good(path.parent, a_state, NUM_TASKS, origin)
    assert path.exists()


def test_without_resuming_versions_may_differ(path: Path) -> None:
    origin = ORIGIN._replace(versions={"jax": "2.0"})
    found = newest_good(path.parent, a_state, NUM_TASKS, origin, resuming=False).checkpoint
    assert found
    with pytest.raises(Mismatch, match="rows have changed"):
        read_checkpoint(path, a_state(), NUM_TASKS, ORIGIN._replace(data="x"), resuming=False)


def test_another_revision_is_noted(path: Path) -> None:
    origin = ORIGIN._replace(code="def")
    (note,) = newest_good(path.parent, a_state, NUM_TASKS, origin).notes
    assert "is of revision abc, this is def" in note


def test_another_format_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "FORMAT", 2)
    path = write_checkpoint(tmp_path, a_checkpoint(), ORIGIN)
    monkeypatch.undo()
    with pytest.raises(Mismatch, match="is of format 2; this lamaml reads 1"):
        read(path)


@pytest.mark.parametrize(
    ("like", "words"),
    [
        (
            a_state()._replace(half=jnp.zeros(3)),
            r"\.state\.half is uint16\(3,\), not float32\(3,\)",
        ),
        (a_state()._replace(half=jnp.zeros(4, jnp.bfloat16)), r"not uint16\(4,\)"),
        (a_state()._replace(params={"w": jnp.zeros((4, 3))}), r"\['a/b'\] is unexpected"),
        (a_state()._replace(params={**a_state().params, "b": jnp.zeros(1)}), "'b'] is missing"),
    ],
)
def test_another_state_is_refused(path: Path, like: State, words: str) -> None:
    with pytest.raises(DataCorrupt, match=words):
        read(path, like=like)


# Hostile files


def sealed(header: bytes, data: bytes = b"") -> bytes:
    """A file whose hash is right, whatever it says."""
    zeros = b"0" * 64
    marked = header.replace(b"HASH", b'"sha256":"' + zeros + b'"')
    whole = len(marked).to_bytes(8, "little") + marked + data
    digest = checkpoints.hashlib.sha256(whole).hexdigest().encode()
    return whole.replace(zeros, digest, 1)


HOSTILE = {
    "a header of 2^63 bytes": (1 << 63).to_bytes(8, "little") + b"{}",
    "a header longer than allowed": (2 << 20).to_bytes(8, "little") + bytes(3 << 20),
    "nested without end": sealed(b"[" * 200_000 + b"HASH"),
    "nested in the metadata": sealed(b'{"__metadata__":{"format":"' + b"[" * 200_000 + b'",HASH}}'),
    "not JSON": sealed(b"HASH"),
    "no object": sealed(b"[HASH]".replace(b"HASH", b"{HASH}")),
    "metadata is a list": sealed(b'{"__metadata__":[{HASH}]}'),
    "metadata without a place": sealed(b'{"__metadata__":{"format":"1",HASH}}'),
    "a number of a million digits": sealed(
        b'{"__metadata__":{"format":"' + b"9" * 900_000 + b'",HASH}}'
    ),
    "two hashes": sealed(b'{"__metadata__":{HASH,"x":{HASH}}}'),
    "a pickle": b"\x80\x04\x95" + b"cposix\nsystem\n(S'false'\ntR." * 5,
    "zeros": bytes(1000),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused_in_little_memory(tmp_path: Path, name: str) -> None:
    path = tmp_path / "checkpoint-00001-000000001.safetensors"
    path.write_bytes(HOSTILE[name])
    like = a_state()
    tracemalloc.start()
    try:
        with pytest.raises(LamamlError) as refusal:
            read(path, like=like)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert path.name in str(refusal.value)
    assert peak < len(HOSTILE[name]) * 3 + (4 << 20)


def claiming(shape: list[int], offsets: list[int], place: str = '{"task":1,"update":5}') -> bytes:
    """A sealed file with the right origin and one tensor that lies about itself."""
    metadata = {
        **{name: json.dumps(value) for name, value in ORIGIN._asdict().items()},
        "format": "1",
        "place": place,
        "seconds": '{"compile":0,"train":0,"evaluate":0}',
    }
    text = json.dumps(metadata)[:-1] + ",HASH}"
    tensor = json.dumps({"dtype": "F32", "shape": shape, "data_offsets": offsets})
    return sealed(f'{{"__metadata__":{text},".state.w":{tensor}}}'.encode(), bytes(16))


@pytest.mark.parametrize(
    ("shape", "offsets"),
    [
        ([1 << 40], [0, 1 << 42]),
        ([1 << 62, 4], [0, 16]),
        ([4], [0, 1 << 62]),
        ([4], [16, 0]),
        ([4], [8, 24]),
        ([-4], [0, 16]),
        ([8], [0, 16]),
        ([4], [0, 16]),
    ],
)
def test_a_tensor_that_lies_about_its_size_is_refused(
    tmp_path: Path, shape: list[int], offsets: list[int]
) -> None:
    path = tmp_path / "checkpoint-00001-000000001.safetensors"
    path.write_bytes(claiming(shape, offsets))
    with pytest.raises(DataCorrupt, match=path.name):
        read(path)


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ('{"task":9,"update":5}', "task 9, update 5 is not in the stream"),
        ('{"task":1,"update":-1}', "update -1 is not"),
        ('{"task":1,"update":1e999}', "infinity"),
        ("[]", "list"),
        ("1", "int"),
    ],
)
def test_a_place_outside_the_stream_is_refused(tmp_path: Path, place: str, words: str) -> None:
    path = tmp_path / "checkpoint-00001-000000001.safetensors"
    path.write_bytes(claiming([4], [0, 16], place))
    with pytest.raises(DataCorrupt, match=words):
        read(path)


def test_a_foreign_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint-00001-000000001.safetensors"
    save_file({"weights": np.zeros(3)}, path, {"format": "pt"})
    with pytest.raises(DataCorrupt, match="it has no hash"):
        read(path)


# A disk that fails


def fail_at(
    monkeypatch: pytest.MonkeyPatch, module: Any, name: str, number: int, code: int
) -> None:
    """The so many-th call of an os function fails."""
    original, calls = getattr(module, name), iter(range(1, 1000))

    def call(*arguments: Any, **options: Any) -> Any:
        if next(calls) == number:
            raise OSError(code, os.strerror(code))
        return original(*arguments, **options)

    monkeypatch.setattr(module, name, call)


@pytest.mark.parametrize("code", [28, 30, 13, 5])  # no space, read-only, permission, I/O error
@pytest.mark.parametrize(
    ("module", "name", "number"),
    [(os, "fsync", 1), (os, "fsync", 2), (Path, "open", 1), (Path, "replace", 1)],
)
def test_a_failing_disk_leaves_a_good_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: Any, name: str, number: int, code: int
) -> None:
    write_checkpoint(tmp_path, a_checkpoint(5), ORIGIN)
    with monkeypatch.context() as patch:
        fail_at(patch, module, name, number, code)
        words = f"000000006.safetensors cannot be written ({os.strerror(code)})"
        with pytest.raises(Unwritable, match=re.escape(words)):
            write_checkpoint(tmp_path, a_checkpoint(6), ORIGIN)
    assert not list(tmp_path.glob("*.part"))
    found = newest_good(tmp_path, a_state, NUM_TASKS, ORIGIN).checkpoint
    assert found
    assert bits(found) == bits(a_checkpoint(found.update))


FILLED = """
import resource, sys
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from test_checkpoints import ORIGIN, a_checkpoint
from lamaml.errors import Unwritable
from lamaml.experiments.storing.checkpoints import write_checkpoint
folder = Path(sys.argv[1])
first = write_checkpoint(folder, a_checkpoint(5), ORIGIN)
resource.setrlimit(resource.RLIMIT_FSIZE, (first.stat().st_size // 2,) * 2)
try:
    write_checkpoint(folder, a_checkpoint(6), ORIGIN)
except Unwritable as error:
    sys.exit(str(error))
"""


def test_a_full_disk_leaves_the_previous_checkpoint(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FILLED, str(tmp_path), str(Path(__file__).parent)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert re.fullmatch(r".*000000006\.safetensors cannot be written \(.+\)\n", done.stderr)
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-00001-000000005.safetensors"]
    found = newest_good(tmp_path, a_state, NUM_TASKS, ORIGIN).checkpoint
    assert found
    assert bits(found) == bits(a_checkpoint(5))


# Beside the updates


def test_buffers_may_be_reused_at_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.touch()
    overwrite = jax.jit(lambda state: jax.tree.map(lambda leaf: leaf * 0, state), donate_argnums=0)
    at = a_checkpoint()._replace(state={"w": jnp.arange(1e6)})
    with checkpoint_writer(tmp_path, ORIGIN, log) as write:
        write(at)
        overwrite(at.state)["w"].block_until_ready()
    (path,) = tmp_path.glob("checkpoint-*")
    found = read(path, like={"w": jnp.zeros(1_000_000)})
    np.testing.assert_array_equal(found.state["w"], np.arange(1e6, dtype=np.float32))


def test_what_fails_beside_is_raised_at_the_next_checkpoint_or_the_end(tmp_path: Path) -> None:
    log, nowhere = tmp_path / "log", tmp_path / "log" / "folder"
    log.touch()

    def write_checkpoints(number: int) -> None:
        with checkpoint_writer(nowhere, ORIGIN, log) as write:
            for update in range(number):
                write(a_checkpoint(update))

    for number, last in ((1, 0), (9, 0)):
        with pytest.raises(Unwritable, match=f"00000{last}.safetensors cannot be written"):
            write_checkpoints(number)
