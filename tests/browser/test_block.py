"""The explorer of chapter 5: one token through the block, against PyTorch."""

from __future__ import annotations

import re

import pytest
import torch
from browsing import axe, no_sideways_scroll
from instrument import texts
from playwright.sync_api import expect

from glassformer.checkpoints import load_baby_groot
from glassformer.data import groot_vocabulary
from glassformer.trace import trace

PAGE = "book/05_block.html"
ID = "explorer-block"
SENTENCE = "<START> i am groot"
VOCABULARY = groot_vocabulary()
LABELS = {
    "h0": "H₀",
    "context": "context",
    "r1": "R₁",
    "n1": "N₁",
    "ffn_hidden": "W₁N₁ + b₁",
    "ffn_activation": "ReLU",
    "ffn_out": "F",
    "r2": "R₂",
    "h_out": "H_out",
}
UNITS = ("ffn_hidden", "ffn_activation")
SITES = ("http_site", "file_site")


@pytest.fixture
def block(request, visit):
    """Return a function that opens the explorer in a state and returns its part of the page."""

    def open_block(over="http_site", theme="light", width=1440, **state):
        query = "&".join(f"{key}={str(value).replace(' ', '+')}" for key, value in state.items())
        address = f"{request.getfixturevalue(over)}/{PAGE}"
        page = visit(f"{address}#{ID}?{query}" if query else address, theme, width)
        part = page.locator(f"#{ID}")
        expect(part.locator(".gfx")).to_be_visible()
        return part

    return open_block


@pytest.fixture(scope="module")
def groot():
    return load_baby_groot().double()


def seen_by(model, prompt: str = SENTENCE) -> dict[str, torch.Tensor]:
    return trace(model, VOCABULARY.encode(prompt))


def to_number(text: str) -> float:
    return float(text.strip().replace("−", "-").replace(",", ""))


def stack(part, name: str) -> dict[str, list[str]]:
    """Return the texts of a stack of rows, by the heads of its rows."""
    lines = texts(part.get_by_role("grid", name=name).locator("tbody tr"), "th, td")
    return {re.sub(r"^[▸+=→· ]*", "", head): cells for head, *cells in lines}


def numbers(cells: list[str]) -> list[float]:
    return [to_number(cell) for cell in cells]


def twin(part, caption: str) -> dict[str, list[str]]:
    """Return the rows of one of the tables behind "As a table", by their heads."""
    if part.locator(".gfx-twin[open]").count() == 0:
        part.get_by_text("As a table").click()
    table = part.locator(".gfx-twin table", has=part.page.get_by_text(caption, exact=True))
    return {head: cells for head, *cells in texts(table.locator("tbody tr"), "th, td")}


def copied(part, name: str) -> dict[str, torch.Tensor]:
    """Return what a copy button puts on the clipboard: Python that makes tensors."""
    part.page.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    part.get_by_role("button", name=f"Copy {name} as Python").click()
    made: dict = {}
    exec(part.page.evaluate("window.copied"), {"torch": torch}, made)
    (tensors,) = made.values()
    return tensors


def choose_token(part, position: int) -> None:
    part.get_by_role("group", name="Which token?").get_by_role("button").nth(position).click()


def choose_stage(part, stage: str) -> None:
    part.get_by_role("radio", name=LABELS[stage], exact=True).check()


def measures(x: torch.Tensor) -> list[float]:
    return [x.mean().item(), x.var(correction=0).item(), x.norm().item()]


# Against PyTorch ---------------------------------------------------------------------------------


@pytest.mark.parametrize("over", SITES)
def test_every_token_at_every_stage(block, groot, over):
    part, seen = block(over), seen_by(groot)
    for position, word in enumerate(SENTENCE.split()):
        choose_token(part, position)
        shown = stack(part, f"{word}, stage by stage")
        assert list(shown) == list(LABELS.values())
        full = copied(part, f"{word}, stage by stage")
        assert list(full) == list(LABELS)
        for stage, label in LABELS.items():
            x = seen[stage][position]
            torch.testing.assert_close(full[stage], x, rtol=0, atol=1e-10)
            cells, beside = shown[label][: len(x)], shown[label][len(x) :]
            assert numbers(beside) == pytest.approx(measures(x), abs=5.1e-3)
            if stage == "ffn_hidden":
                assert cells == ["−" if value < 0 else "+" for value in x]
            elif stage == "ffn_activation":
                assert cells == ["●" if value > 0 else "○" for value in x]
            else:
                assert numbers(cells) == pytest.approx(x.tolist(), abs=5.1e-3)
        fires = (seen["ffn_activation"][position] > 0).sum().item()
        expect(part.get_by_role("status").first).to_contain_text(f"{fires} of 16 hidden units fire")


