"""Two ways to give caches their memory: a whole window each, or pages as they are needed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import zip_longest

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from glassformer.figures.drawing import label, rounded
from glassformer.figures.style import TITLE, drawn, sheet

SLOT = 15.0  # points from one token's place to the next
DASHED = (0, (2, 2))
NAMES, FILLS = "ABCD", (12, 47, 24, 36)  # of the sequences; all hold keys and values


@drawn
def paged_cache(lengths: Sequence[int], window: int, page: int) -> Figure:
    """Draw the places that sequences of these lengths take: a window each, then pages on demand.

    Pages are handed out in the order in which sequences written side by side would ask for them.
    """
    if not 0 < len(lengths) <= len(NAMES) or not all(0 < n <= window for n in lengths):
        raise ValueError(f"Give 1 to {len(NAMES)} lengths, each from 1 to the window of {window}.")
    pages = _pages(lengths, page)
    across = max(1, int(window * SLOT // (page * SLOT + 8)))  # pages in a line
    rows = math.ceil(len(pages) / across)
    fig, ax = sheet(34 + window * SLOT, 66 + 24 * len(lengths) + 48 * rows)
    used = sum(lengths)
    _heading(ax, 12, f"a window each: {window * len(lengths)} places, {used} used")
    for row, length in enumerate(lengths):
        y = 24 + 24 * row
        label(ax, 10, y + 8, NAMES[row], "ink", weight="bold")
        for place in range(window):
            _slot(ax, 24 + SLOT * place, y, row, place if place < length else None)
    top = 46 + 24 * len(lengths)
    _heading(ax, top, f"pages of {page}: {page * len(pages)} places, {used} used")
    for number, (owner, part) in enumerate(pages):
        x = 24 + (number % across) * (page * SLOT + 8)
        y = top + 14 + 48 * (number // across)
        text = f"page {number}: {NAMES[owner]}"
        label(ax, x, y + 6, text, "ink", ha="left", weight="bold")
        for slot in range(page):
            place = part * page + slot
            _slot(ax, x + SLOT * slot, y + 16, owner, place if place < lengths[owner] else None)
    return fig


def _pages(lengths: Sequence[int], page: int) -> list[tuple[int, int]]:
    """Return (sequence, which of its pages) for each page of memory, in order of demand."""
    wanted = [[(s, n) for n in range(math.ceil(length / page))] for s, length in enumerate(lengths)]
    return [pair for turn in zip_longest(*wanted) for pair in turn if pair is not None]


def _heading(ax: Axes, y: float, text: str) -> None:
    label(ax, 6, y, text, "ink", ha="left", size=TITLE, weight="bold")


def _slot(ax: Axes, x: float, y: float, owner: int, place: int | None) -> None:
    """Draw one token's place: numbered by position if used, dashed if it stands empty."""
    if place is None:
        rounded(ax, x, y, SLOT - 2, 16, "muted", fill=0, ls=DASHED, lw=0.8)
    else:
        rounded(ax, x, y, SLOT - 2, 16, "key", fill=FILLS[owner], lw=0.8)
        label(ax, x + SLOT / 2 - 1, y + 8, str(place), "ink")
