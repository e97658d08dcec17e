"""Diagrams say what they were given, stay inside their frames, and lead where they should."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest
import torch

from glassformer import figures as gf
from glassformer.checkpoints import load_baby_groot
from glassformer.data import groot_vocabulary
from glassformer.figures import style
from glassformer.trace import trace
from test_figures import ALT, boxes, raw_colours, texts

TOKENS = "<START> i am groot".split()
CAT = "the cat sat on the mat".split()
IDS = groot_vocabulary().encode(" ".join(TOKENS))
MODEL = load_baby_groot()
SEEN = trace(MODEL, IDS)
FFN = MODEL.transformer.ffn
NODES = [SEEN[name][-1] for name in ("n1", "ffn_hidden", "ffn_activation", "ffn_out")]
TREE = {"i": (0.25, {"am": (0.9, {}), "are": (0.1, {})}), "groot": (0.75, {"likes": (0.5, {})})}
PLACES = "ids token position h0 attention ffn h_out logits loss argmax".split()
LINKS = {name: f"{place:02d}_page.html#{name}" for place, name in enumerate(PLACES)}

FIGURES = {
    "flow": lambda: gf.flow_of_shapes(TOKENS, LINKS, IDS),
    "recurrent": lambda: gf.recurrent_vs_decoder(TOKENS),
    "block": lambda: gf.block_diagram(),
    "blocks": lambda: gf.block_diagram("post-norm", "pre-norm"),
    "ffn": lambda: gf.ffn_graph(*NODES, FFN[0].weight, FFN[2].weight, "FFN of groot"),
    "ffn plain": lambda: gf.ffn_graph(*NODES),
    "attention": lambda: gf.attention_deep_dive(TOKENS),
    "head": lambda: gf.block_and_head_deep_dive(TOKENS),
    "training": lambda: gf.training_vs_inference(CAT),
    "cache": lambda: gf.cache_steps(CAT, 64),
    "cache of long words": lambda: gf.cache_steps(["<START>", "unbelievable"], 12_288),
    "training of long words": lambda: gf.training_vs_inference(TOKENS, 2),
    "training of two": lambda: gf.training_vs_inference(CAT[:2], 1),
    "tree": lambda: gf.continuation_tree("<START>", TREE),
}

WRITTEN = {
    "flow": [*TOKENS, "1", "11", "3", "8", "ids [4]", "[4, 24]", "block", "loss", "argmax"],
    "recurrent": [*TOKENS, "step 4", "4 steps, one after the other"],
    "block": ["block", "h0", "context", "r1", "n1", "ffn_out", "r2", "h_out"],
    "blocks": ["post-norm", "pre-norm", "norm of a copy"],
    "ffn": ["FFN of groot", "hidden [16]", "after ReLU [16]", "negative weight"],
    "attention": [*TOKENS, "Q Kᵀ / √8", "[4, 8] by [8, 4] → [4, 4]", "context = A V"],
    "head": [*TOKENS, "[4, 8] by [8, 16] → [4, 16]", "logits [4, 24]", "last row [24]"],
    "training": [
        *CAT,
        "pass 1",
        "prefill",
        "pass 3",
        "decode",
        "5 losses, averaged; nothing waits for anything",
    ],
    "cache": ["64", "128", "192", "256", "320", "384"],
    "tree": ["<START>", "25.0 %", "90.0 %", "22.5 %", "2.5 %", "37.5 %"],
}


@pytest.fixture(params=FIGURES)
def named(request):
    return request.param, FIGURES[request.param]()


def covered(fig) -> list[tuple[str, str]]:
    """Return pairs of texts of which one covers the other."""
    seen, pairs = boxes(fig), []
    for place, (text, box) in enumerate(seen):
        for other, second in seen[place + 1 :]:
            across = min(box.x1, second.x1) - max(box.x0, second.x0)
            down = min(box.y1, second.y1) - max(box.y0, second.y0)
            if across > 1.5 and down > 3.5:
                pairs.append((text, other))
    return pairs


def outside(fig) -> list[str]:
    """Return the texts that leave the picture."""
    edge = fig.bbox
    return [
        text
        for text, box in boxes(fig)
        if box.x0 < 0 or box.y0 < 0 or box.x1 > edge.x1 or box.y1 > edge.y1
    ]


def crossing(fig) -> list[str]:
    """Return the texts that run over the edge of the smallest box they start in."""
    scale, found = fig.dpi / 72, []
    frames = [
        patch.get_window_extent()
        for patch in fig.axes[0].patches
        if type(patch).__name__ == "FancyBboxPatch"
    ]
    for text, box in boxes(fig):
        x, y = (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2
        around = [f for f in frames if f.contains(x, y)]
        if around:
            tight = min(around, key=lambda f: f.width * f.height)
            if box.x0 < tight.x0 + scale or box.x1 > tight.x1 - scale:
                found.append(text)
    return found


def absent(written: list[str], wanted: list[str]) -> list[str]:
    """Return what is wanted and not written, each as often as it is wanted."""
    left = list(written)
    return [text for text in wanted if text not in left or left.remove(text)]


def links(svg: str) -> dict[str, str]:
    """Return where each link of an SVG leads, by the text inside it."""
    space = "{http://www.w3.org/2000/svg}"
    return {
        " ".join("".join(t.itertext()) for t in anchor.iter(f"{space}text")): anchor.get(
            "{http://www.w3.org/1999/xlink}href"
        )
        for anchor in ET.fromstring(svg).iter(f"{space}a")
    }


def test_what_was_given_is_written(named):
    name, fig = named
    assert absent(texts(style.to_svg(fig, ALT)), WRITTEN.get(name, [])) == []


def test_bytes_are_the_same_every_time_and_on_every_cpu(named):
    name, fig = named
    svg = style.to_svg(fig, ALT)
    assert style.to_svg(FIGURES[name](), ALT) == svg
    if name == "ffn":
        noisy = [values + 1e-10 for values in NODES]
        noisy[2] = torch.where(NODES[2] == 0, NODES[2], noisy[2])
        weights = (FFN[0].weight + 1e-10, FFN[2].weight - 1e-10)
        assert style.to_svg(gf.ffn_graph(*noisy, *weights, "FFN of groot"), ALT) == svg


def test_colours_follow_the_theme(named):
    assert raw_colours(style.to_svg(named[1], ALT)) == []


def test_no_text_leaves_its_box_or_covers_another(named):
    fig = named[1]
    assert outside(fig) == []
    assert covered(fig) == []
    assert crossing(fig) == []


def test_text_stays_readable_on_a_phone(named):
    svg = style.to_svg(named[1], ALT)
    natural, least = (float(re.search(rf"{k}-width:(\d+)px", svg)[1]) for k in ("max", "min"))
    sizes = [float(size) * 96 / 72 for size in re.findall(r"font-size:([\d.]+)px", svg)]
    assert min(sizes) * least / natural >= 8.95


@pytest.mark.parametrize("name", ["flow", "attention", "head", "training", "cache"])
def test_diagrams_in_one_column_fit_a_phone(name):
    svg = style.to_svg(FIGURES[name](), ALT)
    assert float(re.search(r"min-width:(\d+)px", svg)[1]) <= 360 - 2 * 16


def test_each_box_of_the_flow_is_one_link():
    found = links(style.to_svg(FIGURES["flow"](), ALT))
    assert list(found.values()) == [LINKS[name] for name in PLACES]
    assert found["position [4, 8]"] == LINKS["position"]
    assert found["logits [4, 24]"] == LINKS["logits"]
    assert links(style.to_svg(gf.flow_of_shapes(TOKENS), ALT)) == {}


def test_an_address_is_escaped():
    svg = style.to_svg(gf.flow_of_shapes(TOKENS, {"loss": 'a.html?x="1"&y=<2>'}), ALT)
    assert links(svg) == {"loss training, last row": 'a.html?x="1"&y=<2>'}


def test_a_place_that_no_box_has_is_refused():
    with pytest.raises(ValueError, match="no box 'heads'; choose from ids, token"):
        gf.flow_of_shapes(TOKENS, {"heads": "x.html"})


def test_shapes_follow_the_arguments():
    written = texts(style.to_svg(gf.flow_of_shapes(CAT, dim=6, vocab_size=20), ALT))
    assert absent(written, ["ids [6]", "[6, 6]", "[6, 20]"]) == []
    written = texts(style.to_svg(gf.attention_deep_dive(TOKENS[:3], 4), ALT))
    assert absent(written, ["Q Kᵀ / √4", "[3, 4] by [4, 3] → [3, 3]"]) == []


def test_units_that_are_off_say_so_and_send_nothing():
    written = texts(style.to_svg(FIGURES["ffn"](), ALT))
    off = int((SEEN["ffn_activation"][-1] == 0).sum())
    assert 0 < off < 16
    assert written.count("off") == off
    assert f"{off} of 16 units are off and send nothing on" in written
    values = [style.number(v) for values in NODES for v in values.tolist()]
    assert absent(written, [v for v in values if v != "0.00"]) == []


def test_negative_weights_are_dashed():
    one = torch.ones(1)
    svg = {
        sign: style.to_svg(gf.ffn_graph(one, one, one, one, sign * one[None], one[None]), ALT)
        for sign in (1, -1)
    }
    assert svg[-1].count("stroke-dasharray") == svg[1].count("stroke-dasharray") + 1


def test_weights_the_wrong_way_round_are_refused():
    with pytest.raises(ValueError, match=r"have shape \[8, 16\]; \[16, 8\] is needed"):
        gf.ffn_graph(*NODES, FFN[0].weight.T, FFN[2].weight)


def test_the_cache_counts_what_it_is_told():
    written = texts(style.to_svg(gf.cache_steps(CAT[:3], 1024), ALT))
    assert absent(written, ["1,024", "2,048", "3,072", "new: 1,024"]) == []
    pairs = 3 * 4 // 2 + 2  # six held in three rows, and two in the legend
    assert written.count("K") == written.count("V") == pairs


def test_generation_reads_the_prompt_once_then_one_token_a_pass():
    written = texts(style.to_svg(gf.training_vs_inference(CAT, prompt=4), ALT))
    assert written.count("prefill") == 1 and written.count("decode") == 1
    assert written.count("K") == 4 + 1
    with pytest.raises(ValueError, match="prompt = 6 cannot be: it must be 1 to 5"):
        gf.training_vs_inference(CAT, prompt=6)


def test_an_unknown_kind_of_block_is_refused():
    with pytest.raises(ValueError, match="'post-norm' or 'pre-norm', not 'norm'"):
        gf.block_diagram("norm")


def test_the_checks_can_fail():
    fig, ax = style.sheet(100, 40)
    ax.text(90, 20, "runs out")
    ax.text(92, 22, "covers")
    assert outside(fig) == ["runs out", "covers"] and covered(fig) == [("runs out", "covers")]
    from glassformer.figures.drawing import box

    fig, ax = style.sheet(100, 40)
    box(ax, 40, 8, 20, 24, "far too long", "key")
    assert crossing(fig) == ["far too long"]
    svg = style.to_svg(FIGURES["cache"](), ALT)
    assert absent(texts(svg), ["384", "448"]) == ["448"]
    assert absent(["the"], ["the", "the"]) == ["the"]
    assert style.to_svg(gf.cache_steps(CAT, 65), ALT) != svg
