"""Checkpoints on disk: a file is whole, unaltered and of this run, or it is refused.

A checkpoint is one safetensors file. Its tensors are the learner's state, the accuracy matrix and
the baseline, named by their paths: `.state.params[0]['w']`, `.matrix`. Their structure is not
stored: the reader brings a state of its own, and names, shapes and dtypes must match it. The
header's `__metadata__` holds `format`, `settings`, `versions`, `data`, `code`, `place` and
`seconds` as JSON texts, and `sha256`: the hash of the whole file with 64 zeros in place of the
hash, so that every changed byte is noticed.
"""

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from lamaml._io import atomic_write, plain, writing
from lamaml._records import from_json, to_json
from lamaml.errors import DataCorrupt, LamamlError, Mismatch
from lamaml.experiments.storing.origin import Origin
from lamaml.training import Checkpoint
from lamaml.training.checkpoint import Seconds
from lamaml.types import State

FORMAT = 1
KEPT = 2
LONGEST_HEADER = 1 << 20  # bytes
_PATTERN = "checkpoint-*.safetensors"
_ZEROS = b"0" * 64
_HASH = re.compile(rb'"sha256":"([0-9a-f]{64})"')
# What parsing a malicious file can raise.
_DAMAGE = (
    *(ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError),
    SafetensorError,
)


class Found(NamedTuple):
    """The newest good checkpoint of a folder.

    Attributes:
      checkpoint: None if the folder has no good one.
      notes: what the user should know: refused files and another revision of the code.
      refused: the damaged files.
    """

    checkpoint: Checkpoint | None
    notes: list[str]
    refused: list[Path]


class _Arrays(NamedTuple):
    """The tensors of a file; the names come from here."""

    state: State
    matrix: np.ndarray
    baseline: np.ndarray


def on_host(at: Checkpoint) -> Checkpoint:
    """A copy in host memory. The next update reuses the buffers of the original."""
    return at._replace(state=jax.tree.map(_stored, at.state))


def write_checkpoint(folder: Path, at: Checkpoint, origin: Origin) -> Path:
    """Write a checkpoint, then delete all but the last two.

    Raises:
      Unwritable: the older ones are unchanged.
    """
    place = {"task": at.task, "update": at.update}
    header = {"format": FORMAT, **origin._asdict(), "place": place, "seconds": at.seconds}
    metadata = {name: json.dumps(to_json(value)) for name, value in header.items()}
    tensors, _ = _flatten(_Arrays(at.state, at.matrix, at.baseline))
    content = save(
        {name: _stored(leaf) for name, leaf in tensors.items()},
        metadata | {"sha256": _ZEROS.decode()},
    )
    end = 8 + int.from_bytes(content[:8], "little")
    digest = hashlib.sha256(content).hexdigest().encode()
    path = folder / f"checkpoint-{at.task:05}-{at.update:09}.safetensors"
    with writing(path):
        with atomic_write(path) as file:
            file.write(content[:end].replace(b'"sha256":"' + _ZEROS, b'"sha256":"' + digest))
            file.write(memoryview(content)[end:])
        for older in sorted(folder.glob(_PATTERN))[:-KEPT]:
            older.unlink(missing_ok=True)
    return path


@contextmanager
def checkpoint_writer(
    folder: Path, origin: Origin, log: Path
) -> Iterator[Callable[[Checkpoint], None]]:
    """A function that writes checkpoints in a thread; all are written at the end of the block.

    Args:
      folder: of the seed.
      origin: of the run.
      log: flushed to disk before each checkpoint, which relies on its lines.

    Raises:
      Unwritable: at the next checkpoint or at the end.
    """

    def write_after_log(at: Checkpoint) -> None:
        with writing(log), log.open("rb") as file:
            os.fsync(file.fileno())
        write_checkpoint(folder, at, origin)

    with ThreadPoolExecutor(1) as thread:
        last: Future[None] | None = None

        def write(at: Checkpoint) -> None:
            nonlocal last
            if last:
                last.result()
            last = thread.submit(write_after_log, on_host(at))

        yield write
        if last:
            last.result()


def read_checkpoint(
    path: Path, like: State, num_tasks: int, origin: Origin, *, resuming: bool = True
) -> tuple[Checkpoint, str]:
    """The checkpoint in a file, and a note if it is of another revision of the code, else "".

    Args:
      path: the file. It is read into memory only after its hash was verified.
      like: a state of the run: names, shapes and dtypes must match it.
      num_tasks: of the stream.
      origin: of the run.
      resuming: whether bits matter, so that the versions of packages must match, too.

    Raises:
      DataCorrupt: the file is truncated, altered or of another kind.
      Mismatch: it is whole, but of other settings, versions or data.
    """
    try:
        header = _verified_header(path)
        note = _require_same(path, header, origin, resuming)
        task, update = (int(header["place"][word]) for word in ("task", "update"))
        if not (0 <= task <= num_tasks and update >= 0):
            raise ValueError(f"task {task}, update {update} is not in the stream")
        empty = _Arrays(like, np.empty((num_tasks, num_tasks)), np.empty(num_tasks))
        expected, structure = _flatten(empty)
        found = load(path.read_bytes())
        for name in sorted(expected.keys() | found.keys()):
            _require_alike(name, expected.get(name), found.get(name))
        leaves = [_restored(found[name], leaf) for name, leaf in expected.items()]
        state, matrix, baseline = structure.unflatten(leaves)
        seconds = from_json(Seconds, header["seconds"])
        return Checkpoint(task, update, state, matrix, baseline, {}, seconds), note
    except LamamlError:
        raise
    except OSError as error:
        raise DataCorrupt(f"{path} cannot be read ({error.strerror})") from error
    except _DAMAGE as error:
        raise DataCorrupt(f"{path} is not a whole checkpoint: {error}") from error


