"""Anyone's own data from a file: an `.npz`, or a folder of images."""

import zipfile
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from lamaml.errors import DataCorrupt, DataUnavailable
from lamaml.streams._decoding import decode_image


class Table(NamedTuple):
    """Rows as they came."""

    x: np.ndarray
    y: np.ndarray
    task: np.ndarray | None = None


def load(path: str | Path) -> Table:
    """The rows of an `.npz` file or of a folder of images.

    Raises:
      DataUnavailable: there is nothing at the path.
      DataCorrupt: it is neither of the two, or a part of it cannot be read.
    """
    path = Path(path).expanduser()
    if path.is_dir():
        return load_image_folder(path)
    if path.is_file():
        return load_npz(path)
    raise DataUnavailable(f"{path} is not there: give an .npz file or a folder of images")


def load_npz(path: Path) -> Table:
    """The arrays `x`, `y` and, if there, `task`. Nothing in the file is ever run."""
    try:
        with zipfile.ZipFile(path) as members:
            names = {name.removesuffix(".npy") for name in members.namelist()}
        with np.load(path, allow_pickle=False) as file:
            held = {name: file[name] for name in names & {"x", "y", "task"}}
    except (zipfile.BadZipFile, zlib.error, ValueError, EOFError, OSError) as error:
        raise DataCorrupt(
            f"{path} cannot be read ({error}): write it with numpy.savez, without objects"
        ) from error
    if not held.keys() >= {"x", "y"}:
        raise DataCorrupt(f"{path} holds {sorted(names)}: it must hold x and y, and may hold task")
    return Table(**held)


def load_image_folder(path: Path) -> Table:
    """One class a subfolder, its name the label; all images of one size, as RGB bytes."""
    kinds = Image.registered_extensions()
    files = [
        file
        for folder in sorted(path.iterdir())
        if folder.is_dir() and not folder.name.startswith(".")
        for file in sorted(folder.iterdir())
        if file.is_file() and file.suffix.lower() in kinds and not file.name.startswith(".")
    ]
    if not files:
        raise DataUnavailable(f"{path} has no images: give a folder with one subfolder a class")
    images = []
    for file in files:
        try:
            images.append(decode_image(file.read_bytes(), str(file)))
        except ValueError as error:
            advice = "convert or delete it, or give the rows in an .npz"
            raise DataCorrupt(f"{error}: {advice}") from error
        except OSError as error:
            raise DataCorrupt(f"{file} cannot be read ({error.strerror})") from error
        if images[-1].shape != images[0].shape:
            sizes = f"{images[-1].shape[:2]}, but {files[0]} is {images[0].shape[:2]}"
            raise DataCorrupt(f"{file} is {sizes}: all images must have one size")
    return Table(np.stack(images), np.array([file.parent.name for file in files]))
