"""Running a service as a server: from a folder and a configuration to an open port."""

import socket
from collections.abc import Callable
from pathlib import Path

import uvicorn

from lamaml.errors import InvalidArgument
from lamaml.serving.app import App
from lamaml.serving.config import ServeConfig, Server, make_estimator
from lamaml.serving.metrics import Metrics
from lamaml.serving.service import Service
from lamaml.serving.sources import Reader, start_sources
from lamaml.serving.tokens import check_exposed
from lamaml.serving.watch import Watch


def serve(folder: Path, config: ServeConfig, on_start: Callable[[str, Service], None]) -> None:
    """Open a folder, restore its state, and answer requests until a signal comes.

    Args:
      folder: of the service.
      config: its configuration.
      on_start: called with the address when requests are answered.

    Raises:
      InvalidArgument: the address cannot be used, or needs tokens.
    """
    check_exposed(config.server, config.tokens)
    listening = _bind(config.server)
    metrics = Metrics()
    estimator = make_estimator(config.model) if config.model else None
    service = Service(folder, estimator, config.service, on_batch=metrics.on_batch)
    readers: list[Reader] = []
    watch = None
    try:
        watch = Watch(service, config.drift)
        readers += start_sources(service, config.sources, watch)
        app = App(service, config, watch, metrics, lambda: _close(service, watch, readers))
        settings = uvicorn.Config(
            app.asgi,
            log_level="warning",
            access_log=False,
            lifespan="on",
            timeout_graceful_shutdown=2,
            ssl_certfile=config.server.certificate,
            ssl_keyfile=config.server.private_key,
        )
        scheme = "http" if config.server.certificate is None else "https"
        host, port = listening.getsockname()[:2]
        on_start(f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}", service)
        uvicorn.Server(settings).run(sockets=[listening])
    finally:
        _close(service, watch, readers)
        listening.close()


def _bind(server: Server) -> socket.socket:
    family = socket.AF_INET6 if ":" in server.host else socket.AF_INET
    listening = socket.socket(family)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((server.host, server.port))
        listening.listen(1024)
    except OSError as error:
        listening.close()
        where = f"host = {server.host!r}, port = {server.port}"
        raise InvalidArgument(f"{where}: cannot listen there ({error.strerror})") from error
    return listening


def _close(service: Service, watch: Watch | None, readers: list[Reader]) -> None:
    for reader in readers:
        reader.close()
    if watch is not None:
        watch.close()
    service.close()
