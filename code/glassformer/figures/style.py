"""The look of every figure, and the one way a figure leaves Python.

A figure is drawn with Matplotlib in the light theme's colours. On its way out each colour becomes a
CSS variable with the light colour as fallback, so that the page's theme repaints it.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
from importlib.resources import files

import matplotlib as mpl
import numpy as np
from IPython.display import display
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

PALETTE: dict[str, dict[str, str]] = json.loads(
    files("glassformer").joinpath("palette.json").read_text(encoding="utf-8")
)

# Shares of a hue mixed into paper. On these steps text is readable in both themes: in `ink` up to
# 47 %, in `paper` on the full hue; between them neither reaches the contrast WCAG AA asks for.
TEXT_STEPS = (0, 6, 12, 18, 24, 30, 36, 42, 47, 100)
# Where nothing is written on the colour, an even ramp.
PLAIN_STEPS = tuple(range(0, 101, 10))

TEXT, SMALL, TITLE = 9.75, 8.75, 10.5  # font sizes in points; 0.75 point is one pixel
CURVE_WIDTH, PAGE_WIDTH = 318.0, 520.0  # points: a figure with axes; the text column of the site
SMALLEST_PIXELS = 9.0  # a figure shrinks on a phone until its smallest text has this size

SITE_FONTS = "system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif"


def colour(role: str) -> str:
    """Return the light theme's hex of a palette role."""
    if role not in PALETTE:
        raise ValueError(f"There is no colour role {role!r}; choose one of {', '.join(PALETTE)}.")
    return PALETTE[role]["light"]


def mix(role: str, percent: int, theme: str = "light") -> str:
    """Return the hex of `percent` % of a role's hue in that theme's paper."""
    hue, paper = (_channels(PALETTE[name][theme]) for name in (role, "paper"))
    mixed = [
        (percent * h + (100 - percent) * p + 50) // 100 for h, p in zip(hue, paper, strict=True)
    ]
    return "#" + "".join(f"{channel:02x}" for channel in mixed)


def ramp(role: str, percent: int) -> str:
    """Return the light hex of one step between paper (0) and a role's hue (100)."""
    colour(role)
    if percent not in TEXT_STEPS + PLAIN_STEPS:
        raise ValueError(f"{percent} is no step of the ramp; choose one of {TEXT_STEPS}.")
    return mix(role, percent)


def text_on(percent: int) -> str:
    """Return the role, `ink` or `paper`, of text written on a ramp's step."""
    if percent not in TEXT_STEPS:
        raise ValueError(f"No text is readable on {percent} %; choose one of {TEXT_STEPS}.")
    return "ink" if percent < 50 else "paper"


def step_of(magnitude: float, steps: tuple[int, ...] = TEXT_STEPS) -> int:
    """Return the ramp's step for a magnitude from 0 to 1; from 0.8 on it is the full hue."""
    share = min(max(float(magnitude), 0.0), 1.0) / 0.8
    return steps[min(int(share * (len(steps) - 1) + 1e-6), len(steps) - 1)]


def _channels(hexed: str) -> list[int]:
    return [int(hexed[i : i + 2], 16) for i in (1, 3, 5)]


def _css_colours() -> dict[str, str]:
    """Map each hex that a figure may use to the CSS that follows the theme."""
    table = {}
    for role in PALETTE:
        for percent in sorted(set(TEXT_STEPS + PLAIN_STEPS) - {0, 100}):
            hue, paper = variable(role), variable("paper")
            table[mix(role, percent)] = f"color-mix(in srgb,{hue} {percent}%,{paper})"
    return table | {colour(role): variable(role) for role in PALETTE}


def variable(role: str) -> str:
    """Return the CSS variable of a role, with its light hex as fallback."""
    return f"var(--gf-{role},{colour(role)})"


CSS_COLOURS = _css_colours()

