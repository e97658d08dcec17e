"""Training sees every position in one pass; generation writes token by token, from a cache."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from glassformer.figures.drawing import arrow, box, chip, label, line, rounded
from glassformer.figures.style import TITLE, array, drawn, number, sheet, text_width

LEFT = 60.0  # points: where the column of the first position starts
DASHED = (0, (3, 2))


def _columns(tokens: Sequence[str]) -> tuple[list[float], float]:
    """Return the middle of each position's column, and a column's width."""
    step = max(42.0, max(text_width(token) for token in tokens) + 18)
    return [LEFT + step * (t + 0.5) for t in range(len(tokens))], step


@drawn
def training_vs_inference(tokens: Sequence[str], prompt: int = 3) -> Figure:
    """Draw one training pass over a sentence of T tokens, and its generation from `prompt` tokens.

    Columns are positions; the pairs K V are what the cache holds from earlier passes.
    """
    T = len(tokens)
    if not 0 < prompt < T:
        raise ValueError(f"prompt = {prompt} cannot be: it must be 1 to {T - 1} of the {T} tokens.")
    xs, step = _columns(tokens)
    fig, ax = sheet(max(LEFT + step * T + 6, 318), 256 + 38 * (T - prompt))
    _training(ax, xs, tokens, step)
    line(ax, (8, 182), (xs[-1] + step / 2, 182), role="line", lw=1)
    label(ax, 8, 202, "generation: a pass a line", "ink", ha="left", size=TITLE, weight="bold")
    for turn, known in enumerate(range(prompt, T)):
        y = 230 + 38 * turn
        label(ax, 8, y - 6, f"pass {turn + 1}", "ink", ha="left")
        label(ax, 8, y + 7, "decode" if turn else "prefill", ha="left")
        start = known - 1 if turn else 0
        for x in xs[:start]:
            _key_value(ax, x, y)
        for x, token in zip(xs[start:known], tokens[start:known], strict=True):
            chip(ax, x, y, token, width=step - 12, fill=30)
        arrow(ax, (xs[known] - step / 2 - 6, y), (xs[known] - step / 2 + 5, y))
        look = {"width": step - 12, "fill": 0, "ls": DASHED}
        chip(ax, xs[known], y, tokens[known], "attention", **look)
    _legend(ax, 238 + 38 * (T - prompt))
    return fig


def _training(ax: Axes, xs: Sequence[float], tokens: Sequence[str], step: float) -> None:
    """Draw all positions read at once, each with the token that it should predict."""
    T = len(tokens)
    label(ax, 8, 14, "training: one pass", "ink", ha="left", size=TITLE, weight="bold")
    for y, text in ((48, "read"), (144, "targets")):
        label(ax, 8, y, text, "ink", ha="left")
    for t, x in enumerate(xs[:-1]):
        chip(ax, x, 48, tokens[t], width=step - 12, fill=30)
        arrow(ax, (x, 58), (x, 76), role="token")
        arrow(ax, (x, 110), (x, 132), role="loss")
        chip(ax, x, 144, tokens[t + 1], "loss", width=step - 12)
    across = max(xs[-2] - xs[0] + step - 12, 170.0)
    text = ["model", "causal mask: no look ahead"]
    box(ax, xs[0] - step / 2 + 6, 78, across, 32, text, "residual")
    label(ax, 8, 168, f"{T - 1} losses, averaged; nothing waits for anything", ha="left")


def _key_value(ax: Axes, x: float, y: float, fill: int = 12) -> None:
    """Draw the key and the value that are kept of one token."""
    for side, name, role in ((-1, "K", "key"), (1, "V", "value")):
        rounded(ax, x + 8 * side - 7, y - 9, 14, 18, role, fill=fill, lw=1.6 if fill > 12 else 0.8)
        label(ax, x + 8 * side, y, name, "ink", weight="bold" if fill > 12 else "normal")


def _legend(ax: Axes, y: float) -> None:
    _key_value(ax, 24, y)
    label(ax, 44, y, "from the cache", ha="left")
    rounded(ax, 138, y - 8, 22, 16, "token", fill=30)
    label(ax, 166, y, "read now", ha="left")
    rounded(ax, 230, y - 8, 22, 16, "attention", fill=0, ls=DASHED)
    label(ax, 258, y, "written", ha="left")


@drawn
def cache_steps(tokens: Sequence[str], values_per_token: int) -> Figure:
    """Draw the cache after each of T tokens: what is held, what is new, the number of values."""
    T, step = len(tokens), 36.0
    wide = max(30.0, *(text_width(token) + 6 for token in tokens))
    xs = [max(LEFT, wide + 16) + step * (t + 0.5) for t in range(T)]
    right = max(xs[-1] + step / 2 + 34, 280.0)  # the legend needs as much
    fig, ax = sheet(right + 6, 62 + 28 * T)
    label(ax, 8, 16, "read", "ink", ha="left", weight="bold")
    label(ax, xs[0] - 15, 16, "keys and values held", "ink", ha="left", weight="bold")
    label(ax, right, 16, "numbers", "ink", ha="right", weight="bold")
    for row, token in enumerate(tokens):
        y = 42 + 28 * row
        chip(ax, 8 + wide / 2, y, token, width=wide, fill=30)
        for place, x in enumerate(xs):
            _slot(ax, x, y, place - row)
        total = f"{values_per_token * (row + 1):,}"
        label(ax, right, y, total, "ink", ha="right", weight="bold")
    y = 46 + 28 * T
    new = f"new: {values_per_token:,}"
    for x, age, text in ((24, 0, new), (120, -1, "kept"), (190, 1, "still empty")):
        _slot(ax, x, y, age)
        label(ax, x + 20, y, text, ha="left")
    return fig


def _slot(ax: Axes, x: float, y: float, age: int) -> None:
    """Draw a token's place in the cache: empty (age > 0), new (0) or kept (< 0)."""
    if age > 0:
        rounded(ax, x - 15, y - 9, 30, 18, "muted", fill=0, ls=DASHED, lw=0.8)
    else:
        _key_value(ax, x, y, fill=36 if age == 0 else 12)


