"""The benchmarks' clock, on calls that take known times."""

from lamaml.bench import timing


def test_the_best_round_counts_without_its_first_call(monkeypatch):
    clock = [0.0]
    rounds = [(100, 3, 5), (100, 2, 4), (100, 6)]  # the means without the first: 4, 3 and 6
    pauses = (pause for calls in rounds for pause in calls)

    def call():
        clock[0] += next(pauses)

    monkeypatch.setattr(timing.time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(timing, "ROUNDS", 3)
    monkeypatch.setattr(timing, "SECONDS_PER_ROUND", 5)
    assert timing.best_seconds({"call": call}) == {"call": 3.0}