_FAMILIES = (
    "axes.",
    "figure.",
    "font.",
    "grid.",
    "hatch.",
    "legend.",
    "lines.",
    "mathtext.",
    "patch.",
    "path.",
    "savefig.",
    "svg.",
    "text.",
    "xtick.",
    "ytick.",
)
# Matplotlib's defaults come first, so that a reader's own settings never change our figures.
RC = {name: mpl.rcParamsDefault[name] for name in mpl.rcParamsDefault if name.startswith(_FAMILIES)}
RC |= {
    "svg.fonttype": "none",
    "svg.hashsalt": "glassformer",
    "font.family": "DejaVu Sans",
    "font.size": TEXT,
    "axes.titlesize": TITLE,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": TEXT,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "legend.fontsize": SMALL,
    "legend.framealpha": 1,
    "legend.facecolor": colour("paper"),
    "legend.edgecolor": colour("paper"),
    "legend.fancybox": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": colour("line"),
    "axes.labelcolor": colour("muted"),
    "axes.titlecolor": colour("ink"),
    "axes.facecolor": "none",
    "axes.axisbelow": True,
    "axes.grid": False,
    "grid.color": colour("line"),
    "grid.linewidth": 0.6,
    "xtick.color": colour("line"),
    "ytick.color": colour("line"),
    "xtick.labelcolor": colour("muted"),
    "ytick.labelcolor": colour("muted"),
    "text.color": colour("ink"),
    "lines.linewidth": 1.8,
    "lines.solid_capstyle": "round",
    "hatch.linewidth": 0.8,
    "hatch.color": colour("line"),
    "patch.linewidth": 0.8,
    "patch.edgecolor": colour("ink"),
    "patch.facecolor": colour("residual"),
    "figure.facecolor": colour("paper"),
    "savefig.facecolor": colour("paper"),
    "path.simplify": False,
    "axes.unicode_minus": True,
}


# Every function that makes a figure wears this: `@drawn`.
drawn = mpl.rc_context(RC)


def canvas(width: float, height: float) -> Figure:
    """Return an empty figure of that many points; place things on it with `frame` or `sheet`."""
    return Figure(figsize=(width / 72, height / 72))


def frame(fig: Figure, left: float, bottom: float, width: float, height: float) -> Axes:
    """Return axes whose box is given in points from the figure's lower left corner."""
    across, up = fig.get_size_inches() * 72
    return fig.add_axes((left / across, bottom / up, width / across, height / up))


def sheet(width: float, height: float) -> tuple[Figure, Axes]:
    """Return a figure and axes without frame that fill it: one unit is a point, y runs down."""
    fig = canvas(width, height)
    ax = frame(fig, 0, 0, width, height)
    ax.set(xlim=(0, width), ylim=(height, 0))
    ax.axis("off")
    return fig, ax


def number(value: float, digits: int = 2) -> str:
    """Return a number as figures print it: fixed digits, a true minus sign, no negative zero."""
    rounded = round(float(value), digits) + 0.0
    return f"{rounded:,.{digits}f}".replace("-", "−")


def text_width(text: str, size: float = SMALL) -> float:
    """Return the points that a line of text takes at most, whatever sans serif font draws it."""
    return 0.64 * size * len(text)


def array(values, digits: int = 6) -> np.ndarray:
    """Return values of any shape as float64, rounded so that every CPU draws the same bytes."""
    if hasattr(values, "detach"):
        values = values.detach().cpu().numpy()
    return np.round(np.asarray(values, dtype=np.float64), digits) + 0.0


def to_svg(fig: Figure, alt: str) -> str:
    """Return the figure as an SVG that follows the page's theme, the same bytes every time."""
    buffer = io.StringIO()
    nothing = {"Date": None, "Creator": None, "Format": None, "Type": None}
    with mpl.rc_context(RC):
        fig.savefig(buffer, format="svg", metadata=nothing)
    return _opened(_themed(_stable_ids(_compact(buffer.getvalue()))), alt)


def to_png(fig: Figure) -> bytes:
    """Return the figure as a PNG in the light theme, for readers without SVG."""
    buffer = io.BytesIO()
    with mpl.rc_context(RC):
        fig.savefig(buffer, format="png", dpi=110, metadata={"Software": None})
    small = io.BytesIO()
    flat = Image.open(buffer).convert("RGB").quantize(64, dither=Image.Dither.NONE)
    flat.save(small, format="png", optimize=True)
    return small.getvalue()


def _opened(svg: str, alt: str) -> str:
    """Put size limits, font and text alternative on the root element."""
    box = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)
    width, height = (float(side) * 96 / 72 for side in box.groups())
    sizes = [float(s) for s in re.findall(r"font-size:([\d.]+)px", svg)]
    shrink = min(1.0, SMALLEST_PIXELS / (min(sizes, default=SMALL) * 96 / 72))
    style = (
        f"width:100%;height:auto;max-width:{width:.0f}px;min-width:{width * shrink:.0f}px;"
        f"font-family:{SITE_FONTS};font-variant-numeric:tabular-nums;stroke-linejoin:round"
    )
    root = (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'{box.group()} width="{width:.0f}" height="{height:.0f}" role="img" '
        f'aria-label="{_escaped(alt)}" style="{style}">'
    )
    return root + svg[svg.index(">") + 1 :]


