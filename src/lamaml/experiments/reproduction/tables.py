"""The tables of the paper, from outcomes: accuracies, times, alignments, and the claims."""

import statistics
from collections.abc import Callable, Sequence

from lamaml.evaluation.alignment import ALIGNMENTS
from lamaml.experiments.reporting.statistics import paired_difference
from lamaml.experiments.reporting.table import Table
from lamaml.experiments.reporting.tables import difference, published, spread
from lamaml.experiments.reproduction.outcomes import Outcome
from lamaml.experiments.reproduction.results import CellResult
from lamaml.experiments.storing.records import METRICS
from lamaml.experiments.storing.summary import Spread

PAPER_SECONDS = {
    "La-MAML": {"Rotations": (45.95, 0.38), "Permutations": (46.13, 0.42)},
    "MER": {"Rotations": (218.03, 6.44), "Permutations": (227.11, 12.12)},
}
"""Table 2 of the paper: (mean, sd) by method and data."""
PAPER_ALIGNMENTS = {
    "CIFAR-100": {"ER": 0.00218, "C-MAML": 0.0184, "Sync": 0.0228, "La-MAML": 0.0186},
    "TinyImagenet": {"ER": 0.00274, "C-MAML": 0.0174, "Sync": 0.0217, "La-MAML": 0.0214},
}
"""Table 4 of the paper: mean cosine by data and method."""

Rows = tuple[list[str], list[list[str]]]
"""Header and rows."""


def tables(outcome: Outcome) -> list[Table]:
    """Returns the table of a target and, if the paper makes claims about it, that of the claims."""
    build = _BUILDERS.get(outcome.target, _accuracies)
    header, rows = build(outcome.cells)
    group = next((name for name in ("data", "method") if _repeats(header, rows, name)), "")
    table = Table(outcome.target, title_of(outcome), header, rows, group=group)
    found = [table._replace(bold=_best(table, outcome.cells))]
    if outcome.claims:
        claims = [[c.verdict, c.claim, c.numbers] for c in outcome.claims]
        on_digits = any(cell.is_stand_in for cell in outcome.cells)
        header = ["", "claim", "ours, on digits" if on_digits else "ours"]
        found.append(Table(f"{outcome.target}-claims", "Claims of the paper", header, claims))
    return found


def title_of(outcome: Outcome) -> str:
    """Returns the target, its title and its scale."""
    return f"{outcome.target}: {outcome.title} ({outcome.scale}: {outcome.about})"


def _repeats(header: Sequence[str], rows: Sequence[Sequence[str]], name: str) -> bool:
    """Whether rows can be grouped by a column: some share a value of it, and not all have one."""
    if name not in header:
        return False
    values = [row[header.index(name)] for row in rows]
    return len({*values}) < len(values)


def _best(table: Table, cells: Sequence[CellResult]) -> list[tuple[int, int]]:
    """Returns (row, column) of the best RA and BTI of each group, where a row is a cell."""
    found: list[tuple[int, int]] = []
    if len(table.rows) != len(cells):
        return found
    for metric in ("ra", "bti"):
        if metric.upper() not in table.header:
            continue
        column = list(table.header).index(metric.upper())
        for _, rows in table.groups:
            means = {
                row: mean
                for row in rows
                if (mean := cells[row].metric(metric).mean) is not None and cells[row].row != "IID"
            }
            best = max(means.values(), default=None)
            found += [
                (row, column) for row, mean in means.items() if mean == best and len(means) > 1
            ]
    return found


def _accuracies(cells: Sequence[CellResult]) -> Rows:
    """RA and BTI, one row per cell; beside the paper's where they are of the paper's data."""
    if any(cell.is_stand_in for cell in cells):
        return _own_accuracies(cells)
    header = ["method", "data", "seeds"]
    for metric in ("RA", "BTI"):
        header += [metric, "paper", "difference", "verdict"]
    rows = []
    for cell in cells:
        row = [_method(cell), cell.data, _seeds(cell)]
        for metric in ("ra", "bti"):
            found, paper = cell.metric(metric), cell.paper.get(metric)
            row += [
                "*" if cell.diverged else spread(found.mean, found.sd),
                published(paper),
                difference(found.mean, paper if cell.is_paper_size else None),
                cell.verdicts.get(metric, "–"),
            ]
        rows.append(row)
    return header, rows


