"""Drift alarms and what they do; the configuration file; tokens."""

import dataclasses
import http.server
import json
import threading
import time

import numpy as np
import pytest
from small_services import learned, rows, service

from lamaml.errors import DataUnavailable, InvalidArgument
from lamaml.serving.config import Drift, make_estimator, read_config
from lamaml.serving.drift import HeldOutTest, RiverTest, make_test
from lamaml.serving.monitor import Monitor
from lamaml.serving.watch import Alarm, Watch


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    with service(tmp_path_factory.mktemp("service")) as opened:
        return learned(opened, rows(0, 50)).report()


def test_the_held_out_test(report):
    test = HeldOutTest(0.001)

    def alarm(then, now, count=100, is_regression=False):
        changed = dataclasses.replace(report, score_then=then, score_now=now, held_out_rows=count)
        return test(changed, [], is_regression)

    assert alarm(0.9, 0.88) is None
    assert "90% right on arrival, 50% now" in alarm(0.9, 0.5)
    assert alarm(0.5, 0.9) is None
    assert alarm(1.0, 1.0) is None
    assert alarm(0.9, 0.0, count=5) is None
    assert alarm(None, None) is None
    assert alarm(1.0, 1.4, is_regression=True) is None
    assert "mean error" in alarm(1.0, 1.6, is_regression=True)


@pytest.mark.parametrize("name", ["adwin", "page_hinkley"])
def test_tests_of_river(report, name):
    pytest.importorskip("river", reason="needs river: pip install 'lamaml[drift]'")
    rng = np.random.default_rng(0)
    test = RiverTest(name)
    good, bad = rng.random(1500) < 0.95, rng.random(1500) < 0.3
    assert test(report, good.astype(float).tolist(), False) is None
    assert name in test(report, bad.astype(float).tolist(), False)
    assert make_test(Drift(test="off"))(report, [0.0] * 5000, False) is None


class Hook(http.server.BaseHTTPRequestHandler):
    received: list[dict] = []  # noqa: RUF012

    def do_POST(self):
        length = int(self.headers["Content-Length"])
        self.received.append(json.loads(self.rfile.read(length)))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


def test_an_alarm_stores_a_version_rolls_back_and_calls(tmp_path):
    server = http.server.HTTPServer(("127.0.0.1", 0), Hook)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    address = f"http://127.0.0.1:{server.server_port}/alarm"
    actions = ("snapshot", "webhook", "rollback")
    drift = Drift(test="held_out", actions=actions, webhook=address, p_value=0.01)
    x, y = rows(0, 600)
    wrong = np.where(y == "up", "down", "up")
    with service(tmp_path) as opened:
        learned(opened, (x[:400], y[:400]))
        opened.snapshot()
        watch = Watch(opened, drift)
        try:
            learned(opened, *((x[i : i + 50], wrong[i : i + 50]) for i in range(400, 600, 50)))
            watch._raise_alarm(Alarm(time.time(), opened.version.number, "as if"))
            deadline = time.monotonic() + 30
            while not (Hook.received and opened.version.monitor.rollbacks):
                assert time.monotonic() < deadline
                time.sleep(0.01)
            assert Hook.received[0]["reason"]
            assert watch.summary()["alarms"]
        finally:
            watch.close()
            server.shutdown()
            thread.join()
            server.server_close()


def test_the_monitor_is_written_and_read_exactly():
    monitor = Monitor()
    for size in range(1, 700):
        monitor = monitor.after_rows(size, np.random.default_rng(size).random(size), [(1, 0.5)])
    assert len(monitor.recent) == 1000
    assert len(monitor.curve) < 300
    again = Monitor.from_json(json.loads(json.dumps(monitor.to_json())))
    assert again.to_json() == monitor.to_json()
    assert again.recent.tobytes() == monitor.recent.tobytes()


CONFIG = """
[model]
kind = "regressor"
learner = "er"
[service]
name = "prices"
label_ttl = 60
[server]
port = 9000
[drift]
test = "off"
[[tokens]]
name = "me"
role = "admin"
sha256 = "{digest}"
[[sources]]
kind = "ndjson"
path = "-"
"""


def test_a_configuration(tmp_path):
    path = tmp_path / "serve.toml"
    path.write_text(CONFIG.format(digest="ab" * 32))
    config = read_config(path)
    assert (config.service.name, config.service.label_ttl) == ("prices", 60)
    assert (config.server.port, config.drift.test) == (9000, "off")
    assert config.tokens[0].role == "admin"
    assert config.sources[0].path == "-"
    assert type(make_estimator(config.model)).__name__ == "LaMAMLRegressor"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[servce]", "did you mean 'service'"),
        ("[service]\nlabel_tll = 3", "did you mean 'label_ttl'"),
        ("[service]\nbatch_rows = 0", "batch_rows = 0: must be at least 1"),
        ("[service]\nbatch_rows = 'many'", "batch_rows"),
        ("[service]\nname = 'a/b'", "name = 'a/b'"),
        ("[model]\nmemory = 3", "parameter in .model. 'memory'"),
        ("[model]\nmodel = 'x'", "parameter in .model. 'model'"),
        ("[model]\nkind = 'forest'", "classifier, regressor"),
        ("[drift]\ntest = 'kswin'", "test 'kswin'"),
        ("[drift]\nactions = ['webhook']", "webhook"),
        ("[drift]\nactions = ['shout']", "action 'shout'"),
        ("[[tokens]]\nname = 'a'\nrole = 'root'\nsha256 = 'x'", "role 'root'"),
        ("[[tokens]]\nname = 'a'\nrole = 'read'\nsha256 = 'secret'", "64 hexadecimal"),
        ("[[sources]]\nkind = 'redis'", "stream"),
        ("[server]\ncertificate = 'a.pem'", "private_key"),
        ("not toml", "not a TOML file"),
    ],
)
def test_mistakes_in_a_configuration_are_named(tmp_path, text, words):
    path = tmp_path / "serve.toml"
    path.write_text(text)
    with pytest.raises(InvalidArgument, match=words):
        read_config(path)


def test_a_configuration_that_does_not_exist(tmp_path):
    with pytest.raises(DataUnavailable):
        read_config(tmp_path / "serve.toml")
