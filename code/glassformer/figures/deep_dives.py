"""Every step of BabyGroot's attention, block and head with its formula and its shape."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from glassformer.figures.drawing import (
    CELL,
    arrow,
    chip,
    grid,
    label,
    plus,
    rounded,
    shape_text,
    write,
)
from glassformer.figures.style import CURVE_WIDTH, drawn, sheet, text_width

EDGE, STEP = 6.0, 64.0  # points: margin at the sides; from one step of the path to the next


def _step(
    ax: Axes, x: float, y: float, width: float, text: str, note: str, shape, role: str, **look
) -> None:
    """Draw a step of height 46: the result's grid, the formula, and a note or the shape."""
    rounded(ax, x, y, width, 46, role)
    rows, columns = shape
    grid(ax, x + 10, y + 23 - CELL * rows / 2, shape, role, **look)
    middle = x + (width + 10 + CELL * columns) / 2
    write(ax, middle, y + 23, [text, note or shape_text(*shape)])


def _product(left: tuple[int, int], right: tuple[int, int]) -> str:
    """Return the shapes of a matrix product: [4, 8] by [8, 4] → [4, 4]."""
    result = shape_text(left[0], right[1])
    return f"{shape_text(*left)} by {shape_text(*right)} → {result}"


def _words(ax: Axes, tokens: Sequence[str]) -> None:
    """Write the prompt in chips along the top."""
    widths = [max(30.0, text_width(token) + 8) for token in tokens]
    x = (CURVE_WIDTH - sum(widths) - 4 * (len(tokens) - 1)) / 2
    for token, width in zip(tokens, widths, strict=True):
        chip(ax, x + width / 2, 16, token, width=width)
        x += width + 4


@drawn
def attention_deep_dive(tokens: Sequence[str], dim: int = 8) -> Figure:
    """Draw one causal head over T tokens step by step, from H₀ [T, dim] to context [T, dim]."""
    T, middle, wide, third = len(tokens), CURVE_WIDTH / 2, CURVE_WIDTH - 2 * EDGE, 98.0
    fig, ax = sheet(CURVE_WIDTH, 532)
    _words(ax, tokens)
    arrow(ax, (middle, 26), (middle, 38))
    _step(ax, middle - 78, 40, 156, "H₀", "", (T, dim), "residual")
    for place, (name, role) in enumerate((("Q", "query"), ("K", "key"), ("V", "value"))):
        x = EDGE + place * (third + 6)
        across = x + third / 2
        arrow(ax, (middle, 86), (middle, 100), (across, 100), (across, 116), role=role)
        _projection(ax, x, 118, third, name, (T, dim), role)
    left = 2 * third + 6
    spine = EDGE + left / 2
    for place, role in enumerate(("query", "key")):
        x = EDGE + place * (third + 6) + third / 2
        arrow(ax, (x, 206), (x, 226), role=role)
    steps = (
        (f"Q Kᵀ / √{dim}", _product((T, dim), (dim, T)), "scores_high", False),
        ("hide the future", "−10⁹ above the diagonal", "scores_high", True),
        ("A = softmax of each row", f"{shape_text(T, T)}, rows sum to 1", "attention", True),
    )
    for place, (text, note, role, hidden) in enumerate(steps):
        y = 228 + STEP * place
        _step(ax, EDGE, y, left, text, note, (T, T), role, hidden=hidden)
        arrow(ax, (spine, y + 46), (spine, y + STEP - 2), role=role)
    y, down = 228 + STEP * len(steps), EDGE + 2 * (third + 6) + third / 2
    arrow(ax, (down, 206), (down, y - 2), role="value")
    _step(ax, EDGE, y, wide, "context = A V", _product((T, T), (T, dim)), (T, dim), "context")
    _shares(ax, tokens, y + 46)
    return fig


def _projection(ax: Axes, x: float, y: float, width: float, name: str, shape, role: str) -> None:
    """Draw one projection, height 88: weights, result and the shapes of both."""
    d = shape[1]
    rounded(ax, x, y, width, 88, role)
    grid(ax, x + (width - CELL * d) / 2, y + 10, shape, role)
    shapes = f"{shape_text(*shape)} by {shape_text(d, d)}"
    write(ax, x + width / 2, y + 60, [name, f"H₀ W_{name}ᵀ + b_{name}", shapes])


