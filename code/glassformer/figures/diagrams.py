"""Diagrams of BabyGroot: the flow of shapes, its parts, its block, its feed-forward network."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from glassformer.figures.drawing import (
    CELL,
    arrow,
    box,
    chip,
    dashed_frame,
    grid,
    label,
    line,
    link,
    plus,
    rounded,
    shape_text,
    write,
)
from glassformer.figures.style import (
    CURVE_WIDTH,
    TITLE,
    drawn,
    sheet,
    text_width,
)


def _state(
    ax: Axes,
    x: float,
    y: float,
    width: float,
    name: str,
    shape: tuple[int, int],
    role: str,
    url: str | None = None,
    lit: int | None = None,
) -> None:
    """Draw a box of height 40 that shows a matrix as a grid, with its name and shape beside it."""
    across, down = CELL * shape[1], CELL * shape[0]
    with link(ax, url):
        rounded(ax, x, y, width, 40, role)
        grid(ax, x + 9, y + 20 - down / 2, shape, role, lit=lit)
        write(ax, x + (across + 9 + width) / 2, y + 20, [name, shape_text(*shape)])


LINKED = "ids token position h0 attention ffn h_out logits loss argmax".split()


def _addresses(links: Mapping[str, str]) -> Callable[[str], str | None]:
    """Return the function from a box's name to its address, or to None."""
    for name in links:
        if name not in LINKED:
            raise ValueError(f"The flow has no box {name!r}; choose from {', '.join(LINKED)}.")
    return links.get


@drawn
def flow_of_shapes(
    tokens: Sequence[str],
    links: Mapping[str, str] | None = None,
    ids: Sequence[int] = (),
    dim: int = 8,
    vocab_size: int = 24,
) -> Figure:
    """Draw the path of T tokens: ids [T], vectors [T, dim], the block, logits [T, vocab_size].

    `links` maps names of boxes (those in LINKED) to the addresses they lead to.
    """
    url = _addresses(links or {})
    T, middle = len(tokens), CURVE_WIDTH / 2
    fig, ax = sheet(CURVE_WIDTH, 578)
    _tokens_and_ids(ax, middle, tokens, ids, url("ids"))
    for side, name, role in ((-1, "token", "token"), (1, "position", "position")):
        x = middle + side * 79
        start = (middle + side * 24, 74)
        arrow(ax, start, (start[0], 84), (x, 84), (x, 96), bend=4)
        _state(ax, x - 69, 98, 138, name, (T, dim), role, url(name))
        arrow(ax, (x, 138), (x, 160), (middle + side * 9, 160), role=role)
    plus(ax, middle, 160)
    arrow(ax, (middle, 168), (middle, 182), role="residual", lw=1.8)
    _state(ax, middle - 69, 184, 138, "H₀", (T, dim), "residual", url("h0"))
    line(ax, (middle, 224), (middle, 240), role="residual", lw=1.8)
    _block_of_two(ax, middle, 240, url)
    arrow(ax, (middle, 392), (middle, 408), role="residual", lw=1.8)
    _state(ax, middle - 69, 410, 138, "H_out", (T, dim), "residual", url("h_out"))
    arrow(ax, (middle, 450), (middle, 466))
    _state(ax, middle - 124, 468, 248, "logits", (T, vocab_size), "residual", url("logits"), lit=-1)
    for side, name, lines, role in (
        (-1, "loss", ["loss", "training, last row"], "loss"),
        (1, "argmax", ["argmax", "generation, last row"], "attention"),
    ):
        x = middle + side * 79
        arrow(ax, (x, 508), (x, 528))
        with link(ax, url(name)):
            box(ax, x - 69, 530, 138, 40, lines, role)
    return fig


def _tokens_and_ids(ax: Axes, middle: float, tokens, ids, url: str | None) -> None:
    """Draw the prompt's words, and below them one number each."""
    widths = [max(34.0, text_width(token) + 10) for token in tokens]
    x = middle - (sum(widths) + 6 * (len(tokens) - 1)) / 2
    with link(ax, url):
        for place, (token, width) in enumerate(zip(tokens, widths, strict=True)):
            chip(ax, x + width / 2, 16, token, width=width)
            if len(ids):
                label(ax, x + width / 2, 40, str(int(ids[place])), "ink")
            x += width + 6
        box(ax, middle - 60, 52, 120, 22, f"ids {shape_text(len(tokens))}", "token", fill=0)


def _block_of_two(ax: Axes, middle: float, y: float, url) -> None:
    """Draw the block, height 152, as a frame around attention and the feed-forward network."""
    dashed_frame(ax, 8, y, 2 * middle - 16, 152)
    label(ax, 16, y + 12, "block", "ink", ha="left", weight="bold")
    for top, name, lines, role in (
        (y + 20, "attention", ["attention", "tokens read each other"], "attention"),
        (y + 90, "ffn", ["feed-forward", "each token alone"], "residual"),
    ):
        side, add = middle + 108, top + 54
        arrow(ax, (middle, top - 20), (middle, top - 2), role="residual", lw=1.8)
        with link(ax, url(name)):
            box(ax, middle - 85, top, 170, 40, lines, role)
        line(ax, (middle, top + 40), (middle, add), role="residual", lw=1.8)
        arrow(ax, (middle, top - 11), (side, top - 11), (side, add), (middle + 9, add))
        plus(ax, middle, add)


