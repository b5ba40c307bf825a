"""Results as tables for a terminal, and in a sentence."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from lamaml.experiments.reporting.table import Grid
from lamaml.experiments.storing.results import METRICS

Summary = Mapping[str, Any]
"""What `results.summary` gives."""

MEANINGS = {
    "ra": "retained accuracy",
    "bti": "backward transfer",
    "la": "learning accuracy",
    "fwt": "forward transfer",
}


def run_table(summary: Summary) -> RenderableType:
    """One run: each metric beside the paper's value."""
    title = f"{marked_name(summary)} on {summary['stream']}, {describe(summary)}"
    table = _table()
    for name in ("", "", "ours", "paper", "difference"):
        table.add_column(name, justify="right" if name else "left")
    for metric in METRICS:
        ours, paper = summary[metric], summary["published"].get(metric)
        table.add_row(
            Text(metric.upper(), style="bold"),
            MEANINGS[metric],
            Text(cell(summary, metric), style="bold" if metric == "ra" else ""),
            spread(*paper) if paper else "–",
            difference(ours["mean"], paper if comparable(summary) else None),
        )
    time = Text(timing(summary), style="dim")
    return Group(Text(title, style="bold"), table, time, *_footnotes([summary]))


def comparison_table(summaries: Sequence[Summary], title: str) -> RenderableType:
    """Several learners on one benchmark."""
    table = _table()
    for name in ("learner", *(metric.upper() for metric in METRICS), "ms/update"):
        table.add_column(name, justify="left" if name == "learner" else "right")
    best = max((s["ra"]["mean"] for s in summaries if s["ra"]["mean"] is not None), default=None)
    for summary in summaries:
        ours, speed = summary["ra"]["mean"], summary["ms_per_update"]
        cells = [cell(summary, metric, 1) for metric in METRICS]
        cells.append("–" if speed is None else f"{speed:.2f}")
        style = "bold green" if ours and ours == best else ""
        table.add_row(marked_name(summary), *cells, style=style)
    legend = "% of test images answered correctly, mean ± sd over seeds. RA: after the last task; "
    legend += "BTI: its change since each was learned; LA: right after each; FWT: gained before it."
    below = (Text(legend, style="dim"), *_footnotes(summaries))
    return Group(Text(title, style="bold"), table, *below)


def bench_table(measured: Mapping[str, Any]) -> RenderableType:
    """What `lamaml bench` measured."""
    rates = measured["gemm_gflops"].items()
    speed = ", ".join(f"{rate:.0f} GFLOP/s with {threads}" for threads, rate in rates)
    columns = ("learner", "model", "order", "threads", "ms/update", "GFLOP/s", "share")
    table = _table()
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number < 3 else "right")
    for row in measured["updates"]:
        words = (row["learner"], row["model"], str(row["order"]), str(row["threads"]))
        achieved = f"{1000 * row['gflop'] / row['ms']:.1f}"
        table.add_row(*words, f"{row['ms']:.2f}", achieved, f"{100 * row['share']:.0f} %")
    lines = [
        f"MER, ten examples, {row['threads']} threads: {row['ms']:.1f} ms, "
        f"{row['ratio']:.1f} times a first-order glance of La-MAML"
        for row in measured["mer"]
    ]
    lines += [
        f"GEM with {row['tasks_seen']} tasks seen, {row['threads']} threads: {row['ms']:.2f} ms"
        for row in measured["gem"]
    ]
    lines += [
        f"Checkpoints, {row['threads']} threads: an MNIST run is {100 * row['slower']:.1f} % "
        f"slower for them; one of the CIFAR learner is written in {row['cifar_ms']:.0f} ms"
        for row in measured["checkpoints"]
    ]
    lines += [
        f"LaMAMLClassifier, {row['threads']} threads: 10 rows are learned in "
        f"{row['partial_fit_ms']:.2f} ms, {row['ratio']:.2f} times the bare update; one is "
        f"answered in {row['predict_one_ms']:.2f} ms; 1,000 sizes of a call compile "
        f"{row['programs_compiled']} programs"
        for row in measured["estimator"]
    ]
    title = Text(f"Matrix product: {speed} threads", style="bold")
    return Group(title, table, Text("\n".join(lines)))


def bench_grid(measured: Mapping[str, Any]) -> Grid:
    """The updates of `lamaml bench`, a row a learner: wider and shorter than `bench_table`."""
    cases: dict[tuple[str, str, str], list[str]] = {}
    for row in measured["updates"]:
        words = cases.setdefault((row["model"], row["learner"], row["order"]), [])
        words += [f"{row['ms']:.2f}", f"{100 * row['share']:.0f} %"]
    header = ["network", "learner", "order"]
    for count in measured["gemm_gflops"]:
        header += [f"ms, {counted(int(count), 'thread')}", "share"]
    rows = [[model.upper(), *words, *found] for (model, *words), found in cases.items()]
    return Grid("bench", "One update, as a share of the matrix-product rate", header, rows)


