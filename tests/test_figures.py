"""Figures say what they were given, to everyone, in both themes, with the same bytes every time."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg

from glassformer import figures as gf
from glassformer.figures import style

ALT = "A picture that the tests draw, with its values."
WORDS = ["<pad>", "the", "cat", "dog", "sat", "ran", "on", "mat"]
DIMS = [str(d) for d in range(8)]


def drawing(seed: int):
    """Return a function that gives the same random tensor [*shape] at each call in turn."""
    generator = torch.Generator().manual_seed(seed)
    return lambda *shape: torch.randn(*shape, generator=generator, dtype=torch.float64)


def model_state(draw) -> dict[str, torch.Tensor]:
    return {
        "token_embedding.weight": draw(8, 6),
        "transformer.attn.q.weight": draw(6, 6),
        "transformer.attn.q.bias": draw(6),
        "transformer.norm1.weight": draw(6),
        "transformer.norm1.bias": draw(6),
        "head.weight": draw(8, 6),
        "head.bias": draw(8),
    }


def large_state(draw) -> dict[str, torch.Tensor]:
    return {"tok_embeddings.weight": draw(400, 64), "output.weight": draw(400, 64)}


def sum_parts(draw) -> list:
    a, b = draw(4, 8), draw(4, 8)
    words = WORDS[1:5]
    return [
        gf.Matrix(a, "token", "token", rows=words, columns=DIMS),
        "+",
        gf.Matrix(b, "position", "position", rows=list("0123")),
        "=",
        gf.Matrix(a + b, "H₀", rows=words),
    ]


def causal(draw) -> torch.Tensor:
    scores = draw(4, 4).masked_fill(torch.ones(4, 4).triu(1).bool(), -1e9)
    return scores.softmax(-1)


def cut(draw) -> torch.Tensor:
    shares = draw(2, 8).softmax(-1)
    shares[1, shares[0].topk(5).indices[3:]] = 0.0
    return shares


# Each figure from a source of random tensors, and a few texts that must be written on it.
FIGURES = {
    "heatmap": lambda draw: gf.heatmap(
        draw(4, 4), "scores", "scores", rows=WORDS[:4], columns=WORDS[:4], lit=[(1, None)]
    ),
    "heatmap attention": lambda draw: gf.heatmap(
        causal(draw), "attention", "attention", hidden=True, digits=3, columns=WORDS[:4]
    ),
    "heatmap turned": lambda draw: gf.heatmap(
        draw(2, 9), "logits", "token", columns=[*WORDS, "<START>"], rows=["i", "am"]
    ),
    "equation": lambda draw: gf.equation(sum_parts(draw), one_scale=True),
    "product_cell": lambda draw: gf.product_cell(draw(3, 4), draw(4, 8), 1, 5, columns=WORDS),
    "product_cell wide": lambda draw: gf.product_cell(draw(3, 32), draw(32, 8), 2, 0),
    "weights_to_scale": lambda draw: gf.weights_to_scale(model_state(draw), WORDS),
    "weights_to_scale large": lambda draw: gf.weights_to_scale(large_state(draw)),
    "training_curve": lambda draw: gf.training_curve(
        1 + draw(50).abs(), 0.7361, 3.1781, "ln 24", {0: 1.5, 25: 1.75}
    ),
    "accuracy_curve": lambda draw: gf.accuracy_curve(draw(50).sigmoid(), 0.7237),
    "predictions_over_training": lambda draw: gf.predictions_over_training(
        draw(3, 8).softmax(-1), [0, 5, 199], WORDS, "after the cat"
    ),
    "distribution": lambda draw: gf.distribution(cut(draw), WORDS, ["all", "top-k = 3"], top=5),
    "learned_distributions": lambda draw: gf.learned_distributions(
        draw(4, 8).softmax(-1), torch.eye(8)[:4], WORDS, ["the", "cat", "sat", "on"]
    ),
    "softmax_by_temperature": lambda draw: gf.softmax_by_temperature(
        torch.tensor([5.0, 3, 1, -1, -3]) + 0 * draw(5), [0.5, 1, 2]
    ),
    "embedding_map": lambda draw: gf.embedding_map(
        [draw(8, 6), draw(8, 6)],
        WORDS,
        ["before", "after"],
        {"one": WORDS[:1], "the rest": WORDS[1:]},
    ),
    "lines": lambda draw: gf.lines(
        range(6), {"relu": draw(6).relu(), "silu": draw(6)}, "Curves", "x", "y"
    ),
    "learning_curves": lambda draw: gf.learning_curves(
        {
            "small": ([400_000, 2_000_000, 4_000_000], 5 + draw(3).abs()),
            "large": ([400_000, 4_000_000], 4 + 0.5 * draw(2).sigmoid()),
        },
        {"one token": 6.4, "two tokens": 4.9},
    ),
    "loss_by_size": lambda draw: gf.loss_by_size(
        {"small": 171_216, "large": 2_004_000},
        {"small": 5.25 + draw(1).abs().item(), "large": 4.5},
        {"one token": 6.5, "two tokens": 4.95},
    ),
    "dot_product_spread": lambda draw: gf.dot_product_spread(
        [2, 8, 64], 2 + draw(3).abs(), 1 + 0.01 * draw(3)
    ),
    "time_per_token": lambda draw: gf.time_per_token(
        [1, 64, 256], 1 + 0.1 * draw(3).abs(), 2 + draw(3).abs()
    ),
    "parameter_ledger": lambda draw: gf.parameter_ledger(
        {"token embedding": 192, "query": 72, "head": 216}
    ),
}

WRITTEN = {
    "heatmap": [*drawing(0)(4, 4).flatten().tolist()],
    "equation": ["H₀", "[4, 8]", "+", "=", *drawing(0)(4, 8).flatten().tolist()],
    "heatmap turned": ["<START>", *drawing(0)(2, 9).flatten().tolist()],
    "predictions_over_training": [*drawing(0)(3, 8).softmax(-1).flatten().tolist()],
    "weights_to_scale": ["[6, 6] + [6] · 42", "[8, 6] + [8] · 56", "[6] + [6] · 12", "TRANSFORMER"],
    "weights_to_scale large": ["[400, 64] · 25,600"],
    "training_curve": ["ln 24 = 3.178: guessing", "published"],
    "accuracy_curve": ["ceiling 72.4 %"],
    "distribution": ["cut", "all", "top-k = 3"],
    "embedding_map": ["one", "the rest", "before", "after"],
    "softmax_by_temperature": ["98.2 %", "1.8 %", "86.5 %", "11.7 %", "63.6 %", "23.4 %", "8.6 %"],
    "parameter_ledger": ["192 · 40.0 %", "72 · 15.0 %", "Where the parameters are: 480"],
}


def texts(svg: str) -> list[str]:
    """Return every text that is written in an SVG."""
    found = ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")
    return ["".join(element.itertext()) for element in found]


def missing(svg: str, expected: list) -> list[str]:
    """Return what is expected, numbers as printed, and not written in an SVG."""
    wanted = [style.number(item) if isinstance(item, float) else item for item in expected]
    return [text for text in wanted if text not in texts(svg)]


def raw_colours(svg: str) -> list[str]:
    """Return colours that no theme can change: hexes that are neither a fallback nor before one."""
    svg = re.sub(r"var\(--gf-[a-z_]+,#[0-9a-f]{6}\)", "", svg)
    svg = re.sub(r"(fill|stroke):#[0-9a-f]{6};\1:color-mix\(", "", svg)
    return re.findall(r"#[0-9a-fA-F]{3,8}\b|\brgba?\([^)]*\)|:(?:black|white)\b", svg)


def luminance(hexed: str) -> float:
    channels = [int(hexed[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """Return the WCAG contrast of two colours, 1 to 21."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def boxes(fig) -> list:
    """Return the text and the box in pixels of everything that is written on a figure."""
    renderer, written = FigureCanvasAgg(fig).get_renderer(), []
    renderer.draw_text = lambda *args, mtext=None, **more: written.append(mtext)
    fig.draw(renderer)
    return [(text.get_text(), text.get_window_extent(renderer)) for text in written]


