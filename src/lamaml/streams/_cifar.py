"""The binary layout of CIFAR-10 and CIFAR-100: label bytes, then red, green and blue planes."""

import shutil
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from lamaml._io import atomic_write, exclusive, file_digest
from lamaml.errors import DataCorrupt
from lamaml.streams._download import data_folder, fetch
from lamaml.streams._splits import Parts
from lamaml.streams._tasks import Selection, hold_out, select_by_class

_PIXELS = 3 * 32 * 32


class Layout(NamedTuple):
    """The files of one archive."""

    archive: str  # one of `ARCHIVES`
    folder: str  # of the files, in the archive and in the data folder
    files: Mapping[str, Sequence[str]]  # by split; the files of a split have the same size
    num_classes: int
    images_per_class: Mapping[str, int]  # by split, in all its files together
    label_bytes: int  # per record; the last one is the class

    def digest(self) -> str:
        """Return a digest of every file, unpacking them first if they are missing."""
        names = [name for split in self.files for name in self.files[split]]
        return " ".join(file_digest(self._file(name)) for name in names)

    def parts(self, order: np.ndarray, classes_per_task: int, *, seed: int) -> Parts:
        """Return all images; a tenth of the training images of each class are for validation."""
        train, test = (self._select(split, order, classes_per_task) for split in ("train", "test"))
        validation, train = hold_out(train, train.label, 0.1, seed=seed, purpose="validation")
        return Parts(train, validation, test)

    def _select(self, split: str, order: np.ndarray, classes_per_task: int) -> Selection:
        """Select all images of a split; the label of an image is its class's position in `order`.

        Raises:
          DataCorrupt: a file has another size, or the split other numbers of images per class.
        """
        parts = self._records(split)
        per_file = len(parts[0])

        def read(rows: np.ndarray) -> np.ndarray:
            flat = np.empty((len(rows), _PIXELS), np.uint8)
            for number, records in enumerate(parts):
                here = rows // per_file == number
                flat[here] = records[rows[here] % per_file, self.label_bytes :]
            planes = flat.reshape(-1, 3, 32, 32)
            return np.ascontiguousarray(planes.transpose(0, 2, 3, 1))

        return select_by_class(read, self._classes(parts), order, classes_per_task)

    def _records(self, split: str) -> list[np.ndarray]:
        """Return the records of each file, memory-mapped, in any order."""
        names, per_class = self.files[split], self.images_per_class[split]
        paths = [self._file(name) for name in names]
        record = self.label_bytes + _PIXELS
        size = self.num_classes * per_class // len(names) * record
        for path in paths:
            if path.stat().st_size != size:
                raise self._corrupt(path, f"has {path.stat().st_size} bytes, not {size}")
        parts = [np.memmap(path, np.uint8, mode="r").reshape(-1, record) for path in paths]
        counts = np.bincount(self._classes(parts), minlength=self.num_classes)
        if np.any(counts != per_class):
            finding = f"does not hold {per_class} images of each of {self.num_classes} classes"
            raise self._corrupt(paths[0] if len(paths) == 1 else paths[0].parent, finding)
        return parts

    def _classes(self, parts: Sequence[np.ndarray]) -> np.ndarray:
        return np.concatenate([np.array(records[:, self.label_bytes - 1]) for records in parts])

    def _file(self, name: str) -> Path:
        path = data_folder() / self.folder / name
        if not path.is_file():
            self._unpack(fetch(self.archive))
        if not path.is_file():
            advice = "delete it and run again"
            raise DataCorrupt(f"{self.archive} does not contain {name}: {advice}")
        return path

    def _unpack(self, archive: Path) -> None:
        """Write the files that are missing, in one pass over the archive."""
        folder = data_folder() / self.folder
        wanted = {f"{self.folder}/{name}" for names in self.files.values() for name in names}
        with exclusive(folder), tarfile.open(archive) as members:
            for leftover in folder.glob("*.part"):  # of a process that was killed
                leftover.unlink()
            for member in members:
                path = folder / Path(member.name).name
                content = members.extractfile(member) if member.name in wanted else None
                if content is not None and not path.is_file():
                    with content, atomic_write(path) as file:
                        shutil.copyfileobj(content, file)

    def _corrupt(self, path: Path, finding: str) -> DataCorrupt:
        return DataCorrupt(f"{path} {finding}: delete it and unpack {self.archive} again")
