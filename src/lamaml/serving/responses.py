"""Responses: JSON, and errors with their status."""

import json
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from lamaml.errors import InvalidArgument, LamamlError, Unwritable
from lamaml.serving.bodies import JSON, Malformed
from lamaml.serving.errors import (
    AlreadyLabelled,
    BadRows,
    NotReady,
    QueueFull,
    TooLate,
    UnknownRequest,
    UnknownVersion,
)
from lamaml.serving.tokens import Refused

_STATUS: tuple[tuple[type[LamamlError], int, str], ...] = (
    (BadRows, 422, "bad_rows"),
    (Malformed, 400, "malformed"),
    (InvalidArgument, 422, "invalid"),
    (QueueFull, 429, "queue_full"),
    (NotReady, 503, "not_ready"),
    (UnknownRequest, 404, "unknown_request"),
    (UnknownVersion, 404, "unknown_version"),
    (AlreadyLabelled, 409, "already_labelled"),
    (TooLate, 410, "too_late"),
    (Unwritable, 507, "unwritable"),
)
_CODES = {401: "no_token", 403: "forbidden", 404: "not_found", 405: "method_not_allowed"}
_CODES |= {413: "too_large", 415: "media_type"}


def json_response(
    content: Any, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    """Return a response of JSON."""
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    return Response(text, status, headers, JSON)


def error_response(error: LamamlError) -> Response:
    """Return the response to a request that was refused."""
    if isinstance(error, Refused):
        headers = {"WWW-Authenticate": "Bearer"} if error.status == 401 else {}
        return json_response(_problem(str(error), _CODES[error.status]), error.status, headers)
    status, code = next(
        ((status, code) for kind, status, code in _STATUS if isinstance(error, kind)),
        (500, "failed"),
    )
    content, headers = _problem(str(error), code), {}
    if isinstance(error, BadRows):
        content["rows"] = {str(index): _text(reason) for index, reason in error.reasons.items()}
    if isinstance(error, QueueFull):
        headers["Retry-After"] = str(max(1, round(error.retry_after)))
    elif isinstance(error, NotReady):
        headers["Retry-After"] = "1"
    return json_response(content, status, headers)


async def http_error(request: Request, error: HTTPException) -> Response:
    """Return the response to a request that does not reach an endpoint."""
    code = _CODES.get(error.status_code, "failed")
    headers = dict(error.headers or {})
    return json_response(_problem(error.detail, code), error.status_code, headers)


def _problem(message: str, code: str) -> dict[str, Any]:
    return {"error": _text(message), "code": code}


def _text(message: str) -> str:
    """Return a message without the lone surrogates that a request may have brought."""
    return message.encode("utf-8", "replace").decode()
