"""The report of a study: its best trials as a table, and a page with a picture per setting."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from lamaml._io import write_text
from lamaml.experiments.reporting.figures import Drawing, Key
from lamaml.experiments.reporting.page import templates
from lamaml.experiments.reporting.point_plots import Marks, scatter
from lamaml.experiments.reporting.table import Table
from lamaml.experiments.reporting.tables import counted, spread
from lamaml.experiments.storing.studies import Study, Trial, TrialState
from lamaml.experiments.storing.tuned import set_words

MOST_ROWS = 10  # of the table in a terminal
_COLOUR, _BEST = 0, 4  # in `Palette.series`


def trials_table(study: Study, most: int | None = None) -> Table:
    """Returns the trials as a table, the best first."""
    names = list(study.request.space)
    ordered = sorted(study.trials, key=lambda trial: -1.0 if trial.ra is None else trial.ra)[::-1]
    rows = [
        [
            str(trial.number),
            *(_text(trial.settings.get(name)) for name in names),
            spread(trial.ra, trial.sd) if trial.ra is not None else str(trial.state),
            "–" if trial.seconds is None else f"{trial.seconds:.1f}",
        ]
        for trial in ordered[:most]
    ]
    return Table("trials", title(study), ["trial", *names, "validation RA", "s"], rows)


def title(study: Study) -> str:
    """Returns what was searched, in a few words."""
    settings, recipe = study.request.settings, study.request.settings.recipe
    tasks = "all tasks" if settings.num_tasks is None else f"the first {settings.num_tasks} tasks"
    seeds = counted(len(settings.seeds), "seed")
    return f"{recipe.learner} on {recipe.benchmark}: validation rows of {tasks}, {seeds} per trial"


def conclusions(study: Study) -> list[str]:
    """Returns the best settings, what each is worth, and the cost, one line each."""
    best, first = study.best, next(iter(study.trials), None)
    lines = []
    if best is not None and best.ra is not None:
        start = f" (first trial: {first.ra:.2f} %)" if first is not None and first.ra else ""
        lines.append(f"Best: {best.ra:.2f} % in trial {best.number}{start}")
        lines.append(f"Settings: {set_words(study.request, best)}")
    if study.importances:
        shares = ", ".join(f"{name} {100 * part:.0f} %" for name, part in study.importances.items())
        lines.append(f"Importance (share of the variance among good trials): {shares}")
    states = [trial.state for trial in study.trials]
    ends = [f"{states.count(state)} {state}" for state in TrialState if state in states]
    cost = f"Cost: {counted(len(states), 'trial')} ({', '.join(ends)})"
    return [*lines, f"{cost}, {study.seconds:.0f} s in finished trials"]


def write_page(study: Study, path: Path) -> None:
    """Write a self-contained HTML page with the trials, and RA over each searched setting."""
    template = templates().get_template("tuning.html")
    page = template.render(
        title=title(study),
        conclusions=conclusions(study),
        figures=figures(study),
        table=trials_table(study),
    )
    write_text(path, page.strip() + "\n")


def figures(study: Study) -> list[Drawing]:
    """Returns RA over the number of the trial, and over each searched setting."""
    finished = [trial for trial in study.trials if trial.ra is not None]
    if not finished:
        return []
    legend = [Key("trials", _COLOUR), Key("best", _BEST)]
    drawings = [
        Drawing(
            "trials",
            "Validation RA of each trial",
            legend,
            partial(scatter, _marks(study, finished, None), "trial"),
        )
    ]
    for name, where in study.request.space.items():
        draw = partial(scatter, _marks(study, finished, name), name, log=where.startswith("["))
        drawings.append(Drawing(f"search-{name}", f"Validation RA over {name}", legend, draw))
    return drawings


def _marks(study: Study, finished: Sequence[Trial], name: str | None) -> list[Marks]:
    def point(trial: Trial) -> tuple[float, float]:
        value = trial.number if name is None else float(trial.settings[name])
        return value, (trial.ra or 0.0) / 100

    best = study.best
    others = [point(trial) for trial in finished if trial is not best]
    found = [Marks(others, _COLOUR, "trial")] if others else []
    return [*found, Marks([point(best)], _BEST, "best")] if best is not None else found


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
