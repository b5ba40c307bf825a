"""The origin of a checkpoint: everything that decides the bits of a run."""

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from lamaml._io import fingerprint
from lamaml.experiments.storing.environment import PACKAGES, checkout, versions
from lamaml.experiments.storing.records import RunSettings
from lamaml.types import Stream


class Origin(NamedTuple):
    """What decides a run's bits. A run is not resumed from a checkpoint of another origin."""

    settings: Mapping[str, Any]  # seed and sizes among them
    versions: Mapping[str, str]  # of the packages that compute
    data: str  # a fingerprint of the stream
    code: str | None  # the revision; a difference is only noted, as most change no number


def origin_of(settings: RunSettings, seed: int, stream: Stream) -> Origin:
    """What a checkpoint of this seed must agree with."""
    installed = versions()
    return Origin(
        {**settings.decisive, "seed": seed},
        {package: installed[package] for package in PACKAGES},
        stream_fingerprint(stream),
        checkout()[0],
    )


def stream_fingerprint(stream: Stream) -> str:
    """A digest of the stream's facts and of every row."""
    digest = hashlib.blake2b(digest_size=32)
    for task in stream.tasks:
        for rows in (task.train, task.validation, task.test):
            for array in (rows.x, rows.y):
                digest.update(f"{array.dtype.str} {array.shape}".encode())
                digest.update(np.ascontiguousarray(array).data)
    return fingerprint({"facts": stream.facts, "rows": digest.hexdigest()})
