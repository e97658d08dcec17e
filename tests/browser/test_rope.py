"""The explorer of chapter 7 that turns pairs by position, against PyTorch."""

from __future__ import annotations

import pytest
import torch
from browsing import THEMES, WIDTHS, axe, no_sideways_scroll, screenshot
from instrument import SITES, cell, cells, formula, numbers, opener, to_number, told, twin

from glassformer.checkpoints import load_tiny
from glassformer.data import cat_vocabulary
from glassformer.models import rotary_table, rotate
from glassformer.trace import trace

PAGE = "book/07_modern.html"
PROMPT = "the cat sat on the mat"
TURNS = rotary_table(8, 200)


@pytest.fixture
def rope(request, visit):
    """Return a function that opens the explorer in a state and returns its part of the page."""
    return opener(request, visit, PAGE, "rope")


@pytest.fixture(scope="module")
def seen():
    """Return what the trained model computes for the prompt."""
    return trace(load_tiny().double(), torch.tensor(cat_vocabulary().encode(PROMPT)))


def turned(x: torch.Tensor, at: int) -> torch.Tensor:
    return rotate(x[None], TURNS[at : at + 1])[0]


def score(part) -> float:
    return to_number(told(part).split("score ")[1].split(",")[0])


def set_slider(part, label: str, value: int) -> None:
    part.get_by_label(label).fill(str(value))


