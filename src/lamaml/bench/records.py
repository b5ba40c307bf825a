"""What `lamaml bench` measures: one record per measurement."""

from dataclasses import dataclass


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
