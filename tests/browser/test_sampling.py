"""The explorer of chapter 6: what could be written next, against PyTorch."""

from __future__ import annotations

import re

import pytest
import torch
from browsing import axe, no_sideways_scroll
from instrument import SITES, opener, to_number
from playwright.sync_api import expect

from glassformer.checkpoints import load_baby_groot
from glassformer.data import groot_vocabulary
from glassformer.generation import generate, next_token_probabilities
from glassformer.trace import trace

PAGE = "book/06_logits.html"
ID = "explorer-sampling"
PROMPT = "<START> groot likes"
VOCABULARY = groot_vocabulary()
END = VOCABULARY.encode("<END>")[0]
CHOICES = [
    {},
    {"temperature": 0.5},
    {"temperature": 2, "top_k": 5},
    {"temperature": 1.35, "top_p": 0.9},
    {"temperature": 3, "top_k": 12, "top_p": 0.6},
    {"top_p": 0.01},
    {"top_k": 24, "temperature": 0.05},
]


@pytest.fixture
def sampling(request, visit):
    """Return a function that opens the explorer in a state and returns its part of the page."""
    return opener(request, visit, PAGE, "sampling")


@pytest.fixture(scope="module")
def groot():
    return load_baby_groot().double()


def encode(text: str) -> list[int]:
    return VOCABULARY.encode(text)


def last(model, text: str, name: str = "logits") -> torch.Tensor:
    """Return logits or probabilities [V] of what follows a text, of which four tokens are read."""
    return trace(model, encode(text)[-4:])[name][-1]


def distribution(model, text: str, temperature=1.0, top_k=0, top_p=1.0) -> torch.Tensor:
    return next_token_probabilities(last(model, text), temperature, top_k or None, top_p)


def uniform(seed: int, place: int) -> float:
    generator = torch.Generator().manual_seed(seed)
    return [
        torch.rand((), generator=generator, dtype=torch.float64).item() for _ in range(place + 1)
    ][-1]


def drawn(shares: torch.Tensor, number: float) -> int:
    """Return the token on whose share a number falls, shares laid end to end from the largest."""
    order = shares.argsort(descending=True, stable=True)
    return order[(shares[order].cumsum(0) <= number).sum()].item()


def button(part, name: str):
    return part.get_by_role("button", name=name, exact=True)


def text_of(part) -> list[str]:
    """Return the words of the text: prompt and what was written."""
    chips = part.locator(".gfx-sampling-text .gfx-token:not(.gfx-sampling-next)").all_inner_texts()
    return [chip.split("\n")[0] for chip in chips]


def ranking(part) -> list[list[str]]:
    """Return the cells of the ranked tokens: word, share, probability, logit, what is said."""
    if part.get_by_role("button", name="Show all").count():
        part.get_by_role("button", name="Show all").click()
    rows = part.get_by_role("grid", name="What may come next").locator("tbody tr")
    return rows.evaluate_all(
        """(rows) => rows.map((row) => [...row.cells].map((cell) => cell.innerText.trim()))
          .map(([word, , ...rest]) => [word, ...rest])"""
    )


def copied(part) -> dict[str, torch.Tensor]:
    """Return what the copy button puts on the clipboard: Python that makes tensors."""
    part.page.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    button(part, "Copy the distribution as Python").click()
    made: dict = {}
    exec(part.page.evaluate("window.copied"), {"torch": torch}, made)
    return made["next_token"]


def formula(part):
    return part.locator(".gfx-formula")


def branches(part) -> list[tuple[int, str, float, float]]:
    """Return the visible rows of the tree: level, word, share and likelihood."""
    rows = part.get_by_role("treeitem").evaluate_all(
        """(rows) => rows.map((row) => [row.getAttribute("aria-level"),
          row.querySelector(".gfx-sampling-word").innerText,
          ...[...row.querySelectorAll(".gfx-sampling-share")].map((s) => s.innerText)])"""
    )
    return [(int(level), word, to_number(a), to_number(b)) for level, word, a, b in rows]


