"""The endpoints: what they answer, what they refuse and with which status."""

import hashlib
import json
import threading
import time

import httpx
import pytest
import uvicorn
from small_services import rows, service

from lamaml.serving.app import App
from lamaml.serving.config import Drift, ServeConfig, Server, Settings, Token
from lamaml.serving.metrics import Metrics
from lamaml.serving.tokens import check_exposed, new_token
from lamaml.serving.watch import Watch

JSON = {"content-type": "application/json"}


class Opened:
    """A service behind a real server, and a client of it."""

    def __init__(self, folder, tokens=(), max_bytes=100_000, **settings):
        self.metrics = Metrics()
        self.service = service(folder, **settings)
        self.watch = Watch(self.service, Drift())
        chosen = Server(max_bytes=max_bytes)
        config = ServeConfig(service=Settings(name="signs"), server=chosen, tokens=tuple(tokens))
        self.app = App(self.service, config, self.watch, self.metrics)
        self._server = uvicorn.Server(uvicorn.Config(self.app.asgi, port=0, log_level="warning"))
        self._thread = threading.Thread(target=self._server.run)
        self._thread.start()
        while not self._server.started:
            time.sleep(0.01)
        port = self._server.servers[0].sockets[0].getsockname()[1]
        self.host = f"localhost:{port}"
        self.client = httpx.Client(base_url=f"http://{self.host}", timeout=60)

    def close(self):
        self.client.close()
        self._server.should_exit = True
        self._thread.join()
        self.watch.close()
        self.service.close()


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    found = Opened(tmp_path_factory.mktemp("service"))
    x, y = rows(0, 60)
    learned = {"rows": x.tolist(), "labels": y.tolist()}
    answer = found.client.post("/learn?wait=true", json=learned)
    assert answer.json() == {"rows": 60, "entry": 1, "learned": True}
    yield found
    found.close()


def test_predict_then_label(opened):
    x, _ = rows(0, 2)
    answer = opened.client.post("/predict", json={"rows": x.tolist(), "request_id": "mine"}).json()
    assert answer["request_id"] == "mine"
    assert answer["classes"] == ["down", "up"]
    assert len(answer["predictions"]) == len(answer["probabilities"]) == 2
    labels = {"request_id": "mine", "labels": ["up", "down"]}
    assert opened.client.post("/learn", json=labels).json()["rows"] == 2
    assert opened.client.post("/learn", json=labels).status_code == 409
    one = opened.client.post("/predict", json={"rows": x[:1].tolist()}).json()
    label = {"request_id": one["request_id"], "label": "up"}
    assert opened.client.post("/learn?wait=true", json=label).json()["learned"]


def test_ndjson_and_csv(opened):
    client = opened.client
    lines = '{"x": [1, 2], "y": "up"}\n\n{"x": [-1, 2], "y": "down"}\n'
    headers = {"content-type": "application/x-ndjson"}
    assert client.post("/learn", content=lines, headers=headers).json()["rows"] == 2
    assert len(client.post("/predict", content=lines, headers=headers).json()["predictions"]) == 2
    table, headers = "y,a,b\nup,1,2\ndown,-1,2\n", {"content-type": "text/csv; charset=utf-8"}
    assert client.post("/learn", content=table, headers=headers).json()["rows"] == 2
    answer = client.post("/learn", content="a,b,y\n1,2,up\n1,x,up\n1,2\n", headers=headers)
    assert answer.status_code == 422
    assert answer.json()["rows"].keys() == {"1", "2"}


