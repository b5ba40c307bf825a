"""The archive of TinyImagenet-200, its images decoded once into a cache."""

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

from lamaml._io import atomic_write, exclusive, file_digest
from lamaml.errors import DataCorrupt, DataUnavailable
from lamaml.streams import _decoding
from lamaml.streams._progress import progress_bar

NUM_CLASSES = 200
SHAPE = (64, 64, 3)
SHARE_SIZE = 4096  # images a worker process decodes before another takes over
ROOT = "tiny-imagenet-200"
_TRAIN_MEMBER = re.compile(rf"{ROOT}/train/(n\d+)/images/[^/]+\.JPEG")


class Archive(NamedTuple):
    """All images, those of the training folder first, mapped from the disk."""

    images: np.ndarray
    wnids: Sequence[str]  # the name of each class
    train_classes: np.ndarray
    val_classes: np.ndarray


def open_archive(path: Path) -> Archive:
    """The images of an archive in the public layout, with any number of images a class.

    Raises:
      DataCorrupt: it is no archive, lacks a part of the layout, or an image cannot be read.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            wnids, train, val = _index(archive)
        images = _images(path, [*train, *val])
    except (zipfile.BadZipFile, zlib.error, RuntimeError, KeyError, ValueError) as error:
        raise DataCorrupt(
            f"{path} is not a whole {ROOT} archive ({error}): delete it and run again"
        ) from error
    class_of = {wnid: number for number, wnid in enumerate(wnids)}
    return Archive(
        images,
        wnids,
        np.array([class_of[wnid] for wnid in train.values()]),
        np.array([class_of[wnid] for wnid in val.values()]),
    )


def _index(archive: zipfile.ZipFile) -> tuple[list[str], dict[str, str], dict[str, str]]:
    """The class names, and the class of each member of the training and validation folders."""
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
            raise ValueError(f"no two images of each of {NUM_CLASSES} classes in {folder}")
    return wnids, train, val


def _images(path: Path, members: Sequence[str]) -> np.ndarray:
    """The decoded members, from the cache of exactly this archive."""
    digest = file_digest(path)
    writable = os.access(path.parent, os.W_OK)
    folder = path.parent if writable else Path(platformdirs.user_cache_dir("lamaml"))
    cache = folder / f"{path.stem}.{path.stat().st_size}-{digest[:16]}.npy"
    images = _mapped(cache)
    if images is None:
        with exclusive(cache):
            images = _mapped(cache)  # another process may have been faster
            if images is None:
                images = _decode(path, members, cache)
    return images


def _mapped(cache: Path) -> np.ndarray | None:
    """The cache, or None if it is not there or damaged."""
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
            f"{cache} could not be written ({error}): make room there, or set LAMAML_DATA to "
            f"another folder that holds {path.name}"
        ) from error
    images: np.ndarray = np.load(cache, mmap_mode="r")
    return images


def _write(path: Path, members: Sequence[str], cache: Path) -> None:
    """Write the members, decoded, to the cache; worker processes fill a share each."""
    header = {"descr": "|u1", "fortran_order": False, "shape": (len(members), *SHAPE)}
    with (
        atomic_write(cache) as file,
        ThreadPoolExecutor(os.cpu_count()) as workers,
        progress_bar("decoding TinyImagenet, once", len(members)) as bar,
    ):
        np.lib.format.write_array_header_1_0(file, header)
        file.flush()
        offset = file.tell()

        def decode(start: int) -> int:
            share = members[start : start + SHARE_SIZE]
            place = str(offset + start * math.prod(SHAPE))
            command = [sys.executable, "-P", _decoding.__file__, str(path), file.name, place]
            done = subprocess.run(  # noqa: S603 - our own script
                command, input="\n".join(share), text=True, capture_output=True
            )
            if done.returncode:
                finding = done.stderr.strip().rpartition("\n")[2]
                raise (ValueError if done.returncode == _decoding.DAMAGED else OSError)(finding)
            return len(share)

        for size in workers.map(decode, range(0, len(members), SHARE_SIZE)):
            bar.advance(size)
