"""The HTTP interface: an ASGI application around a `Service`.

Predictions of a few rows are computed by the thread of the event loop: that takes less time than
handing them to another one. Everything that waits for the disk is awaited.
"""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from importlib import resources
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Route

from lamaml.errors import InvalidArgument, LamamlError
from lamaml.serving import kserve
from lamaml.serving.answers import Answer
from lamaml.serving.batching import Batcher
from lamaml.serving.bodies import MEDIA_TYPES, Body, parse_body
from lamaml.serving.config import ServeConfig
from lamaml.serving.errors import BadRows
from lamaml.serving.intake import Receipt
from lamaml.serving.metrics import Metrics
from lamaml.serving.openapi import document
from lamaml.serving.responses import error_response, http_error, json_response
from lamaml.serving.service import Service
from lamaml.serving.tokens import Guard
from lamaml.serving.watch import Watch

_FEW_ROWS = 64
_EVENT_SECONDS = 1.0
_MAX_WAIT = 60.0  # seconds that ?wait=true waits
Handler = Callable[[Request], Awaitable[Response]]


class App:
    """The endpoints of one service; `asgi` is the application.

    Args:
      service: open.
      config: name, limits and tokens.
      watch: of the service.
      metrics: which the learner fills too.
      on_close: called when the server stops.
    """

    def __init__(
        self,
        service: Service,
        config: ServeConfig,
        watch: Watch,
        metrics: Metrics,
        on_close: Callable[[], None] = lambda: None,
    ) -> None:
        self._service, self._config, self._watch, self._metrics = service, config, watch, metrics
        self._guard, self._on_close = Guard(config.tokens), on_close
        self._is_closing, self._batcher = False, Batcher(service.answer)
        self._page = (
            resources.files("lamaml.serving").joinpath("page/index.html").read_text("utf-8")
        )
        model = f"/v2/models/{config.service.name}"
        routes = [
            Route("/", self._show_page),
            Route("/openapi.json", self._openapi),
            Route("/v2/health/live", self._live),
            Route("/v2/health/ready", self._ready),
            self._route("GET", "/v2", "read", self._server_facts),
            self._route("GET", model, "read", self._model_facts),
            self._route("GET", f"{model}/ready", "read", self._ready),
            self._route("POST", f"{model}/infer", "read", self._infer),
            self._route("POST", "/predict", "read", self._predict),
            self._route("POST", "/learn", "learn", self._learn),
            self._route("GET", "/report", "read", self._report),
            self._route("GET", "/versions", "read", self._versions),
            self._route("POST", "/versions", "admin", self._snapshot),
            self._route("POST", "/versions/{version:int}/rollback", "admin", self._rollback),
            self._route("GET", "/metrics", "read", self._show_metrics),
            self._route("GET", "/events", "read", self._events),
        ]
        errors: Any = {HTTPException: http_error}
        self.asgi = Starlette(routes=routes, exception_handlers=errors, lifespan=self._lifespan)

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        yield
        self._is_closing = True
        await run_in_threadpool(self._on_close)

    def _route(self, method: str, path: str, role: str, handler: Handler) -> Route:
        """Return a route whose handler is guarded, timed, and answers errors as JSON."""
        latency = self._metrics.latency.labels(path)

        async def endpoint(request: Request) -> Response:
            clock = time.perf_counter()
            try:
                self._guard.check(request.headers, role)
                response = await handler(request)
            except LamamlError as error:
                response = self._error(error)
            latency.observe(time.perf_counter() - clock)
            self._metrics.requests.labels(path, str(response.status_code)).inc()
            return response

        return Route(path, endpoint, methods=[method])

    def _error(self, error: LamamlError) -> Response:
        if isinstance(error, BadRows):
            self._watch.refused(error.reasons)
            self._metrics.refused.inc(len(error.reasons))
        return error_response(error)

    async def _read(self, request: Request) -> bytes:
        """Return the body of a request, or refuse one that is too large before it is read."""
        most = self._config.server.max_bytes
        declared = request.headers.get("content-length", "0")
        if declared.isdigit() and int(declared) > most:
            raise HTTPException(413, f"the body has {declared} bytes, at most {most} are allowed")
        data = bytearray()
        async for chunk in request.stream():
            data += chunk
            if len(data) > most:
                raise HTTPException(413, f"the body has more than {most} bytes")
        return bytes(data)

    async def _body(self, request: Request) -> Body:
        media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media_type not in MEDIA_TYPES:
            raise HTTPException(415, f"Content-Type must be one of {', '.join(MEDIA_TYPES)}")
        data = await self._read(request)
        parse = parse_body if len(data) < 10_000 else _in_thread(parse_body)
        found = parse(data, media_type, self._service.schema)
        return found if isinstance(found, Body) else await found

    async def _predicted(self, body: Body) -> Answer:
        rows = body.rows
        num_rows = len(rows) if isinstance(rows, list) else 0
        if num_rows <= _FEW_ROWS:
            question = self._service.ask(rows, body.request_id, keep=body.keep)
            answer = await self._batcher.ask(question)
        else:
            predict = self._service.predict
            answer = await run_in_threadpool(predict, rows, body.request_id, keep=body.keep)
        self._metrics.predicted.inc(num_rows)
        return answer

    async def _predict(self, request: Request) -> Response:
        answer = await self._predicted(await self._body(request))
        found = None if answer.probabilities is None else answer.probabilities.tolist()
        return json_response(
            {
                "request_id": answer.request_id,
                "version": answer.version,
                "predictions": answer.predictions,
                "classes": answer.classes,
                "probabilities": found,
            }
        )

    async def _learn(self, request: Request) -> Response:
        body, service = await self._body(request), self._service
        if (body.rows is None) == (body.request_id is None):
            raise InvalidArgument("give either rows with labels, or request_id with labels")
        if body.request_id is not None:
            future = service.submit_labels(body.request_id, body.labels)
        elif len(body.rows if isinstance(body.rows, list) else ()) <= _FEW_ROWS:
            future = service.submit_rows(body.rows, body.labels, key=body.key)
        else:
            submit = service.submit_rows
            future = await run_in_threadpool(submit, body.rows, body.labels, key=body.key)
        return await self._accepted(request, await asyncio.wrap_future(future))

    async def _accepted(self, request: Request, receipt: Receipt) -> Response:
        content: dict[str, Any] = {"rows": receipt.rows, "entry": receipt.entry}
        if request.query_params.get("wait") == "true":
            wait = self._service.wait
            content["learned"] = await run_in_threadpool(wait, receipt, _MAX_WAIT)
        return json_response(content)

    async def _infer(self, request: Request) -> Response:
        name = self._config.service.name
        body = kserve.parse(await self._read(request))
        return json_response(kserve.response(name, await self._predicted(body)))

    async def _rollback(self, request: Request) -> Response:
        number = request.path_params["version"]
        receipt = await run_in_threadpool(self._service.rollback, number)
        return await self._accepted(request, receipt)

    async def _snapshot(self, request: Request) -> Response:
        stored = await run_in_threadpool(self._service.snapshot)
        return json_response({"version": stored.number})

    async def _report(self, request: Request) -> Response:
        return json_response(self._watch.summary())

    async def _versions(self, request: Request) -> Response:
        current = self._service.version.number
        return json_response({"version": current, "stored": self._watch.versions()})

    async def _show_metrics(self, request: Request) -> Response:
        text = self._metrics.text(self._service, self._watch)
        return Response(text, media_type="text/plain; version=0.0.4")

    async def _events(self, request: Request) -> Response:
        async def stream() -> AsyncIterator[str]:
            while not self._is_closing:
                yield f"data: {json.dumps(self._watch.summary())}\n\n"
                await asyncio.sleep(_EVENT_SECONDS)

        headers = {"Cache-Control": "no-store"}
        return StreamingResponse(stream(), media_type="text/event-stream", headers=headers)

    async def _live(self, request: Request) -> Response:
        is_live = self._service.failure is None
        return json_response({"live": is_live}, 200 if is_live else 500)

    async def _ready(self, request: Request) -> Response:
        is_ready = self._service.version.is_fitted
        return json_response({"ready": is_ready}, 200 if is_ready else 503)

    async def _server_facts(self, request: Request) -> Response:
        return json_response(kserve.server_facts())

    async def _model_facts(self, request: Request) -> Response:
        name = self._config.service.name
        return json_response(kserve.model_facts(name, self._service.version, self._service.schema))

    async def _show_page(self, request: Request) -> Response:
        headers = {"Content-Security-Policy": _POLICY, "X-Content-Type-Options": "nosniff"}
        return HTMLResponse(self._page, headers=headers)

    async def _openapi(self, request: Request) -> Response:
        return json_response(document(self._config.service.name))


_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'"
)


def _in_thread(function: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    return lambda *args: run_in_threadpool(function, *args)