def _escaped(text: str) -> str:
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return " ".join(text.replace('"', "&quot;").split())


def _compact(svg: str) -> str:
    """Round coordinates to hundredths of a point; drop space and defaults, but touch no text."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->|<style.*?</style>", "", svg, flags=re.S)
    svg = re.sub(r"<[^>]+>", lambda tag: _compact_tag(tag.group()), svg)
    return re.sub(r">\s+<", "><", svg).replace("<defs></defs>", "")


def _compact_tag(tag: str) -> str:
    tag = re.sub(r"-?\d+(?:\.\d{3,}(?:e-?\d+)?|(?:\.\d+)?e-\d+)", _short, tag)
    tag = re.sub(r'\bd="([^"]*)"', lambda found: f'd="{_short_path(found.group(1))}"', tag)
    tag = re.sub(r"font: ([^;\"]*?px)(?: '[^;\"]*)?", _font, tag)
    tag = re.sub(r"font-family: [^;\"]*;? ?", "", tag)
    tag = re.sub(r' transform="rotate\(-0 [^"]*"', "", tag)
    return re.sub(r"([:;]) ", r"\1", tag)


def _short(found: re.Match) -> str:
    text = f"{float(found.group()):.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _short_path(path: str) -> str:
    path = re.sub(r"\s+", " ", path.strip())
    path = re.sub(r" ?([A-Za-z]) ?", r"\1", path)
    return re.sub(r"M([-\d.]+) ([-\d.]+)L([-\d.]+) \2(?=M|$)", _stroke, path)


def _stroke(found: re.Match) -> str:
    start, y, end = found.groups()
    length = f"{float(end) - float(start):.2f}".rstrip("0").rstrip(".")
    return f"M{start} {y}h{length}"


def _font(found: re.Match) -> str:
    *weight, size = found.group(1).split()
    return "; ".join([*(f"font-weight: {w}" for w in weight), f"font-size: {size}"])


def _stable_ids(svg: str) -> str:
    """Keep only ids that something refers to, under names that no other figure uses."""
    used = dict.fromkeys(re.findall(r"(?:url\(#|href=\"#)([^)\"]+)", svg))
    stem = "gf" + hashlib.sha256(svg.encode()).hexdigest()[:8]
    names = {old: f"{stem}-{place}" for place, old in enumerate(used)}
    svg = re.sub(r' id="([^"]*)"', lambda m: f' id="{names[m[1]]}"' if m[1] in names else "", svg)
    refer = r"(url\(#|href=\"#)([^)\"]+)"
    return re.sub(refer, lambda m: m[1] + names[m[2]], svg)


def _themed(svg: str) -> str:
    """Replace every colour by its CSS variable; an older browser keeps the light hex."""

    def declaration(found: re.Match) -> str:
        name, hexed = found.group(1), found.group(2).lower()
        css = CSS_COLOURS.get(hexed)
        if css is None:
            raise ValueError(f"{hexed} is no colour of the palette; use colour() or ramp().")
        return f"{name}:{hexed};{name}:{css}" if css.startswith("color-mix") else f"{name}:{css}"

    svg = re.sub(r"(fill|stroke):(#[0-9a-fA-F]{6})", declaration, svg)
    return re.sub(r'(fill|stroke)="(#[0-9a-fA-F]{6})"', lambda m: f'style="{declaration(m)}"', svg)


class Picture:
    """A finished figure: what Jupyter and the site show, and in plain text its alternative."""

    def __init__(self, svg: str, png: bytes, alt: str) -> None:
        self.svg, self.png, self.alt = svg, png, alt

    def __repr__(self) -> str:
        return self.alt

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        png = base64.b64encode(self.png).decode()
        return {"image/svg+xml": self.svg, "image/png": png, "text/plain": self.alt}


def picture(fig: Figure, alt: str = "") -> Picture:
    """Return the finished figure with its text alternative, and close it."""
    alt = " ".join(alt.split()) if isinstance(alt, str) else ""
    try:
        if len(alt.split()) < 4 or not re.search(r"[^\W\d_]", alt):
            raise ValueError(
                "A figure needs alt: a sentence that tells someone who cannot see it what it shows."
            )
        return Picture(to_svg(fig, alt), to_png(fig), alt)
    finally:
        plt.close(fig)


def show(fig: Figure, alt: str = "") -> None:
    """Display a figure; `alt` says in words what it shows, with the values that matter."""
    display(picture(fig, alt))
