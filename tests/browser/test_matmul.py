"""The explorer of chapter 7 that builds matrix products cell by cell, against PyTorch."""

from __future__ import annotations

import re

import pytest
import torch
from browsing import axe, no_sideways_scroll
from instrument import SITES, opener, texts, to_number
from playwright.sync_api import expect

from glassformer.checkpoints import load_baby_groot, load_tiny
from glassformer.data import cat_vocabulary, groot_vocabulary
from glassformer.trace import trace

PAGE = "book/07_modern.html"
ID = "explorer-matmul"
PROMPTS = {"groot": "<START> i am groot", "tiny": "the cat sat on the mat"}


@pytest.fixture
def matmul(request, visit):
    """Return a function that opens the explorer in a state and returns its part of the page."""
    return opener(request, visit, PAGE, "matmul")


@pytest.fixture(scope="module")
def models():
    """Return both trained models and their vocabularies."""
    return {
        "groot": (load_baby_groot(), groot_vocabulary()),
        "tiny": (load_tiny().double(), cat_vocabulary()),
    }


def numbers(grid) -> list[list[float]]:
    """Return the numbers of a grid, those of small cells from what is said of them."""
    rows = grid.locator("tbody tr").evaluate_all(
        """(rows) => rows.map((row) =>
          [...row.querySelectorAll("td")].map((cell) => cell.ariaLabel || cell.innerText))"""
    )
    return [[to_number(text.replace("−10⁹", "-1e9")) for text in row] for row in rows]


def factors(models, which: str, product: str, layer: int = 0, head: int = 0):
    """Return left and right factor of a product, as the models compute it."""
    model, vocabulary = models[which]
    seen = trace(model, torch.tensor(vocabulary.encode(PROMPTS[which])))
    if which == "groot":
        block = model.transformer
        pairs = {
            "q": (seen["h0"], block.attn.q.weight.T),
            "k": (seen["h0"], block.attn.k.weight.T),
            "v": (seen["h0"], block.attn.v.weight.T),
            "scores": (seen["q"], seen["k"].T),
            "context": (seen["attention"], seen["v"]),
            "ffn_hidden": (seen["n1"], block.ffn[0].weight.T),
            "ffn_out": (seen["ffn_activation"], block.ffn[2].weight.T),
            "logits": (seen["h_out"], model.head.weight.T),
        }
        return pairs[product]
    at, block, shared = f"layers.{layer}.", model.layers[layer], head // 2
    x, y = seen[f"{at}attention_norm"], seen[f"{at}ffn_norm"]
    attention, ffn = block.attention, block.feed_forward
    pairs = {
        "q": (x, attention.wq.weight.T),
        "k": (x, attention.wk.weight.T),
        "v": (x, attention.wv.weight.T),
        "scores": (seen[f"{at}q_rotated"][head], seen[f"{at}k_rotated"][shared].T),
        "context": (seen[f"{at}attention"][head], seen[f"{at}v"][shared]),
        "attention_out": (seen[f"{at}context"], attention.wo.weight.T),
        "ffn_gate": (y, ffn.w_gate.weight.T),
        "ffn_up": (y, ffn.w_up.weight.T),
        "ffn_out": (seen[f"{at}ffn_hidden"], ffn.w_down.weight.T),
        "logits": (seen["h_out"], model.output.weight.T),
    }
    return pairs[product]


CASES = [
    *(
        ("groot", product, 0, 0)
        for product in "q k v scores context ffn_hidden ffn_out logits".split()
    ),
    *(
        ("tiny", product, 1, 3)
        for product in "q k v scores context attention_out ffn_gate ffn_up ffn_out logits".split()
    ),
    ("tiny", "scores", 0, 1),
]


# Against PyTorch ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("which", "product", "layer", "head"), CASES)
def test_factors_and_product_are_those_of_pytorch(matmul, models, which, product, layer, head):
    part = matmul(
        which=which, product=product, prompt=PROMPTS[which], layer=layer, head=head, terms=999
    )
    left, right = (x.detach() for x in factors(models, which, product, layer, head))
    for place, wanted in (("left", left), ("right", right), ("result", left @ right)):
        shown = torch.tensor(numbers(part.locator(f".gfx-mm-{place} table")), dtype=torch.float64)
        assert shown.shape == wanted.shape
        torch.testing.assert_close(shown, wanted, atol=0.0051, rtol=0)
    part.get_by_text("As a table").click()
    table = part.locator(".gfx-twin table").nth(1)
    expect(table).to_be_visible()
    full = [[to_number(text) for text in row] for row in texts(table.locator("tbody tr"))]
    torch.testing.assert_close(
        torch.tensor(full, dtype=torch.float64), left @ right, atol=1e-9, rtol=1e-9
    )


