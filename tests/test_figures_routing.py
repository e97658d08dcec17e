"""The pictures of who reads whom: they say what the weights say, and what a mask allows."""

from __future__ import annotations

import pytest
import torch

from glassformer import figures as gf
from glassformer.checkpoints import load_baby_groot
from glassformer.data import groot_vocabulary
from glassformer.figures import style
from glassformer.trace import trace
from test_figures import ALT, boxes, raw_colours, texts

TOKENS = "<START> i am groot".split()
SEEN = trace(load_baby_groot(), groot_vocabulary().encode(" ".join(TOKENS)))
SWAPPED = "<START> am i groot".split()

FIGURES = {
    "wiring": lambda: gf.attention_wiring(TOKENS, SEEN["attention"]),
    "flow": lambda: gf.attention_flow(SEEN),
    "bags": lambda: gf.visible_sets([TOKENS, SWAPPED]),
}


@pytest.fixture(params=FIGURES)
def fig(request):
    return FIGURES[request.param]()


def test_colours_follow_the_theme(fig):
    assert raw_colours(style.to_svg(fig, ALT)) == []


def test_all_text_is_inside_and_none_covers_another(fig):
    seen = boxes(fig)
    for place, (text, box) in enumerate(seen):
        inside = box.x0 >= 0 and box.y0 >= 0 and box.x1 <= fig.bbox.x1 and box.y1 <= fig.bbox.y1
        assert inside, f"{text!r} runs out of the picture"
        for other, second in seen[place + 1 :]:
            across = min(box.x1, second.x1) - max(box.x0, second.x0)
            down = min(box.y1, second.y1) - max(box.y0, second.y0)
            assert across < 1.5 or down < 3.5, f"{text!r} covers {other!r}"


def test_bytes_are_the_same_every_time():
    for make in FIGURES.values():
        assert style.to_svg(make(), ALT) == style.to_svg(make(), ALT)


def test_the_wiring_carries_the_weights_of_the_lit_outputs():
    svg = style.to_svg(FIGURES["wiring"](), ALT)
    shares = [text for text in texts(svg) if text.endswith(" %")]
    assert shares == ["100.0 %", "39.6 %", "0.6 %", "7.6 %", "52.2 %"]
    middle = style.to_svg(gf.attention_wiring(TOKENS, SEEN["attention"], lit=[2]), ALT)
    assert [t for t in texts(middle) if t.endswith(" %")] == ["2.7 %", "86.5 %", "10.8 %"]


def test_the_flow_names_every_matrix_with_its_shape():
    seen = texts(style.to_svg(FIGURES["flow"](), ALT))
    for name in ("H₀", "Q", "K", "V", "Q Kᵀ / √8", "A", "A V"):
        assert name in seen
    assert seen.count("[4, 8]") == 5 and seen.count("[4, 4]") == 2


def test_bags_tell_apart_exactly_what_a_causal_block_can():
    verdicts = [t for t in texts(style.to_svg(FIGURES["bags"](), ALT)) if t[0] in "=≠"]
    assert verdicts == ["= same", "≠ told apart", "≠ told apart", "= same"]


def test_bags_need_two_orders_of_the_same_tokens():
    with pytest.raises(ValueError, match="two orders of the same"):
        gf.visible_sets([TOKENS, TOKENS[:-1]])
    with pytest.raises(ValueError, match="two orders of the same"):
        gf.visible_sets([["groot", "groot"], ["groot", "groot"]])


def test_the_figures_change_with_what_they_show():
    weights = torch.eye(4)
    assert style.to_svg(gf.attention_wiring(TOKENS, weights), ALT) != style.to_svg(
        FIGURES["wiring"](), ALT
    )
