"""A server that is killed again and again under load loses nothing and ends in the same bits.

Clients learn, predict, and label what they have predicted; SIGKILL comes at a random moment.
LAMAML_SERVE_KILLS is the number of kills (default 3; `make soak` has 50).
"""

import http.client
import itertools
import json
import os
import random
import shutil
import sys
import threading
from collections import Counter
from pathlib import Path

import numpy as np
from servers import Client, serving
from small_services import query, same_model

from lamaml.serving import Service, Settings
from lamaml.serving.config import make_estimator, read_config

KILLS = int(os.environ.get("LAMAML_SERVE_KILLS", "3"))
CONFIG = """
[model]
learner = "er"
hidden_sizes = [8]
memory_size = 50
[service]
snapshot_rows = 150
keep_versions = 2
keep_journal = true
batch_rows = 40
batch_delay = 0.005
"""


class Load:
    """Clients of a server; what it has acknowledged is in `acknowledged`."""

    def __init__(self, life: int) -> None:
        self._life, self._lock = life, threading.Lock()
        self.acknowledged: list[float] = []
        self.counts = Counter[str]()
        self.wrong: list[object] = []

    def work(self, port: int, client: int) -> None:
        rng = np.random.default_rng([self._life, client])
        with Client(port) as server:
            for number in itertools.count():
                size = int(rng.integers(1, 9))
                # The first column identifies a row.
                ids = 1e6 * self._life + 1e5 * client + 10 * number + np.arange(size)
                x = np.column_stack([ids, rng.normal(size=(size, 3)).round(2)])
                y = (x[:, 1] > 0).astype(int).tolist()
                try:
                    self._send(server, client, x.tolist(), y)
                except (OSError, http.client.HTTPException):
                    return  # killed
                except AssertionError as error:
                    self.wrong.append(error)
                    return
                if client:  # others only predict
                    with self._lock:
                        self.acknowledged += ids.tolist()

    def _send(self, server: Client, client: int, x: list[list[float]], y: list[int]) -> None:
        kind = ("predictions", "rows", "late labels")[client]
        if client == 1:
            assert server.post("/learn", {"rows": x, "labels": y})["rows"] == len(x)
        else:
            status, answer = server.request("POST", "/predict", {"rows": x})
            while status == 503:  # nothing learned yet
                status, answer = server.request("POST", "/predict", {"rows": x})
            assert status == 200, answer
            if client == 2:
                server.post("/learn", {"request_id": answer["request_id"], "labels": y})
        self.counts[kind] += 1

    def run(self, folder: Path, kill_after: float) -> None:
        """Starts a server, lets the clients work, and kills it after some seconds."""
        with serving(folder) as (port, process):
            threads = [threading.Thread(target=self.work, args=(port, i)) for i in range(3)]
            for thread in threads:
                thread.start()
            threads[0].join(kill_after)
            process.kill()
            for thread in threads:
                thread.join()
        assert not self.wrong, self.wrong


def test_killed_again_and_again_nothing_is_lost_and_the_bits_are_the_same(tmp_path, capsys):
    rng = random.Random(0)  # noqa: S311
    folder = tmp_path / "service"
    folder.mkdir()
    (folder / "serve.toml").write_text(CONFIG)
    acknowledged: list[float] = []
    counts = Counter[str]()
    for life in range(KILLS):
        load = Load(life)
        load.run(folder, rng.uniform(0, 2) if life else 4)
        acknowledged += load.acknowledged
        counts += load.counts

    config = read_config(folder / "serve.toml")
    with Service(folder, make_estimator(config.model), config.service) as service:
        assert service.wait(timeout=60)
    data = query(folder, "SELECT dtype, x, labels FROM entries ORDER BY number")
    ids = [np.frombuffer(x, dtype).reshape(-1, 4)[:, 0] for dtype, x, _ in data]
    journaled = Counter(np.concatenate(ids).tolist())
    assert set(journaled.values()) == {1}
    assert set(acknowledged) <= journaled.keys()
    last_entry, last_batch = query(folder, "SELECT max(last_entry), max(number) FROM batches")[0]
    assert last_entry == len(data)  # everything journaled was learned
    assert service.version.number == last_batch
    assert service.version.monitor.rows_learned == len(journaled)
    assert service.version.monitor.late_rows > 0

    never_killed = tmp_path / "never killed"  # the same journal, learned in one life
    never_killed.mkdir()
    shutil.copy(folder / "journal.db", never_killed)
    query(never_killed, "DELETE FROM versions")
    settings = Settings(keep_journal=True)
    with Service(never_killed, make_estimator(config.model), settings) as other:
        assert same_model(service.version.model, other.version.model, tmp_path)
        assert service.version.monitor.to_json() == other.version.monitor.to_json()

    bare = make_estimator(config.model)  # and no service at all
    ends = [0, *(last for (last,) in query(folder, "SELECT last_entry FROM batches"))]
    for start, stop in itertools.pairwise(ends):
        part = data[start:stop]
        x = np.concatenate([np.frombuffer(x, dtype).reshape(-1, 4) for dtype, x, _ in part])
        bare.partial_fit(x.astype(float), [label for *_, y in part for label in json.loads(y)])
    assert same_model(bare, service.version.model, tmp_path)
    with capsys.disabled():
        rows = f"{len(acknowledged)} rows acknowledged, {len(journaled)} journaled and learned once"
        sys.stdout.write(f"\n{KILLS} kills, {rows}, {last_batch} batches; {dict(counts)}\n")
