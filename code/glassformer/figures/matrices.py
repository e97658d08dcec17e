"""Matrices with every value printed in its cell: alone, in equations, and as products."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from glassformer.figures.style import (
    PAGE_WIDTH,
    SMALL,
    TITLE,
    array,
    canvas,
    colour,
    drawn,
    frame,
    number,
    ramp,
    sheet,
    step_of,
    text_on,
    text_width,
)

CELL, TINY_CELL, ROW = 32.0, 12.0, 21.0  # points: width with and without numbers, height
GAP, SIGN = 16.0, 24.0  # points: between neighbours, and for a sign between them
HIDDEN = -1e8  # masked scores lie below

# The hue below zero and above it. Slate tells nothing in the residual stream, which is slate.
HUES = {"residual": ("scores_low", "residual"), "scores": ("scores_low", "scores_high")}


@dataclass(frozen=True)
class Matrix:
    """A matrix [rows, columns], or a vector [columns], and what to write around it.

    `rows` and `columns` are labels, `hidden` marks what lies above the diagonal as masked, `lit`
    frames places: (1, 2) a cell, (1, None) a row, (None, 2) a column. `scale` is the magnitude of
    the full hue, by default the largest present; for attention it is 1. Without `printed` the
    cells are small and carry no numbers. A cell has a width of at least `least` points.
    """

    values: object
    title: str = ""
    role: str = "residual"
    rows: Sequence[str] | None = None
    columns: Sequence[str] | None = None
    digits: int = 2
    hidden: bool = False
    lit: Sequence[tuple[int | None, int | None]] = ()
    scale: float | None = None
    printed: bool = True
    least: float = CELL

    @property
    def numbers(self) -> np.ndarray:
        """The values [rows, columns], rounded to the digits that are printed."""
        return np.atleast_2d(array(self.values, self.digits))

    @property
    def masked(self) -> np.ndarray:
        """Which values [rows, columns] the causal mask hides."""
        values = self.numbers
        return (values < HIDDEN) | (np.triu(np.ones(values.shape), 1) > 0) * self.hidden

    @property
    def turned(self) -> bool:
        """Whether the column labels stand upright for want of width."""
        return bool(self.columns) and len(self.columns) > 8 and max(map(len, self.columns)) > 4

    @property
    def cell(self) -> float:
        """The width of a cell in points: room for its number and, up to 8 columns, its label."""
        if not self.printed:
            return TINY_CELL
        shown = self.numbers[~self.masked]
        longest = max((number(value, self.digits) for value in shown), key=len, default="")
        labels = self.columns if self.columns and not self.turned else ()
        return max(self.least, *(text_width(text) + 4 for text in (longest, *labels)))

    @property
    def row(self) -> float:
        """The height of a cell in points."""
        return ROW if self.printed else TINY_CELL

    @property
    def left(self) -> float:
        """The points that row labels take."""
        return max(map(text_width, self.rows)) + 6 if self.rows else 0.0

    @property
    def top(self) -> float:
        """The points that title and column labels take."""
        upright = max(map(text_width, self.columns)) + 6 if self.turned else 15.0
        return (20.0 if self.title else 2.0) + (upright if self.columns else 0.0)

    @property
    def grid(self) -> tuple[float, float]:
        """Width and height of the cells together, in points."""
        height, width = self.numbers.shape
        return width * self.cell, height * self.row

    @property
    def width(self) -> float:
        """The points from the row labels to the right edge, title included."""
        shape = f"{self.title}  {list(self.numbers.shape)}"
        return max(self.left + self.grid[0], text_width(shape, TITLE) if self.title else 0)


@drawn
def heatmap(values, title: str = "", role: str = "residual", **options) -> Figure:
    """Draw one matrix [rows, columns]; the options are those of `Matrix`."""
    return equation([Matrix(values, title, role, **options)])


@drawn
def equation(
    parts: Sequence[Matrix | str], one_scale: bool = False, wrap: float = PAGE_WIDTH
) -> Figure:
    """Draw matrices with signs between them, as in [H, "=", token, "+", position].

    A line that would be longer than `wrap` points goes on below, and the signs before such lines
    stand in one column. With `one_scale` equal numbers have equal colours in all parts, and columns
    equal widths, as a sum deserves.
    """
    if one_scale:
        widest = max(part.cell for part in parts if isinstance(part, Matrix))
        parts = [replace(p, least=widest) if isinstance(p, Matrix) else p for p in parts]
    shared = max(_largest(part) for part in parts if isinstance(part, Matrix))
    lines = _lines(parts, wrap)
    heights = [_extent(line) for line in lines]
    indents = _indents(lines)
    widths = [i + sum(map(_width, line)) for i, line in zip(indents, lines, strict=True)]
    fig = canvas(max(widths), sum(above + below + 10 for above, below in heights) + 4)
    before = min((i for i, line in zip(indents, lines, strict=True) if _signed(line)), default=0)
    y = 4.0
    for line, x, (above, below) in zip(lines, indents, heights, strict=True):
        for place, part in enumerate(line):
            at = before if _signed(line) and place == 0 else x
            _place(fig, part, at, y + above, shared if one_scale else None)
            x += _width(part)
        y += above + below + 10
    return fig


def _indents(lines: list[list[Matrix | str]]) -> list[float]:
    """Return where each line starts, so that the first grids of all lines stand in one column."""
    leads = []
    for line in lines:
        first = next(place for place, part in enumerate(line) if isinstance(part, Matrix))
        leads.append(sum(map(_width, line[:first])) + line[first].left)
    return [6 + max(leads) - lead for lead in leads]


def _signed(line: list[Matrix | str]) -> bool:
    """Return whether a line begins with a sign."""
    return isinstance(line[0], str)


def _width(part: Matrix | str) -> float:
    return SIGN if isinstance(part, str) else part.width + GAP


def _extent(line: Sequence[Matrix | str]) -> tuple[float, float]:
    """Return the points above and below a line's middle, which runs through all its grids."""
    matrices = [part for part in line if isinstance(part, Matrix)]
    below = max((matrix.grid[1] / 2 for matrix in matrices), default=10.0)
    return max((m.top + m.grid[1] / 2 for m in matrices), default=10.0), below