# Against PyTorch ---------------------------------------------------------------------------------


@pytest.mark.parametrize("over", SITES)
@pytest.mark.parametrize("written", ["", "friend likes rocket"])
def test_distributions_to_ten_digits(sampling, groot, over, written):
    for choices in CHOICES if over == "http_site" else CHOICES[3:4]:
        part = sampling(over, written=written, **choices)
        text = f"{PROMPT} {written}"
        shares, full = distribution(groot, text, **choices), copied(part)
        torch.testing.assert_close(full["logits"], last(groot, text), rtol=0, atol=1e-10)
        torch.testing.assert_close(
            full["probabilities"], last(groot, text, "probabilities"), rtol=0, atol=1e-10
        )
        torch.testing.assert_close(full["shares"], shares, rtol=0, atol=1e-10)
        order = last(groot, text).argsort(descending=True, stable=True)
        shown = ranking(part)
        assert [row[0] for row in shown] == [VOCABULARY.words[i] for i in order]
        for i, (_, share, probability, logit, said) in zip(order, shown, strict=True):
            assert to_number(share) == pytest.approx(shares[i].item(), abs=5.1e-4)
            assert to_number(probability) == pytest.approx(
                full["probabilities"][i].item(), abs=5.1e-4
            )
            assert to_number(logit) == pytest.approx(full["logits"][i].item(), abs=5.1e-3)
            assert ("cut" in said) == (shares[i] == 0)
        struck = part.get_by_role("grid", name="What may come next").locator("s")
        expect(struck).to_have_count((shares == 0).sum().item())
        kept = (shares > 0).sum().item()
        expect(part.locator("p[role=status]").last).to_contain_text(
            f"{kept} of 24 tokens can be drawn"
        )


def test_what_cuts_a_token_is_said(sampling, groot):
    part = sampling(temperature=3, top_k=12, top_p=0.6)
    kept = (distribution(groot, PROMPT, 3, 12, 0.6) > 0).sum().item()
    said = [row[-1].split(",")[0] for row in ranking(part)]
    assert said[kept:] == ["cut: top-p"] * (12 - kept) + ["cut: top-k"] * 12
    before = distribution(groot, PROMPT, 3, 12).sort(descending=True)[0].cumsum(0)
    told = part.locator(".gfx-sampling-cuts").inner_text()
    together = f"{100 * before[kept - 1]:.1f}", f"{100 * before[kept - 2]:.1f}"
    assert re.findall(r"([\d.]+)\u202f%", told) == list(together)


@pytest.mark.parametrize(
    "prompt", ["i am", "<START> rocket helps", "<START> water", "groot groot groot groot"]
)
@pytest.mark.parametrize("over", SITES)
def test_greedy_text_is_what_generate_writes(sampling, groot, over, prompt):
    part = sampling(over, prompt=prompt)
    want = VOCABULARY.decode(generate(groot, encode(prompt), 40, stop_id=END).tolist()).split()
    for n in range(len(prompt.split()), len(want)):
        part.get_by_role("button", name=re.compile("^Likeliest: ")).click()
        assert text_of(part) == want[: n + 1]
    if want[-1] == "<END>":
        expect(part.get_by_text("<END> is written: here writing stops.")).to_be_visible()
        expect(part.get_by_role("button", name=re.compile("^Draw: "))).to_be_disabled()
    button(part, "Start again").click()
    assert text_of(part) == prompt.split()
    button(part, "Likeliest to the end").click()
    assert text_of(part) == want


