"""The explorer of chapter 4, step by step through attention, against PyTorch."""

from __future__ import annotations

import pytest
import torch
from browsing import THEMES, WIDTHS, axe, no_sideways_scroll, screenshot
from instrument import SITES, cell, copied, formula, numbers, opener, query, texts, told, twin
from playwright.sync_api import expect

from glassformer.checkpoints import load_baby_groot
from glassformer.data import groot_vocabulary
from glassformer.trace import trace

PAGE = "book/04_attention.html"
WORDS = ["<START>", "i", "am", "groot"]
STEPS = {
    "Q, K, V": ["q", "k", "v"],
    "÷ √d": ["scores"],
    "mask": ["masked_scores"],
    "softmax": ["masked_scores", "attention"],
    "A V": ["attention", "v", "context"],
}


@pytest.fixture
def attention(request, visit):
    """Return a function that opens the explorer in a state and returns its part of the page."""
    return opener(request, visit, PAGE, "attention")


@pytest.fixture(scope="module")
def groot():
    """Return the trained model."""
    return load_baby_groot()


def seen_by(groot, prompt: str = " ".join(WORDS)) -> dict[str, torch.Tensor]:
    return trace(groot, torch.tensor(groot_vocabulary().encode(prompt)))


def shows(part, name: str, wanted: torch.Tensor) -> None:
    """Fail unless a matrix shows these numbers to two decimals; −10⁹ stands for hidden ones."""
    grid = part.get_by_role("grid", name=f"{name} [")
    shown = texts(grid.locator("tbody tr"), "td[data-n]")
    for row, wanted_row in zip(shown, wanted.tolist(), strict=True):
        for text, value in zip(row, wanted_row, strict=True):
            if value <= -1e8:
                assert text == "−10⁹"
            else:
                assert float(text.replace("−", "-")) == pytest.approx(value, abs=0.0051)


@pytest.mark.parametrize("over", SITES)
def test_every_step_shows_pytorchs_numbers(attention, groot, over):
    part, seen = attention(over), seen_by(groot)
    for label, names in STEPS.items():
        part.get_by_role("radio", name=label, exact=True).check()
        for name in names:
            shows(part, name, seen[name])
        tables = twin(part)
        for name in names:
            wanted = seen[name].clamp(min=-1e9)
            torch.testing.assert_close(
                numbers([[t.replace("−10⁹", "-1e9") for t in r] for r in tables[name]]),
                wanted,
                atol=6e-5,
                rtol=0,
            )


def test_products_are_not_yet_scaled(attention, groot):
    part, seen = attention(), seen_by(groot)
    before = told(part)
    part.get_by_role("radio", name="Q Kᵀ", exact=True).check()
    products = seen["q"] @ seen["k"].T
    shows(part, "products", products)
    assert told(part) == before  # what is attended to is divided all the same
    cell(part, "products [4, 4]", 3, 1).hover()
    key, value, line = formula(part)
    assert key == "products[3,1]" and "√" not in line
    assert value == pytest.approx(products[3, 1].item(), abs=6e-7)
    torch.testing.assert_close(copied(part, "Copy products as Python")["products"], products)


def test_a_share_says_how_it_is_made(attention, groot):
    part, seen = attention(), seen_by(groot)
    bars = part.get_by_role("list", name="Where am looks").get_by_role("button")
    for n, share in enumerate(seen["attention"][2].tolist()):
        (bars.nth(n).hover if n % 2 else bars.nth(n).focus)()
        key, value, _ = formula(part)
        assert key == f"attention[2,{n}]" and value == pytest.approx(share, abs=6e-7)


@pytest.mark.parametrize(("scale", "mask"), [(False, True), (True, False), (False, False)])
def test_scale_and_mask_can_be_left_out(attention, groot, scale, mask):
    part, seen = attention(), seen_by(groot)
    part.get_by_label("divide by √d").set_checked(scale)
    part.get_by_label("causal mask").set_checked(mask)
    scores = seen["q"] @ seen["k"].T / (8**0.5 if scale else 1)
    if mask:
        scores = scores.masked_fill(torch.ones(4, 4).triu(1).bool(), -1e9)
    shows(part, "attention", scores.softmax(-1))


def test_the_sentence_follows_the_query_and_the_prompt(attention, groot):
    part = attention()
    share = [f"{100 * x:.1f}\u202f%" for x in seen_by(groot)["attention"][2].tolist()]
    parts = ", ".join(f"{s} to {w}" for s, w in zip(share, WORDS, strict=True))
    assert told(part) == f"am, at position 2, gives {parts}."
    part.get_by_role("button", name="i 11").click()
    assert told(part).startswith("i, at position 1, gives ")
    box = part.get_by_label("Prompt", exact=True)
    box.fill("<START> groot")
    shares = seen_by(groot, "<START> groot")["attention"][1]
    first, second = (f"{100 * x:.1f}\u202f%" for x in shares)
    expect(part.locator("p[role=status]")).to_have_text(
        f"groot, at position 1, gives {first} to <START>, {second} to groot."
    )