@pytest.mark.parametrize("stage, reads, norm", [("n1", "r1", "norm1"), ("h_out", "r2", "norm2")])
def test_the_norms_column_by_column(block, groot, stage, reads, norm):
    part, seen = block(position=3, step=stage), seen_by(groot)
    x, weights = seen[reads][3], getattr(groot.transformer, norm)
    z = torch.nn.functional.layer_norm(x, (8,))
    full = copied(part, "The norm, column by column")
    expected = {
        reads: x,
        f"z{norm[-1]}": z,
        "gamma": weights.weight,
        "beta": weights.bias,
        stage: seen[stage][3],
    }
    assert list(full) == list(expected)
    for name, row in expected.items():
        torch.testing.assert_close(full[name], row.detach(), rtol=0, atol=1e-10)
    for cells, row in zip(
        stack(part, "The norm, column by column").values(), expected.values(), strict=True
    ):
        assert numbers(cells) == pytest.approx(row.tolist(), abs=5.1e-3)
    said = part.get_by_text("has mean").filter(has=part.page.get_by_role("button")).inner_text()
    assert [to_number(n) for n in re.findall(r"[−\d.]+\d", said)] == pytest.approx(
        measures(x)[:2], abs=5.1e-3
    )


@pytest.mark.parametrize("position", range(4))
def test_every_unit_what_it_weighs_and_what_it_adds(block, groot, position):
    part, seen = block(position=position, step="ffn_activation"), seen_by(groot)
    widen, _, narrow = groot.transformer.ffn
    x, hidden = seen["n1"][position], seen["ffn_hidden"][position]
    units = part.get_by_role("group", name="Hidden units").get_by_role("button")
    for u, text in enumerate(units.all_inner_texts()):
        said = "● on" if hidden[u] > 0 else "○ off"
        assert text.split("\n") == [f"unit {u}", f"{hidden[u].clamp(min=0):.2f}", said]
        units.nth(u).click()
        full = copied(part, f"Unit {u}: what it reads, and what it adds")
        expected = {
            "N1": x, "W1": widen.weight[u], "reads": x * widen.weight[u],
            "W2": narrow.weight[:, u], "adds": hidden[u].clamp(min=0) * narrow.weight[:, u],
            "b2": narrow.bias, "F": seen["ffn_out"][position],
        }  # fmt: skip
        assert list(full) == list(expected)
        for name, row in expected.items():
            torch.testing.assert_close(full[name], row.detach(), rtol=0, atol=1e-10)
        told = "It fires" if hidden[u] > 0 else "It is off"
        expect(part.get_by_text(f"Unit {u} weighs")).to_contain_text(told)
    choose_stage(part, "ffn_hidden")
    shown = [text.split("\n")[1] for text in units.all_inner_texts()]
    assert numbers(shown) == pytest.approx(hidden.tolist(), abs=5.1e-3)


def test_what_the_token_heard_and_what_it_began_with(block, groot):
    part, seen = block(step="context"), seen_by(groot)
    rows = stack(part, "What am heard: each row times its share")
    for s, word in enumerate(SENTENCE.split()):
        row = [*seen["v"][s].tolist(), seen["attention"][2, s].item()]
        assert numbers(rows[f"v of {word}"]) == pytest.approx(row, abs=5.1e-3)
    assert numbers(rows["context"]) == pytest.approx(seen["context"][2].tolist(), abs=5.1e-3)
    choose_stage(part, "h0")
    full = copied(part, "Token and position")
    for name in ("token_embedding", "position_embedding", "h0"):
        torch.testing.assert_close(full[name], seen[name][2], rtol=0, atol=1e-10)
    choose_stage(part, "r1")
    lengths = [seen[name][2].norm().item() for name in ("h0", "context", "r1")]
    said = part.get_by_text("together they are").inner_text()
    assert [to_number(n) for n in re.findall(r"\d+\.\d+", said)] == pytest.approx(
        lengths, abs=5.1e-3
    )


