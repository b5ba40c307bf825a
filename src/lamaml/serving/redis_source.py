"""A Redis stream as a source: a consumer group whose messages are acknowledged after the journal.

A message has a field `data` with JSON like {"x": [1, 2], "y": "label"}. A message that is delivered
again, because the service was killed before it acknowledged it, is recognised by its id.
"""

import logging
import socket
from collections.abc import Sequence
from typing import Any

from lamaml.errors import DataUnavailable, Unwritable
from lamaml.serving.config import Source
from lamaml.serving.intake import MAX_ID
from lamaml.serving.service import Service
from lamaml.serving.sources import LineSource, Reader
from lamaml.serving.watch import Watch

_LOG = logging.getLogger("lamaml.serving")
_COUNT = 100  # messages per request
_BLOCK = 200  # milliseconds
_RETRY_SECONDS = 1.0


class RedisStream(LineSource):
    """Reads a stream with the consumer group of the configuration.

    Raises:
      DataUnavailable: the package `redis` is not installed.
    """

    def __init__(self, service: Service, source: Source, watch: Watch) -> None:
        super().__init__(service, watch)
        try:
            import redis
        except ImportError as error:
            message = "a redis source needs redis: pip install 'lamaml[redis]'"
            raise DataUnavailable(message) from error
        self._redis = redis
        self._client = redis.Redis.from_url(source.url, decode_responses=True)
        self._stream, self._group = str(source.stream), source.group
        self._consumer = socket.gethostname()

    def read(self, reader: Reader) -> None:
        """Read until the reader is closed; a lost connection is tried again."""
        after = "0"  # first what was delivered before and never acknowledged
        while not reader.stopping.is_set():
            try:
                self._make_group()
                messages = self._next(after)
                if not messages:
                    after = ">"
                self._learn_messages(reader, messages)
            except (self._redis.RedisError, Unwritable) as error:
                _LOG.warning("redis stream %s: %s", self._stream, error)
                reader.stopping.wait(_RETRY_SECONDS)

    def _make_group(self) -> None:
        try:
            self._client.xgroup_create(self._stream, self._group, id="0", mkstream=True)
        except self._redis.ResponseError as error:
            if "BUSYGROUP" not in str(error):  # it exists
                raise

    def _next(self, after: str) -> Sequence[tuple[str, dict[str, str]]]:
        found: Any = self._client.xreadgroup(
            self._group,
            self._consumer,
            {self._stream: after},
            count=_COUNT,
            block=None if after == "0" else _BLOCK,
        )
        return found[0][1] if found else []

    def _learn_messages(
        self, reader: Reader, messages: Sequence[tuple[str, dict[str, str]]]
    ) -> None:
        """Journal messages in one commit, and acknowledge them."""
        submitted = []
        for number, fields in messages:
            rows = self.parsed([fields.get("data", "")])
            key = f"redis:{self._stream}:{number}"[:MAX_ID]
            submitted.append((number, self.submitted(reader, rows[0], key) if rows else None))
            if reader.stopping.is_set():
                return  # unacknowledged, they come again; by their keys, none is learned twice
        for _, future in submitted:
            if future is not None:
                future.result()
        if submitted:
            self._client.xack(self._stream, self._group, *(number for number, _ in submitted))
