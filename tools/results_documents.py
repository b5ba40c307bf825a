"""Writes docs/results.md and the tables in README.md and other pages from stored outcomes.

    python tools/results_documents.py      (`make results`)

docs/results.md begins with the Jinja template `results_introduction.md`. One section per outcome in
docs/results follows, with its note from `results_notes.toml`, and then all update times of
docs/bench.json, the output of `lamaml bench --json`. In README.md, docs/speed.md and
docs/serving.md, the text between `<!-- NAME -->` and `<!-- end -->` is replaced: `la_maml` by the
cells of La-MAML in Tables 1 and 3, `beyond` by the successor beside its rivals, `bench` by the
update times of La-MAML, `speed_updates` by those of all learners, `speed_calls` by the calls of the
estimator, `speed_stalls` by the waits for compilers, `speed_serving` by a server under load,
`panel` by the means of docs/panel.json. A test fails when the documents differ from what this
writes.
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
from lamaml.experiments.reporting.table import Table
from lamaml.experiments.reporting.tables import published, spread
from lamaml.experiments.reproduction.cells import Cell
from lamaml.experiments.reproduction.figures import figures
from lamaml.experiments.reproduction.outcomes import Outcome, read_outcomes, without_replaced
from lamaml.experiments.reproduction.results import CellResult
from lamaml.experiments.reproduction.scales import scale_named
from lamaml.experiments.reproduction.tables import tables
from lamaml.experiments.reproduction.targets import TARGETS
from lamaml.experiments.storing.environment import PACKAGES
from lamaml.panel.run import Panel, read_panel
from lamaml.panel.streams import JUDGING
from lamaml.panel.tables import summary_table

_HERE = Path(__file__).parent
_README_COLUMNS = ("prequential %", "retained %", "s / 1,000 rows", "kB")
_README_MODELS = {
    "auto": "`LaMAMLClassifier`",
    "river_linear": "river's logistic regression",
    "river_forest": "river's adaptive random forest",
    "mlp": "scikit-learn's `MLPClassifier`",
    "forest": "random forest refitted on a sample of the stream",
    "extra_trees": "extra trees refitted on such a sample",
    "boosting_window": "gradient boosting refitted on the last rows",
}


def results_page(outcomes: Mapping[str, Outcome], measured: Measurements) -> str:
    """Returns docs/results.md.

    Args:
      outcomes: by the stem of their files. Partial ones that a full-size one replaces are left out.
      measured: by `lamaml bench`.
    """
    notes = tomllib.loads((_HERE / "results_notes.toml").read_text("utf-8"))
    shown = without_replaced(outcomes)
    sections = [_section(name, outcome, notes.get(name, "")) for name, outcome in shown.items()]
    speed = f"## Time per update\n\n`lamaml bench`: one update of 10 rows.\n\n{_bench(measured)}\n"
    return "\n".join([_introduction(outcomes), *sections, speed])


def with_tables(
    text: str, outcomes: Mapping[str, Outcome], measured: Measurements, panel: Panel
) -> str:
    """Returns a document with its marked tables replaced.

    Args:
      text: the document.
      outcomes: by the stem of their files.
      measured: by `lamaml bench`.
      panel: of our estimators and their rivals.
    """
    blocks = {
        "la_maml": _la_maml(outcomes),
        "beyond": _beyond(outcomes),
        "bench": _la_maml_times(measured),
        "speed_updates": _bench(measured),
        "speed_calls": measured.latency_table.markdown,
        "speed_stalls": measured.stall_table.markdown,
        "speed_serving": "```\n" + "\n".join(map(str, measured.serving)) + "\n```",
        "panel": _panel(panel),
    }

    def table(mark: re.Match[str]) -> str:
        return f"<!-- {mark[1]} -->\n{blocks[mark[1]]}\n<!-- end -->"

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


def _la_maml(outcomes: Mapping[str, Outcome]) -> str:
    """Returns the cells of La-MAML in Tables 1 and 3, as far as they were run at full size."""
    found = {
        (outcome.target, cell.column): cell
        for outcome in outcomes.values()
        for cell in outcome.cells
        if cell.learner == "la_maml" and cell.is_whole
    }
    cells = [
        (cell, found.get((target, cell.column)))
        for target in ("table1", "table3")
        for cell in TARGETS[target].cells(scale_named("full"))
        if cell.recipe.learner == "la_maml"
    ]
    rows = [_la_maml_row(cell, result) for cell, result in cells if result is not None]
    missing = [cell.column for cell, result in cells if result is None]
    header = ["data", "seeds", "RA", "paper", "verdict", "BTI", "paper", "verdict"]
    table = Table("la_maml", "La-MAML", header, rows).markdown
    return f"{table}\n\nNot run at full size yet: {'; '.join(missing)}." if missing else table


def _la_maml_row(cell: Cell, found: CellResult) -> list[str]:
    paper = cell.recipe.published
    data = cell.column if found.is_paper_size else f"{cell.column} (part of the archive)"
    row = [data, str(found.statuses.count("finished"))]
    for metric in ("ra", "bti"):
        ours = found.metric(metric)
        verdict = found.verdicts.get(metric, "–")
        row += [spread(ours.mean, ours.sd), published(paper.get(metric)), verdict]
    return row


def _beyond(outcomes: Mapping[str, Outcome]) -> str:
    """Returns RA of the successor and its rivals at the same number of rows, one row per stream."""
    cells = [c for o in outcomes.values() if o.target == "beyond" for c in o.cells if c.is_whole]
    rows = list(dict.fromkeys(cell.row for cell in cells))
    found = {(cell.column, cell.row): cell.ra for cell in cells}
    table = []
    for column in dict.fromkeys(cell.column for cell in cells):
        spreads = (found.get((column, row)) for row in rows)
        table.append([column, *("–" if s is None else spread(s.mean, s.sd) for s in spreads)])
    return Table("beyond", "Beyond the paper", ["data", *rows], table).markdown


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


def _la_maml_times(measured: Measurements) -> str:
    """Returns a sentence on La-MAML's fastest path with one thread."""
    best: dict[tuple[str, str], float] = {}
    for time in measured.updates:
        if (time.learner, time.threads) == ("la_maml", 1):
            key = (time.model.upper(), time.order)
            best[key] = min(time.ms, best.get(key, time.ms))
    listed = ", ".join(
        f"{ms:.3g} ms ({model}, {order} order)" for (model, order), ms in best.items()
    )
    rate = measured.gemm_gflops["1"]
    return f"One update of La-MAML with 10 rows takes {listed}, on one core of {rate:.0f} GFLOP/s."


def _panel(panel: Panel) -> str:
    """Returns what some models achieve in the mean over the judging half."""
    table = summary_table(panel, JUDGING)
    places = [table.header.index(column) for column in _README_COLUMNS]
    rows = {row[0]: [row[place] for place in places] for row in table.rows}
    shown = [[_README_MODELS[name], *rows[name]] for name in _README_MODELS]
    return Table("panel", table.title, ["model", *_README_COLUMNS], shown).markdown


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
    measured = Measurements.from_json(json.loads((docs / "bench.json").read_text("utf-8")))
    panel = read_panel(docs / "panel.json")
    (docs / "results.md").write_text(results_page(outcomes, measured), "utf-8")
    for name, outcome in outcomes.items():
        for drawing in figures(outcome):
            export(drawing, docs / "results" / name, ["svg"])
    for page in (root / "README.md", docs / "speed.md", docs / "serving.md"):
        text = with_tables(page.read_text("utf-8"), outcomes, measured, panel)
        page.write_text(text, "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