Branches = Mapping[str, tuple[float, "Branches"]]


@drawn
def continuation_tree(root: str, branches: Branches) -> Figure:
    """Draw what can follow `root`: {token: (probability, {token: …})}; lines as wide as shares.

    At the end of each branch stands the probability of its whole path.
    """
    depth, leaves = _depth(branches), _leaves(branches)
    widths = [text_width(root) + 14, *_widths(branches, depth)]
    starts = [8.0]
    for width in widths:
        starts.append(starts[-1] + width + 62)
    fig, ax = sheet(starts[-1] + 2, 34 + 28 * leaves)
    label(ax, starts[-1] - 6, 14, "path", "ink", ha="right", weight="bold")
    middle = _branch(ax, branches, 1, starts, widths, 40.0, 1.0)
    chip(ax, starts[0] + widths[0] / 2, middle, root, width=widths[0], fill=30)
    return fig


def _depth(branches: Branches) -> int:
    return 1 + max((_depth(below) for _, below in branches.values()), default=-1) if branches else 0


def _leaves(branches: Branches) -> int:
    return sum(max(1, _leaves(below)) for _, below in branches.values())


def _widths(branches: Branches, depth: int) -> list[float]:
    """Return, for each level, the width in which each of its tokens fits."""
    widths, level = [], list(branches.items())
    for _ in range(depth):
        widths.append(max(text_width(token) for token, _ in level) + 12)
        level = [item for _, (_, below) in level for item in below.items()]
    return widths


def _branch(
    ax: Axes, branches: Branches, level: int, starts, widths, y: float, path: float
) -> float:
    """Draw the tokens of a level from height y on; return the height at which they are joined."""
    middles, tops = [], y
    for token, (chance, below) in branches.items():
        rows = max(1, _leaves(below))
        here = path * chance
        if below:
            middle = _branch(ax, below, level + 1, starts, widths, tops, here)
        else:
            middle = tops
            label(ax, starts[-1] - 6, middle, f"{number(100 * here, 1)} %", "ink", ha="right")
        middles.append((middle, token, chance))
        tops += 28 * rows
    joined = (middles[0][0] + middles[-1][0]) / 2
    start, end = starts[level - 1] + widths[level - 1], starts[level]
    for middle, token, chance in middles:
        chance = float(array(chance, 4))
        points = (start, joined), (start + 8, joined), (start + 8, middle), (end, middle)
        line(ax, *points, role="attention", lw=round(0.6 + 3.4 * chance, 2))
        text = f"{number(100 * chance, 1)} %"
        label(ax, (start + 8 + end) / 2, middle - 8, text, "attention")
        chip(ax, end + widths[level] / 2, middle, token, width=widths[level])
    return joined
