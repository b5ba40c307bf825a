"""The loop: what a learner is shown, in which order, and that it can go on from any checkpoint."""

import gc
import itertools
import time
import weakref
from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lamaml.errors import Diverged, InvalidArgument
from lamaml.learners import er, er_ace, ewc, icarl, la_maml
from lamaml.models import cross_entropy, mlp, task_heads
from lamaml.streams import digits_drift, split_digits
from lamaml.training import Schedule, loop, train
from lamaml.training.loop import _evaluated_after
from lamaml.training.schedule import updates_per_task
from lamaml.types import Examples, Learner, Model, Stream, Task

SIZES = (7, 4)


class Seen(NamedTuple):
    """What a recording learner was shown, one row an update."""

    params: jax.Array
    x: jax.Array
    weight: jax.Array
    flags: jax.Array
    count: jax.Array


def recorder(room=64, batch_size=3):
    def init(params, batch):
        x, weight = (jnp.full((room, batch_size), -1.0) for _ in range(2))
        return Seen(params, x, weight, jnp.zeros((room, 2), bool), jnp.zeros((), int))

    def update(state, batch, key):
        at = state.count
        new = Seen(
            state.params,
            state.x.at[at].set(batch.x[:, 0]),
            state.weight.at[at].set(batch.weight),
            state.flags.at[at].set(jnp.array([batch.first, batch.last])),
            at + 1,
        )
        return new, {"loss": jnp.zeros(())}

    return Learner(init, update)


def rows_stream(*, shuffled=True, augment=None):
    """Two tasks of 7 and 4 rows; row i of task t holds the number 100 t + i."""
    tasks = []
    for number, size in enumerate(SIZES):
        x = (100 * number + np.arange(size, dtype=np.float32))[:, None]
        rows = Examples(x, np.zeros(size, np.int32))
        tasks.append(Task(f"task {number}", rows, rows, rows))
    return Stream("rows", tasks, 2, None, lambda x: x, augment, shuffled)


def constant_model():
    return Model(lambda key: jnp.zeros(2), lambda params, x: jnp.tile(params, (len(x), 1)))


def run_to_end(*arguments, **options):
    *_, last = train(*arguments, **options)
    return last


def shown(stream, schedule, seed=0):
    """x and weight of every update, with the flags (first, last)."""
    state = run_to_end(stream, constant_model(), recorder(), schedule, seed).state
    count = int(state.count)
    return np.array(state.x[:count]), np.array(state.weight[:count]), np.array(state.flags[:count])


def test_every_row_is_shown_once_a_glance_and_epoch():
    stream, schedule = rows_stream(), Schedule(batch_size=3, epochs=2, glances=2)
    x, weight, _ = shown(stream, schedule)
    assert updates_per_task(stream, schedule) == [12, 8]
    assert len(x) == 20
    for epoch, glance in np.ndindex(2, 2):
        of_task_0 = x[:12].reshape(2, 3, 2, 3)[epoch, :, glance]
        real = weight[:12].reshape(2, 3, 2, 3)[epoch, :, glance] > 0
        assert sorted(of_task_0[real]) == list(range(7))
    assert set(x[12:][weight[12:] > 0]) == {100, 101, 102, 103}


def test_padding_stands_last_and_weighs_nothing():
    _, weight, _ = shown(rows_stream(), Schedule(batch_size=3))
    assert weight.tolist() == [[1, 1, 1], [1, 1, 1], [1, 0, 0], [1, 1, 1], [1, 0, 0]]


def test_glances_reorder_a_batch_and_epochs_the_task():
    x, _, _ = shown(rows_stream(), Schedule(batch_size=3, epochs=3, glances=6))
    task_0 = x[: 3 * 3 * 6].reshape(3, 3, 6, 3)
    assert all(set(task_0[0, 0, 0]) == set(glance) for glance in task_0[0, 0])
    assert len({tuple(glance) for glance in task_0[0, 0]}) > 1
    assert len({tuple(sorted(epoch[0, 0])) for epoch in task_0}) > 1


