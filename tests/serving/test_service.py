"""The service without HTTP: answers, late labels, limits, versions and rollbacks, recovery."""

import threading
from itertools import repeat, starmap

import numpy as np
import pytest
from sklearn.base import clone
from small_services import classifier, learned, query, regressor, rows, same_model, service

from lamaml.errors import InUse, InvalidArgument, Mismatch, Unwritable
from lamaml.models import mlp
from lamaml.serving import (
    AlreadyLabelled,
    BadRows,
    NotReady,
    QueueFull,
    Service,
    Settings,
    TooLate,
    UnknownRequest,
    UnknownVersion,
)


class Clock:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.now = 1e9

    def __call__(self) -> float:
        return self.now


def test_it_answers_as_the_estimator_does(tmp_path):
    x, y = rows(0, 60)
    with service(tmp_path / "a") as opened:
        with pytest.raises(NotReady, match="nothing has been learned"):
            opened.predict(x[:1])
        learned(opened, (x[:30], y[:30]), (x[30:].tolist(), y[30:].tolist()))
        answer = opened.predict(x[:3], "mine")
        bare = classifier().partial_fit(x[:30], y[:30]).partial_fit(x[30:], y[30:])
        assert answer.predictions == bare.predict(x[:3]).tolist()
        np.testing.assert_array_equal(answer.probabilities, bare.predict_proba(x[:3]))
        assert (answer.request_id, answer.version) == ("mine", 2)
        assert answer.classes == ["down", "up"]
        assert same_model(bare, opened.version.model, tmp_path)
        assert opened.report().samples_seen == 60


def test_rows_by_name_and_a_regression(tmp_path):
    rng = np.random.default_rng(1)
    named = [{"a": float(a), "b": float(b)} for a, b in rng.normal(size=(40, 2))]
    with service(tmp_path, regressor()) as opened:
        learned(opened, (named, [2 * row["a"] for row in named]))
        swapped = [{"b": row["b"], "a": row["a"]} for row in named[:2]]
        answer = opened.predict(swapped)
        assert answer.predictions == opened.predict(named[:2]).predictions
        assert answer.probabilities is None
        with pytest.raises(BadRows, match=r"missing \['b'\]"):
            opened.predict([{"a": 1.0}])
        assert opened.version.monitor.rows_scored == 0  # nothing could be predicted before


@pytest.mark.parametrize(
    ("bad_rows", "labels", "indices"),
    [
        ([[1, 2], [1, 2, 3]], ["up", "up"], [1]),
        ([[1, 2], [float("nan"), 2]], ["up", "up"], [1]),
        ([[1, 1e39], ["x", 2], [1, None]], ["up"] * 3, [1, 2]),
        ([[1, 2], [], 5], ["up"] * 3, [1, 2]),
        ([{"a": 1}, [1, 2]], ["up"] * 2, [0]),
        ([[1, 2]] * 4, ["up", None, 3, "down"], [1, 2]),
        ([[1, 2]] * 3, ["up", "a\0b", "x" * 201], [1, 2]),
        ([[1, 2]], ["\ud800"], [0]),
    ],
)
def test_bad_rows_are_named_and_nothing_is_learned(tmp_path, bad_rows, labels, indices):
    with service(tmp_path) as opened:
        opened.learn(*rows(0, 10))
        with pytest.raises(BadRows) as caught:
            opened.learn(bad_rows, labels)
        assert list(caught.value.reasons) == indices
        assert opened.wait(timeout=60)
        assert opened.version.monitor.rows_learned == 10


@pytest.mark.parametrize("request_rows", [[], 3, "text", None, {}])
def test_a_request_without_rows(tmp_path, request_rows):
    with service(tmp_path) as opened, pytest.raises(InvalidArgument):
        opened.learn(request_rows, [])


def test_a_key_is_learned_once(tmp_path):
    x, y = rows(0, 5)
    with service(tmp_path) as opened:
        assert opened.learn(x, y, key="first").rows == 5
        assert opened.learn(x, y, key="first").rows == 0
    with service(tmp_path) as opened:
        assert opened.learn(x, y, key="first").rows == 0
        assert opened.learn(x, y, key="second").rows == 5


