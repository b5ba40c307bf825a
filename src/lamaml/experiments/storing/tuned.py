"""The best settings of a study as a recipe file, and as the words of a command."""

import shlex
from collections.abc import Mapping
from typing import Any

from lamaml.experiments.recipes.overrides import assignment
from lamaml.experiments.storing.studies import Request, Trial


def set_words(request: Request, trial: Trial) -> str:
    """The settings of a trial as `--set` words of `lamaml run`, with those that were fixed."""
    settings = request.settings
    fixed = {name: settings.recipe.settings[name] for name in settings.changed}
    words = [
        ("--set", assignment(name, value)) for name, value in {**fixed, **trial.settings}.items()
    ]
    return shlex.join(word for pair in words for word in pair)


def recipe_text(request: Request, best: Trial, num_trials: int) -> str:
    """The content of a recipe file with the settings of a trial.

    `lamaml run FILE LEARNER` runs them, on all tasks and on test rows.
    """
    recipe, rows = request.settings.recipe, request.settings
    settings = {**recipe.settings, **best.settings}
    tasks = "all tasks" if rows.num_tasks is None else f"the first {rows.num_tasks} tasks"
    lines = [
        f"# {recipe.learner} on {recipe.benchmark}, tuned by `lamaml tune`: the best of "
        f"{num_trials} trials, with",
        f"# {best.ra:.2f} % retained accuracy on validation rows of {tasks}.",
        f'benchmark = "{recipe.benchmark}"',
        f'stream = "{recipe.stream}"',
        f'model = "{recipe.model}"',
        "",
        f'[{recipe.protocol}."{recipe.learner}"]',
        'default = "tuned"',
        f"tuned = {_inline(settings)}",
    ]
    return "\n".join(lines) + "\n"


def _inline(settings: Mapping[str, Any]) -> str:
    return "{ " + ", ".join(f"{name} = {_toml(value)}" for name, value in settings.items()) + " }"


def _toml(value: Any) -> str:
    if value is None or value is False:
        return "false"  # TOML has no null
    if value is True:
        return "true"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, int | float):
        return repr(value)
    text = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'