def test_first_and_last_mark_the_first_epoch_only():
    _, _, flags = shown(rows_stream(), Schedule(batch_size=3, epochs=2, glances=2))
    one_batch = [[True, False], [False, True]]
    assert flags[:6].tolist() == one_batch * 3
    assert not flags[6:12].any()
    assert flags[12:16].tolist() == one_batch * 2


def test_order_is_kept_where_the_stream_says_so():
    x, weight, _ = shown(rows_stream(shuffled=False), Schedule(batch_size=3))
    assert [set(rows[real > 0]) for rows, real in zip(x[:3], weight[:3], strict=True)] == [
        {0, 1, 2},
        {3, 4, 5},
        {6},
    ]


def test_a_batch_is_augmented_once_for_all_its_glances():
    def augment(x, key):
        return x + 0.5 * jax.random.uniform(key, x.shape)

    x, _, _ = shown(rows_stream(augment=augment), Schedule(batch_size=3, epochs=2, glances=3))
    task_0 = np.sort(x[:18].reshape(2, 3, 3, 3))
    assert (task_0[:, :, 0] == task_0[:, :, 1]).all()
    assert (task_0[:, :, 0] == task_0[:, :, 2]).all()
    assert not np.isin(task_0[0], task_0[1]).any()


def test_seeds_differ_and_repeat():
    a, b, c = (shown(rows_stream(), Schedule(batch_size=3), seed)[0] for seed in (0, 0, 1))
    assert (a == b).all()
    assert (a != c).any()


def small_experiment(learner=la_maml):
    rng = np.random.default_rng(0)
    tasks = []
    for number, size in enumerate((23, 30)):
        x = rng.normal(size=(size, 6)).astype(np.float32)
        rows = Examples(x, (x[:, number] > 0).astype(np.int32))
        tasks.append(Task(f"task {number}", rows, rows, rows))
    stream = Stream("small", tasks, 2, None, lambda x: x)
    model = mlp(6, 2, hidden_sizes=(5,))
    loss = cross_entropy(model.apply)
    settings = {"initial_rate": 0.1, "hyper_rate": 0.1, "inner_steps": 2}
    built = learner(
        loss, memory_size=8, **(settings if learner is la_maml else {"learning_rate": 0.1})
    )
    return stream, model, built, Schedule(batch_size=5, epochs=2, glances=2), 0


def copied(checkpoint):
    return checkpoint._replace(state=jax.tree.map(jnp.copy, checkpoint.state))


@pytest.mark.parametrize("learner", [la_maml, er])
def test_going_on_from_any_checkpoint_ends_in_the_same_bits(learner):
    arguments = small_experiment(learner)
    checkpoints = [copied(at) for at in train(*arguments, every=7)]
    assert {at.update for at in checkpoints} == {0, 7, 14, 21}
    for at in checkpoints[:-1]:
        last = run_to_end(*arguments, every=7, start=copied(at))
        same = jax.tree.map(lambda a, b: bool((a == b).all()), last.state, checkpoints[-1].state)
        assert jax.tree.all(same)
        np.testing.assert_array_equal(last.matrix, checkpoints[-1].matrix)


def test_checkpoint_spacing_does_not_change_the_run():
    arguments = small_experiment()
    apart, together = run_to_end(*arguments, every=1), run_to_end(*arguments, every=1000)
    same = jax.tree.map(lambda a, b: bool((a == b).all()), apart.state, together.state)
    assert jax.tree.all(same)


def test_a_learner_is_compiled_once_for_all_its_runs_of_one_shape():
    stream, model, learner, schedule, seed = small_experiment(er)
    traced = []

    def update(*arguments):
        traced.append(1)
        return learner.update(*arguments)

    counted = learner._replace(update=update)
    first, again, other_seed = (
        run_to_end(stream, model, counted, schedule, number) for number in (seed, seed, 1)
    )
    assert len(traced) == 1
    assert first.seconds.compile > again.seconds.compile
    assert (first.matrix == again.matrix).all()
    assert any(jnp.any(a != b) for a, b in zip(*map(weights, (first, other_seed)), strict=True))
    shorter = replace(stream, tasks=[task._replace(train=task.test) for task in stream.tasks[:1]])
    run_to_end(shorter, model, counted, schedule, seed)
    assert len(traced) == 2


