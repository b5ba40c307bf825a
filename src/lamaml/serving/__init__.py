"""A model that answers while it learns: as a Python object, and as the server of `lamaml serve`."""

from lamaml.serving.answers import Answer
from lamaml.serving.config import Drift, ServeConfig, Server, Settings, Source, Token, read_config
from lamaml.serving.errors import (
    AlreadyLabelled,
    BadRows,
    NotReady,
    QueueFull,
    TooLate,
    UnknownRequest,
    UnknownVersion,
)
from lamaml.serving.intake import Receipt
from lamaml.serving.learning import Version
from lamaml.serving.service import Service
from lamaml.serving.versions import StoredVersion

__all__ = [
    "AlreadyLabelled",
    "Answer",
    "BadRows",
    "Drift",
    "NotReady",
    "QueueFull",
    "Receipt",
    "ServeConfig",
    "Server",
    "Service",
    "Settings",
    "Source",
    "StoredVersion",
    "Token",
    "TooLate",
    "UnknownRequest",
    "UnknownVersion",
    "Version",
    "read_config",
]