@pytest.mark.parametrize("seed", [0, 7, 2**31 - 1])
def test_drawn_text_follows_torch_rand(sampling, groot, seed):
    choices = {"temperature": 2, "top_k": 10}
    part = sampling(seed=seed, prompt="<START>", **choices)
    text = ["<START>"]
    while text[-1] != "<END>" and len(text) < 41:
        place, number = len(text) - 1, uniform(seed, len(text) - 1)
        token = VOCABULARY.words[drawn(distribution(groot, " ".join(text), **choices), number)]
        if place < 4:
            expect(part.locator(".gfx-sampling-draw")).to_contain_text(f"{number:.4f}")
            button(part, f"Draw: {token}").click()
        text.append(token)
    button(part, "Start again").click()
    button(part, "Draw to the end").click()
    assert text_of(part) == text


def test_the_draw_is_spelled_out(sampling, groot):
    part = sampling(seed=1, temperature=1.5, written="tree")
    shares, number = distribution(groot, f"{PROMPT} tree", 1.5), uniform(1, 1)
    token = drawn(shares, number)
    order = shares.argsort(descending=True, stable=True).tolist()
    before = shares[order[: order.index(token)]].sum().item()
    values = part.locator(".gfx-sampling-draw .gfx-number")
    ends = [number, before, before + shares[token].item()]
    assert [to_number(v) for v in values.all_inner_texts()] == pytest.approx(ends, abs=5.1e-5)
    values.nth(2).click()
    expect(formula(part)).to_contain_text(f"reach[{order.index(token) + 1}]")
    formula(part).get_by_role("button", name=re.compile(rf", share\[{order[0]}\]$")).click()
    expect(formula(part)).to_contain_text(f"share[{order[0]}]")
    shown = formula(part).locator(".gfx-value").inner_text()
    assert to_number(shown) == pytest.approx(shares[order[0]].item(), abs=5.1e-7)
    mark = part.locator(".gfx-sampling-mark").bounding_box()
    ruler = part.locator(".gfx-sampling-ruler").bounding_box()
    hit = part.locator(".gfx-sampling-hit").bounding_box()
    assert (mark["x"] - ruler["x"]) / ruler["width"] == pytest.approx(number, abs=0.01)
    assert hit["x"] - 2 <= mark["x"] <= hit["x"] + hit["width"] + 2
    last = part.locator(".gfx-sampling-bit").last.bounding_box()
    assert last["x"] + last["width"] <= ruler["x"] + ruler["width"] + 1


def test_the_tree_has_shares_and_likelihoods(sampling, groot):
    part = sampling(temperature=1.5, prompt="<START>")
    expected = []
    shares = distribution(groot, "<START>", 1.5)
    for i in shares.argsort(descending=True, stable=True)[:3]:
        word = VOCABULARY.words[i]
        expected.append((1, word, shares[i].item(), shares[i].item()))
        after = distribution(groot, f"<START> {word}", 1.5)
        for j in after.argsort(descending=True, stable=True)[:3]:
            expected.append(
                (2, VOCABULARY.words[j], after[j].item(), (shares[i] * after[j]).item())
            )
    shown = branches(part)
    assert [row[:2] for row in shown] == [row[:2] for row in expected]
    for row, want in zip(shown, expected, strict=True):
        assert row[2:] == pytest.approx(want[2:], abs=5.1e-4)
    part.get_by_role("treeitem").nth(2).hover()
    expect(formula(part)).to_contain_text("the product of the shares on the way")
    value = to_number(formula(part).locator(".gfx-value").inner_text())
    assert value == pytest.approx(expected[2][3], abs=5.1e-7)


# As a reader ---------------------------------------------------------------------------------


