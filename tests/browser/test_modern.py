"""The explorer of chapter 7 that sets both models side by side, against PyTorch."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from browsing import THEMES, WIDTHS, axe, no_sideways_scroll, screenshot
from instrument import SITES, numbers, opener, texts, to_number, told, twin
from torch import nn

from glassformer.checkpoints import TINY_CONFIG, load_baby_groot, load_tiny
from glassformer.data import cat_vocabulary, groot_vocabulary
from glassformer.models import RMSNorm, SwiGLU, Transformer, TransformerConfig
from glassformer.trace import trace

PAGE = "book/07_modern.html"
SWITCHES = ("RMSNorm", "rotary positions", "SwiGLU", "4 heads on 2 of keys and values")
SHOWN = {
    "norm": (["r1", "n1"], ["r1", "ffn_norm"]),
    "positions": (["token_embedding", "position_embedding", "h0"], ["q", "q_rotated"]),
    "feed-forward": (
        ["ffn_hidden", "ffn_activation", "ffn_out"],
        ["ffn_gate", "ffn_up", "ffn_hidden", "ffn_out"],
    ),
    "heads": (["q", "k", "attention"], ["q_rotated", "k_rotated", "attention"]),
}


@pytest.fixture
def modern(request, visit):
    """Return a function that opens the explorer in a state and returns its part of the page."""
    return opener(request, visit, PAGE, "modern")


@pytest.fixture(scope="module")
def models():
    """Return both trained models in float64."""
    return load_baby_groot(), load_tiny().double()


def traced(models, prompt="<START> i am groot", tiny_prompt="the cat sat on the mat"):
    return (
        trace(models[0], torch.tensor(groot_vocabulary().encode(prompt))),
        trace(models[1], torch.tensor(cat_vocabulary().encode(tiny_prompt))),
    )


def check_tables(part, seen, names: tuple[list[str], list[str]]) -> None:
    """Fail unless the twin holds every tensor shown, head by head, to four decimals."""
    tables = twin(part)
    wanted = {name: seen[0][name] for name in names[0]}
    wanted |= {f"layers.0.{name}": seen[1][f"layers.0.{name}"] for name in names[1]}
    for name, tensor in wanted.items():
        several = tensor.dim() == 3
        for head, matrix in enumerate(tensor if several else [tensor]):
            caption = f"{name}, head {head}" if several else name
            torch.testing.assert_close(numbers(tables[caption]), matrix, atol=6e-5, rtol=0)


@pytest.mark.parametrize("over", SITES)
def test_every_part_shows_both_models_numbers(modern, models, over):
    part, seen = modern(over), traced(models)
    for label, names in SHOWN.items():
        part.get_by_role("radio", name=label, exact=True).check()
        check_tables(part, seen, names)


def test_each_model_reads_its_own_prompt(modern, models):
    part = modern()
    part.get_by_label("BabyGroot reads").fill("<START> groot likes")
    part.get_by_label("LLaMA-style reads").fill("the dog ran")
    check_tables(part, traced(models, "<START> groot likes", "the dog ran"), SHOWN["norm"])
    part.get_by_label("LLaMA-style reads").fill("the groot")
    side = part.get_by_role("group", name="LLaMA-style", exact=True)
    assert "'groot' is not in the vocabulary" in side.locator(".gfx-error").inner_text()
    check_tables(part, traced(models, "<START> groot likes", "the dog ran"), SHOWN["norm"])


def counted(module: nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())


def exchanged(rmsnorm: bool, rotary: bool, swiglu: bool, grouped: bool) -> list[int]:
    """Return what PyTorch counts: embedding, positions, attention, network, norms, head."""
    config = TransformerConfig(vocab_size=24, dim=8, n_layers=1, n_heads=4, n_kv_heads=2)
    plain = load_baby_groot().transformer
    grouped_heads = Transformer(config).layers[0].attention
    return [
        counted(nn.Embedding(24, 8)),
        0 if rotary else counted(nn.Embedding(4, 8)),
        counted(grouped_heads if grouped else plain.attn),
        counted(SwiGLU(8, 16) if swiglu else plain.ffn),
        2 * counted(RMSNorm(8) if rmsnorm else nn.LayerNorm(8)),
        counted(nn.Linear(8, 24)),
    ]


def test_the_ledger_follows_every_choice_of_parts(modern, models):
    part = modern()
    for choice in product((False, True), repeat=4):
        for label, on in zip(SWITCHES, choice, strict=True):
            part.get_by_label(label, exact=True).set_checked(on)
        table = part.locator(".gfx-body .gfx-table")
        rows = texts(table.locator("tbody tr"))
        plain, wanted = exchanged(*[False] * 4), exchanged(*choice)
        cached = [16, 8 if choice[3] else 16, TINY_CONFIG.kv_cache_values()]
        assert [to_number(row[0]) for row in rows] == [*plain, models[0].num_params(), cached[0]]
        assert [to_number(row[1]) for row in rows] == [*wanted, sum(wanted), cached[1]]
        changes = [a - b for a, b in zip(wanted, plain, strict=True)]
        differences = [*changes, sum(changes), cached[1] - cached[0]]
        assert [to_number(row[2] or "0") for row in rows] == differences
        assert to_number(rows[-2][3]) == models[1].num_params()
        assert to_number(rows[-1][3]) == cached[2]
        if any(choice):
            assert f"{sum(wanted):,} parameters instead of 968" in told(part)


def test_the_modern_ledger_is_the_real_models(modern, models):
    table = modern().locator(".gfx-body .gfx-table")
    found = [to_number(row[3]) for row in texts(table.locator("tbody tr"))]
    names = (
        ("tok_embeddings",),
        ("position",),
        ("attention.",),
        ("feed_forward",),
        ("norm",),
        ("output",),
    )
    wanted = [
        sum(p.numel() for n, p in models[1].named_parameters() if any(word in n for word in words))
        for words in names
    ]
    assert found[:6] == wanted and found[6] == sum(wanted)


def test_the_ledger_says_how_each_number_is_made(modern, models):
    part = modern()
    part.get_by_label("rotary positions", exact=True).check()
    grid = part.get_by_role("grid", name="Parameters by part")
    panel = part.locator(".gfx > .gfx-formula")
    made = {(2, 0): "216 = 3 · 8 · 8 + 3 · 8", (1, 1): "0 = 0", (7, 0): "16 = 2 · 8"}
    for (row, column), formula in made.items():
        grid.locator("tbody tr").nth(row).locator("td").nth(column).hover()
        assert panel.locator(".gfx-formula-filled").inner_text().strip() == formula
    grid.locator("tbody tr").nth(6).locator("td").nth(3).focus()
    terms = [to_number(text) for text in panel.locator(".gfx-ref").all_inner_texts()]
    assert (
        sum(terms) == models[1].num_params() == to_number(panel.locator(".gfx-value").inner_text())
    )


def test_each_side_explains_its_own_numbers(modern, models):
    part, seen = modern(), traced(models)
    for name, wanted in (
        ("BabyGroot", seen[0]["n1"][3, 0]),
        ("LLaMA-style", seen[1]["layers.0.ffn_norm"][5, 0]),
    ):
        side = part.get_by_role("group", name=name, exact=True)
        assert to_number(side.locator(".gfx-value").inner_text()) == pytest.approx(
            wanted.item(), abs=6e-7
        )
    side = part.get_by_role("group", name="LLaMA-style", exact=True)
    side.get_by_role("grid", name="layers.0.r1").locator("td").nth(32 + 4).hover()
    shown = to_number(side.locator(".gfx-value").inner_text())
    assert shown == pytest.approx(seen[1]["layers.0.r1"][1, 4].item(), abs=6e-7)


def test_keyboard_alone_changes_parts_and_points(modern, models):
    part, seen = modern(), traced(models)
    part.get_by_role("radio", name="norm", exact=True).focus()
    for _ in range(3):
        part.page.keyboard.press("ArrowRight")
    assert "grouped heads" in told(part)
    grid = part.get_by_role("grid", name="layers.0.attention").nth(3)
    grid.locator("td[tabindex='0']").focus()
    for key in ("Home", "ArrowDown", "ArrowDown", "ArrowRight"):
        part.page.keyboard.press(key)
    side = part.get_by_role("group", name="LLaMA-style", exact=True)
    assert side.locator(".gfx-formula-rule").inner_text().count("layers.0.attention[3,2,1]")
    shown = to_number(side.locator(".gfx-value").inner_text())
    assert shown == pytest.approx(seen[1]["layers.0.attention"][3, 2, 1].item(), abs=6e-7)


@pytest.mark.parametrize("theme", THEMES)
def test_it_is_accessible_and_fits_every_screen(modern, theme):
    part = modern(theme=theme)
    for width in WIDTHS:
        part.page.set_viewport_size({"width": width, "height": 900})
        no_sideways_scroll(part.page, "#explorer-modern")
        screenshot(part, f"modern-{theme}-{width}")
    part.page.set_viewport_size({"width": WIDTHS[0], "height": 900})
    for label in SHOWN:
        part.get_by_role("radio", name=label, exact=True).check()
        no_sideways_scroll(part.page, "#explorer-modern")
    twin(part)
    assert axe(part.page, "#explorer-modern") == []