def describe(summary: Summary) -> str:
    """The circumstances of a run in a few words."""
    words = [f"preset {summary['preset']}", counted(len(summary["seeds"]), "seed")]
    if summary["protocol"] == "multiple":
        words.insert(0, "multiple passes")
    if summary["changed"]:
        changed = (f"{name}={summary['settings'][name]}" for name in summary["changed"])
        words.append(f"with {', '.join(changed)}")
    if summary["num_tasks"] is not None:
        words.append(f"only {counted(summary['num_tasks'], 'task')}")
    if summary["num_samples"] is not None:
        words.append(f"only {counted(summary['num_samples'], 'sample')} a task")
    return ", ".join(words)


def comparable(summary: Summary) -> bool:
    """Whether the run is the paper's experiment: full size, with a recipe's own settings."""
    own_size = summary["num_tasks"] is None and summary["num_samples"] is None
    return own_size and not summary["changed"]


def timing(summary: Summary) -> str:
    """Where the time of a seed went."""
    if summary["ms_per_update"] is None:
        return "no seed finished"
    parts = ", ".join(f"{part} {seconds:.1f} s" for part, seconds in summary["seconds"].items())
    speed = f"{summary['num_updates']:,} updates of {summary['ms_per_update']:.2f} ms"
    return f"A seed: {speed}; {parts}"


def reading(summaries: Sequence[Summary]) -> str:
    """What a comparison says, in one sentence; nothing where runs differ in size."""
    known = [s for s in summaries if s["ra"]["mean"] is not None]
    if len(known) < 2 or not same_data(known):
        return ""
    ranked = sorted(known, key=lambda s: -s["ra"]["mean"])
    best, worst = ranked[0], ranked[-1]
    gap = best["ra"]["mean"] - worst["ra"]["mean"]
    said = (
        f"After the last task {best['learner']} still answers {best['ra']['mean']:.1f} % of all "
        f"tasks' test images correctly, {gap:.1f} points more than {worst['learner']}"
    )
    if best["bti"]["mean"] is None or worst["bti"]["mean"] is None:  # there is but one task
        return f"{said}."
    return (
        f"{said}: since learning each task it has {_change(best)}, {worst['learner']} has "
        f"{_change(worst)}."
    )


def same_data(summaries: Sequence[Summary]) -> bool:
    """Whether all have learned the same rows, as far as they say; seed by seed."""
    if len({(found["num_tasks"], found["num_samples"]) for found in summaries}) > 1:
        return False
    told: dict[int, set[str]] = {}
    for found in summaries:
        for seed, data in zip(found["seeds"], found["data"], strict=True):
            told.setdefault(seed, set()).update([data] if data else [])
    return all(len(kinds) <= 1 for kinds in told.values())


def spread(mean: float | None, deviation: float | None, digits: int = 2) -> str:
    """Mean ± sd.

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
    """A metric of a run: mean ± sd, or the paper's `*` where every seed diverged."""
    text = spread(summary[metric]["mean"], summary[metric]["sd"], digits)
    return "*" if set(summary["statuses"]) == {"diverged"} else text


def counted(number: int, thing: str) -> str:
    """So many of them.

    >>> counted(1, "task"), counted(2, "task")
    ('1 task', '2 tasks')
    """
    return f"{number} {thing}{'s' if number != 1 else ''}"


def difference(mean: float | None, paper: Sequence[float] | None) -> str:
    """Ours less the paper's, with its sign."""
    if mean is None or not paper:
        return "–"
    return f"{mean - paper[0]:+.2f}".replace("-", "−")


def _change(summary: Summary) -> str:
    change = summary["bti"]["mean"]
    return f"{'lost' if change < 0 else 'gained'} {abs(change):.1f} points"


def marked_name(summary: Summary) -> str:
    """The learner, with a mark if a footnote tells of its seeds."""
    return summary["learner"] + ("" if set(summary["statuses"]) == {"finished"} else " *")


def _footnotes(summaries: Sequence[Summary]) -> list[Text]:
    notes = [
        f"* {summary['learner']}, seed {seed}: {status}{_where(place)}"
        for summary in summaries
        for seed, status, place in zip(
            summary["seeds"], summary["statuses"], summary["diverged_at"], strict=True
        )
        if status != "finished"
    ]
    if any(s["published"] and not comparable(s) for s in summaries):
        notes.append("The paper's value is for the full benchmark with its own settings.")
    return [Text(note, style="yellow") for note in notes]


def _where(place: Mapping[str, Any] | None) -> str:
    return f" at task {place['task']}, update {place['update']}" if place else ""


def _table() -> Table:
    return Table(box=box.SIMPLE_HEAD, pad_edge=False)
