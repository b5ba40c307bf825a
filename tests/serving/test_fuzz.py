"""Requests drawn from the OpenAPI document, right and wrong: none of them is a 500."""

import json

import httpx
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from test_app import Opened

TEXT = st.text("ab1.é\0\n\ud800", max_size=8)
NUMBERS = st.integers(-(10**20), 10**20) | st.floats(width=32) | st.floats()
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
RAW = st.binary(max_size=60) | st.sampled_from(
    [b"", b"{", b"y\n1", b"a,b,y\n1,2,up\n", b'{"x":[1,2]}']
)
MEDIA = st.sampled_from(["application/json", "application/x-ndjson", "text/csv", "text/html", ""])


def drawn_from(schema):
    """Returns values of a JSON schema, as far as the document uses them."""
    if "oneOf" in schema:
        return st.one_of([drawn_from(each) for each in schema["oneOf"]])
    kind = schema.get("type")
    if kind == "object":
        known, required = schema.get("properties", {}), schema.get("required", [])
        fields = {name: drawn_from(inner) for name, inner in known.items()}
        optional = {name: field for name, field in fields.items() if name not in required}
        needed = {name: fields[name] for name in required}
        if not known:
            return st.dictionaries(TEXT, drawn_from(schema["additionalProperties"]), max_size=3)
        return st.fixed_dictionaries(needed, optional=optional)
    if kind == "array":
        inner, least = drawn_from(schema["items"]), schema.get("minItems", 0)
        plain = st.lists(inner, min_size=least, max_size=schema.get("maxItems", 3))
        pairs = st.lists(st.just([0.5, -1]), min_size=1, max_size=3)  # rows of the right shape
        return plain | pairs
    kinds = {"number": NUMBERS, "integer": st.integers(-9, 9) | st.integers(), "string": TEXT}
    return (kinds | {"boolean": st.booleans(), None: JSON})[kind]


def mutated(values):
    """Returns objects of which an entry has been replaced by anything."""

    def replace(value, name, other):
        names = sorted(value)
        return value | {names[name % len(names)]: other} if names else value

    return st.builds(replace, values, st.integers(0, 9), JSON)


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    found = Opened(tmp_path_factory.mktemp("service"), max_classes=20)
    body = {"rows": [[0.5, -1], [1, 1]], "labels": ["up", "down"]}
    assert found.client.post("/learn?wait=true", json=body).status_code == 200
    yield found
    assert found.service.failure is None
    assert found.client.post("/predict", json={"rows": [[1, 1]]}).status_code == 200
    found.close()


def operations():
    from lamaml.serving.openapi import document

    for path, methods in document("signs")["paths"].items():
        for method, operation in methods.items():
            if path != "/events":  # it never ends
                yield pytest.param(path, method, operation, id=f"{method} {path}")


@pytest.mark.parametrize(("path", "method", "operation"), list(operations()))
def test_no_request_is_a_500(opened, path, method, operation):
    body = operation.get("requestBody", {"content": {}})["content"].get("application/json")
    values = st.none() if body is None else drawn_from(body["schema"])
    if body is not None:
        values = values | mutated(values) | JSON
    allowed = {int(status) for status in operation["responses"]} | {404, 405}

    @settings(
        max_examples=40 if body else 3,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        derandomize=True,
    )
    @given(value=values, raw=st.none() | RAW, media=MEDIA, version=st.integers(-3, 10**20))
    def check(value, raw, media, version):
        content = json.dumps(value).encode() if raw is None else raw
        headers = {"content-type": "application/json" if raw is None else media}
        where = path.replace("{version}", str(version))
        answer = opened.client.request(
            method.upper(), where, content=content if body else None, headers=headers
        )
        assert answer.status_code in allowed, (answer.status_code, answer.text, content)
        if answer.status_code >= 400:
            assert answer.json().keys() <= {"error", "code", "rows"}

    check()


@pytest.mark.parametrize(
    "target", ["/%ff", "/versions/١/rollback", "/" + "x" * 5000, "//", "/?wait=%"]
)
def test_odd_addresses(opened, target):
    answer = httpx.post(f"http://{opened.host}{target}")
    assert answer.status_code in (404, 405)
