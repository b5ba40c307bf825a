"""Writes docs/panel.md and docs/guides/when_not_to_use_it.md from docs/panel.json.

    python tools/panel_document.py         (`make results`)

docs/panel.json is the panel.json that `lamaml panel` writes. Both pages are Jinja templates beside
this file: `panel_introduction.md`, which the tables follow, and `when_not_to_use_it.md`. In them
`entry(table, row, column)` is an entry of a table.
"""

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import jinja2

from lamaml.experiments.reporting.table import Table
from lamaml.panel.models import ABOUT
from lamaml.panel.run import Panel, read_panel
from lamaml.panel.streams import STREAMS
from lamaml.panel.tables import tables

_HERE = Path(__file__).parent


def panel_page(panel: Panel) -> str:
    """Returns docs/panel.md."""
    counts: dict[str, set[int]] = {}
    for result in panel.results:
        counts.setdefault(result.model, set()).add(result.seed)
    seeds = ", ".join(f"{name} {len(found)}" for name, found in counts.items())
    template = _template("panel_introduction.md")
    found = tables(panel)
    introduction = template.render(
        panel=panel, about=ABOUT, streams=STREAMS, seeds=seeds, entry=partial(_entry, found)
    )
    sections = [f"## {table.title}\n\n{table.markdown}\n" for table in found]
    return "\n".join([introduction, *sections])


def when_not_to_use_it_page(panel: Panel) -> str:
    """Returns docs/guides/when_not_to_use_it.md."""
    entry = partial(_entry, tables(panel))
    return _template("when_not_to_use_it.md").render(entry=entry)


def _entry(found: Sequence[Table], name: str, row: str, column: str) -> str:
    """Returns an entry of the table with this name."""
    table = next(each for each in found if each.name == name)
    line = next(each for each in table.rows if each[0] == row)
    return line[table.header.index(column)]


def _template(name: str) -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE),
        autoescape=False,  # noqa: S701  (Markdown from our own numbers)
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
    )
    return environment.get_template(name)


def main(root: Path) -> None:
    """Rewrite the pages of a checkout."""
    docs = root / "docs"
    panel = read_panel(docs / "panel.json")
    (docs / "panel.md").write_text(panel_page(panel), "utf-8")
    page = docs / "guides" / "when_not_to_use_it.md"
    page.write_text(when_not_to_use_it_page(panel), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