@drawn
def recurrent_vs_decoder(tokens: Sequence[str]) -> Figure:
    """Draw T tokens read one after the other by a recurrent network, and at once by a decoder."""
    T, step = len(tokens), 60.0
    wide = T * step
    fig, ax = sheet(2 * wide + 52, 250)
    for left, title in ((8, "recurrent network"), (wide + 44, "decoder")):
        label(ax, left, 14, title, "ink", ha="left", size=TITLE, weight="bold")
    _recurrent(ax, [8 + step * (t + 0.5) for t in range(T)], tokens)
    line(ax, (wide + 26, 12), (wide + 26, 238), role="line", lw=1)
    _decoder(ax, [wide + 44 + step * (t + 0.5) for t in range(T)], tokens)
    return fig


def _recurrent(ax: Axes, xs: Sequence[float], tokens: Sequence[str]) -> None:
    """Draw a chain of states, each waiting for the one before."""
    for t, (x, token) in enumerate(zip(xs, tokens, strict=True)):
        label(ax, x, 40, f"step {t + 1}", "ink")
        chip(ax, x, 66, token, width=54)
        arrow(ax, (x, 76), (x, 114), role="token")
        box(ax, x - 19, 116, 38, 32, "state", "residual")
        arrow(ax, (x, 148), (x, 184))
        box(ax, x - 19, 186, 38, 24, "next", "loss", fill=0)
        if t:
            arrow(ax, (xs[t - 1] + 19, 132), (x - 21, 132), role="residual", lw=2.2)
    label(ax, xs[0] - 30, 232, f"{len(tokens)} steps, one after the other", ha="left")


def _decoder(ax: Axes, xs: Sequence[float], tokens: Sequence[str]) -> None:
    """Draw each output reading its own position and those before it, in one step."""
    label(ax, (xs[0] + xs[-1]) / 2, 40, "step 1", "ink")
    for t, (x, token) in enumerate(zip(xs, tokens, strict=True)):
        chip(ax, x, 66, token, width=54)
        for j in range(t + 1):
            arrow(ax, (xs[j], 77), (x + 5 * (j - t), 184), role="attention", lw=1)
        box(ax, x - 19, 186, 38, 24, "next", "loss", fill=0)
    text = "one step; no line from a later token"
    label(ax, xs[0] - 30, 232, text, ha="left")


@drawn
def block_diagram(*kinds: str) -> Figure:
    """Draw one block for each kind, "post-norm" (the default) or "pre-norm", side by side.

    Labels left of the stream are the names in the trace. One block alone is called just that.
    """
    kinds = kinds or ("post-norm",)
    for kind in kinds:
        if kind not in ("post-norm", "pre-norm"):
            raise ValueError(f"A block is 'post-norm' or 'pre-norm', not {kind!r}.")
    fig, ax = sheet(250 * len(kinds) - 10, 416)
    for place, kind in enumerate(kinds):
        x, half = 250 * place + 74.0, (_after if kind == "post-norm" else _before)
        title = kind if len(kinds) > 1 else "block"
        label(ax, x - 66, 14, title, "ink", ha="left", size=TITLE, weight="bold")
        arrow(ax, (x, 30), (x, 408), role="residual", lw=2.2)
        label(ax, x - 9, 38, "h0", "ink", ha="right")
        half(ax, x, 52, "attention", "attention", 0)
        half(ax, x, 228, "feed-forward", "residual", 1)
    return fig


def _after(ax: Axes, x: float, top: float, part: str, role: str, half: int) -> None:
    """Draw half a post-norm block, 176 high: part, addition, normalisation of the stream."""
    beside = x + 84
    arrow(ax, (x, top), (beside, top), (beside, top + 20))
    box(ax, beside - 60, top + 22, 120, 32, part, role)
    arrow(ax, (beside, top + 54), (beside, top + 82), (x + 9, top + 82))
    label(ax, beside - 8, top + 68, ("context", "ffn_out")[half], ha="right")
    plus(ax, x, top + 82)
    label(ax, x - 9, top + 100, ("r1", "r2")[half], "ink", ha="right")
    box(ax, x - 44, top + 112, 88, 32, "LayerNorm", "ink", fill=6)
    label(ax, x - 9, top + 157, ("n1", "h_out")[half], "ink", ha="right")


def _before(ax: Axes, x: float, top: float, part: str, role: str, half: int) -> None:
    """Draw half a pre-norm block, 176 high: a normalised copy, part, addition to the stream."""
    beside = x + 84
    arrow(ax, (x, top), (beside, top), (beside, top + 14))
    box(ax, beside - 60, top + 16, 120, 32, "norm of a copy", "ink", fill=6)
    arrow(ax, (beside, top + 48), (beside, top + 64))
    box(ax, beside - 60, top + 66, 120, 32, part, role)
    arrow(ax, (beside, top + 98), (beside, top + 126), (x + 9, top + 126))
    plus(ax, x, top + 126)
    label(ax, x - 9, top + 144, ("r1", "r2")[half], "ink", ha="right")
