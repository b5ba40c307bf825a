"""Probes of a run: what it can measure besides accuracy. Its bits stay the same.

alignment    cosine of new and replayed gradients, in the first glance at every batch (Table 4)
look_ahead   accuracy after the fast updates and after the meta-update, every 25 updates of the
             first five tasks (Figure 3), or four times per task where that is shorter
inter_task   how alike the gradients of the old tasks are, at the end of each of the first eleven
             tasks (Appendix A)
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from lamaml.errors import InvalidArgument, unknown_name
from lamaml.evaluation import inter_task, look_ahead, probe_rows, with_alignment, with_probes
from lamaml.evaluation.probing import Probe, ProbeRows, after, every
from lamaml.models import task_heads
from lamaml.training import Schedule
from lamaml.training.schedule import updates_per_task
from lamaml.types import Learner, Loss, Model, Stream

LOOK_AHEAD_EVERY = 25  # updates, as in the paper's figure
LOOK_AHEAD_TASKS = 5  # the figure's; a longer run is probed no further
INTER_TASK_TASKS = 11
PROBE_VERSIONS = {"alignment": 1, "look_ahead": 1, "inter_task": 1}
"""Raised by hand when a measurement changes, as `RESULTS_VERSIONS` is."""
MOST_ROWS = 250  # of a task's validation rows


class Parts(NamedTuple):
    """The parts of an experiment besides its learner.

    Attributes:
      loss: the learner's.
      model: the network.
      stream: its validation rows are measured on.
      schedule: of the run.
      settings: of the learner, by name.
    """

    loss: Loss
    model: Model
    stream: Stream
    schedule: Schedule
    settings: Mapping[str, Any]


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Probes by name, each once, in the order of `PROBES`.

    >>> in_order(["inter_task", "alignment", "inter_task"])
    ('alignment', 'inter_task')
    """
    wanted = set(names)
    for name in sorted(wanted - set(PROBES)):
        raise unknown_name("probe", name, PROBES)
    return tuple(name for name in PROBES if name in wanted)


def probed(names: Sequence[str], learner: Learner, parts: Parts) -> Learner:
    """The same learner, with the numbers of these `PROBES` among its diagnostics."""
    probes = []
    for name in in_order(names):
        for setting in NEEDS[name]:
            if setting not in parts.settings:
                raise InvalidArgument(f"probe {name}: this learner has no {setting}")
        found = PROBES[name](learner, parts)
        if isinstance(found, Learner):
            learner = found
        else:
            probes.append(found)
    return with_probes(learner, _rows(parts.stream), probes) if probes else learner


def _alignment(learner: Learner, parts: Parts) -> Learner:
    return with_alignment(learner, parts.loss, replay_size=parts.settings["replay_size"])


def _look_ahead(_: Learner, parts: Parts) -> Probe:
    stream, settings = parts.stream, parts.settings
    measure = look_ahead(
        parts.loss,
        parts.model,
        stream.preprocess,
        heads=task_heads(stream.num_classes, stream.classes_per_task),
        inner_steps=settings["inner_steps"],
        inner_clamp=settings.get("inner_clamp"),
        clip_inner_rates=settings.get("clip_inner_rates", False),
        num_tasks=LOOK_AHEAD_TASKS,
    )
    updates = updates_per_task(stream, parts.schedule)
    a_quarter = max(1, updates[0] // 4)
    last = sum(updates[:LOOK_AHEAD_TASKS])
    return Probe(measure, every(min(LOOK_AHEAD_EVERY, a_quarter), last))


def _inter_task(_: Learner, parts: Parts) -> Probe:
    measure = inter_task(parts.loss, parts.stream.preprocess, num_tasks=INTER_TASK_TASKS)
    ends = accumulate(updates_per_task(parts.stream, parts.schedule)[:INTER_TASK_TASKS])
    return Probe(measure, after(list(ends)))


def _rows(stream: Stream) -> ProbeRows:
    for task in stream.tasks:
        if not len(task.validation):
            raise InvalidArgument(f"probes need validation rows, and {task.name} has none")
    return probe_rows([task.validation for task in stream.tasks], MOST_ROWS)


PROBES: dict[str, Callable[[Learner, Parts], Learner | Probe]] = {
    "alignment": _alignment,
    "look_ahead": _look_ahead,
    "inter_task": _inter_task,
}
NEEDS = {
    "alignment": ("replay_size",),
    "look_ahead": ("inner_steps", "initial_rate"),
    "inter_task": (),
}
"""The settings that a learner must have for each probe."""
