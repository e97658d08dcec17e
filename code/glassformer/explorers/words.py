"""How the explorers put numbers into words: small aligned tables that are alike on every CPU."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from ..figures.style import array, number

LIVE = (
    "The live explorer runs on the course's site, without Python, and in JupyterLab, Notebook 7, "
    "VS Code, Colab and Binder."
)


def told(value: float, digits: int = 2) -> str:
    """Return a number as figures print it, the same on every CPU."""
    return number(array(value).item(), digits)


def share(value: float) -> str:
    """Return a probability as a percentage, such as 86.5 %."""
    return f"{told(100 * float(value), 1)} %"


def ranked(values: Tensor) -> list[int]:
    """Return places of values [n] from the largest down; of equals, to six digits, the first."""
    rounded = array(values)
    return sorted(range(len(rounded)), key=lambda place: -rounded[place])


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return rows of texts under their heads: the first column to the left, others to the right."""
    lines = [list(map(str, line)) for line in (head, *rows)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(head))]
    return "\n".join(
        "  ".join(
            text.rjust(width) if place else text.ljust(width)
            for place, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def grid(values: Tensor, rows: Sequence[str], columns: Sequence[str], corner: str = "") -> str:
    """Return a matrix [rows, columns] as a table of numbers with two decimals."""
    body = [[row, *map(told, line)] for row, line in zip(rows, values.tolist(), strict=True)]
    return table([corner, *columns], body)


def listed(texts: Sequence[str]) -> str:
    """Return texts as a sentence lists them: a, b and c."""
    return " and ".join([*([", ".join(texts[:-1])] if len(texts) > 1 else []), *texts[-1:]])