def weights(checkpoint):
    return jax.tree.leaves(checkpoint.state.params)


def test_a_run_that_has_ended_keeps_no_rows():
    """At once, without the collector of cycles: a process holds the rows of one seed at a time."""
    stream, *others = small_experiment(er)
    kept = weakref.ref(stream.tasks[0].test.x)
    gc.disable()
    try:
        run_to_end(stream, *others)
        del stream
        assert kept() is None
    finally:
        gc.enable()


def test_compiling_is_no_training_and_the_end_of_a_task_is(monkeypatch):
    stream, model, learner, schedule, seed = small_experiment(er)
    waits = []

    def wait(rows):
        waits.append(1)
        time.sleep(0.2)
        return rows

    def end_task(state, key):
        like = jax.ShapeDtypeStruct(state.memory.x.shape, state.memory.x.dtype)
        slow = jax.pure_callback(wait, like, state.memory.x)
        return state._replace(memory=state.memory._replace(x=slow))

    last = run_to_end(stream, model, learner._replace(end_task=end_task), schedule, seed)
    assert last.seconds.train > 0.2 * len(waits) == 0.4
    copy, calls = loop._copy, itertools.count()

    def slow_at_first(state):
        time.sleep(0 if next(calls) else 2)
        return copy(state)

    monkeypatch.setattr(loop, "_copy", slow_at_first)
    plain = run_to_end(stream, model, learner, schedule, seed).seconds
    assert plain.compile > 2 > plain.train


def test_all_diagnostics_are_yielded_once():
    arguments = small_experiment()
    losses = np.concatenate([at.infos["loss"] for at in train(*arguments, every=7)])
    assert len(losses) == sum(updates_per_task(arguments[0], arguments[3]))


def test_accuracy_is_measured_on_the_seen_and_the_next_task():
    stream, *rest = small_experiment()
    first, second = (at.matrix for at in train(stream, *rest, every=1000))
    assert np.isfinite(first).tolist() == [[True, True], [False, False]]
    assert np.isfinite(second).all()


def test_of_many_tasks_few_rows_are_full_and_the_diagonals_always():
    scored = {task: list(_evaluated_after(task, 100)) for task in range(100)}
    assert all(task in scored[task] and (task == 99 or task + 1 in scored[task]) for task in scored)
    assert sum(tasks[0] == 0 for tasks in scored.values()) == 21  # 20 full rows, and task 0's own
    assert scored[99] == list(range(100))
    assert all(len(_evaluated_after(task, 20)) == min(task + 2, 20) for task in range(20))


class Counting(NamedTuple):
    """A state whose every part a test can have diverge."""

    params: dict
    rates: jax.Array


def diverging(what, number):
    """A learner of which a part is no longer finite after so many updates."""

    def update(state, batch, key):
        count = state.params["count"] + 1
        bad = {name: jnp.where(count >= number, value, 0.0) for name, value in what.items()}
        params = state.params | {"count": count, "w": bad.get("params", 0.0)}
        return Counting(params, bad.get("rates", jnp.zeros(()))), {
            "loss": bad.get("loss", jnp.zeros(()))
        }

    def init(params, batch):
        return Counting(params | {"count": jnp.zeros(()), "w": jnp.zeros(())}, jnp.zeros(()))

    return Learner(init, update)


