"""Tables built from data, as HTML for a page and as aligned text everywhere else."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from IPython.display import display

_NUMBER = re.compile(r"[-−]?[\d,.]+(?:e[-−]?\d+)?(?: %)?|—|")


class Table:
    """Rows under named columns; columns of numbers are set flush right."""

    def __init__(
        self, rows: Sequence[Sequence[object]], columns: Sequence[str], caption: str = ""
    ) -> None:
        self.rows = [[str(cell) for cell in row] for row in rows]
        self.columns, self.caption = [str(column) for column in columns], caption
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError(f"Each row needs {len(self.columns)} cells, one for each column.")

    @property
    def numeric(self) -> list[bool]:
        """Whether each column holds nothing but numbers."""
        return [all(map(_NUMBER.fullmatch, column)) for column in zip(*self.rows, strict=True)]

    def __repr__(self) -> str:
        lines = [self.columns, *self.rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        look = list(zip(widths, self.numeric, strict=True))
        text = "\n".join(
            "  ".join(c.rjust(w) if n else c.ljust(w) for c, (w, n) in zip(line, look, strict=True))
            for line in lines
        )
        return "\n".join(line.rstrip() for line in f"{self.caption}\n{text}".strip().split("\n"))

    def _repr_html_(self) -> str:
        sides = [' class="text-right"' if numeric else "" for numeric in self.numeric]

        def line(cells: Sequence[str], tag: str, extra: str = "") -> str:
            inside = "".join(
                f"<{tag}{extra}{side}>{html.escape(cell)}</{tag}>"
                for cell, side in zip(cells, sides, strict=True)
            )
            return f"<tr>{inside}</tr>"

        head = line(self.columns, "th", ' scope="col"')
        body = "\n".join(line(row, "td") for row in self.rows)
        caption = f"<caption>{html.escape(self.caption)}</caption>" if self.caption else ""
        return (
            f'<table class="table" tabindex="0">{caption}<thead>{head}</thead>\n'
            f"<tbody>{body}</tbody></table>"
        )


def table(rows: Sequence[Sequence[object]], columns: Sequence[str], caption: str = "") -> None:
    """Display rows of cells under named columns."""
    display(Table(rows, columns, caption))
