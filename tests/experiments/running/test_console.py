"""Stopping a command: no signal is lost."""

import gc
import signal
import sys
import time
import weakref

import pytest

from lamaml.experiments.running.console import sigterm_as_interrupt

STOPS = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])


class Cycle:
    """An object that only the garbage collector frees."""

    def __init__(self):
        self.itself = self


@pytest.fixture
def outside(number):
    """The handler that is in place outside the block; tests run by nohup ignore SIGINT."""
    before = signal.signal(number, signal.default_int_handler)
    yield signal.default_int_handler
    signal.signal(number, before)


def stop_during(collection, number, outside):
    hook = sys.unraisablehook

    def collect():
        with sigterm_as_interrupt():
            collection()
            time.sleep(20)

    with pytest.raises(KeyboardInterrupt):
        collect()
    assert signal.getsignal(number) is outside
    assert sys.unraisablehook is hook


@STOPS
def test_a_signal_in_a_callback_of_the_collector_stops(number, outside):
    left = [number]

    def collecting(phase, info):
        if left:
            signal.raise_signal(left.pop())
        sum(range(100))

    gc.callbacks.append(collecting)
    try:
        stop_during(gc.collect, number, outside)
    finally:
        gc.callbacks.remove(collecting)
    assert not left


@STOPS
def test_a_signal_in_a_callback_of_a_weak_reference_stops(number, outside):
    references = []

    def collection():
        references.append(weakref.ref(Cycle(), lambda _: signal.raise_signal(number)))
        gc.collect()

    stop_during(collection, number, outside)
    assert [reference() for reference in references] == [None]


def test_other_unraisable_exceptions_are_reported_as_before(monkeypatch):
    reported = []
    monkeypatch.setattr(sys, "unraisablehook", reported.append)

    def freed(reference):
        raise ValueError

    with sigterm_as_interrupt():
        reference = weakref.ref(Cycle(), freed)
        gc.collect()
    assert reference() is None
    assert [unraisable.exc_type for unraisable in reported] == [ValueError]