@pytest.mark.parametrize("prompt", ["groot", "water helps", "<START> friend <END> <PAD>"])
def test_the_table_twin_of_any_prompt(block, groot, prompt):
    part, words = block(), prompt.split()
    part.get_by_label("Prompt", exact=True).fill(prompt)
    choose_token(part, len(words) - 1)
    seen = seen_by(groot, prompt)
    shown = twin(part, f"{words[-1]}, stage by stage")
    for stage in LABELS:
        if stage not in UNITS:
            x = seen[stage][-1]
            assert numbers(shown[stage]) == pytest.approx([*x.tolist(), *measures(x)], abs=5.1e-5)
    units = twin(part, "Hidden units")
    for u in range(16):
        before, behind = (seen[name][-1, u].item() for name in UNITS)
        assert numbers(units[str(u)][:2]) == pytest.approx([before, behind], abs=5.1e-5)
        assert units[str(u)][2] == ("yes" if behind > 0 else "no")


# As a reader ---------------------------------------------------------------------------------


def formula(part):
    return part.locator(".gfx-formula")


@pytest.mark.parametrize("over", SITES)
def test_stage_by_stage_with_next_and_back(block, over):
    part = block(over)
    back, forth = (
        part.get_by_role("button", name=name, exact=True) for name in ("Back", "Next stage")
    )
    expect(back).to_be_disabled()
    for stage in list(LABELS)[1:]:
        forth.click()
        now = part.locator(".gfx-block-now th")
        expect(now).to_contain_text(LABELS[stage])
        expect(formula(part)).to_contain_text(f"{stage}[2,")
    expect(forth).to_be_disabled()
    back.click()
    expect(part.locator(".gfx-block-now th")).to_contain_text("R₂")
    assert [
        re.sub(r"[+=→] ", "", t) for t in part.locator(".gfx-block-from th").all_inner_texts()
    ] == ["N₁", "F"]


def test_measures_are_spelled_out_and_lead_on(block, groot):
    part, x = block(position=3), seen_by(groot)["r1"][3]
    line = part.get_by_role("grid", name="groot, stage by stage").locator("tr", has_text="R₁")
    for n, (measure, value) in enumerate(
        zip(("mean", "variance", "length"), measures(x), strict=True)
    ):
        line.locator("td").nth(8 + n).hover()
        expect(formula(part)).to_contain_text(f"r1.{measure}[3]")
        assert to_number(formula(part).locator(".gfx-value").inner_text()) == pytest.approx(
            value, abs=5.1e-5
        )
    line.locator("td").nth(9).click()
    expect(formula(part)).to_contain_text("divided by 8, not 7")
    formula(part).get_by_role("button", name=re.compile(r", r1\.mean\[3\]$")).first.click()
    expect(formula(part)).to_contain_text("r1.mean[3]")
    formula(part).get_by_role("button", name=re.compile(r", r1\[3,2\]$")).click()
    expect(formula(part)).to_contain_text("r1[3,2]")
    grid = part.get_by_role("grid", name="groot, stage by stage")
    expect(grid.locator("td.gfx-made")).to_have_count(2)  # h0 and context


def test_what_a_unit_adds_is_spelled_out(block, groot):
    part, seen = block(position=3, step="ffn_out", unit=13), seen_by(groot)
    cell = (
        part.get_by_role("grid", name="Unit 13")
        .locator("tr", has_text="it adds")
        .locator("td")
        .nth(6)
    )
    cell.click()
    expect(formula(part)).to_contain_text("adds[3,13,6]")
    value = seen["ffn_activation"][3, 13] * groot.transformer.ffn[2].weight[6, 13]
    assert to_number(formula(part).locator(".gfx-value").inner_text()) == pytest.approx(
        value.item(), abs=5.1e-7
    )
    formula(part).get_by_role("button", name="3.452, ffn_activation[3,13]").click()
    expect(formula(part)).to_contain_text("max(0,")


