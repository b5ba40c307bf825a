"""A table, once: for the terminal, the page, and as Markdown, LaTeX and CSV."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rich import box
from rich.table import Table
from rich.text import Text

from lamaml._io import write_text

_SIGNS = {"±": r"$\pm$", "−": r"$-$", "*": r"$*$", "\\": r"\textbackslash{}"}
_SIGNS |= {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_SIGNS |= {sign: f"\\{sign}" for sign in "%_&#${}"}
_STYLES = {"within": "green", "above": "green", "below": "red", "pass": "green", "fail": "red"}


class Grid(NamedTuple):
    """Words in rows and columns."""

    name: str
    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]

    @property
    def rich(self) -> Table:
        """For the terminal."""
        table = Table(
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
        """As a pipe table."""
        lines = [self.header, ["---"] * len(self.header), *self.rows]
        return "\n".join(f"| {' | '.join(_escaped(word) for word in line)} |" for line in lines)

    @property
    def latex(self) -> str:
        """As a tabular, with booktabs."""
        body = [" & ".join(_for_latex(word) for word in row) + r" \\" for row in self.rows]
        head = " & ".join(_for_latex(word) for word in self.header) + r" \\"
        columns = "ll" + "r" * (len(self.header) - 2)
        begin, end = rf"\begin{{tabular}}{{{columns}}}", r"\end{tabular}"
        return "\n".join([begin, r"\toprule", head, r"\midrule", *body, r"\bottomrule", end])

    @property
    def csv(self) -> str:
        """As comma-separated values."""
        buffer = io.StringIO()
        csv.writer(buffer, lineterminator="\n").writerows([self.header, *self.rows])
        return buffer.getvalue()

    def write(self, folder: Path) -> None:
        """As NAME.md, NAME.tex and NAME.csv."""
        for suffix, text in ((".md", self.markdown), (".tex", self.latex), (".csv", self.csv)):
            write_text(folder / f"{self.name}{suffix}", text.rstrip("\n") + "\n")


def _escaped(word: str) -> str:
    return word.replace("|", "\\|").replace("*", "\\*")


def _for_latex(word: str) -> str:
    return "".join(_SIGNS.get(sign, sign) for sign in word)
