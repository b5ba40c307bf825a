"""The page of a panel: one HTML file with all tables."""

from pathlib import Path

import jinja2

from lamaml._io import write_text
from lamaml.experiments.reporting.page import templates
from lamaml.panel.models import ABOUT
from lamaml.panel.run import Panel
from lamaml.panel.tables import tables


def write_page(panel: Panel, path: Path) -> None:
    """Write the page."""
    write_text(path, render(panel))


def render(panel: Panel) -> str:
    """Return the page as HTML."""
    environment = templates()
    own = jinja2.PackageLoader("lamaml.panel", "templates")
    environment.loader = jinja2.ChoiceLoader([own, environment.loader])  # type: ignore[list-item]
    page = environment.get_template("panel.html")
    return page.render(panel=panel, tables=tables(panel), about=ABOUT).strip() + "\n"
