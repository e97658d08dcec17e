"""Designs side by side: where each has its parameters, all areas to one scale."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from glassformer.config import TransformerConfig
from glassformer.figures.drawing import label
from glassformer.figures.style import TITLE, colour, drawn, ramp, sheet

WIDE, TALL = 288.0, 58.0  # points of the largest design's strip


@drawn
def designs_to_scale(designs: Mapping[str, TransformerConfig]) -> Figure:
    """Draw each design as a strip as long as its count: token tables, and the blocks between them.

    A block is a column, attention above and the feed-forward network below; norms, too small to
    be seen, are left out.
    """
    largest = max(config.num_params() for config in designs.values())
    step = TALL + 30
    fig, ax = sheet(WIDE + 12, step * len(designs) + 42)
    for row, (name, config) in enumerate(designs.items()):
        y = 12 + step * row
        title = f"{name}: {config.num_params():,}"
        label(ax, 6, y, title, "ink", ha="left", size=TITLE, weight="bold")
        _strip(ax, y + 12, config, WIDE / largest)
    y = step * len(designs) + 10
    for place, (role, text) in enumerate(
        (("token", "token table"), ("attention", "attention"), ("residual", "feed-forward"))
    ):
        x = 6 + 96 * place
        _area(ax, x, y - 5, 10, 10, role)
        label(ax, x + 16, y, text, ha="left")
    label(ax, 6, y + 18, "a column is a block; areas in proportion", ha="left")
    return fig


def _strip(ax: Axes, y: float, c: TransformerConfig, scale: float) -> None:
    """Draw one design from x = 6 on, `scale` points for each parameter."""
    x, table = 6.0, scale * c.vocab_size * c.dim
    _area(ax, x, y, table, TALL, "token")
    x += table
    attention = 2 * c.dim * c.dim + 2 * c.dim * c.kv_heads * c.head_dim
    both = attention + 3 * c.dim * c.ffn_hidden_dim
    above = TALL * attention / both
    for _ in range(c.n_layers):
        _area(ax, x, y, scale * both, above, "attention")
        _area(ax, x, y + above, scale * both, TALL - above, "residual")
        x += scale * both
    if not c.tie_word_embeddings:
        _area(ax, x, y, table, TALL, "token")


def _area(ax: Axes, x: float, y: float, width: float, height: float, role: str) -> None:
    size = round(width, 2), round(height, 2)
    look = {"fc": ramp(role, 30), "ec": colour(role), "lw": 0.7}
    ax.add_patch(Rectangle((round(x, 2), round(y, 2)), *size, **look))
