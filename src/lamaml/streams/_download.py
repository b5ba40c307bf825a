"""The public archives: where they lie on this machine, and where they come from."""

import os
from pathlib import Path
from typing import NamedTuple

import platformdirs
import pooch

from lamaml._io import exclusive
from lamaml.errors import DataCorrupt, DataUnavailable, unknown_name


class Archive(NamedTuple):
    """A file with a public name."""

    address: str
    checksum: str
    exact: bool = True  # whether a local file must be the public one, byte for byte


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
    "cifar-100-binary.tar.gz": Archive(
        "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
        "md5:03b5dce01913d631647c71ecec9e9cb8",
    ),
    # A smaller archive of the same layout is as good, so the reader judges it and not a checksum.
    "tiny-imagenet-200.zip": Archive(
        "http://cs231n.stanford.edu/tiny-imagenet-200.zip",
        "md5:90528d7ca1a48142e341f4ef8d21d0de",
        exact=False,
    ),
}


def data_folder() -> Path:
    """The folder of the archives: `LAMAML_DATA`, or the user's cache."""
    return Path(os.environ.get("LAMAML_DATA") or platformdirs.user_cache_dir("lamaml"))


def fetch(name: str) -> Path:
    """The path of an archive, downloaded with checksum, resume and progress if it is not there.

    Args:
      name: its path in the data folder, one of `ARCHIVES`.

    Raises:
      DataUnavailable: it is not there and cannot be downloaded.
      DataCorrupt: its bytes are not those of the public archive.
    """
    if name not in ARCHIVES:
        raise unknown_name("archive", name, ARCHIVES)
    archive, path = ARCHIVES[name], data_folder() / name
    if not path.is_file():
        _download(name, archive, path)
    algorithm, _, digest = archive.checksum.partition(":")
    if archive.exact and pooch.file_hash(path, alg=algorithm) != digest:
        raise DataCorrupt(
            f"{path} is truncated or altered (it should have {archive.checksum}): "
            f"delete it and run again, or put there the file from {archive.address}"
        )
    return path


def _download(name: str, archive: Archive, path: Path) -> None:
    from lamaml.streams._resume import ResumingDownloader  # requests is slow to import

    pooch.get_logger().setLevel("WARNING")  # the progress bar says it already
    try:
        with exclusive(path):
            if path.is_file():  # another process was faster
                return
            downloader = ResumingDownloader(path.with_name(f"{path.name}.part"))
            pooch.retrieve(
                archive.address, archive.checksum, path.name, path.parent, downloader=downloader
            )
    except OSError as error:
        raise DataUnavailable(
            f"{name} is not in {data_folder()} and could not be downloaded "
            f"({type(error).__name__}): put it there from {archive.address}, "
            "or set LAMAML_DATA to the folder that holds it"
        ) from error
    except ValueError as error:
        raise DataCorrupt(
            f"{archive.address} no longer has {archive.checksum}: the download was thrown away; "
            f"put the original file at {path}"
        ) from error
