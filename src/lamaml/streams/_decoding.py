"""Decoding of image files; as a script, of a part of a zip archive.

Decoding small images in threads is slower than in one thread, because they compete for the
interpreter's lock, so `_tiny_imagenet_archive` runs this file in worker processes. It imports
nothing of this package, which makes a worker start ten times faster.

    python _decoding.py ARCHIVE OUTPUT OFFSET < names of members, one per line
"""

import io
import sys
import zipfile
import zlib

import numpy as np
from PIL import Image

DAMAGED = 65
"""Exit code for a damaged archive (EX_DATAERR of sysexits.h)."""
_DEEP_MODES = ("I", "F")  # integers of 16 or 32 bits, floating-point numbers


def decode_image(encoded: bytes, name: str) -> np.ndarray:
    """Return an encoded image in any format as RGB bytes (h, w, 3).

    Raises:
      ValueError: the image cannot be decoded, or not without loss; the message names it.
    """
    try:
        with Image.open(io.BytesIO(encoded)) as image:
            mode = image.mode
            pixels = np.asarray(image if mode == "RGB" else image.convert("RGB"))
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise ValueError(f"{name} is not an image that can be read") from error
    if mode.startswith(_DEEP_MODES):  # Pillow clips these values at 255
        raise ValueError(f"{name} has more than 8 bits per channel")
    return pixels


def decode_members(archive: str, members: list[str], output: str, offset: int) -> None:
    """Write the decoded members to the output file, starting at the offset in bytes.

    Raises:
      ValueError: a member is damaged or not a 64×64 image; the message names it.
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
