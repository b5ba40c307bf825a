"""What is run beyond the paper: equal bytes, validation rows of other seeds, paired differences."""

import jax
import jax.numpy as jnp
import pytest
from cell_results import cell

from lamaml import learners
from lamaml.experiments.reporting.palette import LIGHT
from lamaml.experiments.reproduction.beyond import (
    EQUAL_BYTES,
    SUCCESSOR,
    beyond,
    dark_weights,
    rows_at_equal_bytes,
)
from lamaml.experiments.reproduction.figures import figures
from lamaml.experiments.reproduction.outcomes import Outcome
from lamaml.experiments.reproduction.scales import FULL, QUICK
from lamaml.experiments.reproduction.tables import tables
from lamaml.experiments.reproduction.targets import targets_named
from lamaml.models import cross_entropy, mlp
from lamaml.types import Batch


def memory_bytes(builder, memory_size: int, **settings) -> int:
    """The bytes of the rows that a learner remembers on MNIST."""
    model = mlp(784, 10)
    learner = builder(cross_entropy(model), memory_size=memory_size, **settings)
    row = Batch(jnp.zeros((1, 784)), jnp.zeros(1, int), jnp.zeros(1, int), jnp.ones(1))
    state = jax.eval_shape(learner.init, model.init(jax.random.key(0)), row)
    memory = state.memory._replace(num_seen=None)
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(memory))


@pytest.mark.parametrize("memory_size", [200, 500])
def test_equal_bytes_are_those_of_the_memories(memory_size) -> None:
    model = mlp(784, 10)
    dark = {"learning_rate": 0.1, "apply": model.apply, "heads": None}
    most = memory_bytes(learners.er, memory_size, learning_rate=0.1)
    rows = rows_at_equal_bytes("mnist_rotations", memory_size)
    assert memory_bytes(learners.der, rows, **dark) <= most
    assert memory_bytes(learners.der, rows + 1, **dark) > most


def test_the_successor_meets_its_rivals_in_all_seven_columns() -> None:
    found = beyond(FULL)
    columns = {c.column for c in found}
    assert len(columns) == 7
    for column in columns:
        rows = {c.row for c in found if c.column == column}
        assert {"ER", "DER++", "La-MAML", SUCCESSOR, SUCCESSOR + EQUAL_BYTES} <= rows


def test_every_method_sees_each_row_as_often() -> None:
    for column in ("Rotations", "Permutations", "Many"):
        glances = {
            c.recipe.settings["glances"]
            for c in beyond(FULL)
            if c.column == column and c.recipe.learner != "mer"
        }
        assert len(glances) == 1


def test_settings_are_chosen_on_validation_rows_of_other_seeds() -> None:
    reported = {seed for c in beyond(FULL) for seed in c.settings.seeds}
    for c in dark_weights(FULL):
        assert c.settings.split == "validation"
        assert not reported & {*c.settings.seeds}
        assert c.sized(num_seeds=1).settings.seeds == range(7, 8)


def test_a_run_on_validation_rows_has_another_name() -> None:
    one = dark_weights(QUICK)[0]
    other = next(c for c in beyond(QUICK) if c.row == SUCCESSOR and c.column == one.column)
    assert one.identity != other.with_recipe(settings=one.recipe.settings).identity


def test_all_is_the_paper() -> None:
    assert all(target.of_paper for target in targets_named(["all"]))
    assert [target.name for target in targets_named(["beyond"])] == ["beyond"]


def outcome(target: str, *cells) -> Outcome:
    return Outcome(target, "", "full", "", cells, [], [], [], "")


def test_differences_are_paired_by_seed() -> None:
    rivals = [
        cell("DER++", "Rotations", 78.0, 79.0, 80.0),
        cell("La-MAML", "Rotations", 75.0, 76.0, 77.0),
        cell(SUCCESSOR, "Rotations", 81.0, 82.0, 83.5),
        cell(SUCCESSOR, "Many", 55.0),
    ]
    rows = tables(outcome("beyond", *rivals))[0].rows
    assert [row[5] for row in rows] == ["+3.00 (+3.00 to +3.00)", "–", rows[2][5], "–"]
    assert rows[2][5].startswith("+6.17 (+5.45 to")
    assert rows[2][6].startswith("+3.17 (")


def test_cost_and_weight_are_tables_and_pictures() -> None:
    costs = [
        cell(row, "Rotations", 70.0 + g, changed={"glances": g}, train_seconds=[2.0 * g])
        for row in ("La-MAML", SUCCESSOR)
        for g in (1, 5)
    ]
    weights = [
        cell(SUCCESSOR, column, 70.0 + w, changed={"dark_weight": w})
        for column in ("Rotations", "Many")
        for w in (0.1, 1.0)
    ]
    (table,) = tables(outcome("figure-cost", *costs))
    assert [row[2] for row in table.rows] == ["1", "5", "1", "5"]
    (table,) = tables(outcome("figure-dark-weight", *weights))
    assert table.rows == [["0.1", "70.10", "70.10"], ["1", "71.00", "71.00"]]
    (unfinished,) = tables(outcome("figure-dark-weight", *weights[:-1]))
    assert unfinished.rows == [["0.1", "70.10", "70.10"], ["1", "71.00", "–"]]
    for target, cells in (("figure-cost", costs), ("figure-dark-weight", weights)):
        (drawing,) = figures(outcome(target, *cells))
        plot = drawing.draw(LIGHT)
        assert len(drawing.legend) == 2
        assert {value.text.split(":")[0] for value in plot.values} == {
            key.word for key in drawing.legend
        }
