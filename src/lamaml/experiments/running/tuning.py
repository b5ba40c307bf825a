"""`tune`: searches the settings of a learner on validation rows, with Optuna.

Trials are ordinary runs of the same worker processes, several at a time. `prefix` trains and
validates on the first tasks only, so that the rest of the stream stays unseen; `validation` uses
the validation rows of all tasks, as the paper's grid search does. Test rows are never read.
"""

import math
import warnings
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from lamaml._io import write_text
from lamaml.errors import LamamlError, require
from lamaml.experiments.recipes.overrides import assignment
from lamaml.experiments.running.engines import Engine, Workers
from lamaml.experiments.running.jobs import Ended, Job, Note, Progress
from lamaml.experiments.running.search import Space, check_folder
from lamaml.experiments.storing.locks import locked
from lamaml.experiments.storing.records import RunSettings, SeedState
from lamaml.experiments.storing.results import Run, read_run
from lamaml.experiments.storing.run_folder import extended
from lamaml.experiments.storing.studies import (
    Request,
    Study,
    Trial,
    TrialState,
    is_study,
    read_study,
)
from lamaml.experiments.storing.tuned import recipe_text
from lamaml.types import Choices, Range

STARTUP = 5  # trials that are never pruned
OnTrial = Callable[[Trial, Study], None]
"""Is called when a trial has ended."""


def tune(
    request: Request,
    space: Space,
    out: Path,
    *,
    num_trials: int = 20,
    workers: Workers | None = None,
    on_trial: OnTrial = lambda trial, study: None,
    on_note: Callable[[str], None] = lambda message: None,
) -> Study:
    """Search until there are `num_trials` trials, and write what was found.

    Args:
      request: from `make_request`.
      space: from `make_request`.
      out: folder of the study. One that is there with an equal request is continued: finished
        trials are not run again, interrupted ones go on from their checkpoints.
      num_trials: in all.
      workers: where trials run; None for one local process per core.
      on_trial: is called when a trial has ended.
      on_note: is called with messages for the user.

    Raises:
      InvalidArgument: Optuna is not installed, or the folder holds another study.
      LamamlError: settings, data or the disk are refused.
    """
    require(num_trials > 0, "trials", num_trials, "at least 1")
    check_folder(request, out)
    out.mkdir(parents=True, exist_ok=True)
    with locked(out) as lock, ExitStack() as stack:
        search = _Search(request, space, out)
        threads, seeds = request.settings.threads, len(request.settings.seeds)
        chosen = workers or Workers()
        at_once = max(1, math.ceil(chosen.at_once(num_trials * seeds, threads) / seeds))
        engine = chosen.start(num_trials * seeds, threads, [lock.descriptor])
        stack.callback(engine.stop)
        for _ in range(at_once):
            search.start_next(engine, num_trials)
        for job, event in engine.events():
            if isinstance(event, Note):
                on_note(event.message)
            if isinstance(event, Progress):
                search.prune_if_hopeless(engine, job, event)
            trial = search.ended(job, event) if isinstance(event, Ended) else None
            if trial is not None:
                search.start_next(engine, num_trials)
                on_trial(trial, search.study)
    return search.finish()