@pytest.mark.parametrize(
    ("path", "body", "status", "code"),
    [
        ("/predict", {"rows": [[1, 2], [1]]}, 422, "bad_rows"),
        ("/predict", {"rows": []}, 422, "invalid"),
        ("/predict", {}, 422, "invalid"),
        ("/predict", {"row": [[1, 2]]}, 400, "malformed"),
        ("/predict", {"rows": [[1, 2]], "request_id": 3}, 400, "malformed"),
        ("/predict", {"rows": [[1, 2]], "request_id": "x" * 201}, 422, "invalid"),
        ("/predict", [[1, 2]], 400, "malformed"),
        ("/learn", {"rows": [[1, 2]], "labels": ["up", "up"]}, 422, "invalid"),
        ("/learn", {"rows": [[1, 2]]}, 422, "invalid"),
        ("/learn", {"rows": [[1, 2]], "labels": [7]}, 422, "bad_rows"),
        ("/learn", {"labels": ["up"]}, 422, "invalid"),
        ("/learn", {"request_id": "never", "label": "up"}, 404, "unknown_request"),
        ("/versions/99/rollback", None, 404, "unknown_version"),
        ("/nowhere", None, 404, "not_found"),
        ("/report", None, 405, "method_not_allowed"),
        ("/v2/models/signs/infer", {"inputs": []}, 422, "invalid"),
        ("/v2/models/other/infer", {}, 404, "not_found"),
    ],
)
def test_refusals(opened, path, body, status, code):
    answer = opened.client.post(path, json=body)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert answer.json()["error"]


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        ("{", JSON, 400),
        ("[" * 100_000, JSON, 400),
        ('{"rows": [[1e999, 2]]}', JSON, 422),
        ('{"rows": [[NaN, 2]]}', JSON, 422),
        ('{"rows": [[1, 2]]}', {"content-type": "text/plain"}, 415),
        ('{"rows": [[1, 2]]}', {}, 415),
        ("x" * 100_001, JSON, 413),
        (b"\xff", {"content-type": "text/csv"}, 400),
        ('{"x": 1}\nnonsense', {"content-type": "application/x-ndjson"}, 422),
    ],
)
def test_bodies_that_cannot_be_read(opened, body, headers, status):
    assert opened.client.post("/predict", content=body, headers=headers).status_code == status


def test_a_body_without_a_length_is_limited_too(opened):
    chunks = (b"x" * 1000 for _ in range(200))
    assert opened.client.post("/predict", content=chunks, headers=JSON).status_code == 413


def test_the_kserve_protocol(opened):
    client = opened.client
    assert client.get("/v2/health/live").json() == {"live": True}
    assert client.get("/v2/health/ready").json() == {"ready": True}
    assert client.get("/v2").json()["name"] == "lamaml"
    facts = client.get("/v2/models/signs").json()
    assert facts["inputs"] == [{"name": "rows", "datatype": "FP64", "shape": [-1, 2]}]
    tensor = {"name": "rows", "shape": [2, 2], "datatype": "FP32", "data": [1, 2, -1, 2]}
    answer = client.post("/v2/models/signs/infer", json={"id": "7", "inputs": [tensor]}).json()
    predictions, probabilities = answer["outputs"]
    assert (answer["id"], answer["model_name"]) == ("7", "signs")
    assert (predictions["datatype"], predictions["shape"]) == ("BYTES", [2])
    assert probabilities["shape"] == [2, 2]
    nested = tensor | {"data": [[1, 2], [-1, 2]]}
    again = client.post("/v2/models/signs/infer", json={"inputs": [nested]}).json()
    assert again["outputs"][0]["data"] == predictions["data"]
    for wrong in ({"shape": [3, 2]}, {"datatype": "BYTES"}, {"data": 5}, {"shape": [0, "a"]}):
        body = {"inputs": [tensor | wrong]}
        assert client.post("/v2/models/signs/infer", json=body).status_code == 422


def test_versions_and_rollback(opened):
    client = opened.client
    stored = client.post("/versions").json()["version"]
    client.post("/learn?wait=true", json={"rows": [[5, 5]], "labels": ["up"]})
    answer = client.post(f"/versions/{stored}/rollback?wait=true").json()
    assert answer["learned"]
    assert client.get("/versions").json()["version"] == stored + 2
    listed = client.get("/versions").json()["stored"]
    assert listed[0]["reason"] in ("rollback", "asked")  # it is stored just after it is seen
    assert client.get("/report").json()["rollbacks"] == 1


