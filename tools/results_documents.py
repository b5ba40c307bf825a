"""The project's own documents: their tables are written from stored outcomes, never by hand.

    python tools/results_documents.py      (`make results`)

rewrites docs/results.md with its figures, and in README.md what stands between `<!-- NAME -->` and
`<!-- end -->`, from docs/results/NAME.json; `bench` from docs/bench.json, which is what
`lamaml bench --json` has printed. A test says when they differ.
"""

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lamaml.bench import Measurements
from lamaml.experiments.reporting.figures import export
from lamaml.experiments.reproduction.figures import figures
from lamaml.experiments.reproduction.outcomes import stored
from lamaml.experiments.reproduction.tables import tables
from lamaml.experiments.storing.environment import PACKAGES

_INTRODUCTION = """# Results

Written by `make results` from the outcomes in [results/](results/), which `lamaml reproduce` has
found; the command above each table prints it again. Accuracies in percent, mean ± sd over seeds.

A verdict is Welch's test, two-sided, at 5 %, of our seeds against the paper's mean, sd and number
of seeds: `within` where it finds no difference, else `above` or `below`; – with fewer than two
seeds, or where the experiment is smaller than the paper's. A claim about the order of methods
passes or fails only where the seeds tell them apart; one about a ratio, a range or a curve is
checked on the means there are, be it of one seed.

`tuned` marks a method whose published settings do not give the paper's number: its rates were moved
until it came near, and one of them (Rotations) once more after its test result had been seen. Its
verdict says that the number can be reached, and is no evidence for the published settings. Runs of
another revision than the newest were made with the same settings and put under their cell's name.

TinyImagenet is a subset with 60 training images a class, not 500: 270 rows a task. Three tasks of
it are 162 updates of C-MAML, Sync and La-MAML and 243 of Meta-BGD: too few to leave chance, which
on CIFAR-100 takes La-MAML several hundred (see the figure below); after ten passes, 810 updates, it
has only begun to. Methods that replay without looking ahead learn there at once. Those rows, and
the claim of Table 4 that passes on them, show that it runs, and no more.

Ten passes over three tasks of 500 rows of CIFAR-100 are 1,500 updates, a thirtieth of the paper's.
La-MAML is still learning there, its BTI is above zero, and the paper's order of methods does not
show at that size.

Of two rates at once, with three values each: at α₀ = .03 La-MAML hardly feels η, where C-MAML at
α = .03 has learned next to nothing with the smallest β; a first rate of .3 is too large for both.

Table 4 has two readings of "replay samples": rows drawn from all of the memory, as the learners
draw them, and rows of earlier tasks alone. By the second, Sync and La-MAML are well above ER after
three tasks of 500 rows, and no longer after five of 2,250.
"""


def results_page(outcomes: Mapping[str, Mapping[str, Any]]) -> str:
    """docs/results.md.

    Args:
      outcomes: by the name of their file.
    """
    return "\n".join([_INTRODUCTION, *(_section(name, found) for name, found in outcomes.items())])


def with_tables(
    text: str, outcomes: Mapping[str, Mapping[str, Any]], measured: Measurements
) -> str:
    """A document whose marked tables are those of the outcomes.

    Args:
      text: of the document.
      outcomes: by the name of their file.
      measured: by `lamaml bench`.
    """

    def table(mark: re.Match[str]) -> str:
        found = _bench(measured) if mark[1] == "bench" else _tables(outcomes[mark[1]])
        return f"<!-- {mark[1]} -->\n{found}\n<!-- end -->"

    return re.sub(r"<!-- ([\w-]+) -->\n.*?<!-- end -->", table, text, flags=re.DOTALL)


def _tables(outcome: Mapping[str, Any]) -> str:
    return "\n\n".join(table.markdown for table in tables(outcome))


def _bench(measured: Measurements) -> str:
    rates = [f"{rate:.0f} ({count})" for count, rate in measured.gemm_gflops.items()]
    where = measured.environment
    made = ", ".join(f"{name} {where['versions'][name]}" for name in PACKAGES)
    notes = (
        f"Matrix products in GFLOP/s, with so many threads: {', '.join(rates)}; "
        f"{where['cpus']} cores, {where['machine']}; {made}; code {where['revision'][:12]}."
    )
    return f"{measured.update_table.markdown}\n\n{notes}"


def _section(name: str, outcome: Mapping[str, Any]) -> str:
    title = f"## {outcome['title']}\n\n`{outcome['command']}`: {outcome['about']}."
    pictures = [f"![{d.caption}](results/{name}/{d.name}.svg)\n\n" for d in figures(outcome)]
    made: dict[str, list[str]] = {}
    for cell in outcome["cells"]:
        made.setdefault(cell["revision"], []).append(f"{cell['row']} {cell['column']}")
    code = "; ".join(f"code {revision}: {', '.join(cells)}" for revision, cells in made.items())
    notes = f"Made with {'; '.join(outcome['versions'])}; {code}."
    if outcome["missing"]:
        notes = f"Not run: {'; '.join(outcome['missing'])}. {notes}"
    return f"{title}\n\n{''.join(pictures)}{_tables(outcome)}\n\n{notes}\n"


def main(root: Path) -> None:
    """Rewrite the documents of a checkout."""
    folder = root / "docs" / "results"
    outcomes = stored(folder)
    (root / "docs" / "results.md").write_text(results_page(outcomes), "utf-8")
    for name, outcome in outcomes.items():
        for drawing in figures(outcome):
            export(drawing, folder / name, ["svg"])
    measured = Measurements.from_json(json.loads((root / "docs" / "bench.json").read_text("utf-8")))
    readme = root / "README.md"
    readme.write_text(with_tables(readme.read_text("utf-8"), outcomes, measured), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
