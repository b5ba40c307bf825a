"""The tables of runs: one run beside the paper, several runs, paired comparisons; one sentence."""

from collections.abc import Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from lamaml.experiments.reporting.statistics import paired_difference
from lamaml.experiments.reporting.table import Table
from lamaml.experiments.storing.records import METRICS
from lamaml.experiments.storing.summary import Place, Summary

MEANINGS = {
    "ra": "retained accuracy",
    "bti": "backward transfer",
    "la": "learning accuracy",
    "fwt": "forward transfer",
    "fm": "forgetting",
    "mf": "max. forgetting",
    "aaa": "any-time accuracy",
}
SHOWN = METRICS[:4]  # in tables of several runs on a terminal, which is 80 columns wide
LEGEND = (
    "Accuracy in %, mean ± sd over seeds. RA: on all tasks after the last; BTI: its change since "
    "each task was learned; LA: right after each task; FWT: gained before it."
)


def run_table(summary: Summary) -> RenderableType:
    """Returns each metric of one run beside the paper's value, for the terminal."""
    title = f"{marked_name(summary)} on {summary.stream}, {describe(summary)}"
    table = _table()
    for name in ("", "", "ours", "paper", "difference"):
        table.add_column(name, justify="right" if name else "left")
    for metric in METRICS:
        ours, paper = summary.metric(metric), summary.published.get(metric)
        table.add_row(
            Text(metric.upper(), style="bold"),
            MEANINGS[metric],
            Text(cell(summary, metric), style="bold" if metric == "ra" else ""),
            published(paper),
            difference(ours.mean, paper if comparable(summary) else None),
        )
    time = Text(timing(summary), style="dim")
    return Group(Text(title, style="bold"), table, time, *footnotes([summary]))


def comparison_table(summaries: Sequence[Summary], title: str) -> RenderableType:
    """Returns the metrics of several learners on one benchmark, for the terminal."""
    table = _table()
    for name in ("learner", *(metric.upper() for metric in SHOWN), "ms/update"):
        table.add_column(name, justify="left" if name == "learner" else "right")
    best = max((s.ra.mean for s in summaries if s.ra.mean is not None), default=None)
    for summary in summaries:
        ours, speed = summary.ra.mean, summary.ms_per_update
        cells = [cell(summary, metric, 1) for metric in SHOWN]
        cells.append("–" if speed is None else f"{speed:.2f}")
        style = "bold green" if ours and ours == best else ""
        table.add_row(marked_name(summary), *cells, style=style)
    below = (Text(LEGEND, style="dim"), *footnotes(summaries))
    return Group(Text(title, style="bold"), table, *below)


def metrics_table(name: str, title: str, summaries: Sequence[Summary]) -> Table:
    """Returns every metric of every run, over the seeds that finished."""
    header = ["learner", "run", "finished", *(metric.upper() for metric in METRICS)]
    rows = [
        [
            marked_name(found),
            describe(found),
            f"{found.statuses.count('finished')} of {len(found.seeds)}",
            *(cell(found, metric) for metric in METRICS),
            published(found.published.get("ra")),
            spread(found.ms_per_update, None),
        ]
        for found in summaries
    ]
    return Table(name, title, [*header, "paper's RA", "ms/update"], rows)


def pairs_table(name: str, runs: Sequence[tuple[str, Summary]]) -> Table | None:
    """Returns the best run against every other over their shared finished seeds.

    Args:
      name: the name of the benchmark.
      runs: (label, summary) of each run, the best first.

    Returns:
      None where no other run shares two finished seeds and the same data.
    """
    several = [(label, found) for label, found in runs if found.statuses.count("finished") > 1]
    rows = []
    for label, other in several[1:]:
        best_label, best = several[0]
        pairs = shared_seeds(best, other)
        if len(pairs) >= 2 and same_data([best, other]):
            found = paired_difference(*zip(*pairs, strict=True))
            interval = f"{found.low:+.2f} to {found.high:+.2f}".replace("-", "−")
            mean = f"{found.mean:+.2f}".replace("-", "−")
            significant = "yes" if found.significant else "no"
            rows.append([best_label, label, str(len(pairs)), mean, interval, significant])
    header = ["learner", "baseline", "seeds", "RA difference", "95 % interval"]
    header.append("significant (5 %)")
    return Table(f"{name}-pairs", "Paired comparison", header, rows) if rows else None


def shared_seeds(one: Summary, other: Summary, metric: str = "ra") -> list[tuple[float, float]]:
    """Returns a metric of both runs for every seed that both have finished."""
    ours = dict(zip(one.seeds, one.metric(metric).values, strict=True))
    theirs = dict(zip(other.seeds, other.metric(metric).values, strict=True))
    pairs = ((ours[seed], theirs[seed]) for seed in ours if seed in theirs)
    return [(a, b) for a, b in pairs if a is not None and b is not None]


def describe(summary: Summary) -> str:
    """Returns the preset, seeds, changed settings and size of a run in a few words."""
    words = [f"preset {summary.preset}", counted(len(summary.seeds), "seed")]
    if summary.protocol == "multiple":
        words.insert(0, "multiple passes")
    if summary.changed:
        changed = (f"{name}={summary.settings[name]}" for name in summary.changed)
        words.append(f"with {', '.join(changed)}")
    return ", ".join(words) + sizes_in_words(summary)