def test_late_labels(tmp_path):
    clock = Clock()
    x, y = rows(0, 30)
    settings = Settings(label_ttl=100, batch_delay=0)
    with Service(tmp_path, classifier(), settings, clock=clock) as opened:
        learned(opened, (x, y))
        told = opened.predict(x[:2], "a").predictions
        opened.predict(x[2:3], "b")
        opened.predict(x[3:4], "not kept", keep=False)
        clock.now += 10
        with pytest.raises(InvalidArgument, match="1 labels for a prediction of 2 rows"):
            opened.label("a", ["up"])
        receipt = opened.label("a", [told[0], "neither"])
        assert opened.wait(receipt, 60)
        monitor = opened.version.monitor
        assert (monitor.rows_scored, monitor.score_sum) == (2, 1.0)
        assert (monitor.late_rows, monitor.delay_sum) == (2, 20.0)
        with pytest.raises(AlreadyLabelled):
            opened.label("a", ["up", "up"])
        for request_id in ("unheard of", "not kept"):
            with pytest.raises(UnknownRequest):
                opened.label(request_id, ["up"])
        clock.now += 95
        with pytest.raises(TooLate, match="100 s"):
            opened.label("b", ["up"])
    with Service(tmp_path, classifier(), settings, clock=clock) as opened:
        with pytest.raises(AlreadyLabelled):  # remembered on disk
            opened.label("a", ["up", "up"])
        clock.now += 200
        opened.predict(x[:1])  # forgets what is old
        with pytest.raises(UnknownRequest):
            opened.label("b", ["up"])


def test_a_full_queue_says_when_to_come_back(tmp_path):
    x, y = rows(0, 200)
    with service(tmp_path, queue_rows=100, batch_rows=10) as opened:
        with pytest.raises(InvalidArgument, match="at most 100"):
            opened.learn(x, y)
        with pytest.raises(QueueFull) as caught:
            list(starmap(opened.learn, repeat((x[:50], y[:50]), 1000)))
        assert 0 < caught.value.retry_after <= 60
        assert opened.wait(timeout=60)
        assert opened.backlog == 0
        opened.learn(x[:50], y[:50])


def test_limits(tmp_path):
    with service(tmp_path, max_classes=2, max_columns=3) as opened:
        with pytest.raises(InvalidArgument, match="max_columns"):
            opened.learn([[1, 2, 3, 4]], ["a"])
        opened.learn([[1, 2], [3, 4]], ["a", "b"])
        with pytest.raises(InvalidArgument, match="max_classes"):
            opened.learn([[1, 2]], ["c"])


def test_versions_are_kept_by_policy_and_the_journal_is_bounded(tmp_path):
    x, y = rows(0, 120)
    with service(tmp_path, snapshot_rows=20, keep_versions=2) as opened:
        learned(opened, *((x[i : i + 20], y[i : i + 20]) for i in range(0, 120, 20)))
        assert opened.snapshot().number == 6
    assert [stored.number for stored in opened.versions()] == [5, 6]
    assert len(list((tmp_path / "versions").iterdir())) == 2
    assert query(tmp_path, "SELECT number FROM entries") == [(6,)]
    with service(tmp_path) as opened:
        assert opened.version.number == 6
        assert opened.learn(x[:1], y[:1]).entry == 7


def test_a_rollback_is_journaled_and_survives(tmp_path):
    x, y = rows(0, 40)
    with service(tmp_path / "a") as opened:
        learned(opened, (x[:20], y[:20]))
        assert opened.snapshot().number == 1
        learned(opened, (x[20:], y[20:]))
        with pytest.raises(UnknownVersion, match="stored versions: "):
            opened.rollback(77)
        assert opened.wait(opened.rollback(1), 60)
        assert opened.version.number == 3
        first = classifier().partial_fit(x[:20], y[:20])
        assert same_model(first, opened.version.model, tmp_path)
        model, monitor = opened.version.model, opened.version.monitor
        assert (monitor.rollbacks, monitor.rows_learned) == (1, 40)
    with service(tmp_path / "a") as opened:
        assert opened.version.number == 3
        assert same_model(model, opened.version.model, tmp_path)


