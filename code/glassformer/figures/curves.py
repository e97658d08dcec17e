"""Curves, bars and maps: training, distributions, embeddings, and what inference costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from glassformer.figures.matrices import Matrix, equation
from glassformer.figures.style import (
    CURVE_WIDTH,
    SMALL,
    TITLE,
    array,
    canvas,
    colour,
    drawn,
    frame,
    number,
    ramp,
    text_width,
)

HEIGHT = 220.0  # points of a figure with one pair of axes
MARKERS, STYLES = "osD^vP", ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)))
SERIES = ("attention", "scores_low", "value", "token", "position", "loss")


def _plot(title: str, x: str, y: str, height: float = HEIGHT) -> tuple[Figure, Axes]:
    """Return a figure with one pair of axes, its title and the names of both directions."""
    fig = canvas(CURVE_WIDTH, height)
    ax = frame(fig, 44, 38, CURVE_WIDTH - 62, height - 72)
    ax.set_xlabel(x, labelpad=4)
    note = {"xycoords": "axes fraction", "textcoords": "offset points"}
    ax.annotate(title, (0, 1), xytext=(-34, 22), size=TITLE, weight="bold", **note)
    ax.annotate(y, (0, 1), xytext=(-34, 8), size=SMALL, color=colour("muted"), **note)
    ax.grid(axis="y")
    ax.tick_params(length=0)
    return fig, ax


def _level(
    ax: Axes,
    value: float,
    text: str,
    style: str | tuple,
    role: str = "muted",
    lift: float = 5,
) -> None:
    """Draw a horizontal line across the axes and name it on its right, `lift` points from it."""
    ax.axhline(value, color=colour(role), lw=1.1, ls=style, zorder=1.5)
    place = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points", "ha": "right"}
    box = {"fc": colour("paper"), "ec": "none", "pad": 1}
    ax.annotate(text, (1, value), (-2, lift), size=SMALL, color=colour(role), bbox=box, **place)


def _percent(ax: Axes, along: str = "y") -> None:
    axis = ax.yaxis if along == "y" else ax.xaxis
    axis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:.0f} %"))


@drawn
def training_curve(
    losses,
    floor: float,
    start: float,
    start_name: str = "ln V",
    published: Mapping[int, float] | None = None,
    title: str = "Loss while training",
    unit: str = "epoch",
) -> Figure:
    """Draw losses [steps] between a guesser's loss, ln V, and the corpus's floor.

    `published` maps a step to the published loss, drawn as rings on the curve.
    """
    losses = array(losses, 4)
    fig, ax = _plot(title, unit, "loss (nats)")
    sns.lineplot(x=np.arange(len(losses)), y=losses, ax=ax, color=colour("loss"), errorbar=None)
    _level(ax, round(start, 4), f"{start_name} = {number(start, 3)}: guessing", STYLES[2])
    text = f"floor {number(floor, 3)}: the best any model can do"
    _level(ax, round(floor, 4), text, STYLES[1], "ink", lift=-14)
    if published:
        ring = {"ls": "", "marker": "o", "ms": 6, "mfc": "none", "mec": colour("ink")}
        ax.plot(list(published), array(list(published.values()), 4), label="published", **ring)
        ax.legend(loc="center right", handletextpad=0.2, borderaxespad=0)
    ax.set(xlim=(-0.01 * len(losses), 1.01 * len(losses)), ylim=(0, 1.12 * max(start, *losses)))
    return fig


@drawn
def accuracy_curve(
    accuracies, ceiling: float, title: str = "Right predictions", unit: str = "epoch"
) -> Figure:
    """Draw accuracies [steps], shares from 0 to 1, under the ceiling that no model can pass."""
    accuracies = array(accuracies, 4)
    fig, ax = _plot(title, unit, "right next tokens")
    sns.lineplot(
        x=np.arange(len(accuracies)), y=accuracies, ax=ax, color=colour("loss"), errorbar=None
    )
    _level(ax, round(ceiling, 4), f"ceiling {number(100 * ceiling, 1)} %", STYLES[1], "ink")
    _percent(ax)
    ax.set(xlim=(-0.01 * len(accuracies), 1.01 * len(accuracies)), ylim=(0, 1))
    return fig


@drawn
def predictions_over_training(
    probabilities, steps: Sequence[int], tokens: Sequence[str], title: str, unit: str = "step"
) -> Figure:
    """Draw probabilities [steps, V] of the next token as training goes on, a row for each step."""
    rows = [f"{unit} {step}" for step in steps]
    look = {"rows": rows, "columns": tokens, "digits": 2, "scale": 1.0}
    return equation([Matrix(probabilities, title, "token", **look)], wrap=2000)


@drawn
def distribution(
    probabilities,
    tokens: Sequence[str],
    titles: Sequence[str] = ("",),
    top: int = 8,
    role: str = "token",
) -> Figure:
    """Draw one or more distributions [V] or [n, V] as bars with percentages, side by side.

    The `top` likeliest tokens of the first are shown in all. A token whose probability is exactly
    0, cut by top-k or top-p, is hatched and says so.
    """
    given = np.atleast_2d(array(probabilities, 12))
    shares = np.where(given > 0, np.maximum(np.round(given, 6), 1e-9), 0.0)  # tiny is not cut
    order = np.argsort(-given[0], kind="stable")[:top]
    labels = [tokens[i] for i in order]
    left, panel, gap = max(map(text_width, labels)) + 14, 104.0, 46.0
    height = 17.0 * len(labels)
    fig = canvas(left + len(shares) * (panel + gap), height + 40)
    for place, (row, title) in enumerate(zip(shares, titles, strict=True)):
        ax = frame(fig, left + place * (panel + gap), 10, panel, height)
        _bars(ax, row[order], role)
        ax.set_title(title, size=TITLE, pad=6)
        ax.set_yticks(range(len(labels)), labels if place == 0 else [""] * len(labels))
    return fig


def _bars(ax: Axes, shares: np.ndarray, role: str) -> None:
    """Draw horizontal bars from 0 to 1 with their percentages; a zero is hatched as cut."""
    for y, share in enumerate(shares):
        if share > 0:
            length = max(round(share, 4), 1e-9)
            ax.barh(y, length, height=0.72, color=ramp(role, 47), ec=colour(role), lw=1)
        else:
            ax.barh(y, 0.16, height=0.72, fc="none", hatch="////", ec=colour("line"), lw=0)
        text = f"{number(100 * share, 1)} %" if share > 0 else "cut"
        end = round(share, 4) if share > 0 else 0.16
        ax.text(end + 0.03, y, text, va="center_baseline", size=SMALL)
    ax.set(xlim=(0, 1), ylim=(len(shares) - 0.5, -0.5), xticks=[])
    ax.spines[["bottom"]].set_visible(False)
    ax.tick_params(length=0, labelcolor=colour("ink"))


@drawn
def learned_distributions(
    learned, true, tokens: Sequence[str], contexts: Sequence[str], least: float = 0.005
) -> Figure:
    """Draw the model's distribution [contexts, V] against the corpus's, one panel a context.

    Only tokens that reach the share `least` somewhere are shown.
    """
    learned, true = array(learned, 4), array(true, 4)
    kept = [v for v in range(len(tokens)) if max(learned[:, v].max(), true[:, v].max()) >= least]
    left, across, down = max(text_width(tokens[v]) for v in kept) + 14, 150.0, 17.0 * len(kept)
    columns = min(3, len(contexts))
    rows = -(-len(contexts) // columns)
    fig = canvas(left + columns * across, rows * (down + 34) + 26)
    tall = fig.get_size_inches()[1] * 72
    for place, context in enumerate(contexts):
        row, column = divmod(place, columns)
        ax = frame(fig, left + column * across, tall - (row + 1) * (down + 34) + 4, 100, down)
        _bars_and_truth(ax, learned[place, kept], true[place, kept])
        ax.set_title(context, size=TITLE, pad=6)
        names = [tokens[v] for v in kept] if column == 0 else [""] * len(kept)
        ax.set_yticks(range(len(kept)), names)
    key = "bar and number: the model; upright stroke: the corpus"
    fig.text(8 / (left + columns * across), 10 / tall, key, size=SMALL, color=colour("muted"))
    return fig


def _bars_and_truth(ax: Axes, learned: np.ndarray, true: np.ndarray) -> None:
    """Draw the learned shares as bars and the corpus's as upright strokes."""
    _bars(ax, np.maximum(learned, 1e-9), "token")
    for y, share in enumerate(true):
        if share == 0:
            continue
        ax.plot([share, share], [y - 0.46, y + 0.46], color=colour("ink"), lw=2.2, clip_on=False)
    for y, text in enumerate(ax.texts):
        text.set_x(max(learned[y], true[y]) + 0.05)


