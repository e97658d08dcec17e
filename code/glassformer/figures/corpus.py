"""What a corpus holds: examples, the tree of its contexts, and what each context leaves open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle

from glassformer.data import next_token_counts
from glassformer.figures.style import (
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
    text_width,
)

LEVEL, LEAF = 122.0, 17.0  # points from one position to the next, and from leaf to leaf
WIDE, TALL = 62.0, 32.0  # points of a token's cell


@drawn
def examples(X, Y, words: Sequence[str], targets: str = "next token") -> Figure:
    """Draw contexts X [n, T] as rows of tokens with their ids, and what follows, Y [n].

    The padding, id 0, is hatched.
    """
    contexts, nexts = array(X).astype(int), array(Y).astype(int)
    n, T = contexts.shape
    fig, ax = sheet(T * WIDE + 150, n * (TALL + 6) + 32)
    muted = {"size": SMALL, "color": colour("muted"), "ha": "center"}
    for t in range(T):
        ax.text(8 + (t + 0.5) * WIDE, 20, f"position {t}", **muted)
    ax.text(T * WIDE + 92, 20, targets, **muted)
    for i in range(n):
        y = 28 + i * (TALL + 6)
        for t, token in enumerate(contexts[i]):
            _token(ax, 8 + t * WIDE, y, token, words, "token")
        ends = ((T * WIDE + 14, y + TALL / 2), (T * WIDE + 52, y + TALL / 2))
        look = {"arrowstyle": "-|>", "mutation_scale": 9, "shrinkA": 0, "shrinkB": 0, "lw": 1.2}
        ax.add_patch(FancyArrowPatch(*ends, color=colour("muted"), **look))
        _token(ax, T * WIDE + 61, y, nexts[i], words, "loss")
    return fig


def _token(ax: Axes, x: float, y: float, token: int, words: Sequence[str], role: str) -> None:
    """Draw one token: its word, below it its id; padding is hatched."""
    pad = token == 0
    look = {"fc": "none", "hatch": "////", "ec": colour("line")} if pad else {}
    look = look or {"fc": ramp(role, 18), "ec": colour(role)}
    ax.add_patch(Rectangle((x + 1.5, y), WIDE - 3, TALL, lw=0 if pad else 1, **look))
    if pad:
        ax.add_patch(Rectangle((x + 1.5, y), WIDE - 3, TALL, fc="none", ec=colour("line")))
    middle = {"ha": "center", "va": "center_baseline", "size": SMALL}
    box = {"fc": colour("paper"), "ec": "none", "pad": 1.5} if pad else None
    word = {"weight": "normal" if pad else "bold", "bbox": box}
    ax.text(x + WIDE / 2, y + 10.5, words[token], color=colour("ink"), **middle, **word)
    ax.text(x + WIDE / 2, y + 23, str(token), color=colour("muted"), **middle, bbox=box)


@drawn
def prefix_tree(X, Y, words: Sequence[str]) -> Figure:
    """Draw the contexts X [N, T] as a tree: each node is one context, its branches what follows.

    A context that more than one token follows is framed, with its entropy in nats.
    """
    counts = next_token_counts(X, Y)
    tree = {tuple(i for i in context if i): followers for context, followers in counts.items()}
    root = min(tree, key=len)
    rows: dict[tuple[int, ...], float] = {}
    leaves = _place_rows(root, tree, rows, 0)
    depth = max(map(len, tree))
    fig, ax = sheet(depth * LEVEL + 6, leaves * LEAF + 46)
    for level in range(depth):
        look = {"size": SMALL, "color": colour("muted")}
        ax.text(8 + level * LEVEL, 14, f"position {level}", **look)
    spots = {c: (8 + (len(c) - len(root)) * LEVEL, 30 + row * LEAF) for c, row in rows.items()}
    for context, (x, y) in spots.items():
        if context != root:
            before = spots[context[:-1]]
            _branch(ax, before, (x, y), words[context[-2]], sum(tree[context].values()))
    for context, (x, y) in spots.items():
        _node(ax, x, y, words[context[-1]], tree[context])
    key = "framed: more than one token follows, and how much that leaves open, in nats"
    ax.text(8, leaves * LEAF + 38, key, size=SMALL, color=colour("muted"))
    return fig


def _place_rows(context: tuple, tree: dict, rows: dict, free: int) -> int:
    """Give a context and all below it a row each, from row `free` on; return the next free row."""
    below = [(*context, token) for token in tree[context] if (*context, token) in tree]
    start = free
    for child in below:
        free = _place_rows(child, tree, rows, free)
    rows[context] = (rows[below[0]] + rows[below[-1]]) / 2 if below else start
    return free if below else free + 1


def _branch(ax: Axes, start: tuple, end: tuple, word: str, times: int) -> None:
    """Draw the line from a context to a longer one; the oftener, the thicker."""
    x = start[0] + text_width(word, SMALL) + 5
    bend = end[0] - 26
    points = np.array([(x, start[1]), (max(x, bend), start[1]), (end[0] - 5, end[1])])
    ax.plot(*points.T, color=ramp("token", 47), lw=0.7 + 0.35 * times, zorder=1)


def _node(ax: Axes, x: float, y: float, word: str, followers: Mapping[int, int]) -> None:
    """Write a context's last token, how often the context occurs, and its entropy where open."""
    shares = np.array(list(followers.values())) / sum(followers.values())
    total = sum(followers.values())
    text = f"{word} ×{total}" if total > 1 else word
    look = {"size": SMALL, "va": "center_baseline", "zorder": 3}
    if len(shares) == 1:
        box = {"fc": colour("paper"), "ec": "none", "pad": 1.0}
        ax.text(x, y, text, bbox=box, **look)
        return
    entropy = float(-(shares * np.log(shares)).sum())
    wide = max(1.15 * text_width(text, SMALL), text_width("0.000 nats", SMALL)) + 6
    tile = {"fc": ramp("loss", 18), "ec": colour("loss"), "lw": 1.4, "zorder": 2}
    ax.add_patch(Rectangle((x - 4, y - 13.5), wide, 27, **tile))
    ax.text(x, y - 6, text, weight="bold", **look)
    ax.text(x, y + 6, f"{number(entropy, 3)} nats", **look)


@drawn
def bars(
    values: Mapping[str, float],
    title: str,
    role: str = "loss",
    digits: int = 3,
    notes: Sequence[str] = (),
) -> Figure:
    """Draw one bar for each name with its value, and after it a note of its own."""
    left = max(map(text_width, values)) + 14
    room = max((text_width(note) for note in notes), default=0) + 54
    down = 20.0 * len(values)
    fig = canvas(left + 230 + room, down + 38)
    ax = frame(fig, left, 8, 230, down)
    widest = max(values.values())
    for y, value in enumerate(values.values()):
        ax.barh(y, round(value, 6), height=0.7, color=ramp(role, 47), ec=colour(role), lw=1)
        text = " · ".join([number(value, digits), *notes[y : y + 1]])
        ax.text(value + 0.02 * widest, y, text, va="center_baseline", size=SMALL)
    ax.set_yticks(range(len(values)), list(values))
    ax.set(xlim=(0, widest), ylim=(len(values) - 0.5, -0.5), xticks=[])
    ax.spines["bottom"].set_visible(False)
    ax.tick_params(length=0, labelcolor=colour("ink"))
    ax.set_title(title, pad=8, x=-(left - 4) / 230, size=TITLE)
    return fig