def _own_accuracies(cells: Sequence[CellResult]) -> Rows:
    rows = [
        [
            cell.row,
            cell.data,
            _seeds(cell),
            *("*" if cell.diverged else spread(*cell.metric(name)[:2]) for name in METRICS),
        ]
        for cell in cells
    ]
    return ["method", "data", "seeds", *(metric.upper() for metric in METRICS)], rows


def _beyond(cells: Sequence[CellResult]) -> Rows:
    """RA and BTI, what RA is more than La-MAML's and than that of DER++, and the cost."""
    header = ["data", "method", "seeds", "RA", "BTI"]
    header += ["RA − La-MAML's", "RA − DER++'s", "seconds per seed"]
    rows = []
    for cell in cells:
        others = {other.row: other for other in cells if other.column == cell.column}
        rows.append(
            [
                cell.data,
                cell.row,
                _seeds(cell),
                spread(cell.ra.mean, cell.ra.sd),
                spread(cell.bti.mean, cell.bti.sd),
                *(_more_than(cell, others.get(row)) for row in ("La-MAML", "DER++")),
                spread(cell.mean_train_seconds, None, 1),
            ]
        )
    return header, rows


def _class_incremental(cells: Sequence[CellResult]) -> Rows:
    """RA beside what is lost and what was known on the way."""
    metrics = ("ra", "bti", "la", "mf", "aaa")
    rows = [
        [cell.data, cell.row, _seeds(cell)]
        + [spread(*cell.metric(metric)[:2]) for metric in metrics]
        + [str(cell.num_updates)]
        for cell in cells
    ]
    header = ["data", "method", "seeds", *(metric.upper() for metric in metrics)]
    return [*header, "updates per seed"], rows


def _more_than(cell: CellResult, other: CellResult | None) -> str:
    """Returns the paired difference of RA with its 95 % interval, as far as seeds are shared."""
    if other is None or other is cell:
        return "–"
    both = zip(cell.ra.values, other.ra.values, strict=False)
    pairs = [(ours, theirs) for ours, theirs in both if ours is not None and theirs is not None]
    if len(pairs) < 2:
        return "–" if not pairs else f"{pairs[0][0] - pairs[0][1]:+.2f}".replace("-", "−")
    found = paired_difference(*zip(*pairs, strict=True))
    return f"{found.mean:+.2f} ({found.low:+.2f} to {found.high:+.2f})".replace("-", "−")


def _times(cells: Sequence[CellResult]) -> Rows:
    """Training seconds per seed. Machines differ, so the shares are what can be compared."""
    with_paper = not any(cell.is_stand_in for cell in cells)
    mer = {cell.column: cell.mean_train_seconds for cell in cells if cell.row == "MER"}
    rows = []
    for cell in cells:
        ours, whole = cell.mean_train_seconds, mer.get(cell.column)
        paper, (paper_mer, _) = (PAPER_SECONDS[row][cell.column] for row in (cell.row, "MER"))
        rows.append(
            [
                cell.row,
                cell.data,
                _seeds(cell),
                _over_seeds(cell.train_seconds),
                *([spread(*paper)] if with_paper else []),
                f"{100 * ours / whole:.0f} %" if ours and whole else "–",
                *([f"{100 * paper[0] / paper_mer:.0f} %"] if with_paper else []),
                spread(cell.ra.mean, cell.ra.sd),
            ]
        )
    if not with_paper:
        return ["method", "data", "seeds", "seconds", "of MER's", "RA"], rows
    return ["method", "data", "seeds", "seconds", "paper", "of MER's", "paper", "RA"], rows


def _alignments(cells: Sequence[CellResult]) -> Rows:
    rows = []
    with_paper = not any(cell.is_stand_in for cell in cells)
    for cell in cells:
        earlier, trunk, replayed = (
            _over_seeds(cell.measured.values.get(name, []), 4) for name in ALIGNMENTS
        )
        paper = [f"{PAPER_ALIGNMENTS[cell.column][cell.row]:.4f}"] if with_paper else []
        rows.append([cell.row, cell.data, _seeds(cell), *paper, replayed, earlier, trunk])
    cosines = ["cosine, all replayed", "of earlier tasks", "and trunk alone"]
    return ["method", "data", "seeds", *(["paper"] if with_paper else []), *cosines], rows


