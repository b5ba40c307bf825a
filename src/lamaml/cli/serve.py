"""`lamaml serve`: a model that answers while it learns."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lamaml.errors import DataUnavailable, InvalidArgument

if TYPE_CHECKING:
    from lamaml.serving.config import ServeConfig
    from lamaml.serving.service import Service

EXAMPLES = (
    "lamaml serve models/digits                       http://127.0.0.1:8765, page at /",
    "lamaml serve models/digits --read rows.ndjson    learn a file too, and follow it",
    "lamaml serve models/digits --new-token learn     print a token for serve.toml",
)


def serve(
    folder: Annotated[Path, typer.Argument(help="Folder of the journal and the versions.")],
    config: Annotated[
        Path | None, typer.Option(help="TOML file (default: FOLDER/serve.toml, if it exists).")
    ] = None,
    host: Annotated[str | None, typer.Option(help="Address (default: 127.0.0.1).")] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Port, 0 for a free one (default: 8765).")
    ] = None,
    read: Annotated[
        list[str] | None,
        typer.Option(help="NDJSON file, folder of *.ndjson, or - for standard input; repeatable."),
    ] = None,
    new_token: Annotated[
        str | None,
        typer.Option(help="Print a new token of this role (read, learn, admin) and exit."),
    ] = None,
) -> None:
    """Serve a model over HTTP that learns while it answers.

    What was acknowledged is on disk: after a crash the service continues,
    to the bit, where it was.
    """
    if new_token is not None:
        _print_token(new_token)
        return
    chosen = _read(folder, config)
    server = chosen.server
    server = replace(server, host=host or server.host, port=server.port if port is None else port)
    chosen = replace(chosen, server=server)
    if read:
        from lamaml.serving.config import Source

        sources = tuple(Source(kind="ndjson", path=path) for path in read)
        chosen = replace(chosen, sources=(*chosen.sources, *sources))
    try:
        from lamaml.serving.server import serve as run
    except ImportError as error:
        message = f"lamaml serve needs {error.name}: pip install 'lamaml[serve]'"
        raise InvalidArgument(message) from error
    run(folder, chosen, _announce)


def _announce(address: str, service: "Service") -> None:
    version = service.version
    rows = f"{version.monitor.rows_learned:,} rows"
    typer.echo(f"Version {version.number}, {rows} learned, {service.backlog:,} waiting")
    typer.echo(f"Serving {service.folder} at {address}    (Ctrl-C stops)")


def _read(folder: Path, path: Path | None) -> "ServeConfig":
    from lamaml.serving.config import ServeConfig, read_config

    if folder.exists() and not folder.is_dir():
        raise DataUnavailable(f"{folder} is not a folder")
    default = folder / "serve.toml"
    if path is None and not default.exists():
        return ServeConfig()
    return read_config(path or default)


def _print_token(role: str) -> None:
    from lamaml.serving.tokens import new_token

    token, entry = new_token(role, role)
    typer.echo(f"Token, shown only now: {token}\n\nIn serve.toml:\n")
    typer.echo(f'[[tokens]]\nname = "{entry.name}"\nrole = "{role}"\nsha256 = "{entry.sha256}"')