def _shares(ax: Axes, tokens: Sequence[str], y: float) -> None:
    """Write which rows of V the first and the last row of the context are made of."""
    first, last = tokens[0], tokens[-1]
    text = f"row {first}: its own value alone"
    label(ax, EDGE + 4, y + 18, text, ha="left")
    text = f"row {last}: all {len(tokens)} values, in the shares of A"
    label(ax, EDGE + 4, y + 34, text, ha="left")
    label(ax, EDGE + 4, y + 54, "linear in V; not in Q and K (softmax)", ha="left")


@drawn
def block_and_head_deep_dive(
    tokens: Sequence[str], dim: int = 8, hidden: int = 16, vocab_size: int = 24
) -> Figure:
    """Draw all that follows attention: block [T, dim], logits [T, vocab_size], the next token."""
    T, middle = len(tokens), CURVE_WIDTH / 2
    same, wide = (T, dim), CURVE_WIDTH - 60
    fig, ax = sheet(CURVE_WIDTH, 664)
    _words(ax, tokens)
    half = (CURVE_WIDTH - 2 * EDGE - 22) / 2
    for side, name, role in ((-1, "H₀", "residual"), (1, "context", "context")):
        x = middle + side * (half / 2 + 11)
        _step(ax, x - half / 2, 40, half, name, "", same, role)
        arrow(ax, (x, 86), (x, 104), (middle + side * 9, 104), role=role)
    plus(ax, middle, 104)
    logits = f"logits {shape_text(T, vocab_size)}"
    steps = (
        ("R₁ = H₀ + context", "", same, "residual", {}),
        ("N₁ = LayerNorm(R₁)", f"{shape_text(*same)}, each row alone", same, "residual", {}),
        ("ReLU(N₁ W₁ᵀ + b₁)", _product(same, (dim, hidden)), (T, hidden), "residual", {}),
        ("F = ReLU(…) W₂ᵀ + b₂", _product((T, hidden), (hidden, dim)), same, "residual", {}),
        ("R₂ = N₁ + F", "", same, "residual", {}),
        ("H_out = LayerNorm(R₂)", f"{shape_text(*same)}, each row alone", same, "residual", {}),
        (
            "H_out W_Hᵀ + b",
            logits,
            (T, vocab_size),
            "token",
            {"lit": -1},
        ),
    )
    y = 124.0
    for place, (text, note, shape, role, look) in enumerate(steps):
        arrow(ax, (middle, y - (12 if place == 0 else 18)), (middle, y - 2), lw=1.6)
        _step(ax, middle - wide / 2, y, wide, text, note, shape, role, **look)
        y += STEP
    side, start, end = CURVE_WIDTH - 10, 124 + STEP + 23, 124 + 4 * STEP + 23
    edge = middle + wide / 2
    arrow(ax, (edge, start), (side, start), (side, end), (edge + 2, end), role="residual", lw=1.8)
    label(ax, side - 4, (start + end) / 2, "N₁", "residual", ha="right", weight="bold")
    _choice(ax, middle, y - 18, wide, tokens[-1], vocab_size)
    return fig


def _choice(ax: Axes, middle: float, y: float, wide: float, last: str, vocab_size: int) -> None:
    """Draw the last row of the logits turned into probabilities, and one token chosen."""
    arrow(ax, (middle, y), (middle, y + 16))
    x = middle - wide / 2
    rounded(ax, x, y + 18, wide, 46, "attention")
    grid(ax, x + 10, y + 38, (1, vocab_size), "attention")
    lines = ["softmax", f"last row {shape_text(vocab_size)}"]
    write(ax, x + (10 + CELL * vocab_size + wide) / 2, y + 41, lines)
    arrow(ax, (middle, y + 64), (middle, y + 80))
    chip(ax, middle, y + 92, f"what follows {last}", role="token")