@pytest.mark.parametrize("every", [5, 9])
@pytest.mark.parametrize(
    ("what", "words"),
    [
        ({"loss": jnp.nan}, "the loss is nan"),
        ({"loss": -jnp.inf}, "the loss is -inf"),
        ({"params": jnp.inf}, "params are not finite"),
        ({"rates": jnp.nan}, "rates are not finite"),
        ({"params": jnp.nan, "rates": jnp.inf}, "params and rates are not finite"),
        ({"params": jnp.nan, "loss": jnp.inf}, "the loss is inf"),
    ],
)
def test_divergence_names_its_place_wherever_checkpoints_fall(every, what, words):
    stream, model, _, schedule, seed = small_experiment()
    learner = diverging(what, 9)
    with pytest.raises(Diverged, match=rf"^{words} at task 1, update 9$") as caught:
        run_to_end(stream, model, learner, schedule, seed, every=every)
    assert (caught.value.task, caught.value.update) == (1, 9)


def test_divergence_at_the_end_of_a_task():
    stream, model, _, schedule, seed = small_experiment()
    learner = diverging({}, 0)._replace(end_task=lambda s, key: s._replace(rates=s.rates + jnp.inf))
    with pytest.raises(Diverged, match="rates are not finite at the end of task 1"):
        run_to_end(stream, model, learner, schedule, seed)


def stopped_after(number, *arguments, start):
    """The checkpoints of a run that is stopped after so many updates, all of one task."""
    asked = itertools.count(0 if start and start.update == 20 else 1)  # first after a task's end
    run = train(*arguments, every=1000, start=start, stop=lambda: next(asked) >= number)
    return [copied(at) for at in run]


@pytest.mark.parametrize("stops", [[1], [3, 3, 3], [19, 1], [20, 24]])
def test_stopped_after_any_update_it_goes_on_to_the_same_bits(stops):
    """The first task has 20 updates, the second 24: a stop may fall on the last one of a task."""
    arguments = small_experiment()
    whole = list(map(copied, train(*arguments, every=7)))
    at, losses = None, []
    for after in stops:
        *_, at = parts = stopped_after(after, *arguments, start=at and copied(at))
        assert sum(part.num_new for part in parts) == after
        assert at.update > 0
        losses += [part.infos["loss"] for part in parts if part.num_new]
    rest = list(map(copied, train(*arguments, every=7, start=at)))
    losses += [part.infos["loss"] for part in rest if part.num_new]
    same = jax.tree.map(lambda a, b: bool((a == b).all()), rest[-1].state, whole[-1].state)
    assert jax.tree.all(same)
    np.testing.assert_array_equal(rest[-1].matrix, whole[-1].matrix)
    expected = np.concatenate([part.infos["loss"] for part in whole])
    np.testing.assert_array_equal(np.concatenate(losses), expected)


def test_stopped_while_a_task_is_evaluated_it_ends_there():
    arguments = small_experiment()
    *_, start = stopped_after(20, *arguments, start=None)
    assert (start.task, start.update) == (0, 20)
    (at,) = train(*arguments, start=start, stop=lambda: True)
    assert (at.task, at.update, at.num_new) == (1, 0, 0)


def test_whoever_is_given_the_last_checkpoint_knows_that_it_is():
    """Asked to stop between two updates, it makes one more: else nobody would have saved it."""
    asked = []
    run = train(*small_experiment(), every=3, stop=lambda: bool(asked))
    assert next(run).update == 3
    asked.append(True)
    assert [at.update for at in run] == [4]


@pytest.mark.parametrize("field", ["batch_size", "epochs", "glances"])
def test_a_schedule_refuses_nothing_to_do(field):
    with pytest.raises(InvalidArgument, match=f"{field} = 0"):
        Schedule(**{field: 0})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"every": 0}, "every = 0: must be at least 1"),
        ({"split": "train"}, "split = 'train': must be test or validation"),
        ({"split": "validation"}, "validation rows of task 1 = 0: must be at least 1"),
    ],
)
def test_arguments_of_the_loop_are_named(options, words):
    stream = rows_stream()
    none = Examples(np.zeros((0, 1), np.float32), np.zeros(0, np.int32))
    stream = replace(stream, tasks=[task._replace(validation=none) for task in stream.tasks])
    with pytest.raises(InvalidArgument, match=words):
        next(train(stream, constant_model(), recorder(), Schedule(3), 0, **options))