def test_another_token_instead_and_on_from_it(sampling, groot):
    part = sampling()
    button(part, "Likeliest to the end").click()
    assert text_of(part) == [*PROMPT.split(), "leaf", "<END>"]
    part.get_by_role("button", name=re.compile("^leaf")).click()  # look at its place
    assert "written" in dict((row[0], row[-1]) for row in ranking(part))["leaf"]
    button(part, "Write rocket").click()
    assert text_of(part) == [*PROMPT.split(), "rocket"]
    want = distribution(groot, f"{PROMPT} rocket")
    torch.testing.assert_close(copied(part)["shares"], want, rtol=0, atol=1e-10)
    expect(part.get_by_text("its window holds 4")).to_be_visible()
    part.get_by_role("treeitem", name=re.compile("tree")).first.click()
    assert text_of(part) == [*PROMPT.split(), "tree"]
    rocket = part.get_by_role("treeitem").filter(has_text="rocket").first
    expect(rocket).to_contain_text("tried")
    expect(part.get_by_role("treeitem", selected=True)).to_have_count(1)
    button(part, "Write happy").click()
    expect(part.get_by_text("its window has slid")).to_be_visible()
    assert part.locator(".gfx-sampling-unread").count() == 1
    button(part, "Take one back").click()
    assert text_of(part) == [*PROMPT.split(), "tree"]


def test_at_temperature_0_nothing_is_drawn(sampling):
    part = sampling()
    part.get_by_label("temperature τ").fill("0")
    expect(part.get_by_text("nothing is drawn")).to_be_visible()
    shown = ranking(part)
    assert [row[1].split("\u202f")[0] for row in shown] == ["100.0"] + ["0.0"] * 23
    assert [row[-1] for row in shown[1:]] == ["cut: temperature 0"] * 23
    assert [word for _, word, *_ in branches(part)] == ["leaf", "<END>"]
    button(part, "Draw to the end").click()
    assert text_of(part) == [*PROMPT.split(), "leaf", "<END>"]


def test_sliders_reach_every_choice(sampling, groot):
    part = sampling()
    for label, value in (
        ("temperature τ", "1.75"),
        ("top-k", "7"),
        ("top-p", "0.85"),
        ("seed", "123"),
    ):
        part.get_by_label(label, exact=True).fill(value)
    shares = distribution(groot, PROMPT, 1.75, 7, 0.85)
    torch.testing.assert_close(copied(part)["shares"], shares, rtol=0, atol=1e-10)
    expect(part.locator(".gfx-sampling-draw")).to_contain_text(f"{uniform(123, 0):.4f}")


def test_by_keyboard_alone(sampling):
    part = sampling()
    key = part.page.keyboard.press
    part.get_by_label("seed").focus()
    key("Tab")
    key("Enter")  # Likeliest: leaf
    assert text_of(part)[-1] == "leaf"
    for _ in range(4):
        key("Tab")
    key("Enter")  # Take one back
    assert text_of(part) == PROMPT.split()
    button(part, "Copy the distribution as Python").focus()
    key("Tab")  # the ranking is one stop
    expect(part.get_by_role("button", name="Write leaf")).to_be_focused()
    key("ArrowDown")
    key("ArrowRight")
    expect(formula(part)).to_contain_text("the share of friend")
    key("End")
    expect(formula(part)).to_contain_text("logits[2,")
    key("Home")
    key("Enter")
    assert text_of(part)[-1] == "friend"
    part.get_by_role("treeitem").first.focus()
    key("ArrowRight")  # opens leaf
    expect(part.get_by_role("treeitem").first).to_have_attribute("aria-expanded", "true")
    key("ArrowRight")
    key("ArrowDown")
    expect(formula(part)).to_contain_text("path after leaf")
    key("ArrowLeft")
    key("ArrowLeft")
    expect(part.get_by_role("treeitem").first).to_have_attribute("aria-expanded", "false")
    key("Enter")
    assert text_of(part)[-1] == "leaf"


def test_the_focus_stays_with_its_path_where_the_tree_moves(sampling):
    part = sampling(prompt="<START>")
    focused = part.locator("[role=treeitem]:focus .gfx-sampling-word")
    part.get_by_role("treeitem").first.focus()
    places = []
    for n in range(1, 5):
        part.page.keyboard.press("Enter")
        assert len(text_of(part)) == n + 1
        expect(focused).to_have_text(text_of(part)[-1])
        places.append(part.locator("[role=treeitem]:focus").get_attribute("data-row"))
        part.page.keyboard.press("ArrowRight")
    assert len(set(places)) < len(places)  # the tree's root has followed