def test_by_keyboard_alone(block):
    part = block()
    key = part.page.keyboard.press
    part.get_by_label("Prompt", exact=True).focus()
    key("Control+A")
    part.page.keyboard.type("<START> tree needs water")
    for _ in range(2):  # over the list of words, to the first token
        key("Tab")
    for _ in range(2):
        key("Tab")
    key("Enter")
    expect(part.get_by_role("button", name="needs 15", exact=True)).to_have_attribute(
        "aria-pressed", "true"
    )
    for _ in range(2):
        key("Tab")
    key("ArrowRight")  # the choice of stages
    expect(part.locator(".gfx-block-now th")).to_contain_text("context")
    key("Tab")
    key("Tab")
    key("Enter")  # Next stage
    expect(part.locator(".gfx-block-now th")).to_contain_text("R₁")
    key("Tab")
    key("Tab")
    expect(formula(part)).to_contain_text("h0[2,0]")
    key("End")
    expect(formula(part)).to_contain_text("h0.length[2]")
    for _ in range(4):
        key("ArrowDown")
    expect(formula(part)).to_contain_text("ffn_hidden.length[2]")
    key("Home")
    key("ArrowRight")
    expect(formula(part)).to_contain_text("ffn_hidden[2,1]")
    key("ArrowUp")
    expect(formula(part)).to_contain_text("n1[2,0]")


def test_by_touch(browser, http_site):
    context = browser.new_context(
        viewport={"width": 360, "height": 800}, has_touch=True, is_mobile=True
    )
    page = context.new_page()
    page.goto(f"{http_site}/{PAGE}#{ID}?step=ffn_activation&position=3")
    part = page.locator(f"#{ID}")
    part.get_by_role("group", name="Hidden units").get_by_role("button").nth(4).tap()
    expect(part.get_by_text("Unit 4 weighs")).to_contain_text("It is off")
    part.get_by_role("grid", name="groot, stage by stage").locator("tr", has_text="R₁").locator(
        "td"
    ).first.tap()
    expect(formula(part)).to_contain_text("r1[3,0]")
    small = part.locator("button, td[data-n]").evaluate_all(
        """(all) => all.map((e) => [e.getBoundingClientRect(), e.outerHTML.slice(0, 80)])
          .filter(([box]) => box.width && Math.min(box.width, box.height) < 23.9)
          .map(([box, html]) => `${box.width} x ${box.height} ${html}`)"""
    )
    context.close()
    assert small == []


def test_an_unknown_word_is_named_and_nothing_else_changes(block):
    part = block(position=1)
    grid = part.get_by_role("grid", name="i, stage by stage")
    before = grid.inner_text()
    part.get_by_label("Prompt", exact=True).fill("<START> i am grout")
    expect(part.get_by_role("alert")).to_contain_text(
        "'grout' is not in the vocabulary; the nearest known: groot"
    )
    assert grid.inner_text() == before
    part.get_by_role("button", name="Reset").click()
    expect(part.get_by_role("grid", name="am, stage by stage")).to_be_visible()


def test_a_view_can_be_linked_and_comes_back(block, visit):
    part = block()
    choose_token(part, 3)
    choose_stage(part, "ffn_out")
    part.get_by_role("group", name="Hidden units").get_by_role("button").nth(5).click()
    expect(part.page).to_have_url(re.compile("unit=5"))
    part = visit(part.page.url).locator(f"#{ID}")
    expect(part.get_by_text("Unit 5 weighs")).to_be_visible()
    expect(part.locator(".gfx-block-now th")).to_contain_text("F")
    expect(part.get_by_role("grid", name="groot, stage by stage")).to_be_visible()


@pytest.mark.parametrize(
    "state", ["position=99&unit=99999&step=r2", "position=x&unit=-3&step=<b>&prompt=👾+<i>"]
)
def test_a_link_that_cannot_be_is_brought_into_bounds(block, http_site, visit, state):
    part = visit(f"{http_site}/{PAGE}#{ID}?{state}").locator(f"#{ID}")
    expect(part.get_by_role("grid", name=", stage by stage")).to_be_visible()
    expect(part.locator("b", has_text="<i>")).to_have_count(0)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("stage", ["context", "n1", "ffn_activation"])
def test_on_a_phone_nothing_sticks_out_and_axe_finds_nothing(block, theme, stage):
    part = block(theme=theme, width=360, step=stage, position=3)
    part.get_by_text("As a table").click()
    no_sideways_scroll(part.page)
    assert axe(part.page, f"#{ID}") == []
