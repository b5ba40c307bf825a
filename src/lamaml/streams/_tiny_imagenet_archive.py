"""Reader of the TinyImagenet-200 archive; its decoded images are cached on disk."""

import math
import os
import re
import subprocess
import sys
import zipfile
import zlib
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import platformdirs
from rich.console import Console
from rich.progress import track

from lamaml._io import atomic_write, exclusive, file_digest
from lamaml.errors import DataCorrupt, DataUnavailable
from lamaml.streams import _decoding

NUM_CLASSES = 200
SHAPE = (64, 64, 3)
CHUNK_SIZE = 4096  # images per worker process
ROOT = "tiny-imagenet-200"
_TRAIN_MEMBER = re.compile(rf"{ROOT}/train/(n\d+)/images/[^/]+\.JPEG")


class Contents(NamedTuple):
    """All images, memory-mapped, those of the training folder first, and their classes."""

    images: np.ndarray
    wnids: Sequence[str]  # name of each class
    train_classes: np.ndarray
    val_classes: np.ndarray


def open_archive(path: Path) -> Contents:
    """Return the images of an archive in the public layout, with at least two per class.

    Raises:
      DataCorrupt: the file is no archive, lacks a part of the layout, or an image cannot be read.
      DataUnavailable: the cache cannot be written.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            wnids, train, val = _index(archive)
        images = _images(path, [*train, *val])
    except (zipfile.BadZipFile, zlib.error, RuntimeError, KeyError, ValueError) as error:
        raise DataCorrupt(
            f"{path} is not a complete {ROOT} archive ({error}): delete it and run again"
        ) from error
    class_of = {wnid: number for number, wnid in enumerate(wnids)}
    return Contents(
        images,
        wnids,
        np.array([class_of[wnid] for wnid in train.values()]),
        np.array([class_of[wnid] for wnid in val.values()]),
    )


def _index(archive: zipfile.ZipFile) -> tuple[list[str], dict[str, str], dict[str, str]]:
    """Return the class names, and the class of each member of both image folders."""
    matches = (_TRAIN_MEMBER.fullmatch(member) for member in sorted(archive.namelist()))
    train = {match[0]: match[1] for match in matches if match}
    val = {}
    for line in archive.read(f"{ROOT}/val/val_annotations.txt").decode().splitlines():
        file, wnid, *_ = line.split("\t")
        val[f"{ROOT}/val/images/{file}"] = wnid
    wnids = sorted(archive.read(f"{ROOT}/wnids.txt").decode().split())
    for folder, classes in (("train", train.values()), ("val", val.values())):
        counts = Counter(classes)
        if len(wnids) != NUM_CLASSES or sorted(counts) != wnids or min(counts.values()) < 2:
            raise ValueError(f"fewer than 2 images of some of {NUM_CLASSES} classes in {folder}")
    return wnids, train, val


def _images(path: Path, members: Sequence[str]) -> np.ndarray:
    """Return the decoded members from the cache, which is named after the archive's digest."""
    digest = file_digest(path)
    writable = os.access(path.parent, os.W_OK)
    folder = path.parent if writable else Path(platformdirs.user_cache_dir("lamaml"))
    cache = folder / f"{path.stem}.{path.stat().st_size}-{digest[:16]}.npy"
    images = _mapped(cache)
    if images is None:
        with exclusive(cache):
            images = _mapped(cache)  # another process may have written it meanwhile
            if images is None:
                images = _decode(path, members, cache)
    return images


def _mapped(cache: Path) -> np.ndarray | None:
    """Return the memory-mapped cache, or None if it is missing or damaged."""
    try:
        images: np.ndarray = np.load(cache, mmap_mode="r")
    except (OSError, EOFError, ValueError):
        return None
    return images


def _decode(path: Path, members: Sequence[str], cache: Path) -> np.ndarray:
    try:
        _write(path, members, cache)
    except OSError as error:
        raise DataUnavailable(
            f"{cache} could not be written ({error}): free disk space, or set LAMAML_DATA to "
            f"another folder that contains {path.name}"
        ) from error
    images: np.ndarray = np.load(cache, mmap_mode="r")
    return images


def _write(path: Path, members: Sequence[str], cache: Path) -> None:
    """Write the decoded members to the cache; each worker process fills a part of the file."""
    header = {"descr": "|u1", "fortran_order": False, "shape": (len(members), *SHAPE)}
    with atomic_write(cache) as file, ThreadPoolExecutor(os.cpu_count()) as workers:
        np.lib.format.write_array_header_1_0(file, header)
        file.flush()
        origin = file.tell()

        def decode(start: int) -> None:
            offset = str(origin + start * math.prod(SHAPE))
            command = [sys.executable, "-P", _decoding.__file__, str(path), file.name, offset]
            names = "\n".join(members[start : start + CHUNK_SIZE])
            done = subprocess.run(  # noqa: S603 - our own script
                command, input=names, text=True, capture_output=True
            )
            if done.returncode:
                reason = done.stderr.strip().rpartition("\n")[2]
                raise (ValueError if done.returncode == _decoding.DAMAGED else OSError)(reason)

        starts = range(0, len(members), CHUNK_SIZE)
        console = Console(stderr=True)
        for _ in track(
            workers.map(decode, starts),
            "decoding TinyImagenet",
            len(starts),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        ):
            pass