class Narrator:
    """Prints one line per trial that has ended."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def trial(self, trial: Trial, study: Study) -> None:
        """Print how a trial ended."""
        words = " ".join(assignment(name, value) for name, value in trial.settings.items())
        ended = str(trial.state) if trial.ra is None else f"RA {trial.ra:.1f} %"
        mark = " (best so far)" if study.best is trial else ""
        self.note(f"trial {trial.number}: {ended}{mark}, {words}")

    def note(self, message: str) -> None:
        """Print a message."""
        self.console.print(message, highlight=False, soft_wrap=True)


class _Search:
    """A study in its folder: which trials have ended, which run, and what comes next."""

    def __init__(self, request: Request, space: Space, out: Path) -> None:
        optuna = _optuna()
        self.optuna, self.request, self.space, self.out = optuna, request, space, out
        self.study = read_study(out) if is_study(out) else Study(request, [], {})
        self.study.write(out)
        self.asked = optuna.create_study(
            storage=f"sqlite:///{out.absolute() / 'study.db'}",
            study_name="lamaml",
            direction="maximize",
            load_if_exists=True,
            sampler=optuna.samplers.TPESampler(seed=len(self.study.trials), constant_liar=True),
            pruner=optuna.pruners.MedianPruner(n_startup_trials=STARTUP, n_warmup_steps=0),
        )
        self.jobs: dict[int, list[Job]] = {}  # of each running trial
        self.left: dict[int, set[int]] = {}  # seeds that have not ended
        self.live: dict[int, Any] = {}  # Optuna's trials that can be pruned
        self.retained: dict[int, dict[int, dict[int, float]]] = {}  # by trial, task and seed
        self.pruned: set[int] = set()
        self.interrupted = self._settle()
        if not self.asked.trials:
            self.asked.enqueue_trial(dict(request.start))

    def _settle(self) -> list[Any]:
        """Tell Optuna of trials whose end it missed; returns those that were interrupted."""
        state, ended = self.optuna.trial.TrialState, {t.number for t in self.study.trials}
        running = self.asked.get_trials(deepcopy=False, states=(state.RUNNING,))
        for trial in self.study.trials:
            if any(each.number == trial.number for each in running):
                self._tell(trial)
        return [each for each in running if each.number not in ended]

    def start_next(self, engine: Engine, num_trials: int) -> None:
        """Submit the jobs of the next trial, if there is one."""
        if self.interrupted:
            trial = self.interrupted.pop(0)
        elif len(self.study.trials) + len(self.left) < num_trials:
            spaces = {name: self._distribution(where) for name, where in self.space.items()}
            trial = self.asked.ask(spaces)
            self.live[trial.number] = trial
        else:
            return
        settings = self._settings(trial.params)
        with extended(self._folder(trial.number), settings) as (run, _):
            seeds = [seed for seed in run.seeds if not seed.ended]
        self.left[trial.number] = {seed.seed for seed in seeds}
        self.jobs[trial.number] = [Job(settings, seed.seed, seed.folder) for seed in seeds]
        for job in self.jobs[trial.number]:
            engine.submit(job)
        if not seeds:  # it ended, and the command was killed before it wrote so
            self._end(trial.number)
            self.start_next(engine, num_trials)

    def prune_if_hopeless(self, engine: Engine, job: Job, event: Progress) -> None:
        """Cancel a trial that is below the median of the others after the same task."""
        number = int(job.folder.parent.name)
        if number not in self.live or event.task == 0 or event.retained is None:
            return
        seen = self.retained.setdefault(number, {}).setdefault(event.task, {})
        if job.seed in seen or len(seen) + 1 < len(self.request.settings.seeds):
            seen.setdefault(job.seed, event.retained)
            return
        seen[job.seed] = event.retained
        trial = self.live[number]
        trial.report(sum(seen.values()) / len(seen), event.task)
        last = event.task == self.request.settings.num_tasks
        if not last and number not in self.pruned and trial.should_prune():
            self.pruned.add(number)
            for each in self.jobs[number]:
                engine.cancel(each)

    def ended(self, job: Job, event: Ended) -> Trial | None:
        """Note the end of a job; returns its trial if that was the last job of it."""
        number = int(job.folder.parent.name)
        self.left[number].discard(job.seed)
        waiting = [each for each in self.jobs[number] if each.seed in self.left[number]]
        if number in self.pruned:  # jobs that never started send no event
            self.left[number] -= {each.seed for each in waiting if not each.folder.exists()}
        return None if self.left[number] else self._end(number)

    def finish(self) -> Study:
        """Write the importances and the recipe file of the best trial."""
        self.study = replace(self.study, importances=self._importances())
        self.study.write(self.out)
        best = self.study.best
        if best is not None:
            text = recipe_text(self.request, best, len(self.study.trials))
            write_text(self.out / "tuned.toml", text)
        return self.study

    def _end(self, number: int) -> Trial:
        run = read_run(self._folder(number))
        trial = _trial(number, run, self.space, pruned=number in self.pruned)
        del self.left[number], self.jobs[number]
        trials = sorted([*self.study.trials, trial], key=lambda each: each.number)
        self.study = replace(self.study, trials=trials)
        self.study.write(self.out)  # before Optuna's: `_settle` repeats what that has missed
        self._tell(trial)
        return trial

    def _tell(self, trial: Trial) -> None:
        states = self.optuna.trial.TrialState
        told = {TrialState.PRUNED: states.PRUNED, TrialState.FAILED: states.FAIL}
        state = told.get(trial.state, states.COMPLETE)
        value = (trial.ra or 0.0) / 100  # a setting that diverges is as bad as can be
        self.asked.tell(trial.number, value if state == states.COMPLETE else None, state)

    def _settings(self, parameters: Mapping[str, Any]) -> RunSettings:
        settings, recipe = self.request.settings, self.request.settings.recipe
        values = {name: _rounded(value) for name, value in parameters.items()}
        return replace(
            settings,
            recipe=replace(recipe, settings={**recipe.settings, **values}),
            changed=list(dict.fromkeys([*settings.changed, *values])),
        )

    def _folder(self, number: int) -> Path:
        return self.out / "trials" / str(number)

    def _distribution(self, where: Range | Choices) -> Any:
        if isinstance(where, Choices):
            return self.optuna.distributions.CategoricalDistribution(where.values)
        return self.optuna.distributions.FloatDistribution(where.low, where.high, log=True)

    def _importances(self) -> dict[str, float]:
        finished = [trial for trial in self.study.trials if trial.ra is not None]
        if len(finished) < 4 or len({trial.ra for trial in finished}) < 2:
            return {}
        evaluator = self.optuna.importance.PedAnovaImportanceEvaluator()
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)  # Optuna's "may be inaccurate"
            try:
                found = self.optuna.importance.get_param_importances(
                    self.asked, evaluator=evaluator
                )
            except (ValueError, RuntimeError, UserWarning):  # too few trials that differ
                return {}
        return {name: float(share) for name, share in found.items()}


def _trial(number: int, run: Run, space: Space, *, pruned: bool) -> Trial:
    settings = {name: run.settings.recipe.settings[name] for name in space}
    states = {seed.status.state for seed in run.seeds}
    if pruned and states != {SeedState.FINISHED}:  # it may have been faster
        return Trial(number, settings, TrialState.PRUNED)
    if SeedState.DIVERGED in states:
        return Trial(number, settings, TrialState.DIVERGED)
    if states != {SeedState.FINISHED}:
        messages = [seed.status.message for seed in run.seeds if not seed.finished]
        return Trial(number, settings, TrialState.FAILED, message=messages[0])
    spent = sum(sum(seed.status.seconds) for seed in run.seeds if seed.status.seconds)
    ra = run.summary.ra
    return Trial(number, settings, TrialState.FINISHED, ra.mean, ra.sd, spent)


def _rounded(value: Any) -> Any:
    """A value with three digits, so that it can be typed."""
    return float(f"{value:.3g}") if isinstance(value, float) else value


def _optuna() -> Any:
    try:
        import optuna
    except ModuleNotFoundError as error:
        raise LamamlError("lamaml tune needs Optuna: pip install 'lamaml[tune]'") from error
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna
