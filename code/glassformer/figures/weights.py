"""Every weight matrix of a model drawn to one scale."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path

from glassformer.figures.matrices import HUES
from glassformer.figures.style import (
    PLAIN_STEPS,
    SMALL,
    array,
    colour,
    drawn,
    ramp,
    sheet,
    step_of,
    text_width,
)

WIDEST = 690.0  # points in a line of tiles
HEAD, GAP = 26, 16  # points above a tile for its label, and between columns of tiles
OVER = 17  # points above a layer for its name
WORD = 10.5  # points from one word of the vocabulary to the next
COUNTABLE = 40_000  # with more weights than this, a square for each could not be seen

ROLES = {
    ("q", "wq"): "query",
    ("k", "wk"): "key",
    ("v", "wv"): "value",
    ("wo",): "attention",
    ("token_embedding", "tok_embeddings", "head", "output"): "token",
    ("position_embedding",): "position",
}


@dataclass
class Tile:
    """One module's weight [rows, columns], its bias as a column or row beside it, and its place."""

    name: str
    weight: np.ndarray
    bias: np.ndarray | None
    cell: float
    words: Sequence[str] = ()
    x: float = 0.0
    y: float = 0.0

    @property
    def role(self) -> str:
        """The palette role of the module: query, key, value, token and so on."""
        last = self.name.rsplit(".", 1)[-1]
        return next((role for names, role in ROLES.items() if last in names), "residual")

    @property
    def label(self) -> str:
        """The module's name without the layer's: q, wq, ffn.0, norm1."""
        label = self.name.removeprefix(self.part + ".")
        return re.sub(r"^(attn|attention|feed_forward)\.", "", label)

    @property
    def part(self) -> str:
        """The layer the module belongs to, or nothing for what stands before and after layers."""
        found = re.match(r"(layers\.\d+|transformer)\.", self.name)
        return found[1] if found else ""

    @property
    def count(self) -> int:
        """How many weights the tile holds, bias included."""
        return self.weight.size + (0 if self.bias is None else self.bias.size)

    @property
    def shape(self) -> str:
        """The shapes and the count as the label gives them."""
        rows = self.weight.shape if self.weight.shape[0] > 1 else self.weight.shape[1:]
        bias = "" if self.bias is None else f" + [{self.bias.size}]"
        return f"{list(rows)}{bias} · {self.count:,}"

    @property
    def blocks(self) -> list[tuple[np.ndarray, float, float]]:
        """The arrays drawn, each with its left and top in points from the tile's corner."""
        if self.bias is None:
            return [(self.weight, 0.0, 0.0)]
        apart = max(2.0, self.cell / 3)
        if self.weight.shape[0] == 1:
            return [(self.weight, 0.0, 0.0), (self.bias[None], 0.0, self.cell + apart)]
        beside = self.weight.shape[1] * self.cell + apart
        return [(self.weight, 0.0, 0.0), (self.bias[:, None], beside, 0.0)]

    @property
    def left(self) -> float:
        """The points that words left of an embedding take."""
        return self._words_width if "embed" in self.name else 0.0

    @property
    def right(self) -> float:
        """The points that words right of an output head take."""
        return 0.0 if "embed" in self.name else self._words_width

    @property
    def _words_width(self) -> float:
        return math.ceil(max(map(text_width, self.words)) + 22) if self.words else 0.0

    @property
    def width(self) -> float:
        """The points across, words and label included."""
        drawn = max(x + block.shape[1] * self.cell for block, x, _ in self.blocks)
        label = max(text_width(self.shape, 0.86 * SMALL), text_width(self.label, SMALL))
        return math.ceil(self.left + max(drawn + self.right, label))

    @property
    def fan(self) -> float:
        """The points by which the fan of words is taller than the matrix, above and below alike."""
        return max(0.0, (WORD * len(self.words) - self.cell * len(self.weight)) / 2)

    @property
    def inset(self) -> int:
        """The points from the tile's top to the matrix, label included."""
        return math.ceil(max(HEAD, self.fan))

    @property
    def height(self) -> float:
        """The points down, label and words included."""
        drawn = max(y + block.shape[0] * self.cell for block, _, y in self.blocks)
        return math.ceil(self.inset + drawn + self.fan)


@drawn
def weights_to_scale(model, vocabulary: Sequence[str] = ()) -> Figure:
    """Draw every weight matrix of a model, or of its state dict, to one scale, one square a weight.

    The words of `vocabulary` fan out on the embedding and on the head. A model with more weights
    than can be seen gets one rectangle a matrix, its area in proportion to the count. Of a model
    whose head is its embedding that matrix is drawn once.
    """
    state = model if isinstance(model, Mapping) else dict(model.named_parameters())
    tiles = _tiles(state, vocabulary)
    notes = _notes(tiles)
    width, height = _pack(tiles)
    width = max(width, *(6 + text_width(note) for note in notes))
    fig, ax = sheet(width, height + 9 + 13 * len(notes))
    _draw_squares(ax, tiles)
    for part, shelf in itertools.groupby(tiles, key=lambda tile: tile.part):
        first = next(shelf)
        look = {"size": SMALL, "color": colour("muted")}
        ax.text(first.x, first.y - 5, part.upper().replace("LAYERS.", "LAYER "), **look)
    for tile in tiles:
        _draw_label(ax, tile)
        _draw_words(ax, tile)
    for line, note in enumerate(notes):
        ax.text(6, height + 12 + 13 * line, note, size=SMALL, color=colour("muted"))
    return fig


def _notes(tiles: list[Tile]) -> list[str]:
    """Return the lines below the tiles: how many weights, and how to read them."""
    total = sum(tile.count for tile in tiles)
    if total > COUNTABLE:
        return [f"{total:,} weights: areas in proportion"]
    return [
        f"{total:,} weights, one square each",
        "pale: near 0; below 0: slate, or brown where slate is above 0",
    ]


def _tiles(state: Mapping, vocabulary: Sequence[str]) -> list[Tile]:
    """Return a tile for each module of a state dict; a weight that is one row stays a row."""
    cell = _cell([tuple(value.shape) for value in state.values()])
    tiles = []
    for name in dict.fromkeys(key.rpartition(".")[0] for key in state):
        weight = np.atleast_2d(array(state[f"{name}.weight"], 4))
        bias = state.get(f"{name}.bias")
        bias = None if bias is None else array(bias, 4)
        ends = ("token_embedding", "tok_embeddings", "head", "output")
        words = vocabulary if name in ends and len(vocabulary) <= 40 else ()
        tiles.append(Tile(name, weight, bias, cell, words))
    return tiles


def _cell(shapes: list[tuple[int, ...]]) -> float:
    """Return the points from one weight to the next, as many as the page has room for."""
    total = sum(math.prod(shape) for shape in shapes)
    if total <= COUNTABLE:
        return 8.0 if total < 2_000 else 3.0
    return min(math.sqrt(120_000 / total), 420 / max(max(shape) for shape in shapes))


def _pack(tiles: list[Tile]) -> tuple[float, float]:
    """Give each tile its place, in columns, a layer's columns together; return width and height."""
    tallest = 1.3 * max(tile.height for tile in tiles)
    x, y, below, widest = 6, 4, 0, 0
    for _, shelf in itertools.groupby(tiles, key=lambda tile: tile.part):
        columns = _columns(list(shelf), tallest)
        across = sum(max(tile.width for tile in column) + GAP for column in columns)
        if x > 6 and x + across > WIDEST + GAP:
            x, y, below = 6, y + below + 16, 0
        for column in columns:
            down = y + OVER
            for tile in column:
                tile.x, tile.y = x, down
                down += tile.height + 8
            x += max(tile.width for tile in column) + GAP
            below, widest = max(below, down - y - 8), max(widest, x - GAP)
    return widest + 6, y + below + 8


def _columns(tiles: list[Tile], tallest: float) -> list[list[Tile]]:
    columns = [[]]
    for tile in tiles:
        if columns[-1] and sum(t.height + 8 for t in columns[-1]) + tile.height > tallest:
            columns.append([])
        columns[-1].append(tile)
    return columns


def _draw_squares(ax: Axes, tiles: list[Tile]) -> None:
    """Draw all weights of one colour as one path of short thick strokes: a small file."""
    strokes: dict[tuple[str, int], list] = {}
    cell = tiles[0].cell
    side = cell - (0.5 if cell < 5 else 1.0)
    countable = sum(tile.count for tile in tiles) <= COUNTABLE
    for tile in tiles:
        scale = max(float(np.abs(block).max()) for block, _, _ in tile.blocks) or 1.0
        for block, left, top in tile.blocks:
            x, y = tile.x + tile.left + left, tile.y + tile.inset + top
            size = (block.shape[1] * cell, block.shape[0] * cell)
            look = {"fc": ramp(tile.role, 30), "ec": colour(tile.role)} if not countable else {}
            look = look or {"fc": "none", "ec": colour("line")}
            ax.add_patch(Rectangle((x - 0.5, y - 0.5), *size, lw=0.7, **look))
            if countable:
                _collect(strokes, block, tile.role, scale, (x, y, cell, side))
    for (role, percent), lines in strokes.items():
        path = Path(np.array(lines).reshape(-1, 2), [Path.MOVETO, Path.LINETO] * len(lines))
        look = {"ec": ramp(role, percent), "lw": side, "capstyle": "butt", "clip_on": False}
        ax.add_patch(PathPatch(path, fill=False, **look))


def _collect(strokes: dict, block: np.ndarray, role: str, scale: float, place: tuple) -> None:
    """Append a stroke for each weight of a block to the list of its colour."""
    left, top, cell, side = place
    below, above = HUES.get(role, ("residual", role))
    for (i, j), weight in np.ndenumerate(block):
        percent = step_of(abs(weight) / scale, PLAIN_STEPS)
        x, y = round(left + j * cell, 2), round(top + i * cell + side // 2, 2)
        key = (below if weight < 0 else above, percent)
        if percent:
            strokes.setdefault(key, []).append([(x, y), (x + side, y)])


def _draw_label(ax: Axes, tile: Tile) -> None:
    """Write a tile's name in its role's colour and, below, shapes and count."""
    x = tile.x + tile.left
    ax.text(
        x, tile.y + tile.inset - 17, tile.label, size=SMALL, weight="bold", color=colour(tile.role)
    )
    ax.text(x, tile.y + tile.inset - 6, tile.shape, size=SMALL, color=colour("muted"))


def _draw_words(ax: Axes, tile: Tile) -> None:
    """Fan the vocabulary's words out beside the rows that belong to them."""
    embeds = tile.left > 0
    edge = tile.x + tile.left - 3 if embeds else tile.x + 3
    if not embeds:
        edge += max(x + block.shape[1] * tile.cell for block, x, _ in tile.blocks)
    out = -10 if embeds else 10
    for i, word in enumerate(tile.words):
        row = tile.y + tile.inset + (i + 0.5) * tile.cell
        y = tile.y + tile.inset - tile.fan + (i + 0.5) * WORD
        ax.plot([edge, edge + out], [row, y], color=colour("line"), lw=0.6)
        side = {"ha": "right" if embeds else "left", "va": "center_baseline"}
        ax.text(edge + 1.3 * out, y, word, size=SMALL, **side)
