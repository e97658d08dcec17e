"""Who reads whom: the wiring of attention, its flow of matrices, and what each position sees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from glassformer.figures.matrices import Matrix, _cells, _largest
from glassformer.figures.style import (
    SMALL,
    TEXT,
    array,
    colour,
    drawn,
    frame,
    number,
    ramp,
    sheet,
    text_width,
)

MINI = 9.5  # points: the side of a cell without numbers


def _chip(ax: Axes, x: float, y: float, text: str, role: str, width: float, strong: bool = False):
    """Draw a rounded box around (x, y) with a text in it."""
    look = {"fc": ramp(role, 30 if strong else 12), "ec": colour(role), "lw": 1.6 if strong else 1}
    style = "round,pad=0,rounding_size=4"
    ax.add_patch(FancyBboxPatch((x - width / 2, y - 10), width, 20, boxstyle=style, **look))
    ax.text(x, y, text, ha="center", va="center_baseline", size=SMALL)


def _arrow(ax: Axes, start: tuple, end: tuple, role: str = "muted", width: float = 1.0) -> None:
    look = {"arrowstyle": "-|>,head_width=0.16,head_length=0.3", "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", end, start, arrowprops=look | {"lw": width, "color": colour(role)})


@drawn
def attention_wiring(tokens: Sequence[str], attention, lit: Sequence[int] = (0, -1)) -> Figure:
    """Draw each token split into query, key and value, and the outputs that draw on the values.

    The lines into the outputs `lit` are as wide as their attention weights [T, T] and carry them
    in percent; all other permitted lines are thin.
    """
    weights = array(attention, 4)
    T = len(tokens)
    lit = [place % T for place in lit]
    step, left, top = 104.0, 58.0, 4.0
    fig, ax = sheet(left + (T - 1) * step + 58, 296)
    xs = [left + step * t for t in range(T)]
    above, chips, below = top + 10, top + 70, top + 278
    for x in xs:
        for role, dx in (("query", -30), ("key", 0), ("value", 30)):
            _arrow(ax, (x, above + 11), (x + dx, chips - 12), role)
    _outputs(ax, xs, weights, lit, chips, below)
    for x, token in zip(xs, tokens, strict=True):
        _chip(ax, x, above, token, "token", max(48.0, text_width(token) + 10), strong=True)
        for role, dx, name in (("query", -30, "q"), ("key", 0, "k"), ("value", 30, "v")):
            _chip(ax, x + dx, chips, name, role, 25)
    for t, x in enumerate(xs):
        text = f"out {tokens[t]}"
        _chip(ax, x, below, text, "context", text_width(text) + 10, strong=t in lit)
    return fig


def _outputs(ax: Axes, xs: list, weights: np.ndarray, lit: list, chips: float, below: float):
    """Draw a line for each value that an output may read, and the shares of the outputs lit."""
    start, end = chips + 10, below - 10
    for t, x in enumerate(xs):
        for j in range(t + 1):
            if t not in lit:
                ax.plot([xs[j] + 30, x], [start, end], color=colour("line"), lw=1, zorder=0.5)
    for t in lit:
        for j in range(t + 1):
            share = weights[t, j]
            wide = 0.8 + 9 * share
            look = {"color": colour("attention"), "lw": wide, "solid_capstyle": "butt"}
            ax.plot([xs[j] + 30, xs[t]], [start, end], zorder=1, **look)
    for t in lit:
        for j in range(t + 1):
            along = 0.28 if t != 0 else 0.66
            x = xs[j] + 30 + along * (xs[t] - xs[j] - 30)
            y = start + along * (end - start)
            paper = {"fc": colour("paper"), "ec": "none", "pad": 1.5}
            text = f"{number(100 * weights[t, j], 1)} %"
            look = {"ha": "center", "va": "center_baseline", "size": SMALL, "bbox": paper}
            ax.text(x, y, text, zorder=3, **look)


@drawn
def attention_flow(seen: Mapping[str, object]) -> Figure:
    """Draw one attention head as a flow of matrices, from a trace without batch or heads."""
    T, d = array(seen["h0"]).shape
    wide, tall, gap = MINI * d, MINI * T, 6.0
    fig, ax = sheet(4 * wide + 196, 3 * tall + 126)
    xs = [8 + place * (wide + 60) for place in range(3)] + [3 * wide + 188]
    ys = {"q": 24.0, "k": 24 + tall + 48, "v": 24 + 2 * tall + 96}
    high = (ys["q"] + ys["k"]) / 2
    places = {
        "h0": (xs[0], ys["k"], "H₀", "residual"),
        "q": (xs[1], ys["q"], "Q", "query"),
        "k": (xs[1], ys["k"], "K", "key"),
        "v": (xs[1], ys["v"], "V", "value"),
        "scores": (xs[2], high, f"Q Kᵀ / √{d}", "scores"),
        "attention": (xs[3], high, "A", "attention"),
        "context": (xs[3], ys["v"], "A V", "context"),
    }
    for name, (x, y, text, role) in places.items():
        _mini(fig, ax, seen[name], text, role, x, y)
    half = tall / 2
    for name, role in (("q", "query"), ("k", "key"), ("v", "value")):
        start, end = (xs[0] + wide + gap, ys["k"] + half), (xs[1] - gap, ys[name] + half)
        _arrow(ax, start, end, role, 1.4)
        _on_arrow(ax, start, end, f"W_{name.upper()}", role)
    for name, role, share in (("q", "query", 0.25), ("k", "key", 0.75)):
        start = (xs[1] + wide + gap, ys[name] + half)
        _arrow(ax, start, (xs[2] - gap, high + share * tall), role, 1.4)
    _arrow(ax, (xs[2] + tall + gap, high + half), (xs[3] - gap, high + half), "attention", 1.4)
    middle = (xs[2] + tall + xs[3]) / 2
    note = {"ha": "center", "size": SMALL, "color": colour("muted")}
    ax.text(middle, high + half + 15, "hide the future,", **note)
    ax.text(middle, high + half + 28, "softmax each row", **note)
    start, end = (xs[1] + wide + gap, ys["v"] + half), (xs[3] - gap, ys["v"] + half)
    _arrow(ax, start, end, "value", 1.4)
    ax.text((start[0] + end[0]) / 2, end[1] - 9, "values, weighted by A and summed", **note)
    across = xs[3] + 3 * tall / 4
    _arrow(ax, (across, high + tall + gap), (across, ys["v"] - 20), "attention", 1.4)
    return fig


def _on_arrow(ax: Axes, start: tuple, end: tuple, text: str, role: str) -> None:
    """Write a text on the middle of an arrow."""
    x, y = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2
    paper = {"fc": colour("paper"), "ec": "none", "pad": 1.5}
    look = {"ha": "center", "va": "center_baseline", "size": SMALL, "bbox": paper}
    ax.text(x - 3, y, text, color=colour(role), **look)


def _mini(fig: Figure, ax: Axes, values, text: str, role: str, x: float, y: float) -> None:
    """Draw a matrix in small cells at (x, y) from the upper left, its name and shape above it."""
    values = array(values, 2)
    matrix = Matrix(values, "", role, printed=False, hidden=role == "attention")
    height, width = values.shape
    tall = fig.get_size_inches()[1] * 72
    cells = frame(fig, x, tall - y - MINI * height, MINI * width, MINI * height)
    _cells(cells, matrix, _largest(matrix))
    hue = "scores_high" if role == "scores" else role
    ax.text(x, y - 6, text, size=TEXT, weight="bold", color=colour(hue))
    shape = {"size": SMALL, "color": colour("muted")}
    ax.text(x + text_width(text, TEXT) + 8, y - 6, f"[{height}, {width}]", **shape)


@drawn
def visible_sets(orders: Sequence[Sequence[str]], titles: Sequence[str] = ()) -> Figure:
    """Draw, for two orders of the same tokens, the bag of tokens that each position sees.

    Rows are tokens in the first order. Without positions a causal block knows a row's own token
    and the bag; a row with the same bag in both orders is marked as told apart or not.
    """
    first, second = (list(order) for order in orders)
    if sorted(first) != sorted(second) or len(set(first)) != len(first):
        raise ValueError("visible_sets compares two orders of the same, different tokens.")
    chip = {token: max(24.0, text_width(token) + 6) for token in first}
    bag = sum(chip.values()) + 4.0 * len(first)
    label = max(chip.values()) + 26
    width = label + 2 * (bag + 14) + 64
    fig, ax = sheet(width, 30 * len(first) + 50)
    muted = {"size": SMALL, "color": colour("muted")}
    ax.text(8, 34, "row of", **muted)
    for place, order in enumerate((first, second)):
        name = titles[place] if titles else " ".join(order)
        ax.text(label + place * (bag + 14), 18, name, size=SMALL, weight="bold")
        ax.text(label + place * (bag + 14), 34, "sees the bag", **muted)
    for row, token in enumerate(first):
        y = 54 + 30 * row
        _chip(ax, 8 + chip[token] / 2, y, token, "token", chip[token], strong=True)
        bags = [set(order[: order.index(token) + 1]) for order in (first, second)]
        for place, seen in enumerate(bags):
            x = label + place * (bag + 14)
            for other in first:
                if other in seen:
                    _chip(ax, x + chip[other] / 2, y, other, "token", chip[other], other == token)
                x += chip[other] + 4
        same = bags[0] == bags[1]
        x = label + 2 * (bag + 14)
        text = "= same" if same else "≠ told apart"
        look = {"weight": "normal" if same else "bold", "color": colour("muted" if same else "ink")}
        ax.text(x - 4, y, text, va="center_baseline", size=SMALL, **look)
    return fig