@pytest.fixture(scope="module", params=FIGURES)
def named(request) -> tuple[str, style.Picture]:
    return request.param, style.picture(FIGURES[request.param](drawing(0)), ALT)


# What every figure keeps


def test_values_are_written(named):
    name, picture = named
    assert missing(picture.svg, WRITTEN.get(name, [])) == []


def test_bytes_do_not_depend_on_rounding(named):
    name, picture = named
    draw, noise = drawing(0), drawing(1)
    again = FIGURES[name](lambda *shape: draw(*shape) + 1e-12 * noise(*shape))
    again = style.picture(again, ALT)
    assert again.svg == picture.svg
    assert again.png == picture.png


def test_every_colour_follows_the_theme(named):
    assert raw_colours(named[1].svg) == []


def test_the_svg_stands_alone(named):
    root = ET.fromstring(named[1].svg)
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    used = set(re.findall(r"(?:url\(#|href=\"#)([^)\"]+)", named[1].svg))
    assert used == set(ids), "an id is missing or useless"
    assert "<style" not in named[1].svg, "a style element would restyle the whole page"
    assert root.get("aria-label") == ALT


def test_text_stays_readable_on_a_phone(named):
    svg = named[1].svg
    natural, least = (float(re.search(rf"{k}-width:(\d+)px", svg)[1]) for k in ("max", "min"))
    sizes = [float(size) * 96 / 72 for size in re.findall(r"font-size:([\d.]+)px", svg)]
    assert min(sizes) * least / natural >= 8.95


