"""What diagrams are made of: boxes, arrows, labels, grids of a matrix's shape, and hyperlinks.

All places are points on a `sheet`; y runs down.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch, PathPatch, Rectangle
from matplotlib.path import Path

from glassformer.figures.style import SMALL, TEXT, colour, ramp, text_width

CELL = 6.0  # points: the side of a cell in a grid that shows a shape
ABOVE = 4  # drawing order of boxes: over arrows


class _Tag(Artist):
    """Open (`url` given) or close a hyperlink in the SVG; other formats draw nothing."""

    def __init__(self, url: str = "") -> None:
        super().__init__()
        self.url = url

    def draw(self, renderer) -> None:
        """Write the tag between the artists drawn before and after it."""
        writer = getattr(renderer, "writer", None)
        if writer and self.url:
            writer.start("a", attrib={"xlink:href": self.url})
        elif writer:
            writer.end("a")


@contextmanager
def link(ax: Axes, url: str | None) -> Iterator[None]:
    """Make one hyperlink of all boxes, grids and labels drawn inside; without url, draw as ever."""
    if url:
        ax.add_artist(_Tag(url)).set_zorder(ABOVE)
    yield
    if url:
        ax.add_artist(_Tag()).set_zorder(ABOVE)


def label(ax: Axes, x: float, y: float, text: str, role: str = "muted", **look) -> None:
    """Write one line of text whose middle is at height y; centred on x unless told otherwise."""
    plain = {"ha": "center", "va": "center_baseline", "size": SMALL, "color": colour(role)}
    ax.text(x, y, text, **(plain | {"zorder": ABOVE} | look))


def rounded(
    ax: Axes, x: float, y: float, width: float, height: float, role: str, fill: int = 12, **look
) -> None:
    """Draw a rounded box with its upper left corner at (x, y), `fill` % of the role's hue."""
    plain = {"fc": ramp(role, fill), "ec": colour(role), "lw": 1.1, "zorder": ABOVE}
    shape = "round,pad=0,rounding_size=5"
    ax.add_patch(FancyBboxPatch((x, y), width, height, boxstyle=shape, **(plain | look)))


def box(
    ax: Axes,
    x: float,
    y: float,
    width: float,
    height: float,
    lines: Sequence[str] | str,
    role: str,
    **look,
) -> None:
    """Draw a rounded box with lines of text in its middle; the first is bold, others are muted."""
    rounded(ax, x, y, width, height, role, **look)
    write(ax, x + width / 2, y + height / 2, lines)


def write(ax: Axes, x: float, y: float, lines: Sequence[str] | str, **look) -> None:
    """Write lines around the height y; the first is bold, others are muted."""
    lines = [lines] if isinstance(lines, str) else list(lines)
    for place, line in enumerate(lines):
        at = y + 12.5 * (place - (len(lines) - 1) / 2)
        first = place == 0
        style = {"weight": "bold" if first else "normal"} | look
        label(ax, x, at, line, "ink" if first else "muted", **style)


def dashed_frame(ax: Axes, x: float, y: float, width: float, height: float, role="muted") -> None:
    """Draw a dashed frame behind boxes that belong together."""
    look = {"fill": 0, "fc": "none", "ls": (0, (4, 3)), "lw": 1, "zorder": 0.5}
    rounded(ax, x, y, width, height, role, **look)


def chip(ax: Axes, x: float, y: float, text: str, role: str = "token", **look) -> None:
    """Draw a token around the middle (x, y), as wide as its text needs."""
    width = look.pop("width", max(26.0, text_width(text) + 10))
    rounded(ax, x - width / 2, y - 10, width, 20, role, **look)
    label(ax, x, y, text, "ink")


def arrow(
    ax: Axes, *points: tuple[float, float], role: str = "muted", bend: float = 6.0, **look
) -> None:
    """Draw an arrow through points, its corners rounded."""
    plain = {"lw": 1.3, "color": colour(role), "shrinkA": 0, "shrinkB": 0, "zorder": 2}
    plain |= {"arrowstyle": "-|>,head_width=2.4,head_length=4.6", "mutation_scale": 1}
    plain |= {"joinstyle": "miter", "capstyle": "butt"}
    ax.add_patch(FancyArrowPatch(path=_bent(points, bend), fill=True, **(plain | look)))


