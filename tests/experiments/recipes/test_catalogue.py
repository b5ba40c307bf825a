"""The catalogue lists every benchmark, learner, network and recipe."""

from lamaml.experiments.recipes import load as recipes
from lamaml.experiments.recipes.catalogue import benchmarks, learners, models
from lamaml.learners import LEARNERS
from lamaml.models import MODELS


def test_learners_are_the_registered_ones() -> None:
    assert set(learners()) == set(LEARNERS)
    assert all(about.endswith(".") for about in learners().values())


def test_models_are_the_registered_ones() -> None:
    assert set(models()) == set(MODELS)
    assert all(about.endswith(".") for about in models().values())


def test_benchmarks_are_the_recipe_files() -> None:
    assert [benchmark.name for benchmark in benchmarks()] == recipes.benchmarks()
    assert all(benchmark.about for benchmark in benchmarks())


def test_cells_are_the_recipes() -> None:
    for benchmark in benchmarks():
        known = [cell for cell in recipes.cells(benchmark.name) if cell[1] in LEARNERS]
        assert [(cell.protocol, cell.learner) for cell in benchmark.cells] == known
        for cell in benchmark.cells:
            found = recipes.recipe(benchmark.name, cell.learner, protocol=cell.protocol)
            assert found.preset == cell.default
            assert {m: list(pair) for m, pair in found.published.items()} == cell.published
