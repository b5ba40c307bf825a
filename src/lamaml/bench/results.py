"""The results of `lamaml bench`: their JSON, and the tables they are printed as."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from lamaml._records import from_json
from lamaml.bench.records import (
    CheckpointCost,
    EstimatorLatency,
    GemTime,
    MerTime,
    Stall,
    UpdateTime,
)
from lamaml.bench.serving import ServingLoad
from lamaml.experiments.reporting.table import Table
from lamaml.experiments.storing.environment import Environment

Record = Stall | UpdateTime | MerTime | GemTime | CheckpointCost | EstimatorLatency | ServingLoad


@dataclass(frozen=True)
class Measurements:
    """Everything `lamaml bench` measures.

    Attributes:
      gemm_gflops: the best matrix-product rate, by number of threads.
      updates: one per learner, network, order, path and number of threads.
      mer: one per number of threads, as the next two.
      gem: also one per number of tasks seen.
      checkpoints: cost of checkpoints.
      estimator: one per learner, number of columns and number of threads.
      stalls: one per case and state of the cache.
      environment: versions, machine and revision.
      serving: a server under load; empty where its packages are not installed.
    """

    gemm_gflops: Mapping[str, float]
    updates: Sequence[UpdateTime]
    mer: Sequence[MerTime]
    gem: Sequence[GemTime]
    checkpoints: Sequence[CheckpointCost]
    estimator: Sequence[EstimatorLatency]
    stalls: Sequence[Stall]
    environment: Environment
    serving: Sequence[ServingLoad] = ()

    @classmethod
    def collect(cls, records: Sequence[Record], environment: Environment) -> "Measurements":
        """Sorts records by their kind."""
        rates: dict[str, float] = {}
        kinds: dict[str, list[Any]] = {name: [] for name in RECORDS}
        for record in records:
            kinds[KINDS[type(record)]].append(record)
        for update in kinds["updates"]:
            count = str(update.threads)
            rates[count] = max(rates.get(count, 0.0), update.gemm_gflops)
        return cls(gemm_gflops=rates, environment=environment, **kinds)

    def to_json(self) -> dict[str, Any]:
        """Returns what `lamaml bench --json` prints."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Measurements":
        """Reads what `to_json` returned."""
        records = {
            name: [kind(**row) for row in value.get(name, ())] for name, kind in RECORDS.items()
        }
        environment = from_json(Environment, value["environment"])
        return cls(gemm_gflops=value["gemm_gflops"], environment=environment, **records)

    @property
    def update_table(self) -> Table:
        """Returns the updates with one row per learner, order and path, for documents."""
        cases: dict[tuple[str, ...], list[str]] = {}
        for row in self.updates:
            words = cases.setdefault(_case(row), [])
            words += [f"{row.ms:.2f}", f"{100 * row.share:.0f} %"]
        header = ["network", "learner", "order", "path", "GFLOP"]
        for count in self.gemm_gflops:
            header += [f"ms, {count} thread{'s' if count != '1' else ''}", "share"]
        rows = [[*case, *found] for case, found in cases.items()]
        return Table("bench", "One update, as a share of the matrix-product rate", header, rows)

    @property
    def stall_table(self) -> Table:
        """Returns the stalls with one row per case."""
        cases: dict[str, dict[str, Stall]] = {}
        for row in self.stalls:
            cases.setdefault(row.case, {})[row.cache] = row
        header = ["call in a fresh process", "s, no cache", "MB", "s, warm cache", "MB"]
        rows = [
            [case, *_stall_words(found.get("off")), *_stall_words(found.get("warm"))]
            for case, found in cases.items()
        ]
        return Table("stalls", "Waits for imports and compilers", header, rows)

    @property
    def latency_table(self) -> Table:
        """Returns the calls of the estimator with 10 rows, for documents."""
        header = ["learner", "columns", "threads", "partial_fit, ms", "from a frame"]
        header += ["bare update", "its own program", "predict one row"]
        rows = []
        for row in self.estimator:
            times = [row.partial_fit_ms, row.partial_fit_frame_ms, row.bare_update_ms]
            times += [row.program_ms, row.predict_one_ms]
            words = ["–" if time is None else f"{time:.2f}" for time in times]
            rows.append([row.learner, str(row.num_columns), str(row.threads), *words])
        return Table("latency", "Calls of LaMAMLClassifier with 10 rows", header, rows)

    @property
    def terminal(self) -> RenderableType:
        """Returns what `lamaml bench` prints."""
        rates = self.gemm_gflops.items()
        speed = ", ".join(f"{rate:.0f} GFLOP/s with {threads}" for threads, rate in rates)
        title = Text(f"Matrix product: {speed} threads", style="bold")
        sentences = Text("\n".join(self._sentences()))
        shown: list[RenderableType] = [title, _for_terminal(self.update_table, 4), sentences]
        if self.stalls:
            shown.append(_for_terminal(self.stall_table, 1))
        return Group(*shown)

    def _sentences(self) -> list[str]:
        lines = [
            f"MER, ten examples, {row.threads} threads: {row.ms:.1f} ms, "
            f"{row.ratio:.1f} times a first-order glance of La-MAML"
            for row in self.mer
        ]
        lines += [
            f"GEM after {row.tasks_seen} tasks, {row.threads} threads: {row.ms:.2f} ms per update"
            for row in self.gem
        ]
        lines += [
            f"Checkpoints, {row.threads} threads: they slow an MNIST run by "
            f"{100 * row.slower:.1f} %; writing one for CIFAR takes {row.cifar_ms:.0f} ms"
            for row in self.checkpoints
        ]
        lines += [str(row) for row in self.estimator]
        lines += [str(load) for load in self.serving]
        ratios = self._dark_ratios()
        if ratios:
            most, case = max(ratios)
            lines.append(f"dark_la_maml takes at most {most:.2f} times la_maml's time: {case}")
        return lines

    def _dark_ratios(self) -> list[tuple[float, str]]:
        """Returns an update of dark_la_maml over one of la_maml, and its case, for each case."""
        ms = {
            (row.learner, row.model, row.order, row.path, row.threads): row.ms
            for row in self.updates
        }
        return [
            (
                value / ms["la_maml", model, order, path, threads],
                f"{model.upper()}, {order} order, {threads} thread{'s' if threads > 1 else ''}",
            )
            for (learner, model, order, path, threads), value in ms.items()
            if learner == "dark_la_maml" and ("la_maml", model, order, path, threads) in ms
        ]


def _case(row: UpdateTime) -> tuple[str, ...]:
    path = row.path.replace("_", " ")
    return row.model.upper(), row.learner, row.order, path, f"{row.gflop:.4f}"


def _stall_words(stall: Stall | None) -> list[str]:
    return [f"{stall.seconds:.2f}", f"{stall.resident_mb:.0f}"] if stall else ["–", "–"]


def _for_terminal(table: Table, num_names: int) -> RichTable:
    """Returns a table for the terminal; columns after the names are numbers."""
    shown = RichTable(box=box.SIMPLE_HEAD, pad_edge=False)
    for number, column in enumerate(table.header):
        shown.add_column(column, justify="left" if number < num_names else "right")
    for row in table.rows:
        shown.add_row(*row)
    return shown


RECORDS: dict[str, type[Any]] = {
    "updates": UpdateTime,
    "mer": MerTime,
    "gem": GemTime,
    "checkpoints": CheckpointCost,
    "estimator": EstimatorLatency,
    "stalls": Stall,
    "serving": ServingLoad,
}
"""The record type of each list of `Measurements`."""
KINDS = {kind: name for name, kind in RECORDS.items()}
