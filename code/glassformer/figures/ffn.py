"""The feed-forward network, node by node."""

from __future__ import annotations

import networkx as nx
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from glassformer.figures.drawing import arrow, label, rounded
from glassformer.figures.style import (
    PAGE_WIDTH,
    SMALL,
    TITLE,
    array,
    colour,
    drawn,
    number,
    sheet,
    text_on,
)

ROW, PILL = 25.0, 46.0  # points: from node to node, and a node's width
COLUMNS = {"in": 38.0, "hidden": 212.0, "active": 308.0, "out": 482.0}


@drawn
def ffn_graph(inputs, hidden, activation, outputs, into=None, out_of=None, title="") -> Figure:
    """Draw inputs [d], hidden [h] before and after the activation, outputs [d] as one node each.

    Units whose activation is 0 are hollow, dashed and labelled off, and send nothing on. With the
    weights `into` [h, d] and `out_of` [d, h], lines are as wide as weights, dashed when negative.
    """
    columns = dict(zip(COLUMNS, (inputs, hidden, activation, outputs), strict=True))
    values = {name: array(column, 4).reshape(-1) for name, column in columns.items()}
    tall = max(len(column) for column in values.values()) * ROW
    fig, ax = sheet(PAGE_WIDTH, tall + 92)
    graph = _network(values, into, out_of, 62 + tall / 2)
    _edges(ax, graph)
    for node, facts in graph.nodes(data=True):
        _node(ax, *facts["place"], facts["value"], off=node[0] == "active" and facts["value"] == 0)
    _captions(ax, values, tall, title, into is not None)
    return fig


def _network(values: dict, into, out_of, middle: float) -> nx.DiGraph:
    """Return the network as a graph; nodes (column, unit) have a place and a value."""
    graph = nx.DiGraph()
    for name, column in values.items():
        for unit, value in enumerate(column):
            y = middle + ROW * (unit - (len(column) - 1) / 2)
            graph.add_node((name, unit), place=(COLUMNS[name], y), value=value)
    for start, end, weights in (("in", "hidden", into), ("active", "out", out_of)):
        shape = (len(values[end]), len(values[start]))
        weights = np.full(shape, np.nan) if weights is None else array(weights, 4)
        if weights.shape != shape:
            raise ValueError(
                f"The weights from {start} to {end} have shape {list(weights.shape)}; "
                f"{list(shape)} is needed: a row for each unit that is fed."
            )
        for i, j in np.ndindex(*shape):
            if start == "in" or values[start][j] != 0:
                graph.add_edge((start, j), (end, i), weight=weights[i, j])
    for unit in range(len(values["hidden"])):
        graph.add_edge(("hidden", unit), ("active", unit), weight=None)
    return graph


def _edges(ax: Axes, graph: nx.DiGraph) -> None:
    """Draw weights as lines, solid or dashed by sign, and an arrow through each ReLU."""
    known = [abs(w) for *_, w in graph.edges.data("weight") if w is not None and not np.isnan(w)]
    largest = max(known, default=1.0) or 1.0
    kinds: dict[str, list] = {"plain": [], "positive": [], "negative": []}
    for start, end, weight in graph.edges.data("weight"):
        (x, y), (x2, y2) = graph.nodes[start]["place"], graph.nodes[end]["place"]
        span = [(x + PILL / 2, y), (x2 - PILL / 2, y2)]
        if weight is None:
            if graph.nodes[end]["value"] != 0:
                arrow(ax, span[0], (span[1][0] - 2, span[1][1]), role="residual")
        elif np.isnan(weight):
            kinds["plain"].append((span, 0.7))
        else:
            width = 0.25 + 2.4 * (abs(weight) / largest) ** 1.5
            kinds["positive" if weight >= 0 else "negative"].append((span, round(width, 2)))
    looks = {
        "plain": {"colors": colour("line")},
        "positive": {"colors": colour("residual")},
        "negative": {"colors": colour("scores_low"), "linestyles": [(0, (3, 2))]},
    }
    for kind, lines in kinds.items():
        if lines:
            spans, widths = zip(*lines, strict=True)
            ax.add_collection(
                LineCollection(spans, linewidths=widths, **looks[kind], zorder=1), autolim=False
            )


def _node(ax: Axes, x: float, y: float, value: float, off: bool) -> None:
    """Draw a node around (x, y) with its value; an off unit is hollow, dashed and says so."""
    look = {"fill": 0, "ls": (0, (3, 2))} if off else {"fill": 24}
    role = "muted" if off else "residual"
    rounded(ax, x - PILL / 2, y - 10, PILL, 20, role, **look)
    label(ax, x, y, "off" if off else number(value), "muted" if off else text_on(24))


def _captions(ax: Axes, values: dict, tall: float, title: str, weighted: bool) -> None:
    """Write what each column is, how many units are off, and how lines are to be read."""
    label(ax, 12, 14, title or "feed-forward network", "ink", ha="left", size=TITLE, weight="bold")
    names = {"in": "input", "hidden": "hidden", "active": "after ReLU", "out": "output"}
    for name, x in COLUMNS.items():
        label(ax, x, 40, f"{names[name]} [{len(values[name])}]", "ink")
    off = int((values["active"] == 0).sum())
    text = f"{off} of {len(values['active'])} units are off and send nothing on"
    label(ax, 12, tall + 78, text, "ink", ha="left")
    if weighted:
        start = PAGE_WIDTH - 12
        for text, role, style in (
            ("negative weight", "scores_low", (0, (3, 2))),
            ("positive", "residual", "-"),
        ):
            start -= 5.6 * len(text)
            label(ax, start, tall + 78, text, role, ha="left", size=SMALL)
            ax.plot([start - 24, start - 5], [tall + 78] * 2, color=colour(role), ls=style, lw=1.6)
            start -= 38