def test_a_network_with_fewer_outputs_than_classes_is_refused():
    stream = replace(rows_stream(), num_classes=3)
    with pytest.raises(InvalidArgument, match="outputs of the model = 2: must be at least 3"):
        next(train(stream, constant_model(), recorder(), Schedule(3), 0))


def test_a_learner_that_tells_no_loss_is_refused():
    silent = recorder()._replace(update=lambda state, batch, key: (state, {"norm": jnp.ones(())}))
    with pytest.raises(InvalidArgument, match=r"\['norm'\]: must be with a 'loss'"):
        next(train(rows_stream(), constant_model(), silent, Schedule(3), 0))


def test_numbers_of_python_in_a_state_are_arrays_like_the_others():
    """A checkpoint of them is then of the kind that the next one is compared with."""

    class Counted(NamedTuple):
        params: jax.Array
        count: int
        share: float

    def update(state, batch, key):
        return Counted(state.params, state.count + 1, state.share / 2), {"loss": jnp.zeros(())}

    counter = Learner(lambda params, batch: Counted(params, 0, 1.0), update)
    begun = loop.initial_state(rows_stream(), constant_model(), counter, 0)
    assert [leaf.dtype.name for leaf in begun[1:]] == ["int32", "float32"]
    ended = run_to_end(rows_stream(), constant_model(), counter, Schedule(3), 0).state
    assert [int(ended.count), float(ended.share)] == [5, 2**-5]
    assert [leaf.dtype for leaf in ended] == [leaf.dtype for leaf in begun]


def with_loss(name, model, loss, heads):
    """A learner whose first loss is that of its first batch."""
    if name == "la_maml":
        return la_maml(loss, initial_rate=0.1, hyper_rate=0.1, inner_steps=2, memory_size=20)
    if name == "er_ace":  # its new rows are compared among themselves, by its own heads
        return er_ace(loss, apply=model.apply, heads=heads, learning_rate=0.1, memory_size=20)
    return er(loss, learning_rate=0.1, memory_size=20)


@pytest.mark.parametrize("name", ["er", "er_ace", "la_maml"])
def test_a_loss_without_the_heads_of_the_stream_is_refused(name):
    stream = split_digits(seed=0, scenario="task", num_tasks=2, num_samples=10)
    model, heads = mlp(64, 10, hidden_sizes=(8,)), task_heads(10, 2)
    wrong = with_loss(name, model, cross_entropy(model), None)
    with pytest.raises(InvalidArgument, match="loss without the heads of split_digits"):
        next(train(stream, model, wrong, Schedule(), 0))
    right = with_loss(name, model, cross_entropy(model, heads), heads)
    *_, last = train(stream, model, right, Schedule(), 0)
    assert np.isfinite(last.matrix[-1]).all()
    assert next(
        train(replace(stream, classes_per_task=None, scenario="class"), model, wrong, Schedule(), 0)
    )


def test_without_tasks_every_row_has_task_0_and_no_task_ends():
    stream = digits_drift(seed=0, num_tasks=2, num_samples=10)
    model = mlp(64, 10, hidden_sizes=(8,))
    seen = []

    def update(state, batch, key):
        jax.debug.callback(lambda task: seen.append(int(task)), jnp.max(batch.task))
        return state, {"loss": jnp.sum(batch.weight)}

    plain = er(cross_entropy(model), learning_rate=0.1, memory_size=20)
    *_, last = train(stream, model, plain._replace(update=update), Schedule(batch_size=5), 0)
    assert last.matrix.shape == (2, 2)
    assert seen == [0, 0, 0, 0]
    for waiting in (
        ewc(cross_entropy(model), learning_rate=0.1, penalty=1.0),
        icarl(
            cross_entropy(model),
            apply=model.apply,
            heads=None,
            learning_rate=0.1,
            memory_size=20,
            task_size=10,
        ),
    ):
        with pytest.raises(InvalidArgument, match="this stream has no tasks"):
            next(train(stream, model, waiting, Schedule(), 0))