def test_by_touch(browser, http_site):
    context = browser.new_context(
        viewport={"width": 360, "height": 800}, has_touch=True, is_mobile=True
    )
    page = context.new_page()
    page.goto(f"{http_site}/{PAGE}#{ID}?top_k=3")
    part = page.locator(f"#{ID}")
    button(part, "Write tree").tap()
    assert text_of(part)[-1] == "tree"
    part.get_by_role("treeitem").first.locator(".gfx-sampling-twist").tap()
    expect(part.get_by_role("treeitem").first).to_have_attribute("aria-expanded", "true")
    assert text_of(part)[-1] == "tree"
    small = part.locator("button, td[data-n], [role=treeitem], .gfx-sampling-twist").evaluate_all(
        """(all) => all.map((e) => [e.getBoundingClientRect(), e.outerHTML.slice(0, 80)])
          .filter(([box]) => box.width && Math.min(box.width, box.height) < 23.9)
          .map(([box, html]) => `${box.width} x ${box.height} ${html}`)"""
    )
    context.close()
    assert small == []


def test_a_text_ends_somewhere(sampling):
    part = sampling(temperature=5, seed=3, prompt="<START>", written="i " * 39)
    ranking(part)  # all tokens are shown
    button(part, "Write needs").click()
    expect(part.get_by_text("40 tokens are written: enough.")).to_be_visible()
    expect(part.get_by_role("button", name=re.compile("^Draw: "))).to_be_disabled()
    assert len(text_of(part)) == 41


def test_an_unknown_word_is_named_and_nothing_else_changes(sampling):
    part = sampling(written="friend")
    before = ranking(part)
    part.get_by_label("Prompt", exact=True).fill("<START> grot likes")
    expect(part.get_by_role("alert").first).to_contain_text("'grot' is not in the vocabulary")
    assert ranking(part) == before
    assert text_of(part)[-1] == "friend"


@pytest.mark.parametrize(
    "state",
    [
        {"written": "leaf <b>x</b>"},
        {"written": "👾"},
        {"temperature": "hot", "top_p": 7, "top_k": -3, "back": 99},
    ],
)
def test_a_link_that_cannot_be_is_read_as_far_as_it_goes(sampling, state):
    part = sampling(**state)
    expect(part.get_by_role("grid", name="What may come next")).to_be_visible()
    assert text_of(part) == PROMPT.split()
    if "written" in state:
        expect(part.get_by_text("What was written cannot be read.")).to_be_visible()


def test_what_a_link_has_after_the_end_is_left_out(sampling):
    part = sampling(written="leaf <END> leaf water")
    assert text_of(part) == [*PROMPT.split(), "leaf", "<END>"]
    expect(part.get_by_text("here writing stops")).to_be_visible()


def test_a_view_can_be_linked_and_comes_back(sampling, visit):
    part = sampling(temperature=1.5, seed=9)
    button(part, "Draw to the end").click()
    part.locator(".gfx-sampling-written").first.click()
    before = text_of(part)
    expect(part.page).to_have_url(re.compile(r"written=.*back="))
    shown = ranking(part)
    part = visit(part.page.url).locator(f"#{ID}")
    expect(part.locator(".gfx")).to_be_visible()
    assert (text_of(part), ranking(part)) == (before, shown)
    button(part, "Reset").click()
    assert text_of(part) == PROMPT.split()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(
    "state", [{"top_k": 6, "top_p": 0.7, "written": "friend likes"}, {"written": "leaf <END>"}]
)
def test_on_a_phone_nothing_sticks_out_and_axe_finds_nothing(sampling, theme, state):
    part = sampling(theme=theme, width=360, temperature=2, **state)
    ranking(part)
    part.get_by_text("As a table").click()
    no_sideways_scroll(part.page)
    assert axe(part.page, f"#{ID}") == []