@pytest.mark.parametrize("over", SITES)
def test_the_sum_builds_term_by_term(matmul, models, over):
    """The cell of the chapter: the logit of on at the position of sat."""
    part = matmul(over)
    part.get_by_role("button", name="hidden × head").click()
    expect(part.get_by_label("Prompt", exact=True)).to_have_value(PROMPTS["tiny"])
    left, right = (x.detach() for x in factors(models, "tiny", "logits"))
    on = models["tiny"][1].encode("on")[0]
    terms = left[2] * right[:, on]
    sums = terms.cumsum(0)
    part.get_by_role("button", name="None").click()
    expect(part.get_by_text("No term is added yet.")).to_be_visible()
    cell = part.locator('.gfx-mm-result [aria-selected="true"]')
    expect(cell).to_have_text("0.00")
    for n in range(1, 33):
        part.get_by_role("button", name="+ 1 term").click()
        row = part.get_by_role("grid", name="Terms added").locator("tbody tr").last
        shown = [to_number(text) for text in row.locator("th, td").all_inner_texts()]
        wanted = [n - 1, left[2, n - 1], right[n - 1, on], terms[n - 1], sums[n - 1]]
        assert shown == pytest.approx([float(x) for x in wanted], abs=6e-5)
        assert to_number(cell.inner_text()) == pytest.approx(sums[n - 1].item(), abs=6e-3)
        value = part.locator(".gfx-formula .gfx-value").inner_text()
        assert to_number(value) == pytest.approx(sums[n - 1].item(), abs=6e-7)
    expect(part.get_by_role("button", name="+ 1 term")).to_be_disabled()
    seen = trace(models["tiny"][0], torch.tensor(models["tiny"][1].encode(PROMPTS["tiny"])))
    share = f"{100 * seen['probabilities'][2, on]:.1f}"
    expect(part.locator(".gfx-mm-then")).to_contain_text(f"32 of 32 terms: {sums[-1]:.4f}")
    expect(part.locator(".gfx-mm-then")).to_contain_text(f"softmax → {share}")
    expect(part.locator(".gfx-sentence")).to_contain_text(
        "Row sat of H_out meets column on of W_head"
    )


def test_scores_go_on_to_causal_softmax(matmul, models):
    part = matmul()
    model, vocabulary = models["groot"]
    seen = trace(model, torch.tensor(vocabulary.encode(PROMPTS["groot"])))
    part.get_by_role("button", name="All").click()
    told = part.locator(".gfx-mm-then").inner_text().replace("−", "-")
    found = [float(n) for n in re.findall(r"(?:terms:|→) (-?[\d.]+)", told)]
    wanted = (
        seen["q"][2] @ seen["k"][1],
        seen["scores"][2, 1],
        seen["masked_scores"][2, 1],
        100 * seen["attention"][2, 1],
    )
    assert found[:3] == pytest.approx([float(x) for x in wanted[:3]], abs=6e-5)
    assert found[3] == pytest.approx(float(wanted[3]), abs=0.06)
    for name in ("scores", "masked_scores", "attention"):
        shown = numbers(part.get_by_role("grid", name=f"{name} [4, 4]", exact=True))
        torch.testing.assert_close(
            torch.tensor(shown, dtype=torch.float64), seen[name], atol=0.0051, rtol=0
        )


def test_bias_is_added_after_the_sum(matmul, models):
    part = matmul(which="groot", product="q", terms=99, row=3, column=7)
    model, vocabulary = models["groot"]
    seen = trace(model, torch.tensor(vocabulary.encode(PROMPTS["groot"])))
    told = part.locator(".gfx-mm-then")
    expect(told).to_contain_text("b_Q")
    told.locator(".gfx-number").last.hover()
    value = part.locator(".gfx-formula .gfx-value").inner_text()
    assert to_number(value) == pytest.approx(seen["q"][3, 7].item(), abs=6e-7)
    expect(part.locator(".gfx-formula")).to_contain_text("q[3,7]")


# As a reader ---------------------------------------------------------------------------------


