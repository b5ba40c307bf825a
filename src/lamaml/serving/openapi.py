"""The OpenAPI document of a service."""

from typing import Any

_ROW = {
    "description": "A list of numbers, or an object with one number per column.",
    "oneOf": [
        {"type": "array", "items": {"type": "number"}},
        {"type": "object", "additionalProperties": {"type": "number"}},
    ],
}
_ROWS = {"type": "array", "items": _ROW, "minItems": 1}
_LABEL = {"oneOf": [{"type": "integer"}, {"type": "string"}, {"type": "boolean"}]}
_TARGET = {"oneOf": [*_LABEL["oneOf"], {"type": "number"}]}
_LABELS = {"type": "array", "items": _TARGET, "minItems": 1}
_ID = {"type": "string", "minLength": 1, "maxLength": 200}
_PREDICT = {
    "type": "object",
    "required": ["rows"],
    "additionalProperties": False,
    "properties": {"rows": _ROWS, "request_id": _ID, "keep": {"type": "boolean", "default": True}},
}
_LEARN = {
    "oneOf": [
        {
            "type": "object",
            "required": ["rows", "labels"],
            "additionalProperties": False,
            "properties": {"rows": _ROWS, "labels": _LABELS, "key": _ID},
        },
        {
            "type": "object",
            "required": ["request_id", "labels"],
            "additionalProperties": False,
            "properties": {"request_id": _ID, "labels": _LABELS},
        },
        {
            "type": "object",
            "required": ["request_id", "label"],
            "additionalProperties": False,
            "properties": {"request_id": _ID, "label": _TARGET},
        },
    ]
}
_TENSOR = {
    "type": "object",
    "required": ["name", "shape", "datatype", "data"],
    "properties": {
        "name": {"type": "string"},
        "shape": {"type": "array", "items": {"type": "integer"}},
        "datatype": {"type": "string"},
        "data": {"type": "array", "items": {}},
    },
}
_INFER = {
    "type": "object",
    "required": ["inputs"],
    "properties": {
        "id": {"type": "string"},
        "inputs": {"type": "array", "items": _TENSOR, "minItems": 1, "maxItems": 1},
    },
}
_ERROR = {
    "type": "object",
    "required": ["error", "code"],
    "properties": {
        "error": {"type": "string"},
        "code": {"type": "string"},
        "rows": {
            "description": "The reason for each bad row, by its index in the request.",
            "type": "object",
            "additionalProperties": {"type": "string"},
        },
    },
}
_REASONS = {
    400: "The body is not of its media type.",
    401: "No token, or an unknown one.",
    403: "The role of the token does not allow this.",
    404: "No such prediction or version.",
    409: "The prediction has its label already.",
    410: "The label came after label_ttl.",
    413: "The body is too large.",
    415: "Another media type.",
    422: "Bad rows, with their indices; nothing of the request was accepted.",
    429: "Too many rows wait to be learned; see Retry-After.",
    503: "Nothing has been learned yet.",
    507: "The disk is full; nothing of the request was accepted.",
}
_WAIT = {
    "name": "wait",
    "in": "query",
    "description": "Answer after the rows were learned.",
    "schema": {"type": "string", "enum": ["true", "false"]},
}
_VERSION = {"name": "version", "in": "path", "required": True, "schema": {"type": "integer"}}


def document(name: str) -> dict[str, Any]:
    """Return the OpenAPI document of a service whose model has this name."""
    from lamaml import __version__

    model = f"/v2/models/{name}"
    return {
        "openapi": "3.1.0",
        "info": {"title": f"lamaml serve: {name}", "version": __version__},
        "components": {
            "schemas": {"Error": _ERROR},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}, {}],
        "paths": {
            "/predict": {
                "post": _operation(
                    "Predict rows", [400, 413, 415, 422, 503], _rows_body(_PREDICT, labels=False)
                )
            },
            "/learn": {
                "post": _operation(
                    "Accept rows with labels, or the labels of an earlier prediction",
                    [400, 404, 409, 410, 413, 415, 422, 429, 503, 507],
                    _rows_body(_LEARN, labels=True),
                    [_WAIT],
                )
            },
            "/report": {"get": _operation("Scores, forgetting, rates, memory, versions")},
            "/versions": {
                "get": _operation("The version that answers, and the stored versions"),
                "post": _operation("Store the latest version now", [503]),
            },
            "/versions/{version}/rollback": {
                "post": _operation(
                    "Return to a stored version", [404, 507], None, [_VERSION, _WAIT]
                )
            },
            "/metrics": {"get": _operation("Metrics for Prometheus", kind="text/plain")},
            "/events": {
                "get": _operation("The report, every second", kind="text/event-stream"),
            },
            "/v2": {"get": _operation("KServe: metadata of the server")},
            "/v2/health/live": {"get": _operation("KServe: the learner works", [500])},
            "/v2/health/ready": {"get": _operation("KServe: it can predict", [503])},
            model: {"get": _operation("KServe: metadata of the model")},
            f"{model}/ready": {"get": _operation("KServe: the model can predict", [503])},
            f"{model}/infer": {
                "post": _operation(
                    "KServe: predict rows",
                    [400, 413, 422, 503],
                    {"required": True, "content": {"application/json": {"schema": _INFER}}},
                )
            },
        },
    }


def _operation(
    summary: str,
    errors: list[int] | None = None,
    body: dict[str, Any] | None = None,
    parameters: list[dict[str, Any]] | None = None,
    kind: str = "application/json",
) -> dict[str, Any]:
    responses: dict[str, Any] = {"200": {"description": "Done", "content": {kind: {}}}}
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    for status in sorted({401, 403, *(errors or [])}):
        text = _REASONS.get(status, "It does not.")
        responses[str(status)] = {"description": text, "content": content}
    found: dict[str, Any] = {"summary": summary, "responses": responses}
    if body is not None:
        found["requestBody"] = body
    if parameters:
        found["parameters"] = parameters
    return found


def _rows_body(schema: dict[str, Any], *, labels: bool) -> dict[str, Any]:
    line = '{"x": [0, 1], "y": "yes"}' if labels else '{"x": [0, 1]}'
    header = "a,b,y\n0,1,yes" if labels else "a,b\n0,1"
    text: dict[str, Any] = {"type": "string"}
    return {
        "required": True,
        "content": {
            "application/json": {"schema": schema},
            "application/x-ndjson": {"schema": text, "example": line},
            "text/csv": {"schema": text, "example": header},
        },
    }
