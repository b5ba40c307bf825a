"""Writes docs/results.md and the tables in README.md from stored outcomes.

    python tools/results_documents.py      (`make results`)

docs/results.md begins with the Jinja template `results_introduction.md`. One section per outcome in
docs/results follows, with its note from `results_notes.toml`. In README.md, the text between
`<!-- NAME -->` and `<!-- end -->` is replaced by the tables of docs/results/NAME.json; that of
`bench` comes from docs/bench.json, the output of `lamaml bench --json`. A test fails when the
documents differ from what this writes.
"""

import json
import re
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

import jinja2

from lamaml.bench import Measurements
from lamaml.experiments.reporting.figures import export
from lamaml.experiments.reproduction.figures import figures
from lamaml.experiments.reproduction.outcomes import Outcome, read_outcomes, without_replaced
from lamaml.experiments.reproduction.results import CellResult
from lamaml.experiments.reproduction.tables import tables
from lamaml.experiments.storing.environment import PACKAGES

_HERE = Path(__file__).parent


def results_page(outcomes: Mapping[str, Outcome]) -> str:
    """Returns docs/results.md.

    Args:
      outcomes: by the stem of their files. Partial ones that a full-size one replaces are left out.
    """
    notes = tomllib.loads((_HERE / "results_notes.toml").read_text("utf-8"))
    shown = without_replaced(outcomes)
    sections = [_section(name, outcome, notes.get(name, "")) for name, outcome in shown.items()]
    return "\n".join([_introduction(outcomes), *sections])


def with_tables(text: str, outcomes: Mapping[str, Outcome], measured: Measurements) -> str:
    """Returns a document with its marked tables replaced.

    Args:
      text: the document.
      outcomes: by the stem of their files.
      measured: by `lamaml bench`.
    """

    def table(mark: re.Match[str]) -> str:
        found = _bench(measured) if mark[1] == "bench" else _tables(outcomes[mark[1]])
        return f"<!-- {mark[1]} -->\n{found}\n<!-- end -->"

    return re.sub(r"<!-- ([\w-]+) -->\n.*?<!-- end -->", table, text, flags=re.DOTALL)


def _introduction(outcomes: Mapping[str, Outcome]) -> str:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE),
        autoescape=False,  # noqa: S701  (Markdown from our own numbers)
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
    )

    def cell(name: str, row: str, column: str) -> CellResult:
        return next(c for c in outcomes[name].cells if (c.row, c.column) == (row, column))

    def within(name: str, metric: str) -> str:
        verdicts = [found.verdicts.get(metric) for found in outcomes[name].cells]
        return f"{verdicts.count('within')} of {len(verdicts)}"

    template = environment.get_template("results_introduction.md")
    return template.render(cell=cell, within=within)


def _tables(outcome: Outcome) -> str:
    return "\n\n".join(table.markdown for table in tables(outcome))


def _bench(measured: Measurements) -> str:
    rates = [f"{rate:.0f} ({count})" for count, rate in measured.gemm_gflops.items()]
    where = measured.environment
    versions = ", ".join(f"{name} {where.versions[name]}" for name in PACKAGES)
    revision = (where.revision or "unknown")[:12]
    notes = (
        f"Matrix products in GFLOP/s (number of threads): {', '.join(rates)}; "
        f"{where.cpus} cores, {where.machine}; {versions}; code {revision}."
    )
    return f"{measured.update_table.markdown}\n\n{notes}"


def _section(name: str, outcome: Outcome, note: str) -> str:
    title = f"## {outcome.title}\n\n`{outcome.command}`: {outcome.about}."
    pictures = [f"![{d.caption}](results/{name}/{d.name}.svg)" for d in figures(outcome)]
    made: dict[str, list[str]] = {}
    for cell in outcome.cells:
        made.setdefault(cell.revision, []).append(f"{cell.row} {cell.column}")
    code = "; ".join(f"code {revision}: {', '.join(cells)}" for revision, cells in made.items())
    origin = f"Made with {'; '.join(outcome.versions)}; {code}."
    if outcome.missing:
        origin = f"Not run: {'; '.join(outcome.missing)}. {origin}"
    parts = [title, note.strip(), *pictures, _tables(outcome), origin]
    return "\n\n".join(part for part in parts if part) + "\n"


def main(root: Path) -> None:
    """Rewrite the documents of a checkout."""
    docs = root / "docs"
    outcomes = read_outcomes(docs / "results")
    (docs / "results.md").write_text(results_page(outcomes), "utf-8")
    for name, outcome in outcomes.items():
        for drawing in figures(outcome):
            export(drawing, docs / "results" / name, ["svg"])
    measured = Measurements.from_json(json.loads((docs / "bench.json").read_text("utf-8")))
    readme = root / "README.md"
    readme.write_text(with_tables(readme.read_text("utf-8"), outcomes, measured), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
