"""`Table`: text in rows and columns, written for the terminal and as Markdown, LaTeX and CSV."""

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import rich.table
from rich import box
from rich.text import Text

from lamaml._io import write_text

_LATEX = {"±": r"$\pm$", "−": r"$-$", "*": r"$*$", "\\": r"\textbackslash{}"}
_LATEX |= {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_LATEX |= {sign: f"\\{sign}" for sign in "%_&#${}"}
_STYLES = {"within": "green", "above": "green", "below": "red", "pass": "green", "fail": "red"}


class Table(NamedTuple):
    """A table: the stem of its files, its title, its column names, its rows.

    With `records`, the CSV file holds these instead of the text: one row per record, numbers as
    numbers, nothing for NaN and None. On a page, the rows are grouped by the column `group`, and
    the cells of `bold`, (row, column), are the best.
    """

    name: str
    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    records: Sequence[Mapping[str, Any]] = ()
    group: str = ""
    bold: Sequence[tuple[int, int]] = ()

    @property
    def columns(self) -> list[int]:
        """Returns the numbers of the columns that a page shows: all but that of the groups."""
        return [number for number, name in enumerate(self.header) if not name or name != self.group]

    @property
    def groups(self) -> list[tuple[str, list[int]]]:
        """Returns (name, numbers of rows) of each group, in order; one without a name if none."""
        if not self.group:
            return [("", list(range(len(self.rows))))]
        column, found = list(self.header).index(self.group), dict[str, list[int]]()
        for number, row in enumerate(self.rows):
            found.setdefault(row[column], []).append(number)
        return list(found.items())

    @property
    def terminal(self) -> rich.table.Table:
        """Returns the table for a terminal; long words are folded, never cut."""
        table = rich.table.Table(
            box=box.SIMPLE_HEAD,
            padding=(0, 1, 0, 0),
            pad_edge=False,
            title=self.title,
            title_justify="left",
        )
        for number, name in enumerate(self.header):
            table.add_column(name, justify="left" if number < 2 else "right", overflow="fold")
        for row in self.rows:
            table.add_row(*(Text(word, style=_STYLES.get(word, "")) for word in row))
        return table

    @property
    def markdown(self) -> str:
        """Returns a pipe table."""
        lines = [self.header, ["---"] * len(self.header), *self.rows]
        return "\n".join(f"| {' | '.join(_markdown(word) for word in line)} |" for line in lines)

    @property
    def latex(self) -> str:
        """Returns a `tabular` with the rules of booktabs."""
        body = [" & ".join(_latex(word) for word in row) + r" \\" for row in self.rows]
        head = " & ".join(_latex(word) for word in self.header) + r" \\"
        columns = "ll" + "r" * (len(self.header) - 2)
        begin, end = rf"\begin{{tabular}}{{{columns}}}", r"\end{tabular}"
        return "\n".join([begin, r"\toprule", head, r"\midrule", *body, r"\bottomrule", end])

    @property
    def csv(self) -> str:
        """Returns comma-separated values with a header line."""
        buffer = io.StringIO()
        header: Sequence[str] = self.header
        rows: Sequence[Sequence[Any]] = self.rows
        if self.records:
            header = list(dict.fromkeys(name for record in self.records for name in record))
            rows = [[_blank(record.get(name)) for name in header] for record in self.records]
        csv.writer(buffer, lineterminator="\n").writerows([header, *rows])
        return buffer.getvalue()

    def write(self, folder: Path) -> None:
        """Write NAME.md, NAME.tex and NAME.csv."""
        for suffix, text in ((".md", self.markdown), (".tex", self.latex), (".csv", self.csv)):
            write_text(folder / f"{self.name}{suffix}", text.rstrip("\n") + "\n")


def _blank(value: Any) -> Any:
    return "" if value is None or value != value else value  # NaN is not equal to itself


def _markdown(word: str) -> str:
    return word.replace("|", "\\|").replace("*", "\\*")


def _latex(word: str) -> str:
    return "".join(_LATEX.get(sign, sign) for sign in word)
