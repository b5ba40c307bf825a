"""What was found for a target, in tables."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lamaml.evaluation.alignment import ALIGNMENTS
from lamaml.experiments.reporting.table import Table
from lamaml.experiments.reporting.tables import difference, spread

Outcome = Mapping[str, Any]
"""What `outcomes.outcome` gives."""


def tables(outcome: Outcome) -> list[Table]:
    """The table of a target and, where the paper speaks of it in words, that of its claims."""
    build = _BUILDERS.get(outcome["target"], _accuracies)
    found = [build(outcome)]
    if outcome["claims"]:
        rows = [[c["verdict"], c["claim"], c["numbers"]] for c in outcome["claims"]]
        title = "What the paper says of it"
        header = ["", "claim", "ours"]
        found.append(Table(f"{outcome['target']}-claims", title, header, rows))
    return found


def title_of(outcome: Outcome) -> str:
    """What it is, and at which scale."""
    return f"{outcome['target']}: {outcome['title']} ({outcome['scale']}: {outcome['about']})"


def _accuracies(outcome: Outcome) -> Table:
    """RA and BTI, ours and the paper's, a row a cell."""
    header = ["method", "data", "seeds"]
    for metric in ("RA", "BTI"):
        header += [metric, "paper", "difference", "verdict"]
    rows = []
    for cell in outcome["cells"]:
        row = [_method(cell), _data(cell), _seeds(cell)]
        for metric in ("ra", "bti"):
            paper = cell["paper"].get(metric)
            ours = "*" if _all_diverged(cell) else spread(cell[metric]["mean"], cell[metric]["sd"])
            compared = paper if not (cell["cut"] or cell["changed"] or _smaller(cell)) else None
            row += [
                ours,
                spread(*paper) if paper else "–",
                difference(cell[metric]["mean"], compared),
                cell["verdicts"].get(metric, "–"),
            ]
        rows.append(row)
    return Table(outcome["target"], title_of(outcome), header, rows)


def _times(outcome: Outcome) -> Table:
    """Training seconds a seed; the paper's are of another machine, so the share is what counts."""
    paper = {"La-MAML": {"Rotations": (45.95, 0.38), "Permutations": (46.13, 0.42)}}
    paper["MER"] = {"Rotations": (218.03, 6.44), "Permutations": (227.11, 12.12)}
    longest = {
        cell["column"]: _mean(cell["train_seconds"])
        for cell in outcome["cells"]
        if cell["row"] == "MER"
    }
    rows = []
    for cell in outcome["cells"]:
        ours, column = _mean(cell["train_seconds"]), cell["column"]
        theirs, whole = paper[cell["row"]][column], longest.get(column)
        share = f"{100 * ours / whole:.0f} %" if ours and whole else "–"
        published = f"{100 * theirs[0] / paper['MER'][column][0]:.0f} %"
        rows.append(
            [
                cell["row"],
                _data(cell),
                _seeds(cell),
                _spread(cell["train_seconds"]),
                spread(*theirs),
                share,
                published,
                spread(cell["ra"]["mean"], cell["ra"]["sd"]),
            ]
        )
    header = ["method", "data", "seeds", "seconds", "paper", "of MER's", "paper", "RA"]
    return Table(outcome["target"], title_of(outcome), header, rows)


def _alignments(outcome: Outcome) -> Table:
    paper = {
        "CIFAR-100": {"ER": 0.00218, "C-MAML": 0.0184, "Sync": 0.0228, "La-MAML": 0.0186},
        "TinyImagenet": {"ER": 0.00274, "C-MAML": 0.0174, "Sync": 0.0217, "La-MAML": 0.0214},
    }
    rows = []
    for cell in outcome["cells"]:
        earlier, trunk, replayed = (
            _spread(cell["measured"].get(name, []), 4) for name in ALIGNMENTS
        )
        published = f"{paper[cell['column']][cell['row']]:.4f}"
        found = [replayed, earlier, trunk]
        rows.append([cell["row"], _data(cell), _seeds(cell), published, *found])
    cosines = ["cosine, all replayed", "of earlier tasks", "and trunk alone"]
    header = ["method", "data", "seeds", "paper", *cosines]
    return Table(outcome["target"], title_of(outcome), header, rows)


