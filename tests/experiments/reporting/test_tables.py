"""What a terminal shows."""

from dataclasses import replace

import pytest
from rich.console import Console, RenderableType

from lamaml.experiments.recipes.catalogue import benchmarks, learners, listing, models
from lamaml.experiments.reporting.tables import (
    comparable,
    comparison_table,
    describe,
    difference,
    reading,
    run_table,
    timing,
)
from lamaml.experiments.storing.records import METRICS
from lamaml.experiments.storing.results import Run
from lamaml.experiments.storing.summary import Place, Spread, Summary


def text_of(renderable: RenderableType, width: int = 80) -> str:
    console = Console(width=width, record=True, file=None, quiet=False, force_terminal=False)
    with console.capture() as capture:
        console.print(renderable)
    return capture.get()


@pytest.fixture
def made_up(small_run: Run) -> Summary:
    """A full-size run with the paper's value beside it."""
    return replace(
        small_run.summary,
        num_tasks=None,
        num_samples=None,
        ra=Spread(76.5, 0.5, [76.0, 77.0]),
        bti=Spread(-9.125, 0.5, [-9.0, -9.25]),
        published={"ra": (77.42, 0.65), "bti": (-8.64, 0.403)},
    )


def test_a_run_beside_the_paper(made_up: Summary) -> None:
    text = text_of(run_table(made_up))
    assert "76.50 ± 0.50   77.42 ± 0.65        −0.92" in text
    assert "−9.12 ± 0.50   −8.64 ± 0.40        −0.48" in text
    assert "la_maml on digits_rotations, preset authors, 2 seeds" in text
    assert "Per seed: 30 updates of " in text
    assert "full benchmark" not in text


def test_a_small_run_says_that_it_is_not_the_papers(made_up: Summary) -> None:
    small = replace(made_up, num_tasks=2, changed=["hyper_rate"])
    assert comparable(made_up)
    assert not comparable(small)
    assert describe(small) == "preset authors, 2 seeds, with hyper_rate=0.3, only 2 tasks"
    assert "The paper's value is for the full benchmark" in text_of(run_table(small))


def test_a_comparison_fits_eighty_columns(made_up: Summary) -> None:
    diverged = replace(
        made_up,
        learner="sync_la_maml",
        statuses=["finished", "diverged"],
        diverged_at=[None, Place(2, 30)],
        published={},
    )
    text = text_of(comparison_table([made_up, diverged], "title"))
    assert " la_maml          76.5 ± 0.5   −9.1 ± 0.5 " in text
    assert "* sync_la_maml, seed 1: diverged at task 2, update 30" in text
    assert " sync_la_maml *   76.5 ± 0.5 " in text
    assert max(map(len, text.splitlines())) <= 80


def test_a_run_without_a_seed_that_did_not_diverge_is_a_star(made_up: Summary) -> None:
    nothing = dict.fromkeys(METRICS, Spread(None, None, [None, None]))
    place = Place(1, 3)
    gone = replace(made_up, **nothing, statuses=["diverged"] * 2, diverged_at=[place, place])
    text = text_of(run_table(gone))
    assert "RA    retained accuracy      *   77.42 ± 0.65            –" in text
    assert "* la_maml, seed 0: diverged at task 1, update 3" in text
    assert " la_maml *    *     *    *     * " in text_of(comparison_table([gone], "title"))


def test_the_reading_names_best_and_worst(made_up: Summary) -> None:
    worse = replace(
        made_up,
        learner="online",
        ra=Spread(40.0, None, [40.0, 40.0]),
        bti=Spread(-41.0, None, [-41.0, -41.0]),
    )
    sentence = reading([worse, made_up])
    assert "la_maml classifies 76.5 %" in sentence
    assert "36.5 points more than online" in sentence
    assert "la_maml has lost 9.1 points and online has lost 41.0 points" in sentence
    assert reading([made_up]) == ""
    assert reading([worse, replace(made_up, num_tasks=2)]) == ""


def test_nothing_known_is_a_dash(made_up: Summary) -> None:
    nothing = dict.fromkeys(METRICS, Spread(None, None, [None, None]))
    empty = replace(made_up, **nothing, ms_per_update=None, statuses=["failed", "failed"])
    assert timing(empty) == "no seed finished"
    assert difference(None, (77.0, 1.0)) == "–"
    assert "–" in text_of(run_table(empty))
    assert "–" in text_of(comparison_table([empty], "title"))


def test_the_listing_names_everything() -> None:
    text = text_of(listing(benchmarks(), learners(), models()))
    for name in [*learners(), *models(), *(benchmark.name for benchmark in benchmarks())]:
        assert name in text
    assert "la_maml\u00a077.4" in text
