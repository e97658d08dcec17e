"""Training looked at closely: curves next to the floor that the corpus sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from glassformer.figures.curves import STYLES, _plot
from glassformer.figures.style import SMALL, array, colour, drawn, number, ramp


@drawn
def near_the_floor(
    epochs: Sequence[int],
    series: Mapping[str, Sequence[float]],
    floor: float,
    title: str,
    published: Mapping[int, float] | None = None,
    reach: tuple[float, float] | None = None,
) -> Figure:
    """Draw up to two losses [n] over epochs [n], enlarged around the corpus's floor.

    The first is thin and pale, the last thick. `published` maps an epoch to the published loss,
    drawn as rings; `reach` gives the lowest and the highest loss shown.
    """
    fig, ax = _plot(title, "epoch", "loss (nats)", height=240)
    for place, (name, values) in enumerate(series.items()):
        last = place == len(series) - 1
        ink, width = (colour("loss"), 1.8) if last else (ramp("loss", 50), 1.0)
        ax.plot(array(epochs), array(values, 4), label=name, color=ink, lw=width)
    if published:
        shown = {e: loss for e, loss in published.items() if epochs[0] <= e <= epochs[-1]}
        ring = {"ls": "", "marker": "o", "ms": 6, "mfc": "none", "mec": colour("ink")}
        ax.plot(list(shown), array(list(shown.values()), 4), label="published", **ring)
    text = f"floor {number(floor, 3)}"
    ax.axhline(round(floor, 4), color=colour("ink"), lw=1.1, ls=STYLES[1], label=text)
    lowest, highest = reach or _reach(series, floor)
    room = 0.015 * (epochs[-1] - epochs[0])
    ax.set(xlim=(epochs[0] - room, epochs[-1] + room), ylim=(lowest, highest))
    across = {"ncols": 2, "loc": "upper left", "columnspacing": 1.2, "handlelength": 1.8}
    ax.legend(borderaxespad=0.2, fontsize=SMALL, **across)
    return fig


def _reach(series: Mapping[str, Sequence[float]], floor: float) -> tuple[float, float]:
    """Return a lowest and a highest loss that leave room for every curve and for the names."""
    every = np.concatenate([array(values, 4) for values in series.values()])
    lowest, highest = min(floor, every.min()), every.max()
    return lowest - 0.08 * (highest - lowest), highest + 0.35 * (highest - lowest)
