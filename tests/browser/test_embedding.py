"""The explorer of chapter 3: rows of H₀ as sums, and which token vectors point the same way."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from browsing import axe, no_sideways_scroll
from instrument import (
    SITES,
    cell,
    cells,
    copied,
    formula,
    matrix,
    numbers,
    opener,
    query,
    sentence,
    to_number,
    told,
    twin,
)
from playwright.sync_api import expect

from glassformer.checkpoints import initial_baby_groot, load_baby_groot
from glassformer.data import groot_vocabulary
from glassformer.trace import trace

VOCABULARY = groot_vocabulary()
SENTENCE = "<START> i am groot"
ROWS = ("token_embedding", "position_embedding", "h0")


@pytest.fixture
def embedding(request, visit):
    return opener(request, visit, "book/03_interludes.html", "embedding")


@pytest.fixture(scope="module")
def models():
    return {"as drawn": initial_baby_groot(), "trained": load_baby_groot()}


def cosines(model) -> torch.Tensor:
    table = model.token_embedding.weight.detach()
    return F.cosine_similarity(table[:, None], table[None], dim=-1)


def ids(*words: str) -> list[int]:
    return VOCABULARY.encode(" ".join(words))


@pytest.mark.parametrize("over", SITES)
@pytest.mark.parametrize("weights", ["as drawn", "trained"])
def test_every_row_of_h0_is_a_sum(embedding, models, over, weights):
    part, seen = embedding(over), trace(models[weights], VOCABULARY.encode(SENTENCE))
    part.get_by_label(weights, exact=True).check()
    positions = part.get_by_role("group", name="Which position?").get_by_role("button")
    for t in range(4):
        positions.nth(t).click()
        for name in ROWS:
            grid = part.get_by_role("grid", name=f"{name} [1, 8]")
            shown = [to_number(text) for text in grid.locator("td").all_inner_texts()]
            want = seen[name][t]
            torch.testing.assert_close(torch.tensor(shown).double(), want, atol=0.00501, rtol=0)
        grid = part.get_by_role("grid", name="h0 [1, 8]")
        grid.locator("td").nth(t).hover()
        key, value, _ = formula(part)
        assert key == f"h0[{t},{t}]" and abs(value - seen["h0"][t, t].item()) < 1e-6
        operands = part.locator(".gfx-formula-filled .gfx-ref").all_inner_texts()
        assert abs(sum(to_number(x.strip("()")) for x in operands) - value) < 2e-3
        assert part.locator("td.gfx-made").count() == 2  # token and position light up
    torch.testing.assert_close(matrix(part, "h0 [4, 8]"), seen["h0"], atol=0.00501, rtol=0)
    for name in ROWS:
        shown = numbers(twin(part)[name])
        assert (shown - seen[name]).abs().max() <= 1e-12
    part.locator(".gfx-formula-filled .gfx-ref").first.click()
    part.locator(".gfx-formula-filled .gfx-ref").first.click()
    key, value, line = formula(part)
    assert key == "token_embedding.weight[8,3]" and "a learned number" in line


@pytest.mark.parametrize("over", SITES)
def test_all_cosines_before_and_after(embedding, models, over):
    part = embedding(over)
    for when, model in (("before", models["as drawn"]), ("after", models["trained"])):
        want = cosines(model)
        shown = numbers(twin(part)[f"Cosines {when} training"])
        assert (shown - want).abs().max() <= 1e-12 and shown.shape == (24, 24)
        grid = part.get_by_role("grid", name=f"cosine_{when}")
        labels = grid.locator("td[data-n]").evaluate_all("all => all.map(c => c.ariaLabel)")
        printed = torch.tensor([to_number(text) for text in labels]).double().reshape(24, 24)
        torch.testing.assert_close(printed, want, atol=0.00501, rtol=0)
        (made,) = copied(part, f"Copy cosine_{when} as Python").values()
        assert (made - want).abs().max() <= 1e-12


def test_a_pair_spelled_out_and_chosen_in_the_map(embedding, models):
    part = embedding()
    for a, b in (("we", "you"), ("is", "leaf"), ("<PAD>", "tree")):
        part.get_by_label("A token", exact=True).select_option(a)
        part.get_by_label("Another", exact=True).select_option(b)
        rows = cells(part, f"The cosine of {a} and {b}")
        for row, model in zip(rows, models.values(), strict=True):
            x, y = model.token_embedding.weight[ids(a, b)].detach()
            want = (x @ y, x.norm(), y.norm(), F.cosine_similarity(x, y, dim=0))
            assert row == [f"{number.item():.4f}".replace("-", "−") for number in want]
    i, am = ids("i", "am")
    part.get_by_role("grid", name="cosine_after").locator("tbody tr").nth(i).locator("td").nth(
        am
    ).click()
    expect(part.get_by_label("A token", exact=True)).to_have_value("i")
    expect(part.get_by_label("Another", exact=True)).to_have_value("am")
    key, value, _ = formula(part)
    assert key == f"cosine_after[{i},{am}]"
    assert abs(value - cosines(models["trained"])[i, am].item()) < 1e-6
    operands = part.locator(".gfx-formula-filled .gfx-ref")
    product, one, other = (to_number(x.strip("()")) for x in operands.all_inner_texts())
    assert abs(product / (one * other) - value) < 2e-3
    operands.nth(1).click()
    key, value, line = formula(part)
    assert key == f"length_after[{i}]" and "√(" in line and operands.count() == 16
    assert "token=i" in query(part.page) and "other=am" in query(part.page)


def test_nearest_tokens_before_and_after(embedding, models):
    part = embedding(token="leaf")
    rows = cells(part, "Nearest to leaf")
    (leaf,) = ids("leaf")
    for place, model in enumerate(models.values()):
        near = cosines(model)[leaf]
        order = [i for i in near.argsort(descending=True).tolist() if i != leaf][: len(rows)]
        assert [row[2 * place] for row in rows] == [VOCABULARY.words[i] for i in order]
        shown = [to_number(row[2 * place + 1]) for row in rows]
        torch.testing.assert_close(torch.tensor(shown).double(), near[order], atol=5.1e-5, rtol=0)
    assert "of all 210 pairs of words 107 drew together" in told(part)


def test_an_unknown_word_is_named_and_nothing_else_changes(embedding):
    part = embedding()
    before = matrix(part, "h0 [4, 8]"), told(part)
    part.get_by_label("Prompt").fill("<START> i am root")
    expect(part.locator(".gfx-error")).to_contain_text("'root' is not in the vocabulary")
    assert torch.equal(matrix(part, "h0 [4, 8]"), before[0]) and told(part) == before[1]
    part.get_by_label("Prompt").fill("i")
    expect(sentence(part)).to_contain_text("i, at position 0")
    assert part.get_by_role("grid", name="h0 [1, 8]").count() == 2


@pytest.mark.parametrize(
    "state",
    [
        {"token": "<img src=x onerror=alert(1)>", "other": "", "position": "-1"},
        {"token": "constructor", "other": "🌳", "trained": "perhaps", "prompt": "‮groot"},
    ],
)
def test_whatever_stands_in_the_link_the_explorer_starts(embedding, state):
    part = embedding(**state)
    expect(sentence(part)).to_contain_text("The cosine of we and you was 0.01 as drawn")
    assert part.locator("img").count() == 0


def test_keyboard_alone(embedding):
    part = embedding()
    page = part.page
    part.get_by_role("group", name="Which position?").get_by_role("button").first.focus()
    page.keyboard.press("Enter")
    expect(sentence(part)).to_contain_text("<START>, at position 0")
    part.get_by_label("trained", exact=True).focus()
    page.keyboard.press("ArrowLeft")
    assert "trained=false" in query(page)
    cell(part, "cosine_before", 0, 0).focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    assert formula(part)[0] == "cosine_before[2,1]"
    expect(part.get_by_label("A token", exact=True)).to_have_value("<END>")
    expect(part.get_by_label("Another", exact=True)).to_have_value("<START>")


@pytest.mark.parametrize(
    ("theme", "width"), [("light", 1440), ("dark", 1440), ("light", 360), ("dark", 360)]
)
def test_everyone_can_read_it(embedding, theme, width):
    part = embedding(theme=theme, width=width)
    assert axe(part.page, "#explorer-embedding") == []
    no_sideways_scroll(part.page)