@drawn
def softmax_by_temperature(
    scores, temperatures: Sequence[float], labels: Sequence[str] | None = None
) -> Figure:
    """Draw the softmax of scores [n] divided by each temperature, a panel for each."""
    scores = array(scores)
    scaled = scores[None] / np.asarray(temperatures, dtype=float)[:, None]
    powers = np.exp(scaled - scaled.max(axis=1, keepdims=True))
    labels = labels or [number(score, 0) for score in scores]
    titles = [f"τ = {temperature:g}" for temperature in temperatures]
    shares = np.maximum(powers / powers.sum(axis=1, keepdims=True), 1e-4)
    return distribution(shares, labels, titles, top=len(scores), role="attention")


def principal_plane(vectors) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean [d] and the two main directions [d, 2] of vectors [n, d], signs fixed."""
    vectors = array(vectors)
    mean = vectors.mean(axis=0)
    directions = np.linalg.svd(vectors - mean, full_matrices=False)[2][:2].T
    largest = np.abs(directions).argmax(axis=0)
    return mean, directions * np.sign(directions[largest, [0, 1]])


@drawn
def embedding_map(
    snapshots,
    tokens: Sequence[str],
    titles: Sequence[str] = ("",),
    groups: Mapping[str, Sequence[str]] | None = None,
) -> Figure:
    """Draw token vectors [V, d], or one set for each snapshot, on the last one's main plane.

    `groups` names kinds of tokens: each has a marker, named below; without it all are discs.
    """
    sets = [array(vectors) for vectors in (snapshots if len(titles) > 1 else [snapshots])]
    mean, plane = principal_plane(sets[-1])
    flat = [np.round((vectors - mean) @ plane, 3) for vectors in sets]
    reach = 1.1 * max(np.abs(points).max() for points in flat)
    side = 204.0 if len(sets) > 1 else CURVE_WIDTH - 24
    key = 26 if groups else 0
    kinds = {token: kind for kind, some in enumerate((groups or {}).values()) for token in some}
    fig = canvas(12 + len(sets) * (side + 12), side + 38 + key)
    for place, (points, title) in enumerate(zip(flat, titles, strict=True)):
        ax = frame(fig, 12 + place * (side + 12), 10 + key, side, side)
        _words(ax, points, tokens, [kinds.get(token, 0) for token in tokens], reach, side)
        ax.set_title(title, pad=6)
    if groups:
        look = {"loc": "lower left", "ncols": len(groups), "fontsize": SMALL, "frameon": False}
        fig.legend([_mark(kind) for kind in range(len(groups))], groups, **look)
    return fig


def _mark(kind: int) -> Line2D:
    """Return the marker of a kind of token."""
    role = SERIES[(kind + 3) % len(SERIES)]
    return Line2D([], [], marker=MARKERS[kind % len(MARKERS)], ms=4.5, color=colour(role), ls="")


def _words(
    ax: Axes, points: np.ndarray, tokens: Sequence[str], groups: Sequence[int], reach: float, side
) -> None:
    """Draw points [V, 2] with their words, each word where it covers the fewest others."""
    ax.set(xlim=(-reach, reach), ylim=(-reach, reach), xticks=[], yticks=[])
    ax.axhline(0, color=colour("line"), lw=0.6)
    ax.axvline(0, color=colour("line"), lw=0.6)
    ax.spines[:].set_visible(True)
    scale, taken = side / (2 * reach), []
    for (x, y), token, group in zip(points, tokens, groups, strict=True):
        mark = _mark(group)
        mark.set_data([x], [y])
        ax.add_line(mark)
        dx, dy, anchor = _free_side((x * scale, y * scale), token, taken, points * scale, side / 2)
        offset = {"xytext": (dx, dy), "textcoords": "offset points", "ha": anchor}
        ax.annotate(token, (x, y), va="center_baseline", size=SMALL, **offset)


def _free_side(
    point: tuple[float, float], token: str, taken: list, points: np.ndarray, edge: float
) -> tuple[float, float, str]:
    """Return the offset and anchor for a word: the first of eight that is free, or the freest."""
    wide, tall = 0.9 * text_width(token), 10.0
    places = [(6, 0, "left"), (-6, 0, "right"), (0, 9, "center"), (0, -9, "center")]
    places += [(5, 8, "left"), (-5, 8, "right"), (5, -8, "left"), (-5, -8, "right")]
    best = None
    for dx, dy, anchor in places:
        start = point[0] + dx - {"left": 0, "right": wide, "center": wide / 2}[anchor]
        box = (start, point[1] + dy - tall / 2, start + wide, point[1] + dy + tall / 2)
        cost = sum(_overlap(box, other) for other in taken)
        cost += 30 * sum(box[0] < x < box[2] and box[1] < y < box[3] for x, y in points)
        cost += 500 * (box[0] < -edge or box[2] > edge or box[1] < -edge or box[3] > edge)
        if best is None or cost < best[0] - 1e-6:
            best = (cost, (dx, dy, anchor), box)
    taken.append(best[2])
    return best[1]


def _overlap(a: tuple, b: tuple) -> float:
    return max(0, min(a[2], b[2]) - max(a[0], b[0])) * max(0, min(a[3], b[3]) - max(a[1], b[1]))


@drawn
def lines(
    x,
    series: Mapping[str, Sequence[float]],
    title: str,
    x_name: str,
    y_name: str,
    digits: int = 4,
    markers: bool = True,
) -> Figure:
    """Draw one or more series [n] over x [n]; each has its own line style, marker and name."""
    fig, ax = _plot(title, x_name, y_name)
    series = {name: array(values, digits) for name, values in series.items()}
    for place, (name, values) in enumerate(series.items()):
        look = {"ls": STYLES[place % len(STYLES)], "color": colour(SERIES[place % len(SERIES)])}
        if markers:
            look |= {"marker": MARKERS[place % len(MARKERS)], "ms": 4.5}
        ax.plot(array(x), values, label=name, **look)
    ax.set_ylim(bottom=min(0.0, *(1.08 * values.min() for values in series.values())))
    if len(series) > 1:
        ax.legend(loc="best", handlelength=2.6)
    return fig


@drawn
def learning_curves(
    losses: Mapping[str, tuple[Sequence[int], Sequence[float]]],
    baselines: Mapping[str, float],
    title: str = "Loss while training",
    unit: str = "nats per token",
) -> Figure:
    """Draw losses [n] of several models over the tokens that each had seen [n], among baselines."""
    fig, ax = _plot(title, "tokens seen, in millions", unit, height=1.3 * HEIGHT)
    for place, (name, (seen, values)) in enumerate(losses.items()):
        look = {"ls": STYLES[place % len(STYLES)], "color": colour(SERIES[place % len(SERIES)])}
        marks = {"marker": MARKERS[place % len(MARKERS)], "ms": 4.5}
        ax.plot(array(seen) / 1e6, array(values, 3), label=name, zorder=3, **look, **marks)
    _baselines(ax, baselines)
    ends = [*baselines.values(), *(float(v) for _, values in losses.values() for v in values)]
    most = max(max(seen) for seen, _ in losses.values()) / 1e6
    ax.set_xticks([tick for tick in ax.get_xticks() if 0 <= tick <= most])
    right = (1.6 if baselines else 1.02) * most  # the levels are named where no curve runs
    ax.set(xlim=(0, right), ylim=(min(ends) - 0.2, max(ends) + 1.1))
    ax.legend(loc="upper right", handlelength=2.6, title="parameters", bbox_to_anchor=(1.02, 1.03))
    return fig


def _baselines(ax: Axes, baselines: Mapping[str, float]) -> None:
    """Draw levels, named at the right: the lowest below its line, the others above."""
    for name, value in baselines.items():
        lift = -12 if value == min(baselines.values()) else 4
        _level(ax, value, f"{name} {value:.2f}", STYLES[2], lift=lift)


@drawn
def loss_by_size(
    parameters: Mapping[str, int],
    losses: Mapping[str, float],
    baselines: Mapping[str, float],
    title: str = "Loss on the text held out, by size",
) -> Figure:
    """Draw the last loss of each model over its parameters, on a logarithmic scale."""
    fig, ax = _plot(title, "parameters", "nats per token")
    sizes = [parameters[name] for name in losses]
    ax.plot(sizes, array(list(losses.values()), 3), marker="o", ms=6, color=colour("attention"))
    for name, size in zip(losses, sizes, strict=True):
        ax.annotate(
            f"{losses[name]:.2f}", (size, losses[name]), (0, -16), textcoords="offset points",
            ha="center", size=SMALL,
        )  # fmt: skip
    _baselines(ax, baselines)
    ends = [*baselines.values(), *losses.values()]
    room = 0.3 * (max(ends) - min(ends))
    ax.set(xscale="log", xlim=(0.7 * min(sizes), 1.6 * max(sizes)), xticks=sizes)
    ax.set_ylim(min(ends) - room, max(ends) + room)
    ax.minorticks_off()
    ax.xaxis.set_major_formatter(FuncFormatter(lambda size, _: f"{size:,.0f}"))
    return fig


@drawn
def dot_product_spread(
    widths: Sequence[int], raw, scaled, title: str = "Spread of a dot product"
) -> Figure:
    """Draw the standard deviation of q·k [n] for each width d, raw and divided by √d, with √d."""
    fig, ax = _plot(title, "width d", "standard deviation")
    grid = np.linspace(0, max(widths), 60)
    ax.plot(grid, np.round(np.sqrt(grid), 3), color=colour("muted"), lw=1.2, label="√d")
    ax.axhline(1, color=colour("muted"), lw=1.2, ls=STYLES[1], label="1")
    for name, spread, role, marker in (
        ("q·k, measured", raw, "attention", "o"),
        ("q·k / √d, measured", scaled, "scores_low", "s"),
    ):
        ax.plot(widths, array(spread, 3), marker, ms=6, ls="", color=colour(role), label=name)
    ax.set(xlim=(0, 1.03 * max(widths)), ylim=(0, 1.1 * float(array(raw, 3).max())))
    ax.legend(loc="center right", handlelength=2.6, bbox_to_anchor=(1.02, 0.36))
    return fig


@drawn
def time_per_token(
    lengths: Sequence[int],
    cached: Sequence[float],
    uncached: Sequence[float],
    y_name: str = "milliseconds a token",
    title: str = "Cost of the next token",
) -> Figure:
    """Draw time, or multiplications, for one more token over the length, with and without cache."""
    series = {"without cache": uncached, "with cache": cached}
    return lines(lengths, series, title, "tokens so far", y_name, digits=3)


@drawn
def parameter_ledger(parts: Mapping[str, int], title: str = "Where the parameters are") -> Figure:
    """Draw one bar for each part with its count and share, and the total in the title."""
    total = sum(parts.values())
    left = max(map(text_width, parts)) + 12
    fig = canvas(left + 290, 17 * len(parts) + 38)
    ax = frame(fig, left, 8, 170, 17 * len(parts))
    for y, (name, count) in enumerate(parts.items()):
        role = _part_role(name)
        ax.barh(y, count, height=0.72, color=ramp(role, 47), ec=colour(role), lw=1)
        text = f"{count:,} · {number(100 * count / total, 1)} %"
        ax.text(count + 0.02 * max(parts.values()), y, text, va="center_baseline", size=SMALL)
    ax.set_yticks(range(len(parts)), list(parts))
    ax.set(xlim=(0, max(parts.values())), ylim=(len(parts) - 0.5, -0.5), xticks=[])
    ax.spines["bottom"].set_visible(False)
    ax.tick_params(length=0, labelcolor=colour("ink"))
    ax.set_title(f"{title}: {total:,}", pad=6, x=-left / 170 + 0.04)
    return fig


def _part_role(name: str) -> str:
    """Return the colour role for a part of a model by the words in its name."""
    words = {
        "query": ("query", "wq", "attn.q"),
        "key": ("key", "wk", "attn.k"),
        "value": ("value", "wv", "attn.v"),
        "position": ("position",),
        "attention": ("attention", "wo"),
        "token": ("token", "tok_", "embed", "head", "output"),
    }
    low = name.lower()
    return next((role for role, parts in words.items() if any(p in low for p in parts)), "residual")