def _inter_tasks(outcome: Outcome) -> Table:
    rows = []
    for cell in outcome["cells"]:
        measured = cell["measured"]
        for number, _ in enumerate(measured.get("updates", [])):
            means = [
                _mean([seed[number] for seed in measured[name]])
                for name in ("inter_task_cosine_trunk", "inter_task_cosine", "inter_task_dot")
            ]
            words = [f"{mean:.4f}".replace("-", "−") for mean in means if mean is not None]
            rows.append([cell["row"], _data(cell), str(number + 3), *words])
    header = ["method", "data", "task t", "cosine, trunk alone", "cosine", "dot product"]
    return Table(outcome["target"], title_of(outcome), header, rows)


def _look_aheads(outcome: Outcome) -> Table:
    """The mean of each fifth of the run."""
    rows = []
    for cell in outcome["cells"]:
        measured = cell["measured"]
        count = len(measured.get("updates", []))
        for part in range(5) if count >= 5 else ():
            span = slice(part * count // 5, (part + 1) * count // 5)
            means = [
                _mean([value for seed in measured[name] for value in seed[span]])
                for name in ("accuracy_inner", "accuracy_after")
            ]
            words = [f"{100 * mean:.1f}" for mean in means if mean is not None]
            last = measured["updates"][span][-1]
            rows.append([cell["row"], _data(cell), f"up to {last:,}", *words])
    header = ["method", "data", "updates", "RA at θ_K", "RA at θ_0"]
    return Table(outcome["target"], title_of(outcome), header, rows)


def _robustness(outcome: Outcome) -> Table:
    rows = [
        [cell["row"], cell["column"], _seeds(cell), spread(cell["ra"]["mean"], cell["ra"]["sd"])]
        for cell in outcome["cells"]
    ]
    return Table(outcome["target"], title_of(outcome), ["method", "rate", "seeds", "RA"], rows)


def _elapsed(outcome: Outcome) -> Table:
    rows = [
        [
            cell["row"],
            _data(cell),
            _seeds(cell),
            spread(_mean(cell["train_seconds"]), None, 1),
            spread(cell["ra"]["mean"], cell["ra"]["sd"]),
        ]
        for cell in outcome["cells"]
    ]
    header = ["method", "data", "seeds", "seconds", "RA"]
    return Table(outcome["target"], title_of(outcome), header, rows)


_BUILDERS: dict[str, Callable[[Outcome], Table]] = {
    "table2": _times,
    "table4": _alignments,
    "figure-intertask": _inter_tasks,
    "figure-lookahead": _look_aheads,
    "figure-robustness": _robustness,
    "figure-robustness-grid": _robustness,
    "figure-time": _elapsed,
}


def _data(cell: Mapping[str, Any]) -> str:
    """The column, and how much of it was run."""
    sizes = {"tasks": cell["num_tasks"], "rows": cell["num_samples"]}
    words = [f"{size} {name}" for name, size in sizes.items() if size is not None]
    column = f"digits as {cell['column']}" if "digits" in cell["benchmark"] else cell["column"]
    return f"{column} ({', '.join(words)})" if words else str(column)


def _method(cell: Mapping[str, Any]) -> str:
    """The row, marked where its settings were chosen so as to come near the paper's number."""
    return f"{cell['row']} (tuned)" if cell["preset"] == "tuned" else str(cell["row"])


def _smaller(cell: Mapping[str, Any]) -> bool:
    return cell["num_tasks"] is not None or cell["num_samples"] is not None


def _seeds(cell: Mapping[str, Any]) -> str:
    finished = sum(status == "finished" for status in cell["statuses"])
    count = len(cell["statuses"])
    return str(count) if finished == count else f"{finished} of {count}"


def _all_diverged(cell: Mapping[str, Any]) -> bool:
    return set(cell["statuses"]) == {"diverged"}


def _spread(values: Sequence[float], digits: int = 2) -> str:
    return spread(_mean(values), statistics.stdev(values) if len(values) > 1 else None, digits)


def _mean(values: Sequence[float]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None