def test_a_damaged_version_is_passed_over(tmp_path, caplog):
    x, y = rows(0, 60)
    with service(tmp_path / "a", snapshot_rows=20) as opened:
        learned(opened, *((x[i : i + 20], y[i : i + 20]) for i in (0, 20, 40)))
    path = sorted((tmp_path / "a" / "versions").iterdir())[-1]
    path.write_bytes(path.read_bytes()[:-50])
    with service(tmp_path / "a") as again:
        assert "version 3 cannot be read" in caplog.text
        assert again.version.number == 3
        assert same_model(opened.version.model, again.version.model, tmp_path)


def test_one_service_per_folder_and_one_estimator(tmp_path):
    with service(tmp_path) as opened:
        with pytest.raises(InUse):
            service(tmp_path)
        learned(opened, rows(0, 10))
    with pytest.raises(Mismatch, match="hidden_sizes"):
        service(tmp_path, classifier(hidden_sizes=(9,)))
    with pytest.raises(Mismatch, match="LaMAMLClassifier"):
        service(tmp_path, regressor())
    with Service(tmp_path) as opened:  # its own
        assert list(opened.version.model.hidden_sizes) == [8]
        assert opened.predict([[1, 2]]).version == 1


def test_rows_that_cannot_be_learned_cost_no_others(tmp_path):
    x, y = rows(0, 12)
    two_outputs = classifier(model=mlp(2, 2, hidden_sizes=(8,)))
    with service(tmp_path / "a", two_outputs, batch_delay=10.0) as opened:
        opened.submit_rows(x[:4], y[:4])
        opened.submit_rows(x[4:8], ["a third class"] * 4)
        opened.submit_rows(x[8:], y[8:])
        assert opened.wait(timeout=60)
        monitor = opened.version.monitor
        assert opened.version.number == 1  # one batch
        assert (monitor.rows_learned, monitor.rows_failed) == (8, 4)
        assert "outputs of model = 2" in monitor.failures[0].reason
        assert opened.failure is None
        bare = clone(two_outputs).partial_fit(x[:4], y[:4]).partial_fit(x[8:], y[8:])
        assert same_model(bare, opened.version.model, tmp_path)
    with pytest.raises(InvalidArgument, match="pass its estimator"):
        Service(tmp_path / "a")
    with service(tmp_path / "a", two_outputs) as again:
        assert same_model(bare, again.version.model, tmp_path)


def test_a_full_disk_is_said_and_survived(tmp_path):
    x, y = rows(0, 60)

    def limit(connection, pages=None):
        (used,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages or used}")

    with service(tmp_path / "a") as opened:
        learned(opened, (x[:20], y[:20]))
        opened.journal.submit(limit).result()
        with pytest.raises(Unwritable, match="full"):
            opened.learn(np.resize(x, (2000, 2)), np.resize(y, 2000))
        assert opened.predict(x[:1], keep=False).version == 1
        assert opened.backlog == 0
        opened.journal.submit(lambda connection: limit(connection, 10**6)).result()
        learned(opened, (x[20:], y[20:]))
        bare = classifier().partial_fit(x[:20], y[:20]).partial_fit(x[20:], y[20:])
        assert same_model(bare, opened.version.model, tmp_path)


def test_many_threads(tmp_path):
    x, y = rows(0, 400)
    failures = []

    def work(opened, start):
        try:
            for i in range(start, 400, 40):
                opened.learn(x[i : i + 10], y[i : i + 10])
                opened.label(opened.predict(x[i : i + 1]).request_id, [y[i]])
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    with service(tmp_path) as opened:
        learned(opened, (x[:10], y[:10]))
        threads = [threading.Thread(target=work, args=(opened, i)) for i in range(0, 40, 10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures
        assert opened.wait(timeout=60)
        assert opened.version.monitor.rows_learned == 10 + 400 + 40
        assert opened.version.monitor.late_rows == 40