def line(
    ax: Axes, *points: tuple[float, float], role: str = "muted", bend: float = 6.0, **look
) -> None:
    """Draw a line through points, its corners rounded."""
    plain = {"lw": 1.3, "ec": colour(role), "fc": "none", "zorder": 2}
    ax.add_patch(PathPatch(_bent(points, bend), **(plain | look)))


def _bent(points: Sequence[tuple[float, float]], bend: float) -> Path:
    """Return the path through points that cuts each corner by a curve of radius `bend`."""
    distinct = [p for place, p in enumerate(points) if place == 0 or p != points[place - 1]]
    spots = [np.array(point, dtype=float) for point in distinct]
    vertices, codes = [spots[0]], [Path.MOVETO]
    for before, corner, after in zip(spots, spots[1:], spots[2:], strict=False):
        for place, other in ((0, before), (1, after)):
            away = other - corner
            length = np.hypot(*away)
            spot = corner + away * min(bend, length / 2) / length
            vertices += [spot] if place == 0 else [corner, spot]
            codes += [Path.LINETO] if place == 0 else [Path.CURVE3, Path.CURVE3]
    return Path([*vertices, spots[-1]], [*codes, Path.LINETO])


def plus(ax: Axes, x: float, y: float, sign: str = "+", role: str = "residual") -> None:
    """Draw the circle in which two streams are combined; its radius is 8."""
    ax.add_patch(Circle((x, y), 8, fc=colour("paper"), ec=colour(role), lw=1.3, zorder=ABOVE))
    label(ax, x, y, sign, "ink", size=TEXT + 1)


def grid(
    ax: Axes,
    x: float,
    y: float,
    shape: tuple[int, int],
    role: str,
    cell: float = CELL,
    lit: int | None = None,
    hidden: bool = False,
) -> None:
    """Draw a matrix's shape in small cells from (x, y); one row can be lit, the future hidden."""
    rows, columns = shape
    wide, tall = columns * cell, rows * cell
    look = {"ec": "none", "zorder": ABOVE}
    ax.add_patch(Rectangle((x, y), wide, tall, fc=ramp(role, 36), **look))
    if lit is not None:
        ax.add_patch(Rectangle((x, y + lit % rows * cell), wide, cell, fc=colour(role), **look))
    if hidden:
        _hide_future(ax, x, y, rows, columns, role, cell)
    lines = [(x + c * cell, y, x + c * cell, y + tall) for c in range(1, columns)]
    lines += [(x, y + r * cell, x + wide, y + r * cell) for r in range(1, rows)]
    vertices = [spot for x0, y0, x1, y1 in lines for spot in ((x0, y0), (x1, y1))]
    codes = [Path.MOVETO, Path.LINETO] * len(lines)
    if lines:
        rules = PathPatch(Path(vertices, codes), ec=colour("paper"), lw=0.7, fc="none")
        ax.add_patch(rules).set_zorder(ABOVE)
    edge = Rectangle((x, y), wide, tall, fc="none", ec=colour(role), lw=0.9, zorder=ABOVE)
    ax.add_patch(edge)


def _hide_future(ax: Axes, x: float, y: float, rows: int, columns: int, role: str, cell: float):
    """Empty and strike out the cells above the diagonal."""
    strokes = []
    for row in range(rows):
        for column in range(row + 1, columns):
            left, top = x + column * cell, y + row * cell
            paper = {"fc": colour("paper"), "ec": "none", "zorder": ABOVE}
            ax.add_patch(Rectangle((left, top), cell, cell, **paper))
            strokes += [(left + 1, top + cell - 1), (left + cell - 1, top + 1)]
    look = {"ec": colour(role), "fc": "none", "lw": 0.7, "zorder": ABOVE}
    if strokes:
        codes = [Path.MOVETO, Path.LINETO] * (len(strokes) // 2)
        ax.add_patch(PathPatch(Path(strokes, codes), **look))


def shape_text(*sides: int) -> str:
    """Return a shape as the book writes it: [4, 8]."""
    return "[" + ", ".join(f"{side:,}" for side in sides) + "]"