def test_nothing_is_written_outside_the_picture(named):
    fig = FIGURES[named[0]](drawing(0))
    edge = fig.bbox
    for text, box in boxes(fig):
        inside = box.x0 >= -1 and box.y0 >= -1 and box.x1 <= edge.x1 + 1 and box.y1 <= edge.y1 + 1
        assert inside, f"{text!r} runs out of the picture"


# On the map alone, words of near vectors may touch.
@pytest.mark.parametrize("name", sorted(FIGURES.keys() - {"embedding_map"}))
def test_no_text_covers_another(name):
    seen = boxes(FIGURES[name](drawing(0)))
    for place, (text, box) in enumerate(seen):
        for other, second in seen[place + 1 :]:
            across = min(box.x1, second.x1) - max(box.x0, second.x0)
            down = min(box.y1, second.y1) - max(box.y0, second.y0)
            assert across < 1.5 or down < 3.5, f"{text!r} covers {other!r}"


# Single promises


@pytest.mark.parametrize("alt", ["", "   ", "Figure 3", None, "1 2 3 4 5"])
def test_a_figure_without_text_alternative_is_refused(alt):
    with pytest.raises(ValueError, match="needs alt: a sentence"):
        gf.show(FIGURES["lines"](drawing(0)), alt)
    with pytest.raises(ValueError, match="needs alt"):
        gf.show(FIGURES["lines"](drawing(0)))


def test_show_gives_three_forms(monkeypatch):
    shown = []
    monkeypatch.setattr(style, "display", shown.append)
    gf.show(FIGURES["lines"](drawing(0)), ALT)
    bundle = shown[0]._repr_mimebundle_()
    assert set(bundle) == {"image/svg+xml", "image/png", "text/plain"}
    assert bundle["text/plain"] == repr(shown[0]) == ALT


def test_the_alternative_is_escaped_and_keeps_its_digits():
    alt = 'Loss < 0.7361 & "floor" at 0.73611 nats'
    svg = style.to_svg(FIGURES["lines"](drawing(0)), alt)
    assert ET.fromstring(svg).get("aria-label") == alt


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("role", sorted(set(style.PALETTE) - {"ink", "paper", "line", "muted"}))
def test_text_on_a_cell_has_contrast(role, theme):
    for percent in style.TEXT_STEPS:
        text = style.PALETTE[style.text_on(percent)][theme]
        assert contrast(style.mix(role, percent, theme), text) >= 4.5, f"{role} {percent} % {theme}"


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("role", sorted(set(style.PALETTE) - {"paper", "line"}))
def test_text_in_a_role_has_contrast_on_paper(role, theme):
    assert contrast(style.PALETTE[role][theme], style.PALETTE["paper"][theme]) >= 4.5


def test_one_hex_never_means_two_colours():
    meanings: dict[str, set] = {}
    for role in set(style.PALETTE) - {"context"}:  # context is value, by intent
        for percent in set(style.TEXT_STEPS + style.PLAIN_STEPS) - {0}:
            themes = (style.mix(role, percent, "light"), style.mix(role, percent, "dark"))
            meanings.setdefault(themes[0], set()).add(themes[1])
    assert [hexed for hexed, dark in meanings.items() if len(dark) > 1] == []