def newest_good(
    folder: Path,
    like: Callable[[], State],
    num_tasks: int,
    origin: Origin,
    *,
    check: Callable[[Checkpoint], None] = lambda at: None,
    resuming: bool = True,
) -> Found:
    """The newest whole checkpoint of a folder; no file is changed.

    Args:
      folder: of a seed.
      like: makes a state of the run, if one is needed.
      num_tasks: of the stream.
      origin: of the run.
      check: raises DataCorrupt if the other files of the folder do not match the checkpoint.
      resuming: see `read_checkpoint`.

    Raises:
      Mismatch: the newest whole one is of other settings, versions or data.
    """
    refused: list[tuple[Path, DataCorrupt]] = []
    good, used, notes = None, "the seed starts again", []
    for path in sorted(folder.glob(_PATTERN), reverse=True):
        try:
            found, note = read_checkpoint(path, like(), num_tasks, origin, resuming=resuming)
            check(found)
        except DataCorrupt as error:
            refused.append((path, error))
        else:
            good, used, notes = found, f"{path.name} is used instead", [note] if note else []
            break
    notes += [f"{damage}; {used}" for _, damage in refused]
    return Found(good, notes, [path for path, _ in refused])


def set_aside(found: Found) -> None:
    """Rename the damaged files: `.refused` is appended to their names."""
    for path in found.refused:
        path.rename(path.with_name(f"{path.name}.refused"))


def _verified_header(path: Path) -> dict[str, Any]:
    """The metadata of a file whose hash is right. It is read in pieces."""
    with path.open("rb") as file:
        start = file.read(8)
        length = int.from_bytes(start, "little")
        if len(start) < 8 or length > LONGEST_HEADER:
            raise ValueError("its header is damaged")
        text = file.read(length)
        claimed = _HASH.findall(text)
        if len(claimed) != 1:
            raise ValueError("it has no hash")
        content = hashlib.sha256(start + text.replace(claimed[0], _ZEROS))
        while piece := file.read(1 << 20):
            content.update(piece)
    if content.hexdigest().encode() != claimed[0]:
        raise ValueError("its content does not match its hash")
    metadata = json.loads(text)["__metadata__"]
    return {name: json.loads(value) for name, value in metadata.items() if name != "sha256"}


def _require_same(path: Path, header: Mapping[str, Any], origin: Origin, resuming: bool) -> str:
    """Raise Mismatch for another origin; returns a note if only the code differs."""
    if header["format"] != FORMAT:
        raise Mismatch(f"{path} is of format {header['format']}; this lamaml reads {FORMAT}")
    for part in ("settings", "versions") if resuming else ("settings",):
        there, here = header[part], plain(getattr(origin, part))
        names = [name for name in {**here, **there} if here.get(name) != there.get(name)]
        if names:
            pairs = (f"{name} {there.get(name)} there, {here.get(name)} here" for name in names)
            raise Mismatch(f"{path} is of other {part}: {'; '.join(pairs)}")
    if header["data"] != origin.data:
        raise Mismatch(f"{path} is of other data: the stream's rows have changed since")
    if header["code"] != origin.code:
        return f"{path} is of revision {header['code']}, this is {origin.code}: bits may differ"
    return ""


def _require_alike(name: str, expected: Any, found: np.ndarray | None) -> None:
    if expected is None or found is None:
        raise ValueError(f"{name} is {'unexpected' if expected is None else 'missing'}")
    wanted = _stored(expected)
    if (found.shape, found.dtype) != (wanted.shape, wanted.dtype):
        shapes = f"{found.dtype}{found.shape}, not {wanted.dtype}{wanted.shape}"
        raise ValueError(f"{name} is {shapes}")


def _flatten(arrays: _Arrays) -> tuple[dict[str, Any], Any]:
    """The leaves by their path, and their structure."""
    leaves, structure = jax.tree_util.tree_flatten_with_path(arrays)
    return {jax.tree_util.keystr(path): leaf for path, leaf in leaves}, structure


def _is_key(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _stored(leaf: Any) -> np.ndarray:
    """A leaf as a file holds it: keys as their numbers, dtypes unknown to NumPy as their bits."""
    array = np.array(jax.random.key_data(leaf) if _is_key(leaf) else leaf, order="C")
    return array if array.dtype.kind in "biufc" else array.view(f"u{array.dtype.itemsize}")


def _restored(array: np.ndarray, like: Any) -> Any:
    if isinstance(like, np.ndarray):
        return array
    if _is_key(like):
        return jax.random.wrap_key_data(jnp.array(array), impl=jax.random.key_impl(like))
    return jnp.array(array.view(like.dtype))  # a copy: updates reuse it
