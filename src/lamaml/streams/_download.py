"""Public data archives: where they are stored, and how they are downloaded."""

import os
from pathlib import Path
from typing import NamedTuple

import platformdirs
import pooch
from rich.console import Console
from rich.progress import Progress

from lamaml._io import exclusive
from lamaml.errors import DataCorrupt, DataUnavailable, unknown_name


class Archive(NamedTuple):
    """A public file."""

    address: str
    checksum: str  # "algorithm:digest"
    exact: bool = True  # whether a local file must match the checksum


_MNIST = "https://storage.googleapis.com/cvdf-datasets/mnist/"
_MNIST_CHECKSUMS = {
    "train-images-idx3-ubyte.gz": "md5:f68b3c2dcbeaaa9fbdd348bbdeb94873",
    "train-labels-idx1-ubyte.gz": "md5:d53e105ee54ea40749a09fcbcd1e9432",
    "t10k-images-idx3-ubyte.gz": "md5:9fb629c4189551a2d022fa330f9573f3",
    "t10k-labels-idx1-ubyte.gz": "md5:ec29112dd5afa0611ce80d1b7f02629c",
}
ARCHIVES = {
    **{
        f"mnist/{name}": Archive(_MNIST + name, checksum)
        for name, checksum in _MNIST_CHECKSUMS.items()
    },
    "cifar-10-binary.tar.gz": Archive(
        "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
        "md5:c32a1d4ab5d03f1284b67883e8d87530",
    ),
    "cifar-100-binary.tar.gz": Archive(
        "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
        "md5:03b5dce01913d631647c71ecec9e9cb8",
    ),
    # A smaller archive of the same layout is allowed: its reader checks it instead of the checksum.
    "tiny-imagenet-200.zip": Archive(
        "http://cs231n.stanford.edu/tiny-imagenet-200.zip",
        "md5:90528d7ca1a48142e341f4ef8d21d0de",
        exact=False,
    ),
}
NUM_RETRIES = 2  # attempts after the first one
CHUNK_SIZE = 1 << 16  # bytes
TIMEOUT = (10, 30)  # seconds to connect, and to wait for the next bytes


def data_folder() -> Path:
    """Return the folder of the archives: `LAMAML_DATA`, or the user's cache folder."""
    return Path(os.environ.get("LAMAML_DATA") or platformdirs.user_cache_dir("lamaml"))


def fetch(name: str) -> Path:
    """Return the path of an archive, downloading it first if it is missing.

    Args:
      name: path of the archive in the data folder, one of `ARCHIVES`.

    Raises:
      DataUnavailable: the archive is missing and cannot be downloaded.
      DataCorrupt: the archive does not match its checksum.
    """
    if name not in ARCHIVES:
        raise unknown_name("archive", name, ARCHIVES)
    archive, path = ARCHIVES[name], data_folder() / name
    if not path.is_file():
        _download(name, archive, path)
    algorithm, _, digest = archive.checksum.partition(":")
    if archive.exact and pooch.file_hash(path, alg=algorithm) != digest:
        raise DataCorrupt(
            f"{path} is truncated or altered (expected {archive.checksum}): "
            f"delete it and run again, or replace it by the file from {archive.address}"
        )
    return path


def _download(name: str, archive: Archive, path: Path) -> None:
    pooch.get_logger().setLevel("WARNING")  # the progress bar is enough
    source = pooch.create(
        data_folder(),
        base_url="",
        registry={name: archive.checksum},
        urls={name: archive.address},
        retry_if_failed=NUM_RETRIES,
    )
    console = Console(stderr=True)
    try:
        with (
            exclusive(path),
            Progress(console=console, transient=True, disable=not console.is_terminal) as progress,
        ):
            if not path.is_file():  # another process may have downloaded it meanwhile
                bar = _Bar(progress, f"downloading {path.name}")
                source.fetch(
                    name,
                    downloader=pooch.HTTPDownloader(
                        progressbar=bar,
                        chunk_size=CHUNK_SIZE,
                        timeout=TIMEOUT,
                        headers={"Accept-Encoding": "identity"},  # the checksum is of these bytes
                    ),
                )
    except OSError as error:
        raise DataUnavailable(
            f"{name} is not in {data_folder()} and could not be downloaded "
            f"({type(error).__name__}): put it there from {archive.address}, "
            "or set LAMAML_DATA to the folder that contains it"
        ) from error
    except ValueError as error:
        raise DataCorrupt(
            f"the download of {archive.address} does not match {archive.checksum} and was deleted: "
            f"put the original file at {path}"
        ) from error


class _Bar:
    """A progress bar of rich with the interface that pooch requires."""

    def __init__(self, progress: Progress, label: str) -> None:
        self._progress, self._task = progress, progress.add_task(label, total=None)

    @property
    def total(self) -> float | None:
        return self._progress.tasks[0].total

    @total.setter
    def total(self, size: int) -> None:  # set at the start of every attempt
        self._progress.reset(self._task, total=size or None)

    def update(self, size: int) -> None:
        self._progress.advance(self._task, size)

    def reset(self) -> None:
        self._progress.reset(self._task)

    def close(self) -> None:
        self._progress.refresh()
