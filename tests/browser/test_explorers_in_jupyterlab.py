"""The explorers in a real JupyterLab: moved by Python, moving Python, showing your own model."""

from __future__ import annotations

import pytest
import torch
from browsing import axe
from instrument import matrix
from playwright.sync_api import expect

from glassformer.explorers import EXPLORERS

IMPORTS = "import torch\nfrom glassformer import explorers"

# For each explorer: a trait set in Python, and what its sentence then says.
SET = {
    "tokens": ("sentence = 'groot likes rocket'", "groot likes rocket"),
    "training": ("epoch = 3", "After 3 epochs"),
    "embedding": ("token = 'groot'", "groot"),
    "attention": ("query = 1", "i, at position 1, gives"),
    "block": ("position = 0", "<START>"),
    "sampling": ("prompt = '<START> we'", "After “<START> we”"),
    "everything": ("prompt = '<START> groot'", "groot"),
    "modern": ("rmsnorm = True", "with RMSNorm BabyGroot would have"),
    "rope": ("query_at = 9", "at position 9 meets"),
    "matmul": ("row = 0", "<START>"),
    "kv-cache": ("step = 2", "Both lanes wrote “on the”"),
    "designer": ("n_layers = 3", "parameters"),
    "reader": ("prompt = 'Call me'", "After “␣me”"),
}


def test_every_explorer_is_set_here():
    assert set(SET) == set(EXPLORERS)


@pytest.mark.parametrize("name", EXPLORERS)
def test_a_trait_set_in_python_changes_the_view(notebook, name):
    kind = EXPLORERS[name].__name__
    area, _ = notebook.run(f"{IMPORTS}\nshown = explorers.{kind}()\nshown")
    sentence = area.locator(".gfx-sentence")
    expect(sentence).not_to_be_empty()
    before = sentence.inner_text()
    change, says = SET[name]
    notebook.run(f"shown.{change}")
    expect(sentence).to_contain_text(says)
    expect(sentence).not_to_have_text(before)


def test_an_input_in_the_view_changes_the_trait(notebook):
    area, _ = notebook.run(f"{IMPORTS}\nshown = explorers.Attention()\nshown")
    area.get_by_label("Prompt", exact=True).fill("<START> groot likes")
    area.get_by_label("causal mask").uncheck()
    area.get_by_role("radio", name="A V", exact=True).check()
    area.get_by_role("button", name="groot 8").click()
    notebook.page.wait_for_timeout(500)
    told = notebook.run("print(shown.prompt, shown.mask, shown.step, shown.query, sep='|')")[1]
    assert told == "<START> groot likes|False|context|1\n"
    area.get_by_role("button", name="Reset", exact=True).click()
    notebook.page.wait_for_timeout(500)
    told = notebook.run("print(shown.prompt, shown.mask, shown.step, shown.query, sep='|')")[1]
    assert told == "<START> i am groot|True|attention|2\n"


def test_a_slider_in_the_view_changes_the_trait(notebook):
    area, _ = notebook.run(f"{IMPORTS}\nshown = explorers.Rope()\nshown")
    area.get_by_label("query stands at").fill("11")
    notebook.page.wait_for_timeout(500)
    assert notebook.run("print(shown.query_at)")[1] == "11\n"


def test_the_readers_own_retrained_model_shows_its_own_numbers(notebook):
    area, _ = notebook.run(
        f"""{IMPORTS}
from glassformer.data import groot_vocabulary
from glassformer.trace import trace
from glassformer.training import train_baby_groot
mine, _ = train_baby_groot(epochs=3)
shown = explorers.Attention(model=mine)
shown"""
    )
    report = """seen = trace(mine, torch.tensor(groot_vocabulary().encode(shown.prompt)))
print(*seen["attention"].flatten().tolist())"""
    wanted = torch.tensor([float(x) for x in notebook.run(report)[1].split()]).double()
    expect(area.locator(".gfx-sentence")).not_to_be_empty()
    torch.testing.assert_close(matrix(area, "attention").flatten(), wanted, atol=0.0051, rtol=0)
    notebook.run("mine, _ = train_baby_groot(epochs=1)\nshown.model = mine")
    again = torch.tensor([float(x) for x in notebook.run(report)[1].split()]).double()
    assert (again - wanted).abs().max() > 0.02
    first = area.get_by_role("grid", name="attention").locator("td[data-n='4']")
    expect(first).to_have_text(f"{again[4]:.2f}")
    torch.testing.assert_close(matrix(area, "attention").flatten(), again, atol=0.0051, rtol=0)


def test_a_wrong_word_from_python_is_one_sentence_and_the_view_stays(notebook):
    area, _ = notebook.run(f"{IMPORTS}\nshown = explorers.Attention()\nshown")
    before = area.locator(".gfx-sentence").inner_text()
    with pytest.raises(AssertionError, match="TraitError.*'zebra' is not in the vocabulary"):
        notebook.run("shown.prompt = 'i zebra'")
    assert area.locator(".gfx-sentence").inner_text() == before


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_follows_jupyterlabs_theme_and_is_accessible(notebook, theme):
    notebook.theme(theme)
    area, _ = notebook.run(f"{IMPORTS}\nexplorers.Attention()")
    frame = area.locator(".gfx").first
    expect(frame).to_be_visible()
    ground = frame.evaluate("(e) => getComputedStyle(e).backgroundColor")
    assert ground == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 24, 30)"}[theme]
    assert axe(notebook.page, ".gfx") == []