def test_report_metrics_page_and_document(opened):
    client = opened.client
    report = client.get("/report").json()
    assert report["rows_learned"] >= 60
    assert report["refusals"]
    text = client.get("/metrics").text
    assert 'lamaml_prequential_score{window="all"}' in text
    assert 'lamaml_requests_total{path="/predict",status="422"}' in text
    page = client.get("/")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "http://" not in page.text.replace("http://www.w3.org/2000/svg", "")
    paths = client.get("/openapi.json").json()["paths"]
    assert {"/predict", "/learn", "/v2/models/signs/infer"} <= paths.keys()


def test_nothing_learned_yet_and_a_full_queue(tmp_path):
    opened = Opened(tmp_path, queue_rows=20, batch_delay=10.0)
    try:
        answer = opened.client.post("/predict", json={"rows": [[1, 2]]})
        assert (answer.status_code, answer.json()["code"]) == (503, "not_ready")
        assert opened.client.get("/v2/health/ready").status_code == 503
        assert opened.client.post("/versions").status_code == 503
        body = {"rows": [[1, 2]] * 9, "labels": ["up"] * 9}
        statuses = [opened.client.post("/learn", json=body).status_code for _ in range(20)]
        full = statuses.index(429)  # the first batch compiles for longer than this takes
        assert set(statuses[:full]) == {200}
        answer = opened.client.post("/learn", json=body)
        assert answer.status_code == 200 or int(answer.headers["retry-after"]) >= 1
    finally:
        opened.close()


def test_tokens(tmp_path):
    tokens = {role: new_token(role, role) for role in ("read", "learn", "admin")}
    opened = Opened(tmp_path, [entry for _, entry in tokens.values()])
    body = {"rows": [[1, 2]], "labels": ["up"]}

    def status(method, path, token, **more):
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        return opened.client.request(method, path, headers=headers, **more).status_code

    try:
        held = {role: token for role, (token, _) in tokens.items()}
        assert status("POST", "/learn", None, json=body) == 401
        assert status("POST", "/learn", "wrong", json=body) == 401
        assert status("POST", "/learn", held["read"], json=body) == 403
        assert status("POST", "/learn?wait=true", held["learn"], json=body) == 200
        assert status("POST", "/predict", held["read"], json={"rows": [[1, 2]]}) == 200
        assert status("POST", "/versions", held["learn"]) == 403
        assert status("POST", "/versions", held["admin"]) == 200
        for path in ("/report", "/metrics", "/versions", "/v2/models/signs"):
            assert status("GET", path, None) == 401
            assert status("GET", path, held["read"]) == 200
        for path in ("/", "/v2/health/live", "/v2/health/ready", "/openapi.json"):
            assert status("GET", path, None) == 200
    finally:
        opened.close()


def test_no_page_of_another_origin_may_use_it(opened):
    body = {"rows": [[1, 2]], "labels": ["up"]}
    foreign = {"origin": "http://evil.example"}
    assert opened.client.post("/learn", json=body, headers=foreign).status_code == 403
    rebound = {"host": "evil.example"}
    assert opened.client.post("/learn", json=body, headers=rebound).status_code == 403
    own = {"origin": f"http://{opened.host}"}
    assert opened.client.post("/learn", json=body, headers=own).status_code == 200


def test_it_listens_elsewhere_only_with_tokens():
    token = Token(name="a", role="admin", sha256=hashlib.sha256(b"secret").hexdigest())
    for host in ("127.0.0.1", "localhost", "::1"):
        check_exposed(Server(host=host), [])
    for host in ("0.0.0.0", "192.168.1.5", "example.org", "::"):  # noqa: S104
        check_exposed(Server(host=host), [token])
        with pytest.raises(ValueError, match="tokens"):
            check_exposed(Server(host=host), [])


def test_events(opened):
    with opened.client.stream("GET", "/events") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        first = next(line for line in answer.iter_lines() if line)
    assert json.loads(first.removeprefix("data: "))["rows_learned"] >= 60
