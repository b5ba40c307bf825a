"""Encoded images become bytes; as a script, a share of an archive's images.

Decoding small images in threads is slower than in one (they fight for the interpreter's lock), so
`tiny_imagenet_archive` runs this file in processes. It imports nothing of this package: a worker
starts in a tenth of the time that JAX takes to import.

    python _decoding.py ARCHIVE OUTPUT OFFSET < names of members, one a line
"""

import io
import sys
import zipfile
import zlib

import numpy as np
from PIL import Image

DAMAGED = 65
"""The exit code that puts the blame on the archive, as in sysexits.h."""
_DEEP = ("I", "F")  # whole numbers of 16 or 32 bits, fractions


def decode_image(encoded: bytes, name: str) -> np.ndarray:
    """An encoded image of any kind as RGB bytes (h, w, 3).

    Raises:
      ValueError: naming the image.
    """
    try:
        with Image.open(io.BytesIO(encoded)) as image:
            mode = image.mode
            pixels = np.asarray(image if mode == "RGB" else image.convert("RGB"))
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise ValueError(f"{name} is not an image that can be read") from error
    if mode.startswith(_DEEP):  # Pillow cuts its numbers off at 255
        raise ValueError(f"{name} has more than 8 bits a channel")
    return pixels


def decode_members(archive: str, members: list[str], output: str, offset: int) -> None:
    """Write the members' bytes into the output from the offset on.

    Raises:
      ValueError: naming a member that is not a whole 64×64 image.
    """
    with zipfile.ZipFile(archive) as images, open(output, "r+b") as file:
        file.seek(offset)
        for member in members:
            try:
                encoded = images.read(member)
            except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
                raise ValueError(f"{member} is damaged") from error
            image = decode_image(encoded, member)
            if image.shape != (64, 64, 3):
                raise ValueError(f"{member} is not 64×64")
            file.write(image.tobytes())


if __name__ == "__main__":
    try:
        decode_members(sys.argv[1], sys.stdin.read().split("\n"), sys.argv[2], int(sys.argv[3]))
    except (ValueError, KeyError) as error:
        sys.stderr.write(str(error))
        sys.exit(DAMAGED)
