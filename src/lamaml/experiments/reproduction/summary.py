"""The summary on top of a reproduction: each target's cells beside the paper's, and its claims."""

from collections.abc import Sequence

from lamaml.experiments.reporting.table import Table
from lamaml.experiments.reproduction.claims import NOT_JUDGED, WORDS
from lamaml.experiments.reproduction.outcomes import Outcome

_WORDS = ("within", "above", "below")


def summary_table(outcomes: Sequence[Outcome]) -> Table:
    """Returns one row per target: its name, its data, and how many verdicts of each kind."""
    header = ["target", "data", "cells", "RA: within", "above", "below", "not compared"]
    header += ["claims: pass", "fail", "open"]
    return Table("summary", "Verdicts", header, [_row(outcome) for outcome in outcomes])


def data_of(outcome: Outcome) -> str:
    """Returns the benchmarks that were run, in the order of the cells."""
    return ", ".join(dict.fromkeys(cell.benchmark for cell in outcome.cells))


def _row(outcome: Outcome) -> list[str]:
    verdicts = [cell.verdicts.get("ra", "–") for cell in outcome.cells]
    compared = [verdicts.count(word) for word in _WORDS]
    claims = [claim.verdict for claim in outcome.claims]
    ends = [claims.count(WORDS[True]), claims.count(WORDS[False])]
    ends.append(claims.count(WORDS[None]) + claims.count(NOT_JUDGED))
    numbers = [len(outcome.cells), *compared, len(verdicts) - sum(compared), *ends]
    return [outcome.target, data_of(outcome), *(str(number or "–") for number in numbers)]