def _lines(parts: Sequence[Matrix | str], wrap: float) -> list[list[Matrix | str]]:
    """Break parts into lines; a sign stays with the matrix after it."""
    lines, pending = [[]], []
    for part in parts:
        pending.append(part)
        if isinstance(part, str):
            continue
        if lines[-1] and sum(map(_width, lines[-1] + pending)) > wrap:
            lines.append([])
        lines[-1] += pending
        pending = []
    return lines


def _place(fig: Figure, part: Matrix | str, x: float, middle: float, scale: float | None) -> None:
    height = fig.get_size_inches()[1] * 72
    if isinstance(part, str):
        ax = frame(fig, x - 8, height - middle - 12, SIGN, SIGN)
        ax.axis("off")
        look = {"size": 15, "weight": "bold" if part == "·" else "normal", "color": colour("muted")}
        ax.text(0.5, 0.5, part, ha="center", va="center_baseline", **look)
        return
    across, down = part.grid
    ax = frame(fig, x + part.left, height - middle - down / 2, across, down)
    _cells(ax, part, scale)
    _labels(ax, part)


def _largest(matrix: Matrix) -> float:
    if matrix.role == "attention":
        return 1.0
    return matrix.scale or float(np.abs(matrix.numbers[~matrix.masked]).max(initial=0)) or 1.0


def _step(value: float, role: str, scale: float) -> tuple[str, int]:
    """Return the hue's role and the ramp's step for one value."""
    below, above = HUES.get(role, ("residual", role))
    return below if value < 0 else above, step_of(abs(value) / scale)


def _cells(ax: Axes, matrix: Matrix, scale: float | None) -> None:
    """Colour each cell and write its number; hatch what the mask hides."""
    numbers, masked = matrix.numbers, matrix.masked
    scale = matrix.scale or scale or _largest(matrix)
    steps = [_step(value, matrix.role, scale) for value in numbers.flat]
    steps = [("line", 0) if hides else s for s, hides in zip(steps, masked.flat, strict=True)]
    inks = list(dict.fromkeys(steps))
    codes = np.array([inks.index(step) for step in steps]).reshape(numbers.shape)
    texts = np.array([_cell_text(v, matrix.digits) for v in numbers.flat]).reshape(numbers.shape)
    sns.heatmap(
        codes,
        ax=ax,
        cmap=ListedColormap([ramp(*step) for step in inks]),
        vmin=-0.5,
        vmax=len(inks) - 0.5,
        cbar=False,
        annot=texts if matrix.printed else False,
        fmt="",
        annot_kws={"size": SMALL},
        linewidths=1.5 if matrix.printed else 0.75,
        linecolor=colour("paper"),
        xticklabels=False,
        yticklabels=False,
    )
    ax.collections[0].set_clip_on(False)
    for text, (_, percent), hides in zip(ax.texts, steps, masked.flat, strict=False):
        text.set_color(colour("muted" if hides else text_on(percent)))
    for i, j in np.argwhere(masked):
        ax.add_patch(Rectangle((j + 0.04, i + 0.05), 0.92, 0.9, fill=False, hatch="////", lw=0))
    _frames(ax, matrix)


def _cell_text(value: float, digits: int) -> str:
    if value < HIDDEN:
        return "−∞" if np.isinf(value) else "−10⁹"
    return number(value, digits)


