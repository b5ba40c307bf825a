"""The results of `lamaml bench`: records, their JSON, and the tables they are printed as."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from lamaml._records import from_json
from lamaml.bench.serving import ServingLoad
from lamaml.experiments.reporting.table import Table
from lamaml.experiments.storing.environment import Environment


@dataclass(frozen=True)
class UpdateTime:
    """One update of a learner, beside the matrix products of the same machine.

    Attributes:
      threads: per process.
      learner: name of the learner.
      model: `mlp` or `cnn`.
      order: `first` or `second`.
      path: of the look-ahead, `function_space` or `general`.
      ms: milliseconds per update.
      gflop: operations of the update's own matrix products, counted, in 10⁹.
      elementwise_gflop: its other operations, which the share leaves out.
      gemm_gflops: matrix-product rate, in 10⁹ operations per second.
      share: rate of the update's matrix products as a share of the machine's.
    """

    threads: int
    learner: str
    model: str
    order: str
    path: str
    ms: float
    gflop: float
    elementwise_gflop: float
    gemm_gflops: float
    share: float


@dataclass(frozen=True)
class MerTime:
    """Ten examples of MER beside one first-order glance of La-MAML at ten rows."""

    threads: int
    ms: float
    la_maml_ms: float
    ratio: float


@dataclass(frozen=True)
class GemTime:
    """One update of GEM after a number of tasks."""

    threads: int
    tasks_seen: int
    ms: float


@dataclass(frozen=True)
class CheckpointCost:
    """The cost of checkpoints.

    Attributes:
      threads: per process.
      seconds: of two tasks of MNIST's size, with checkpoints.
      seconds_without: the same without the waiting for checkpoints.
      slower: share by which checkpoints slow down an MNIST run of twenty tasks.
      cifar_ms: milliseconds to write one checkpoint of the CIFAR learner.
    """

    threads: int
    seconds: float
    seconds_without: float
    slower: float
    cifar_ms: float


@dataclass(frozen=True)
class EstimatorLatency:
    """Calls of `LaMAMLClassifier` with 10 rows of pixels.

    Attributes:
      threads: per process.
      partial_fit_ms: milliseconds of `partial_fit`.
      bare_update_ms: milliseconds of the same learner's update alone, compiled for speed.
      predict_one_ms: milliseconds of `predict` with one row.
      ratio: of `partial_fit` and the bare update.
      programs_compiled: programs compiled for calls with 1, 2, ... `num_sizes` rows.
      num_sizes: how many numbers of rows that were.
      learner: name of the learner.
      num_columns: per row.
      program_ms: milliseconds of the program that `partial_fit` runs, which is compiled quickly.
      partial_fit_frame_ms: milliseconds of `partial_fit` with a frame; None without pandas.
    """

    threads: int
    partial_fit_ms: float
    bare_update_ms: float
    predict_one_ms: float
    ratio: float
    programs_compiled: int
    num_sizes: int = 1000
    learner: str = "la_maml"
    num_columns: int = 784
    program_ms: float | None = None
    partial_fit_frame_ms: float | None = None

    def __str__(self) -> str:
        """Returns the figures in one line."""
        count = f"{self.threads} thread{'s' if self.threads > 1 else ''}"
        frame, program = self.partial_fit_frame_ms, self.program_ms
        from_frame = "" if frame is None else f" ({frame:.2f} ms from a frame)"
        own = (
            ""
            if program is None
            else f", {self.partial_fit_ms / program:.2f} times its own program"
        )
        return (
            f'LaMAMLClassifier("{self.learner}"), {self.num_columns} columns, {count}: partial_fit '
            f"of 10 rows takes {self.partial_fit_ms:.2f} ms{from_frame}, {self.ratio:.2f} times "
            f"the bare update{own}; predict of one row takes {self.predict_one_ms:.2f} ms; "
            f"{self.num_sizes:,} batch sizes compile {self.programs_compiled} programs"
        )


@dataclass(frozen=True)
class Stall:
    """A wait for imports or compilers, in a fresh process.

    Attributes:
      case: the import or call that is timed.
      cache: of compiled programs, `off` or `warm`.
      seconds: of the import or call alone.
      resident_mb: memory of the process after it, in 10⁶ bytes.
    """

    case: str
    cache: str
    seconds: float
    resident_mb: float


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