@pytest.mark.parametrize("over", SITES)
def test_where_the_tokens_stand_the_score_is_the_models(rope, seen, over):
    part = rope(over)
    for head in range(4):
        part.get_by_role("group", name="Head").get_by_label(str(head), exact=True).check()
        for layer in (0, 1):
            part.get_by_role("group", name="Block").get_by_label(str(layer), exact=True).check()
            wanted = seen[f"layers.{layer}.scores"][head, 5, 1]
            assert score(part) == pytest.approx(wanted.item(), abs=6e-5)
            tables = twin(part)
            rotated = numbers(tables["Query and key, number by number"])
            shared = seen[f"layers.{layer}.k_rotated"][head // 2, 1]
            assert rotated[:, 1] == pytest.approx(
                seen[f"layers.{layer}.q_rotated"][head, 5].tolist(), abs=6e-5
            )
            assert rotated[:, 3] == pytest.approx(shared.tolist(), abs=6e-5)


def test_moving_both_changes_nothing_and_moving_one_does(rope, seen):
    part = rope(layer=1, head=2)
    before = score(part)
    for button in ("both one on", "both ten on", "both one back", "both ten on"):
        part.get_by_role("button", name=button).click()
        assert score(part) == before
    assert "at position 25 meets the key of cat at 21, 4 before it" in told(part)
    q, k = seen["layers.1.q"][2, 5], seen["layers.1.k"][1, 1]
    for at, key_at in ((40, 21), (40, 63), (0, 63), (0, 0)):
        set_slider(part, "query stands at", at)
        set_slider(part, "key stands at", key_at)
        wanted = turned(q, at) @ turned(k, key_at) / 8**0.5
        assert score(part) == pytest.approx(wanted.item(), abs=6e-5)
    assert part.get_by_role("button", name="both one back").is_disabled()


def test_pairs_turn_alone_or_all_or_not_at_all(rope, seen):
    part = rope()
    q, k = seen["layers.0.q"][0, 5], seen["layers.0.k"][0, 1]
    q_turned, k_turned = turned(q, 5), turned(k, 1)
    part.get_by_role("radio", name="no pair").check()
    assert score(part) == pytest.approx((q @ k / 8**0.5).item(), abs=6e-5)
    for pair in range(4):
        part.get_by_role("button", name=f"pair {pair}", exact=True).click()
        part.get_by_role("radio", name=f"pair {pair} alone").check()
        here = slice(2 * pair, 2 * pair + 2)
        wanted = q @ k - q[here] @ k[here] + q_turned[here] @ k_turned[here]
        assert score(part) == pytest.approx((wanted / 8**0.5).item(), abs=6e-5)
    part.get_by_role("radio", name="all pairs").check()
    products = [to_number(row[-1]) for row in cells(part, "What each pair gives to the product")]
    wanted = [(q_turned[2 * n :][:2] @ k_turned[2 * n :][:2]).item() for n in range(4)]
    assert products == pytest.approx(wanted, abs=6e-5)


def test_the_curve_is_the_score_at_every_distance(rope, seen):
    rows = numbers(twin(rope(layer=1, head=3))["Score by distance"])
    q, k = seen["layers.1.q"][3, 5], seen["layers.1.k"][1, 1]
    wanted = [turned(q, max(d, 0)) @ turned(k, max(-d, 0)) / 8**0.5 for d in range(-63, 64)]
    assert rows[:, 0] == pytest.approx([x.item() for x in wanted], abs=6e-5)


def test_letters_stand_beside_the_arrows(rope):
    nearest = rope(query_at=0, key_at=3).evaluate(
        """(part) => [...part.querySelectorAll(".gfx-rope-dial svg")].map((dial) => {
          const number = (e, name) => Number(e.getAttribute(name));
          const solid = [...dial.querySelectorAll("line:not([stroke-dasharray])")];
          const place = (e) => [number(e, "x"), number(e, "y")];
          const letters = [...dial.querySelectorAll("text")].map(place);
          const middle = number(dial, "width") / 2;
          const far = ([x, y], line) => {
            const [a, b] = [number(line, "x2") - middle, number(line, "y2") - middle];
            const t = ((x - middle) * a + (y - middle) * b) / (a * a + b * b);
            const to = Math.min(1, Math.max(0, t));
            return Math.hypot(x - middle - to * a, y - middle - to * b);
          };
          return Math.min(...letters.flatMap((letter) => solid.map((line) => far(letter, line))));
        })"""
    )
    assert len(nearest) == 4 and min(nearest) > 8


def test_the_score_is_followed_back_to_the_query(rope, seen):
    part = rope()
    assert formula(part)[0] == "score"
    part.locator(".gfx-formula .gfx-ref").first.click()
    key, value, _ = formula(part)
    assert key == "pair product[0]"
    part.locator(".gfx-formula .gfx-ref").first.click()
    key, value, line = formula(part)
    assert key == "q′[0]" and "cos(5.000)" in line and "sin(5.000)" in line
    assert value == pytest.approx(seen["layers.0.q_rotated"][0, 5, 0].item(), abs=6e-7)
    part.locator(".gfx-formula .gfx-ref").first.click()
    key, value, _ = formula(part)
    assert key == "layers.0.q[0,5,0]"
    assert value == pytest.approx(seen["layers.0.q"][0, 5, 0].item(), abs=6e-7)


def test_keyboard_alone_moves_and_points(rope, seen):
    part = rope()
    part.get_by_label("query stands at").focus()
    for _ in range(3):
        part.page.keyboard.press("ArrowRight")
    part.page.keyboard.press("Tab")
    part.page.keyboard.press("ArrowLeft")
    assert "at position 8 meets the key of cat at 0, 8 before it" in told(part)
    grid = part.get_by_role("grid", name="What each pair gives to the product")
    grid.locator("td[tabindex='0']").focus()
    part.page.keyboard.press("End")
    part.page.keyboard.press("ArrowDown")
    key, value, _ = formula(part)
    q, k = turned(seen["layers.0.q"][0, 5], 8), turned(seen["layers.0.k"][0, 1], 0)
    assert key == "pair product[1]"
    assert value == pytest.approx((q[2:4] @ k[2:4]).item(), abs=6e-7)


def test_a_tap_chooses_tokens_and_numbers(rope, seen):
    part = rope(width=360)
    part.get_by_role("group", name="Query of").get_by_text("on").dispatch_event("click")
    part.get_by_role("group", name="Key of").get_by_text("sat").dispatch_event("click")
    assert told(part).startswith("The query of on at position 5 meets the key of sat at 1")
    cell(part, "k′ [8]", 0, 7).dispatch_event("click")
    key, value, _ = formula(part)
    assert key == "k′[7]"
    wanted = turned(seen["layers.0.k"][0, 2], 1)[7].item()
    assert value == pytest.approx(wanted, abs=6e-7)


@pytest.mark.parametrize("theme", THEMES)
def test_it_is_accessible_and_fits_every_screen(rope, theme):
    part = rope(theme=theme)
    for width in WIDTHS:
        part.page.set_viewport_size({"width": width, "height": 900})
        no_sideways_scroll(part.page, "#explorer-rope")
        screenshot(part, f"rope-{theme}-{width}")
    twin(part)
    assert axe(part.page, "#explorer-rope") == []