def test_row_and_column_of_a_cell_light_up(matmul):
    part = matmul()
    part.locator(".gfx-mm-result tbody tr").nth(3).locator("td").nth(0).click()
    assert (
        part.locator(".gfx-mm-left .gfx-lit").count()
        == part.locator(".gfx-mm-right .gfx-lit").count()
        == 8
    )
    assert part.locator(".gfx-mm-left tbody tr").nth(3).locator(".gfx-lit").count() == 8
    lit = part.locator(".gfx-mm-right tbody tr td:nth-child(2)")
    assert all("gfx-lit" in name for name in [cell.get_attribute("class") for cell in lit.all()])
    expect(part.locator(".gfx-sentence")).to_contain_text(
        "Row groot of Q meets column <START> of K"
    )
    part.locator(".gfx-mm-left td[data-n]").nth(9).hover()
    expect(part.locator(".gfx-formula")).to_contain_text("q[1,1]")
    expect(part.locator(".gfx-sentence")).to_contain_text("Row groot")  # pointing chooses nothing


def test_by_keyboard_alone(matmul):
    part = matmul()
    keyboard = part.page.keyboard
    part.get_by_role("slider", name="terms added").focus()
    keyboard.press("ArrowRight")
    expect(part.get_by_text("4 of 8", exact=True)).to_be_visible()
    keyboard.press("End")
    expect(part.get_by_text("8 of 8", exact=True)).to_be_visible()
    part.locator('.gfx-mm-result [aria-selected="true"]').focus()
    keyboard.press("ArrowDown")
    keyboard.press("ArrowRight")
    expect(part.locator(".gfx-sentence")).to_contain_text("Row groot of Q meets column am of K")
    keyboard.press("ArrowRight")
    expect(part.locator('.gfx-mm-result [aria-selected="true"]')).to_be_focused()
    expect(part.locator(".gfx-sentence")).to_contain_text("Row groot of Q meets column groot of K")


def test_each_model_reads_its_own_words(matmul):
    part = matmul()
    part.get_by_label("Prompt", exact=True).fill("the cat")
    expect(part.get_by_role("alert")).to_contain_text("'the' is not in the vocabulary")
    expect(part.locator(".gfx-mm-left tbody tr")).to_have_count(4)  # nothing else changed
    part.get_by_role("radio", name="LLaMA-style").check()
    expect(part.locator(".gfx-mm-left tbody tr")).to_have_count(6)
    part.get_by_role("radio", name="3", exact=True).check()
    part.get_by_label("Product", exact=True).select_option(label="x W_gateᵀ")
    expect(part.locator(".gfx-mm-right")).to_contain_text(
        "layers.0.feed_forward.w_gate.weight [32, 64]"
    )
    part.get_by_role("radio", name="BabyGroot").check()  # which has no gate
    expect(part.get_by_label("Prompt", exact=True)).to_have_value(PROMPTS["groot"])
    expect(part.get_by_label("Product", exact=True)).to_have_value("scores")


def test_a_view_can_be_linked_and_comes_back(matmul):
    part = matmul()
    part.get_by_role("button", name="x W_Qᵀ, LLaMA-style").click()
    part.get_by_role("slider", name="terms added").fill("20")
    expect(part.page).to_have_url(re.compile("terms=20"))
    before = part.locator(".gfx-sentence").inner_text()
    part.page.reload()
    expect(part.locator(".gfx-sentence")).to_have_text(before)
    part.get_by_role("button", name="Reset").click()
    expect(part.get_by_text("3 of 8", exact=True)).to_be_visible()


def test_by_touch(browser, http_site):
    context = browser.new_context(
        viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True
    )
    page = context.new_page()
    page.goto(f"{http_site}/{PAGE}#{ID}")
    part = page.locator(f"#{ID}")
    part.get_by_role("button", name="+ 1 term").tap()
    expect(part.get_by_text("4 of 8", exact=True)).to_be_visible()
    part.locator(".gfx-mm-result td[data-n]").nth(12).tap()
    expect(part.locator(".gfx-sentence")).to_contain_text("Row groot of Q meets column <START>")
    part.locator(".gfx-mm-right td[data-n]").nth(5).tap()
    expect(part.locator(".gfx-formula")).to_contain_text("k[1,1]")
    context.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("product", ["scores", "ffn_gate", "logits"])
def test_on_a_phone_nothing_sticks_out_and_axe_finds_nothing(matmul, theme, product):
    part = matmul(
        theme=theme,
        width=360,
        which="tiny",
        product=product,
        prompt=PROMPTS["tiny"],
        terms=30,
        column=60,
    )
    part.get_by_text("As a table").click()
    no_sideways_scroll(part.page)
    assert axe(part.page, f"#{ID}") == []
