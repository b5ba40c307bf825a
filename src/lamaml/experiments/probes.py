"""What a run can be asked to measure on its way, besides its accuracy; it learns the same bits.

alignment    cosine of new and replayed gradients, in the first glance at every batch (Table 4)
look_ahead   accuracy after the fast updates and after the meta-update, every 25 (Figure 3), or
             four times a task where that is shorter
inter_task   how alike the gradients of the old tasks are, at the end of every task (Appendix A)
"""

from collections.abc import Callable, Mapping
from typing import Any

from lamaml.errors import InvalidArgument, unknown_name
from lamaml.evaluation import blocks, inter_task, look_ahead, watched, with_alignment
from lamaml.experiments.protocol import Schedule, updates_per_task
from lamaml.types import Learner, Loss, Model, Stream

LOOK_AHEAD_EVERY = 25  # updates, as in the paper's figure
MOST_ROWS = 250  # of a task's validation rows

Settings = Mapping[str, Any]


def probed(
    name: str,
    learner: Learner,
    *,
    loss: Loss,
    model: Model,
    stream: Stream,
    schedule: Schedule,
    settings: Settings,
) -> Learner:
    """The same learner, with a probe's numbers among its diagnostics.

    Args:
      name: one of `PROBES`.
      learner: is not changed by it.
      loss: the learner's.
      model: the network.
      stream: its validation rows are what the learner is watched with.
      schedule: of the run.
      settings: of the learner, by name.
    """
    if name not in PROBES:
        raise unknown_name("probe", name, PROBES)
    try:
        return PROBES[name](learner, loss, model, stream, schedule, settings)
    except KeyError as error:
        raise InvalidArgument(f"probe {name}: this learner has no {error.args[0]}") from error


def _alignment(
    learner: Learner, loss: Loss, _model: Model, _stream: Stream, _: Schedule, settings: Settings
) -> Learner:
    return with_alignment(learner, loss, replay_size=settings["replay_size"])


def _look_ahead(
    learner: Learner,
    loss: Loss,
    model: Model,
    stream: Stream,
    schedule: Schedule,
    settings: Settings,
) -> Learner:
    every = min(LOOK_AHEAD_EVERY, max(1, updates_per_task(stream, schedule)[0] // 4))
    look = look_ahead(
        loss,
        model,
        stream.preprocess,
        classes_per_task=stream.classes_per_task,
        inner_steps=settings["inner_steps"],
        inner_clamp=settings.get("inner_clamp"),
        clip_inner_rates=settings.get("clip_inner_rates", False),
    )
    rows = blocks([task.validation for task in stream.tasks], MOST_ROWS)
    return watched(learner, rows, look, every=every)


def _inter_task(
    learner: Learner,
    loss: Loss,
    _model: Model,
    stream: Stream,
    schedule: Schedule,
    _settings: Settings,
) -> Learner:
    rows = blocks([task.validation for task in stream.tasks], MOST_ROWS)
    every = updates_per_task(stream, schedule)[0]
    return watched(learner, rows, inter_task(loss, stream.preprocess), every=every)


PROBES: dict[str, Callable[..., Learner]] = {
    "alignment": _alignment,
    "look_ahead": _look_ahead,
    "inter_task": _inter_task,
}