def test_masked_values_are_hatched_and_signs_are_coloured():
    masked = torch.tensor([[1.0, -1e9], [-2.0, 1.0]])
    svg = style.to_svg(gf.heatmap(masked, "masked", "scores"), ALT)
    assert "<pattern" in svg and missing(svg, ["−10⁹", "−2.00"]) == []
    assert "--gf-scores_low" in svg and "--gf-scores_high" in svg
    assert "<pattern" not in style.to_svg(gf.heatmap(masked[1:], "row", "scores"), ALT)


def test_product_cell_spells_out_its_sum():
    svg = style.to_svg(gf.product_cell([[1.0, -2.0]], [[3.0], [0.5]], 0, 0, ("Q", "K", "S")), ALT)
    assert missing(svg, ["S[0, 0] =", "1.00 · 3.00 + (−2.00) · 0.50", "= 2.00"]) == []


def test_weights_are_one_square_each():
    state = {"head.weight": torch.tensor([[1.0, -1.0, 0.5], [1.0, 1.0, 1.0]])}
    svg = style.to_svg(gf.weights_to_scale(state), ALT)
    assert len(re.findall(r"M[\d.]+ [\d.]+h[\d.]+", svg)) == 6


def test_numbers_are_printed_one_way():
    printed = [style.number(x) for x in (-0.001, -1.005, 1234.5, 2)]
    assert printed == ["0.00", "−1.00", "1,234.50", "2.00"]


def test_unknown_colours_are_refused_in_one_sentence():
    with pytest.raises(ValueError, match="no colour role 'querry'; choose one of query"):
        style.colour("querry")
    fig, ax = style.sheet(50, 50)
    ax.plot([1, 2], [1, 2], color="#123456")
    with pytest.raises(ValueError, match="#123456 is no colour of the palette"):
        style.to_svg(fig, ALT)


def test_a_readers_settings_change_nothing():
    import seaborn as sns

    before = style.to_svg(FIGURES["training_curve"](drawing(0)), ALT)
    with style.mpl.rc_context():
        sns.set_theme(context="poster", style="darkgrid")
        after = style.to_svg(FIGURES["training_curve"](drawing(0)), ALT)
    assert after == before


# Each check sees the fault it is there for


def test_the_checks_can_fail():
    heat = style.to_svg(FIGURES["heatmap"](drawing(0)), ALT)
    assert missing(heat, ["no such label", 7.77]) == ["no such label", "7.77"]
    assert raw_colours(heat.replace("var(--gf-paper,#ffffff)", "#ffffff", 1)) == ["#ffffff"]
    assert raw_colours('<path style="fill:black"/>') and raw_colours("<p fill='rgb(1,2,3)'/>")
    assert style.to_svg(FIGURES["heatmap"](drawing(1)), ALT) != heat
    draw = drawing(0)
    nudged = FIGURES["heatmap"](lambda *shape: draw(*shape) + 0.01)
    assert style.to_svg(nudged, ALT) != heat
    middle = [style.mix("key", 70, theme) for theme in ("light", "dark")]
    inks = [style.PALETTE["ink"][theme] for theme in ("light", "dark")]
    assert min(map(contrast, middle, inks)) < 4.5
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    with pytest.raises(ValueError, match="No text is readable on 70 %"):
        style.text_on(70)


def test_the_layout_checks_can_fail():
    fig, ax = style.sheet(60, 30)
    ax.text(50, 15, "runs out")
    ax.text(52, 15, "covers")
    (_, one), (_, two) = boxes(fig)
    assert one.x1 > fig.bbox.x1 and one.overlaps(two)


def test_a_tiny_probability_is_not_shown_as_cut():
    probabilities = torch.tensor([0.9964843826, 0.0035156073, 1e-8, 0.0], dtype=torch.float64)
    shown = texts(style.to_svg(gf.distribution(probabilities, ["a", "b", "c", "d"]), ALT))
    assert [text for text in shown if "%" in text or text == "cut"] == [
        "99.6 %",
        "0.4 %",
        "0.0 %",
        "cut",
    ]