def sizes_in_words(summary: Summary) -> str:
    """Returns how a run is smaller than its benchmark, and on which rows if not on test rows."""
    words = []
    if summary.num_tasks is not None:
        words.append(f"only {counted(summary.num_tasks, 'task')}")
    if summary.num_samples is not None:
        words.append(f"only {counted(summary.num_samples, 'sample')} per task")
    if summary.split != "test":
        words.append(f"on {summary.split} rows")
    return "".join(f", {word}" for word in words)


def comparable(summary: Summary) -> bool:
    """Whether the run is the paper's experiment: full size, with a recipe's own settings."""
    own_size = summary.num_tasks is None and summary.num_samples is None
    return own_size and not summary.changed and summary.split == "test"


def timing(summary: Summary) -> str:
    """Returns the time per seed and its parts, in a sentence."""
    if summary.ms_per_update is None:
        return "no seed finished"
    times = summary.seconds._asdict().items()
    parts = ", ".join(f"{part} {seconds:.1f} s" for part, seconds in times)
    speed = f"{summary.num_updates:,} updates of {summary.ms_per_update:.2f} ms"
    return f"Per seed: {speed}; {parts}"


def memory(summary: Summary) -> str:
    """Returns the largest memory of the seeds' processes, in words; "" where it is unknown."""
    peaks = [peak for peak in summary.peak_memory if peak is not None]
    return f"; at most {max(peaks) / 2**20:.0f} MiB of memory" if peaks else ""


def reading(summaries: Sequence[Summary]) -> str:
    """Returns a comparison in two sentences; "" where runs differ in size or data."""
    known = [(s.ra.mean, s) for s in summaries if s.ra.mean is not None]
    if len(known) < 2 or not same_data([found for _, found in known]):
        return ""
    (high, best), (low, worst) = (pick(known, key=lambda pair: pair[0]) for pick in (max, min))
    said = (
        f"After the last task {best.learner} classifies {high:.1f} % of the {best.split} images of "
        f"all tasks correctly, {high - low:.1f} points more than {worst.learner}."
    )
    if best.bti.mean is None or worst.bti.mean is None:  # there is only one task
        return said
    return (
        f"{said} Since each task was learned, {best.learner} has {_change(best.bti.mean)} and "
        f"{worst.learner} has {_change(worst.bti.mean)}."
    )


def same_data(summaries: Sequence[Summary]) -> bool:
    """Whether all runs of a seed learned the same rows, as far as they record it."""
    if len({(found.num_tasks, found.num_samples, found.split) for found in summaries}) > 1:
        return False
    told: dict[int, set[str]] = {}
    for found in summaries:
        for seed, data in zip(found.seeds, found.data, strict=True):
            told.setdefault(seed, set()).update([data] if data else [])
    return all(len(kinds) <= 1 for kinds in told.values())


def spread(mean: float | None, deviation: float | None, digits: int = 2) -> str:
    """Returns mean ± sd.

    >>> spread(77.421, 0.648), spread(-8.6, None), spread(None, None)
    ('77.42 ± 0.65', '−8.60', '–')
    """
    if mean is None:
        return "–"
    text = f"{mean:.{digits}f}"
    if deviation is not None:
        text += f" ± {deviation:.{digits}f}"
    return text.replace("-", "−")


def cell(summary: Summary, metric: str, digits: int = 2) -> str:
    """Returns mean ± sd of a metric, or the paper's `*` where every seed diverged."""
    text = spread(*summary.metric(metric)[:2], digits)
    return "*" if set(summary.statuses) == {"diverged"} else text


def counted(number: int, thing: str) -> str:
    """Returns a number with its noun.

    >>> counted(1, "task"), counted(2, "task")
    ('1 task', '2 tasks')
    """
    return f"{number} {thing}{'s' if number != 1 else ''}"


def published(paper: Sequence[float] | None) -> str:
    """Returns mean ± sd of the paper, or mean where the paper gives no sd; "–" without either."""
    return spread(paper[0], paper[1] if len(paper) > 1 else None) if paper else "–"


def difference(mean: float | None, paper: Sequence[float] | None) -> str:
    """Returns ours − the paper's, with its sign."""
    if mean is None or not paper:
        return "–"
    return f"{mean - paper[0]:+.2f}".replace("-", "−")


def _change(change: float) -> str:
    return f"{'lost' if change < 0 else 'gained'} {abs(change):.1f} points"


def marked_name(summary: Summary) -> str:
    """Returns the learner, with a `*` if a seed did not finish."""
    return summary.learner + ("" if set(summary.statuses) == {"finished"} else " *")


def footnotes(summaries: Sequence[Summary]) -> list[Text]:
    """Returns which seeds did not finish, and what the paper's values are not for."""
    notes = [
        f"* {summary.learner}, seed {seed}: {status}{_where(place)}"
        for summary in summaries
        for seed, status, place in zip(
            summary.seeds, summary.statuses, summary.diverged_at, strict=True
        )
        if status != "finished"
    ]
    if any(s.published and not comparable(s) for s in summaries):
        notes.append("The paper's value is for the full benchmark with its own settings.")
    return [Text(note, style="yellow") for note in notes]


def _where(place: Place | None) -> str:
    return f" at task {place.task}, update {place.update}" if place else ""


def _table() -> RichTable:
    return RichTable(box=box.SIMPLE_HEAD, pad_edge=False)