def _frames(ax: Axes, matrix: Matrix) -> None:
    """Draw a frame around the grid, and a strong one around each lit row, column or cell."""
    height, width = matrix.numbers.shape
    edge = {"fill": False, "clip_on": False}
    ax.add_patch(Rectangle((0, 0), width, height, ec=colour("line"), lw=0.8, **edge))
    for i, j in matrix.lit:
        corner = (0 if j is None else j, 0 if i is None else i)
        span = (width if j is None else 1, height if i is None else 1)
        ax.add_patch(Rectangle(corner, *span, ec=colour("ink"), lw=1.8, **edge))


def _labels(ax: Axes, matrix: Matrix) -> None:
    """Write title, shape, row and column labels around a grid; units are points from its corner."""
    across, down = matrix.grid
    height, width = matrix.numbers.shape
    below, above = HUES.get(matrix.role, ("residual", matrix.role))

    def write(x: float, y: float, text: str, **look) -> None:
        ax.text(x / matrix.cell, y / matrix.row, text, clip_on=False, **look)

    muted = {"size": SMALL, "color": colour("muted")}
    for i, label in enumerate(matrix.rows or ()):
        write(-5, (i + 0.5) * matrix.row, label, ha="right", va="center_baseline", size=SMALL)
    for j, label in enumerate(matrix.columns or ()):
        x = (j + 0.5) * matrix.cell
        if matrix.turned:
            write(x + 3, -4, label, ha="left", rotation=90, rotation_mode="anchor", **muted)
        else:
            write(x, -5, label, ha="center", **muted)
    if matrix.title:
        y = -matrix.top + 13
        write(0, y, matrix.title, size=TITLE, weight="bold", color=colour(above))
        shape = f"[{height}, {width}]"
        start = min(text_width(matrix.title, TITLE) + 8, matrix.width - matrix.left)
        write(max(start, across), y, shape, ha="right" if across > start + 24 else "left", **muted)


@drawn
def product_cell(
    A, B, i: int, j: int, names: tuple[str, str, str] = ("A", "B", "A B"), digits: int = 2, **look
) -> Figure:
    """Draw A [m, k] times B [k, n] with row i and column j lit, and spell out the cell's sum.

    B stands above the result and A to its left, so that row and column meet in their cell.
    `look` may hold `roles` (three), `rows` of A and `columns` of B.
    """
    A, B = array(A), array(B)
    roles = look.get("roles", ("residual", "query", "scores"))
    plain = {"digits": digits, "printed": A.shape[1] <= 10}
    left = Matrix(A, names[0], roles[0], rows=look.get("rows"), lit=[(i, None)], **plain)
    upper = Matrix(B, names[1], roles[1], columns=look.get("columns"), lit=[(None, j)], **plain)
    result = Matrix(A @ B, names[2], roles[2], lit=[(i, j)], digits=digits)
    terms = _terms(A[i], B[:, j], digits)
    return _crossing(left, upper, result, terms, f"{names[2]}[{i}, {j}]")


def _crossing(left: Matrix, upper: Matrix, result: Matrix, terms: list[str], name: str) -> Figure:
    """Place the factors around their product, and the sum of terms in the corner that is free."""
    cell, row = max(upper.cell, result.cell), max(left.row, result.row)
    across, down = cell * result.numbers.shape[1], row * len(result.numbers)
    middle = max(left.left + left.grid[0], 250.0)
    lines = _wrapped(terms, middle, name, number(result.numbers[result.lit[0]], result.digits))
    top = max(upper.top + upper.grid[1], 15.0 * len(lines) + 14) + 24
    fig, page = sheet(middle + across + 42, top + down + 8)
    for matrix, x, y, width, height in (
        (left, 6 + middle - left.grid[0], top, left.grid[0], down),
        (upper, middle + 32, top - 24 - upper.grid[1], across, upper.grid[1]),
        (result, middle + 32, top, across, down),
    ):
        ax = frame(fig, x, down + 8 + top - y - height, width, height)
        _cells(ax, matrix, None)
        _labels(ax, matrix)
    for place, line in enumerate(reversed(lines)):
        page.text(6, top - 30 - 15 * place, line, size=SMALL, color=colour("ink"))
    return fig


def _terms(row: np.ndarray, column: np.ndarray, digits: int) -> list[str]:
    """Return the products of a row [k] and a column [k]; negative factors stand in brackets."""

    def factor(value: float) -> str:
        text = number(value, digits)
        return f"({text})" if text.startswith("−") else text

    return [f"{factor(a)} · {factor(b)}" for a, b in zip(row, column, strict=True)]


def _wrapped(terms: list[str], width: float, name: str, total: str) -> list[str]:
    """Return the lines of `name = term + term … = total`, none much longer than `width` points."""
    each = max(1, int(width / text_width(max(terms, key=len) + " + ", 0.9 * SMALL)))
    lines = [" + ".join(terms[k : k + each]) for k in range(0, len(terms), each)]
    return [f"{name} =", lines[0], *(f"+ {line}" for line in lines[1:]), f"= {total}"]
