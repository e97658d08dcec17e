"""Diagrams of the larger model: its whole path, its rotary turns, its shared heads."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyBboxPatch

from glassformer.config import TransformerConfig
from glassformer.figures.style import (
    PAGE_WIDTH,
    SMALL,
    TITLE,
    array,
    colour,
    drawn,
    ramp,
    sheet,
)

BOX = 38.0  # points: height of a box with two lines


def _box(
    ax: Axes, x: float, y: float, wide: float, lines: Sequence[str], role: str, concepts: str = ""
) -> None:
    """Draw a box with its top left corner at (x, y); concept numbers stand in its upper corner."""
    tall = BOX if len(lines) > 1 else 26.0
    look = {"boxstyle": "round,pad=0,rounding_size=5", "fc": ramp(role, 12), "ec": colour(role)}
    ax.add_patch(FancyBboxPatch((x, y), wide, tall, lw=1, **look))
    for place, line in enumerate(lines):
        weight = "bold" if place == 0 else "normal"
        tone = colour("ink" if place == 0 else "muted")
        middle = y + tall / 2 + (place - (len(lines) - 1) / 2) * 14
        where = {"ha": "center", "va": "center_baseline"}
        ax.text(x + wide / 2, middle, line, size=SMALL, weight=weight, color=tone, **where)
    if concepts:
        _badge(ax, x + wide - 8, y, concepts)


def _badge(ax: Axes, x: float, y: float, concepts: str) -> None:
    """Write concept numbers in a small pill that ends at x and sits on y."""
    wide = 7.0 * len(concepts) + 8
    look = {"boxstyle": "round,pad=0,rounding_size=6", "fc": colour("paper"), "ec": colour("muted")}
    ax.add_patch(FancyBboxPatch((x - wide, y - 7), wide, 13, lw=0.8, **look))
    where = {"ha": "center", "va": "center_baseline"}
    ax.text(x - wide / 2, y, concepts, size=SMALL, color=colour("ink"), **where)


def _path(ax: Axes, points: Sequence[tuple[float, float]], role: str = "muted", lw=1.2) -> None:
    """Draw a line through points, with an arrow head at the last."""
    xs, ys = zip(*points, strict=True)
    ax.plot(xs[:-1] + xs[-1:], ys[:-1] + ys[-1:], color=colour(role), lw=lw, zorder=1)
    look = {"arrowstyle": "-|>", "color": colour(role), "lw": lw, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", points[-1], points[-2], arrowprops=look, zorder=1)


def _plus(ax: Axes, x: float, y: float, concept: str = "") -> None:
    """Draw the circle in which a contribution is added to the stream."""
    ax.add_patch(Circle((x, y), 9, fc=colour("paper"), ec=colour("residual"), lw=1.4, zorder=3))
    where = {"ha": "center", "va": "center_baseline"}
    ax.text(x, y, "+", size=13, color=colour("ink"), zorder=4, **where)
    if concept:
        _badge(ax, x - 12, y, concept)


def _note(ax: Axes, x: float, y: float, text: str, **look) -> None:
    ax.text(x, y, text, **{"size": SMALL, "color": colour("muted"), "va": "center_baseline"} | look)


@drawn
def llama_architecture(config: TransformerConfig, tokens: Sequence[str]) -> Figure:
    """Draw the path from tokens to the next token, shapes and the numbers of the concepts on it."""
    T, C, V, D = len(tokens), config.dim, config.vocab_size, config.head_dim
    H, K, hidden = config.n_heads, config.kv_heads, config.ffn_hidden_dim
    fig, ax = sheet(PAGE_WIDTH, 630)
    x, left, wide, step = 62.0, 112.0, 118.0, 136.0  # the stream, and the boxes beside it
    places = [left + i * step for i in range(3)]
    _note(ax, 14, 16, " ".join(tokens) + f"   as ids [{T}]", color=colour("ink"))
    _path(ax, [(x, 26), (x, 40)], "residual", 2.4)
    _box(ax, 14, 40, wide, ["token embedding", f"table [{V}, {C}]"], "token", "1")
    _note(ax, x + 84, 60, "no position is added here")
    frame = {"boxstyle": "round,pad=0,rounding_size=8", "fc": "none", "ec": colour("line")}
    ax.add_patch(FancyBboxPatch((6, 112), PAGE_WIDTH - 12, 384, lw=1.2, ls=(0, (4, 3)), **frame))
    _badge(ax, PAGE_WIDTH - 20, 112, "13")
    times = f"block, {config.n_layers} times, each with weights of its own"
    _note(ax, 78, 128, times, color=colour("ink"))
    ax.plot([x, x], [78, 520], color=colour("residual"), lw=2.4, zorder=1)
    _note(ax, x + 8, 96, f"residual stream [{T}, {C}]")
    first, second, third, fourth = 152.0, 238.0, 344.0, 420.0
    _path(ax, [(x, first + 19), (left, first + 19)])
    _box(ax, places[0], first, wide, ["RMSNorm", "a copy is read"], "residual", "11")
    _box(ax, places[1], first, wide, ["wq, wk, wv", f"{H} q, {K} k, {K} v of {D}"], "query", "3, 9")
    _box(ax, places[2], first, wide, ["rotate q and k", f"{D // 2} pairs each"], "position", "2")
    _box(ax, places[2], second, wide, [f"q·k / √{D}", f"[{H}, {T}, {T}]"], "scores_high", "4, 5")
    _box(ax, places[1], second, wide, ["mask, softmax", "rows sum to 1"], "attention", "8, 6")
    _box(ax, places[0], second, wide, ["A V, then wo", f"[{T}, {C}]"], "value", "7, 9")
    _box(ax, places[0], third, wide, ["RMSNorm", "a copy is read"], "residual", "11")
    _box(ax, places[1], third, wide, ["w_gate, w_up", f"twice [{T}, {hidden}]"], "residual", "12")
    _box(ax, places[1], fourth, wide, ["SiLU(gate) · up", f"[{T}, {hidden}]"], "residual", "12")
    _box(ax, places[0], fourth, wide, ["w_down", f"[{T}, {C}]"], "residual", "12")
    for row, boxes in ((first, 3), (third, 2)):
        for place in places[: boxes - 1]:
            _path(ax, [(place + wide, row + 19), (place + step, row + 19)])
        turn = places[boxes - 1] + wide / 2
        _path(ax, [(turn, row + BOX), (turn, second if row == first else fourth)])
    for row, boxes in ((second, 3), (fourth, 2)):
        for place in places[1:boxes]:
            _path(ax, [(place, row + 19), (place - step + wide, row + 19)])
        _path(ax, [(left, row + 19), (x + 9, row + 19)])
        _plus(ax, x, row + 19, "10")
    _path(ax, [(x, third + 19), (left, third + 19)])
    _path(ax, [(x, 500), (x, 524)], "residual", 2.4)
    _box(ax, 14, 524, wide, ["RMSNorm", f"[{T}, {C}]"], "residual", "11")
    _path(ax, [(14 + wide, 543), (14 + step + 14, 543)])
    _box(ax, 14 + step + 14, 524, wide, ["output head", f"logits [{T}, {V}]"], "token", "14")
    _path(ax, [(28 + step + wide, 543), (28 + 2 * step + 14, 543)])
    _box(ax, 42 + 2 * step, 524, wide, ["softmax, choose", "the next token"], "attention", "6, 15")
    key = "numbers in pills: the fifteen concepts, as on the landing page"
    _note(ax, 14, 596, key)
    _note(ax, 14, 614, f"{config.num_params():,} weights in all; no biases, no position table")
    return fig


@drawn
def rotary_clocks(turns, titles: Sequence[str] = ()) -> Figure:
    """Draw the turn of each pair at each position, from complex turns [positions, pairs].

    A row is a pair, a column a position; the hand starts at three o'clock and turns anticlockwise.
    """
    across, down = array(turns.real, 4), array(turns.imag, 4)
    positions, pairs = across.shape
    left, side = 128.0, 62.0
    fig, ax = sheet(left + positions * side + 8, 40 + pairs * side)
    ax.text(8, 18, "pair", size=TITLE, weight="bold", color=colour("position"))
    for t in range(positions):
        text = f"position {t}" if t == 0 else str(t)
        _note(ax, left + (t + 0.5) * side, 18, text, ha="center")
    for i in range(pairs):
        y = 36 + (i + 0.5) * side
        label = titles[i] if titles else f"pair {i}"
        for line, text in enumerate(label.split("\n")):
            look = {"color": colour("ink" if line == 0 else "muted")}
            _note(ax, 8, y + 14 * (line - label.count("\n") / 2), text, **look)
        for t in range(positions):
            x = left + (t + 0.5) * side
            ax.add_patch(
                Circle((x, y), 24, fc=ramp("position", 6), ec=colour("line"), lw=1, zorder=0.3)
            )
            ax.plot([x, x + 24], [y, y], color=colour("line"), lw=1, ls=(0, (2, 2)), zorder=0.5)
            tip = (x + 22 * across[t, i], y - 22 * down[t, i])
            _path(ax, [(x, y), tip], "position", 1.8)
    return fig


@drawn
def shared_heads(designs: Sequence[tuple[str, int, int]]) -> Figure:
    """Draw which query head reads which key/value head, for (name, query heads, KV heads) each."""
    wide, gap = 27.0, 36.0
    panels = [max(heads * (wide + 4), 5.7 * max(len(name), 10)) for name, heads, _ in designs]
    fig, ax = sheet(86 + sum(panels) + gap * len(panels), 142)
    for y, text, role in ((44, "queries", "query"), (108, "keys, values", "key")):
        _note(ax, 8, y + 13, text, color=colour(role))
    x = 94.0
    for (name, heads, kv), panel in zip(designs, panels, strict=True):
        ax.text(x, 18, name, size=TITLE, weight="bold")
        span = heads * (wide + 4)
        for h in range(heads):
            _box(ax, x + h * (wide + 4), 44, wide, [str(h)], "query")
        for j in range(kv):
            share = span / kv
            middle = x + (j + 0.5) * share - 2
            _box(ax, middle - wide / 2, 108, wide, [str(j)], "key")
            for h in range(j * heads // kv, (j + 1) * heads // kv):
                top = (x + h * (wide + 4) + wide / 2, 70)
                _path(ax, [(middle, 108), top], "muted", 1.0)
        x += panel + gap
    return fig