@pytest.mark.parametrize("word", ["zebra", "🦝", "שלום", "<b>groot</b>", "groot" * 90])
def test_an_unknown_word_is_named_and_nothing_else_changes(attention, word):
    part = attention()
    before = told(part), matrix_texts(part)
    part.get_by_label("Prompt", exact=True).fill(f"<START> {word}")
    problem = part.locator(".gfx-prompt .gfx-error")
    expect(problem).to_contain_text("is not in the vocabulary")
    assert (told(part), matrix_texts(part)) == before
    assert part.locator(".gfx b b, .gfx-prompt b").count() == 0  # no markup came in


def matrix_texts(part) -> list[str]:
    return part.locator(".gfx-grid td").all_inner_texts()


def test_a_prompt_that_does_not_fit_says_how_many_do(attention):
    part = attention()
    part.get_by_label("Prompt", exact=True).fill("<START> i am groot i")
    expect(part.locator(".gfx-prompt .gfx-error")).to_have_text(
        "5 tokens do not fit: the model sees 4 at most."
    )


def test_keyboard_alone_walks_and_points(attention, groot):
    part, seen = attention(), seen_by(groot)
    page = part.page
    part.get_by_label("Prompt", exact=True).focus()
    page.keyboard.press("Tab")  # the words it knows
    page.keyboard.press("Tab")  # <START>
    page.keyboard.press("Tab")  # i
    page.keyboard.press("Enter")
    assert told(part).startswith("i, at position 1")
    grid = part.get_by_role("grid", name="attention [4, 4]")
    grid.locator("td[tabindex='0']").focus()
    for press in (
        "Home",
        "ArrowDown",
        "ArrowDown",
        "ArrowDown",
        "ArrowRight",
        "ArrowRight",
        "ArrowRight",
    ):
        page.keyboard.press(press)
    key, value, line = formula(part)
    assert key == "attention[3,3]"
    assert value == pytest.approx(seen["attention"][3, 3].item(), abs=6e-7)
    page.keyboard.press("Tab")
    for score in seen["masked_scores"][3].tolist():
        assert f"{score:.3f}".replace("-", "−") in line
    assert page.evaluate("document.activeElement.closest('.gfx') !== null")


def test_a_tap_points_and_an_operand_leads_on(attention, groot):
    part, seen = attention(width=360), seen_by(groot)
    cell(part, "attention [4, 4]", 2, 1).dispatch_event("click")
    assert formula(part)[0] == "attention[2,1]"
    part.locator(".gfx-formula-filled .gfx-ref").first.click()
    key, value, _ = formula(part)
    assert key == "masked_scores[2,1]"
    assert value == pytest.approx(seen["masked_scores"][2, 1].item(), abs=6e-7)
    part.locator(".gfx-formula-filled .gfx-ref").first.click()
    key, value, _ = formula(part)
    assert key == "scores[2,1]"
    part.locator(".gfx-formula-filled .gfx-ref").first.click()
    key, value, _ = formula(part)
    assert key == "q[2,0]" and value == pytest.approx(seen["q"][2, 0].item(), abs=6e-7)


def test_a_matrix_is_copied_as_python_with_all_digits(attention, groot):
    part, seen = attention(), seen_by(groot)
    made = copied(part, "Copy attention as Python")
    torch.testing.assert_close(made["attention"], seen["attention"], atol=0, rtol=1e-13)


def test_a_link_restores_the_view_and_reset_leaves_it(attention):
    part = attention()
    assert query(part.page) == ""
    part.get_by_label("Prompt", exact=True).fill("<START> groot likes")
    part.get_by_role("radio", name="A V", exact=True).check()
    part.get_by_label("causal mask").uncheck()
    linked = query(part.page)
    again = attention(
        **dict(
            pair.split("=")
            for pair in linked.replace("%3C", "<").replace("%3E", ">").replace("+", " ").split("&")
        )
    )
    assert told(again) == told(part) and matrix_texts(again) == matrix_texts(part)
    again.get_by_role("button", name="Reset").click()
    assert told(again) == told(attention())
    assert query(again.page) == ""


@pytest.mark.parametrize("theme", THEMES)
def test_it_is_accessible_and_fits_every_screen(attention, theme):
    part = attention(theme=theme)
    for width in WIDTHS:
        part.page.set_viewport_size({"width": width, "height": 900})
        no_sideways_scroll(part.page, "#explorer-attention")
        screenshot(part, f"attention-{theme}-{width}")
    twin(part)
    assert axe(part.page, "#explorer-attention") == []
