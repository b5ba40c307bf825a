"""The configuration of a service: `serve.toml`, read into frozen records.

[model]                 # parameters of LaMAMLClassifier, or kind = "regressor"
learner = "er"
[service]               # see Settings
label_ttl = 3600
[server]                # see Server
port = 8765
[drift]                 # see Drift
actions = ["snapshot"]
[[tokens]]              # see Token
[[sources]]             # see Source
"""

import inspect
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from lamaml._records import from_json
from lamaml.errors import DataUnavailable, InvalidArgument, require, unknown_name
from lamaml.estimators import LaMAMLClassifier, LaMAMLRegressor
from lamaml.serving.learning import Estimator

KINDS: dict[str, type[Estimator]] = {"classifier": LaMAMLClassifier, "regressor": LaMAMLRegressor}
ROLES = ("read", "learn", "admin")
"""Each may do what the roles before it may."""
DRIFT_TESTS = ("held_out", "adwin", "page_hinkley", "off")
ACTIONS = ("snapshot", "rollback", "webhook")
SOURCE_KINDS = ("ndjson", "redis")

_Record = TypeVar("_Record")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of a service.

    Attributes:
      name: of the model, in addresses.
      batch_rows: most rows that are learned at once; readers see a new version after each batch.
      batch_delay: seconds that the learner waits for ten rows before it learns fewer.
      queue_rows: most rows that wait to be learned; a request beyond them is refused.
      snapshot_rows: number of rows after which a version is stored.
      snapshot_seconds: time after which a version is stored, if there are new rows.
      keep_versions: number of stored versions.
      keep_journal: keep all rows, not only those since the oldest stored version.
      label_ttl: seconds for which a prediction waits for its label; 0 keeps no predictions.
      max_predictions: most predictions that are kept; beyond them the oldest are forgotten.
      max_classes: most classes.
      max_columns: most values in a row.
    """

    name: str = "model"
    batch_rows: int = 250
    batch_delay: float = 0.02
    queue_rows: int = 100_000
    snapshot_rows: int = 5_000
    snapshot_seconds: float = 60.0
    keep_versions: int = 5
    keep_journal: bool = False
    label_ttl: float = 86_400.0
    max_predictions: int = 100_000
    max_classes: int = 1_000
    max_columns: int = 10_000

    def __post_init__(self) -> None:
        is_name = self.name.replace("-", "").replace("_", "").replace(".", "").isalnum()
        require(is_name, "name", self.name, "letters, digits, '-', '_' and '.'")
        for part in fields(self):
            value = getattr(self, part.name)
            if part.type in (int, "int"):
                require(value >= 1, part.name, value, "at least 1")
            elif part.type in (float, "float"):
                require(0 <= value < float("inf"), part.name, value, "a number, at least 0")


@dataclass(frozen=True, kw_only=True)
class Drift:
    """When to raise an alarm, and what it does.

    Attributes:
      test: "held_out" compares the scores of held-out rows with those on their arrival; "adwin"
        and "page_hinkley" are river's tests of the prequential scores; or "off".
      p_value: of the held-out test, one-sided.
      actions: "snapshot" stores a version, "rollback" returns to the stored version whose recent
        scores were best, "webhook" posts the alarm to `webhook`.
      webhook: an http or https address.
      pause: seconds after an alarm in which there is no other.
    """

    test: str = "held_out"
    p_value: float = 0.001
    actions: tuple[str, ...] = ()
    webhook: str | None = None
    pause: float = 60.0

    def __post_init__(self) -> None:
        _one_of("test", self.test, DRIFT_TESTS)
        require(0 < self.p_value < 1, "p_value", self.p_value, "between 0 and 1")
        for action in self.actions:
            _one_of("action", action, ACTIONS)
        given = (self.webhook or "").startswith(("http://", "https://"))
        needed = "webhook" in self.actions or self.webhook is not None
        require(given or not needed, "webhook", self.webhook, "an http or https address")


@dataclass(frozen=True, kw_only=True)
class Server:
    """Where and how to listen.

    Attributes:
      host: address; one that other machines reach needs tokens.
      port: 0 for any that is free.
      max_bytes: of a request's body.
      certificate: file with the certificate of TLS, in PEM format.
      private_key: file with its key.
    """

    host: str = "127.0.0.1"
    port: int = 8765
    max_bytes: int = 16_000_000
    certificate: Path | None = None
    private_key: Path | None = None

    def __post_init__(self) -> None:
        require(0 <= self.port < 65536, "port", self.port, "from 0 to 65535")
        require(self.max_bytes >= 1, "max_bytes", self.max_bytes, "at least 1")
        both = (self.certificate is None) == (self.private_key is None)
        require(both, "private_key", self.private_key, "given together with certificate")


@dataclass(frozen=True, kw_only=True)
class Token:
    """Who may do what; `lamaml serve --new-token ROLE` prints one.

    Attributes:
      name: of its owner, for the log.
      role: "read", "learn" or "admin".
      sha256: digest of the token, in hexadecimal.
    """

    name: str
    role: str
    sha256: str

    def __post_init__(self) -> None:
        _one_of("role", self.role, ROLES)
        digits = set("0123456789abcdef")
        is_digest = len(self.sha256) == 64 and set(self.sha256) <= digits
        require(is_digest, "sha256", self.sha256, "64 hexadecimal digits")


@dataclass(frozen=True, kw_only=True)
class Source:
    """A stream that the service reads itself.

    Attributes:
      kind: "ndjson" or "redis".
      path: of an NDJSON file, of a folder of *.ndjson files, or "-" for standard input.
      url: of the Redis server.
      stream: key of the Redis stream.
      group: consumer group.
    """

    kind: str
    path: str | None = None
    url: str = "redis://127.0.0.1:6379/0"
    stream: str | None = None
    group: str = "lamaml"

    def __post_init__(self) -> None:
        _one_of("kind", self.kind, SOURCE_KINDS)
        needed = "path" if self.kind == "ndjson" else "stream"
        require(getattr(self, needed) is not None, needed, None, f"given for kind {self.kind!r}")


@dataclass(frozen=True, kw_only=True)
class ServeConfig:
    """Everything in `serve.toml`."""

    model: Mapping[str, Any] = field(default_factory=dict)
    service: Settings = field(default_factory=Settings)
    server: Server = field(default_factory=Server)
    drift: Drift = field(default_factory=Drift)
    tokens: tuple[Token, ...] = ()
    sources: tuple[Source, ...] = ()


def read_config(path: Path) -> ServeConfig:
    """Return the configuration in a file.

    Raises:
      DataUnavailable: there is no such file.
      InvalidArgument: it is no TOML, or an entry is unknown or not allowed.
    """
    try:
        found = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError as error:
        raise DataUnavailable(f"{path} does not exist") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidArgument(f"{path} is not a TOML file: {error}") from error
    sections = {part.name: part for part in fields(ServeConfig)}
    for name in found:
        if name not in sections:
            raise unknown_name(f"section of {path.name}", name, sections)
    try:
        return ServeConfig(
            model=_checked_model(found.get("model", {})),
            service=_record(Settings, "service", found.get("service", {})),
            server=_record(Server, "server", found.get("server", {})),
            drift=_record(Drift, "drift", found.get("drift", {})),
            tokens=tuple(_record(Token, "tokens", each) for each in found.get("tokens", [])),
            sources=tuple(_record(Source, "sources", each) for each in found.get("sources", [])),
        )
    except ValueError as error:
        raise InvalidArgument(f"{path}: {error}") from error


def make_estimator(model: Mapping[str, Any]) -> Estimator:
    """Return the estimator of a `[model]` section."""
    parameters = dict(_checked_model(model))
    return KINDS[parameters.pop("kind", "classifier")](**parameters)


def _checked_model(model: Mapping[str, Any]) -> Mapping[str, Any]:
    kind = model.get("kind", "classifier")
    _one_of("kind of model", kind, KINDS)
    allowed = ["kind", *inspect.signature(KINDS[kind]).parameters]
    allowed.remove("model")  # a network is code, which a file does not contain
    for name in model:
        if name not in allowed:
            raise unknown_name("parameter in [model]", name, allowed)
    return model


def _record(kind: type[_Record], section: str, found: Any) -> _Record:
    require(isinstance(found, Mapping), section, found, "a table of settings")
    known = [part.name for part in fields(kind)]  # type: ignore[arg-type]
    for name in found:
        if name not in known:
            raise unknown_name(f"setting in [{section}]", name, known)
    return from_json(kind, found)


def _one_of(name: str, value: Any, allowed: Any) -> None:
    if value not in allowed:
        raise unknown_name(name, str(value), allowed)