def _inter_tasks(cells: Sequence[CellResult]) -> Rows:
    rows = []
    for cell in cells:
        names = ("inter_task_cosine_trunk", "inter_task_cosine", "inter_task_dot")
        means = [cell.measured.mean_curve(name) for name in names]
        for number in range(len(means[0])):
            words = [f"{mean[number]:.4f}".replace("-", "−") for mean in means]
            rows.append([cell.row, cell.data, str(number + 3), *words])
    return ["method", "data", "task t", "cosine, trunk alone", "cosine", "dot product"], rows


def _look_aheads(cells: Sequence[CellResult]) -> Rows:
    """RA before and after the meta-update, the mean of each fifth of the run."""
    rows = []
    for cell in cells:
        updates = cell.measured.updates or []
        count = len(updates)
        for part in range(5) if count >= 5 else ():
            span = slice(part * count // 5, (part + 1) * count // 5)
            means = [
                cell.measured.mean_curve(name)[span].mean()
                for name in ("accuracy_inner", "accuracy_after")
            ]
            words = [f"{100 * mean:.1f}" for mean in means]
            rows.append([cell.row, cell.data, f"up to {updates[span][-1]:,}", *words])
    return ["method", "data", "updates", "RA at θ_K", "RA at θ_0"], rows


def _robustness(cells: Sequence[CellResult]) -> Rows:
    rows = [
        [cell.row, cell.column, _seeds(cell), spread(cell.ra.mean, cell.ra.sd)] for cell in cells
    ]
    return ["method", "rate", "seeds", "RA"], rows


def _elapsed(cells: Sequence[CellResult]) -> Rows:
    rows = [
        [
            cell.row,
            cell.data,
            _seeds(cell),
            spread(cell.mean_train_seconds, None, 1),
            spread(cell.ra.mean, cell.ra.sd),
        ]
        for cell in cells
    ]
    return ["method", "data", "seeds", "seconds", "RA"], rows


def _costs(cells: Sequence[CellResult]) -> Rows:
    header, rows = _elapsed(cells)
    header.insert(2, "glances")
    for cell, row in zip(cells, rows, strict=True):
        row.insert(2, str(cell.changed["glances"]))
    return header, rows


def _dark_weights(cells: Sequence[CellResult]) -> Rows:
    """One row per value of λ, one column per stream."""
    columns = list(dict.fromkeys(cell.column for cell in cells))
    found = {(cell.changed["dark_weight"], cell.column): cell.ra for cell in cells}
    rows = [
        [f"{weight:g}", *(_ra(found.get((weight, name))) for name in columns)]
        for weight in dict.fromkeys(weight for weight, _ in found)
    ]
    return ["λ", *columns], rows


def _ra(found: Spread | None) -> str:
    return "–" if found is None else spread(found.mean, found.sd)


_BUILDERS: dict[str, Callable[[Sequence[CellResult]], Rows]] = {
    "table2": _times,
    "table4": _alignments,
    "figure-intertask": _inter_tasks,
    "figure-lookahead": _look_aheads,
    "figure-robustness": _robustness,
    "figure-robustness-grid": _robustness,
    "figure-time": _elapsed,
    "beyond": _beyond,
    "class-incremental": _class_incremental,
    "figure-cost": _costs,
    "figure-dark-weight": _dark_weights,
}


def _method(cell: CellResult) -> str:
    """Returns the row, marked where its settings were tuned towards the paper's number."""
    return f"{cell.row} (tuned)" if cell.preset == "tuned" else cell.row


def _seeds(cell: CellResult) -> str:
    finished = sum(status == "finished" for status in cell.statuses)
    count = len(cell.statuses)
    return str(count) if finished == count else f"{finished} of {count}"


def _over_seeds(values: Sequence[float], digits: int = 2) -> str:
    mean = statistics.fmean(values) if values else None
    return spread(mean, statistics.stdev(values) if len(values) > 1 else None, digits)
