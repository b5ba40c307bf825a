"""Writes docs/panel.md from docs/panel.json, the panel.json that `lamaml panel` writes.

    python tools/panel_document.py         (`make results`)

The page begins with the Jinja template `panel_introduction.md`; the tables follow.
"""

import sys
from pathlib import Path

import jinja2

from lamaml.panel.models import ABOUT
from lamaml.panel.run import Panel, read_panel
from lamaml.panel.streams import STREAMS
from lamaml.panel.tables import tables

_HERE = Path(__file__).parent


def panel_page(panel: Panel) -> str:
    """Returns docs/panel.md."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE),
        autoescape=False,  # noqa: S701  (Markdown from our own numbers)
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
    )
    template = environment.get_template("panel_introduction.md")
    counts: dict[str, set[int]] = {}
    for result in panel.results:
        counts.setdefault(result.model, set()).add(result.seed)
    seeds = ", ".join(f"{name} {len(found)}" for name, found in counts.items())
    introduction = template.render(panel=panel, about=ABOUT, streams=STREAMS, seeds=seeds)
    sections = [f"## {table.title}\n\n{table.markdown}\n" for table in tables(panel)]
    return "\n".join([introduction, *sections])


def main(root: Path) -> None:
    """Rewrite the page of a checkout."""
    panel = read_panel(root / "docs" / "panel.json")
    (root / "docs" / "panel.md").write_text(panel_page(panel), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
