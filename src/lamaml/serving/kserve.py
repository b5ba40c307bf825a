"""KServe's open inference protocol, version 2: one input of rows, outputs with the predictions."""

import json
import math
from typing import Any

from lamaml.errors import InvalidArgument
from lamaml.serving.answers import Answer
from lamaml.serving.bodies import Body, Malformed
from lamaml.serving.learning import Version
from lamaml.serving.rows import Schema

_NUMBERS = (
    *("BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64"),
    *("FP16", "FP32", "FP64"),
)
_DATATYPES = {"integer": "INT64", "string": "BYTES", "boolean": "BOOL", "number": "FP64"}


def parse(data: bytes) -> Body:
    """Return the rows of an inference request.

    Raises:
      Malformed: it is not JSON of this protocol.
      InvalidArgument: it has not exactly one input, or its data do not have its shape.
    """
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Malformed(f"not valid JSON ({str(error)[:80]})") from error
    if not isinstance(found, dict) or not isinstance(found.get("inputs"), list):
        raise Malformed('the body must be an object with a list "inputs"')
    if len(found["inputs"]) != 1 or not isinstance(found["inputs"][0], dict):
        raise InvalidArgument("inputs: must be one tensor of rows")
    request_id = found.get("id")
    if not isinstance(request_id, str | None):
        raise Malformed("id: must be a string")
    (tensor,) = found["inputs"]
    for name in ("shape", "datatype", "data"):
        if name not in tensor:
            raise InvalidArgument(f"inputs: {name} is missing")
    rows = _rows(tensor["shape"], tensor["datatype"], tensor["data"])
    return Body(rows=rows, request_id=request_id)


def _rows(shape: Any, datatype: Any, values: Any) -> list[Any]:
    """Return the data of a tensor as nested lists."""
    if datatype not in _NUMBERS:
        raise InvalidArgument(f"datatype {datatype!r:.30}: must be one of {', '.join(_NUMBERS)}")
    is_shape = isinstance(shape, list) and all(type(size) is int and size > 0 for size in shape)
    if not is_shape or len(shape) < 2:
        raise InvalidArgument("shape: must be two or more positive integers: rows, columns")
    if not isinstance(values, list):
        raise InvalidArgument("data: must be a list")
    if values and not isinstance(values[0], list):  # flat, in row-major order
        if len(values) != math.prod(shape):
            raise InvalidArgument(f"data: {len(values)} values for shape {shape}")
        size = len(values) // shape[0]
        rows = [values[start : start + size] for start in range(0, len(values), size)]
        return [_nested(row, shape[1:]) for row in rows]
    if len(values) != shape[0]:
        raise InvalidArgument(f"data: {len(values)} rows for shape {shape}")
    return values


def _nested(row: list[Any], shape: list[int]) -> list[Any]:
    if len(shape) == 1:
        return row
    size = len(row) // shape[0]
    return [_nested(row[i : i + size], shape[1:]) for i in range(0, len(row), size)]


def response(name: str, answer: Answer) -> dict[str, Any]:
    """Return the answer to an inference request."""
    count = len(answer.predictions)
    kinds = {bool: "BOOL", int: "INT64", str: "BYTES", float: "FP64"}
    outputs: list[dict[str, Any]] = [
        {
            "name": "predictions",
            "shape": [count],
            "datatype": kinds[type(answer.predictions[0])],
            "data": answer.predictions,
        }
    ]
    if answer.probabilities is not None:
        outputs.append(
            {
                "name": "probabilities",
                "shape": list(answer.probabilities.shape),
                "datatype": "FP64",
                "data": answer.probabilities.ravel().tolist(),
                "parameters": {"classes": answer.classes},
            }
        )
    return {
        "model_name": name,
        "model_version": str(answer.version),
        "id": answer.request_id,
        "outputs": outputs,
    }


def model_facts(name: str, version: Version, schema: Schema | None) -> dict[str, Any]:
    """Return the metadata of the model."""
    shape = [-1, *schema.row_shape] if schema else [-1, -1]
    kind = _DATATYPES[schema.label_kind] if schema else "BYTES"
    return {
        "name": name,
        "versions": [str(version.number)],
        "platform": "lamaml",
        "inputs": [{"name": "rows", "datatype": "FP64", "shape": shape}],
        "outputs": [
            {"name": "predictions", "datatype": kind, "shape": [-1]},
            {"name": "probabilities", "datatype": "FP64", "shape": [-1, -1]},
        ],
    }


def server_facts() -> dict[str, Any]:
    """Return the metadata of the server."""
    from lamaml import __version__

    return {"name": "lamaml", "version": __version__, "extensions": []}
