"""The explorer of chapter 8: two lanes, with a cache and without, against PyTorch."""

from __future__ import annotations

import re
from contextlib import ExitStack
from unittest.mock import patch

import pytest
import torch
from browsing import axe, no_sideways_scroll
from instrument import SITES, opener, texts, to_number
from playwright.sync_api import Page, expect

from glassformer.checkpoints import load_tiny
from glassformer.data import cat_vocabulary
from glassformer.generation import generate
from glassformer.models import KVCache, Transformer
from glassformer.trace import trace

PAGE = "book/08_kv_cache.html"
ID = "explorer-kv-cache"
SENTENCE = "the cat sat on the mat"
VOCABULARY = cat_vocabulary()


@pytest.fixture
def lanes(request, visit):
    """Return a function that opens the explorer in a state and returns its part of the page."""
    return opener(request, visit, PAGE, "kv-cache")


@pytest.fixture(scope="module")
def tiny():
    """Return the trained model in float64, as the explorer computes."""
    return load_tiny().double()


def encode(text: str) -> torch.Tensor:
    return torch.tensor(VOCABULARY.encode(text))


def words(lane) -> list[str]:
    """Return the words of a lane's text, without what is said of each."""
    told = lane.locator(".gfx-kv-token").all_inner_texts()
    return [text.split("\n")[0].strip() for text in told]


def said(lane) -> list[str]:
    """Return what is said of each token of a lane: read, kept, written or waits."""
    return [text.split()[-1] for text in lane.locator(".gfx-kv-token").all_inner_texts()]


def figures(part, label: str) -> list[list[str]]:
    """Return the texts of a table of figures, row by row."""
    return texts(part.get_by_role("grid", name=label).locator("tbody tr"), "th, td")


def twin(part, caption: str) -> list[list[str]]:
    """Return the rows of one of the tables behind "As a table"."""
    if part.locator(".gfx-twin[open]").count() == 0:
        part.get_by_text("As a table").click()
    table = part.locator(".gfx-twin table", has=part.page.get_by_text(caption, exact=True))
    expect(table).to_be_visible()
    return texts(table.locator("tbody tr"), "th, td")


def choose(part, fault: str) -> None:
    part.get_by_role("radio", name=fault, exact=True).check()


def step_to(part, n: int) -> None:
    part.get_by_label("step", exact=True).fill(str(n))


# Against PyTorch ---------------------------------------------------------------------------------


@pytest.mark.parametrize("over", SITES)
def test_both_lanes_write_step_by_step_what_pytorch_writes(lanes, tiny, over):
    part = lanes(over, prompt="the dog", new_tokens=8)
    recompute, cache = (
        part.get_by_role("group", name=lane, exact=True) for lane in ("Recompute", "Cache")
    )
    written = VOCABULARY.decode(generate(tiny, encode("the dog"), 8).tolist()).split()
    sums = [0, 0]
    for step in range(1, 9):
        part.get_by_role("button", name="Step", exact=True).click()
        length = 1 + step  # tokens that the last pass knows
        assert words(recompute) == words(cache) == written[: length + 1]
        assert said(recompute) == ["read"] * length + ["written"]
        read = 2 if step == 1 else 1
        assert said(cache) == ["kept"] * (length - read) + ["read"] * read + ["written"]
        once = tiny.config.multiplications(length), tiny.config.multiplications(read, length - read)
        sums = [a + b for a, b in zip(sums, once, strict=True)]
        assert figures(part, "What both lanes computed") == [
            ["tokens read in this step", str(length), str(read)],
            ["multiplications in this step", *(f"{n:,}" for n in once)],
            ["multiplications so far", *(f"{n:,}" for n in sums)],
        ]
        held = tiny.config.kv_cache_values(length)
        expect(part.get_by_text("The cache holds")).to_contain_text(
            re.compile(
                rf"holds {length} of 16 tokens: {held:,} numbers, {4 * held:,} of 4,096 bytes"
            )
        )
    expect(part.get_by_role("button", name="Step", exact=True)).to_be_disabled()
    assert f"{sums[0] / sums[1]:.1f} times" in part.inner_text()
    expect(part.locator(".gfx-sentence")).to_contain_text("their logits agree to rounding")


@pytest.mark.parametrize("over", SITES)
@pytest.mark.parametrize("chunk", [0, 1, 4])
def test_logits_and_probabilities_of_both_lanes(lanes, tiny, over, chunk):
    part = lanes(over, prompt=SENTENCE, new_tokens=11, step=99, chunk=chunk)
    text = generate(tiny, encode(SENTENCE), 11)[:-1]  # 16 tokens: the window is full
    seen = trace(tiny, text)
    for lane in ("recompute", "cache"):
        shown = twin(part, f"Logits, {lane}")
        assert len(shown) == 16
        for line, logits in zip(shown, seen["logits"], strict=True):
            assert [to_number(cell) for cell in line[1:]] == pytest.approx(
                logits.tolist(), abs=6e-5
            )
    best, place = seen["probabilities"].max(-1)
    for t, (head, *cells) in enumerate(figures(part, "What both lanes say")):
        assert head == f"{t} {VOCABULARY.words[text[t]]}"
        said = f"{VOCABULARY.words[place[t]]} {100 * best[t]:.1f}"
        assert [cell.split("\u202f")[0] for cell in cells] == [said, said, "0.00"]


def turns_from_zero(model, cache, like, right=Transformer.rotary):
    return right(model, like).roll(cache.length, dims=0)


def faulty_logits(model, ids, pieces: list[int], fault: str) -> torch.Tensor:
    """Return logits read through a cache in pieces, with a fault put into the model."""
    cache, future = KVCache(model.config, dtype=torch.float64), Transformer.future
    masks = {
        "first rows": lambda T, start, device=None: future(start + T, 0)[:T],
        "no mask": lambda T, start, device=None: torch.zeros(T, start + T, dtype=torch.bool),
    }
    with ExitStack() as stack, torch.no_grad():
        if fault == "position 0":
            turns = lambda self, like: turns_from_zero(self, cache, like)  # noqa: E731
            stack.enter_context(patch.object(Transformer, "rotary", turns))
        else:
            stack.enter_context(patch.object(Transformer, "future", staticmethod(masks[fault])))
        return torch.cat([model(piece[None], cache)[0] for piece in ids.split(pieces)])


@pytest.mark.parametrize("fault", ["position 0", "first rows", "no mask"])
@pytest.mark.parametrize(("chunk", "pieces"), [(0, [6]), (3, [3, 3]), (4, [4, 2])])
def test_faults_throw_the_logits_as_far_as_in_pytorch(lanes, tiny, fault, chunk, pieces):
    part = lanes(prompt=SENTENCE, new_tokens=1, step=99, chunk=chunk)
    part.get_by_label("prompt in pieces of").fill(str(chunk))
    choose(part, {"first rows": "first rows of the mask"}.get(fault, fault))
    wrong, right = (
        faulty_logits(tiny, encode(SENTENCE), pieces, fault),
        trace(tiny, encode(SENTENCE))["logits"],
    )
    off = (wrong - right).abs().amax(-1)
    shown = [row[-1] for row in figures(part, "What both lanes say")]
    assert shown == [f"{distance:.2f}" for distance in off]
    caption = f"Distance of the logits after step {len(pieces)} of {len(pieces)}"
    full = [to_number(row[1]) for row in twin(part, caption)]
    assert full == pytest.approx(off.tolist(), abs=1e-10)
    for line, logits in zip(twin(part, "Logits, cache"), wrong, strict=True):
        assert [to_number(cell) for cell in line[1:]] == pytest.approx(logits.tolist(), abs=6e-5)
    if off.max() > 1e-9:
        first = (off > 1e-9).int().argmax().item()
        told = part.get_by_text(
            f"They first differ after {SENTENCE.split()[first]}, position {first}"
        )
        expect(told).to_be_visible()
        expect(part.locator(".gfx-sentence")).to_contain_text(f"from position {first} on")
    else:
        expect(part.get_by_text("They first differ")).to_have_count(0)


def test_a_fault_that_changes_the_text_is_marked_where_the_texts_part(lanes, tiny):
    part = lanes(prompt=SENTENCE, new_tokens=3, step=99, chunk=3, fault="first rows")
    recompute, cache = (
        part.get_by_role("group", name=lane, exact=True) for lane in ("Recompute", "Cache")
    )
    assert (
        words(recompute) == VOCABULARY.decode(generate(tiny, encode(SENTENCE), 3).tolist()).split()
    )
    pairs = zip(words(recompute), words(cache), strict=True)
    first = next(n for n, (again, kept) in enumerate(pairs) if again != kept)
    marked = ["≠" in text for text in cache.locator(".gfx-kv-token").all_inner_texts()]
    assert marked == [n >= first for n in range(9)]
    assert "≠" not in recompute.inner_text()


def test_a_place_of_the_cache_shows_its_numbers_and_where_they_come_from(lanes, tiny):
    part = lanes(prompt=SENTENCE, new_tokens=4, step=99, chunk=4)
    text = generate(tiny, encode(SENTENCE), 4)[:-1]
    cache = KVCache(tiny.config, dtype=torch.float64)
    trace(tiny, text, cache)
    places = part.get_by_role("grid", name="Places of the cache")
    for row, line in enumerate(places.locator("tbody tr").all()):
        layer, head, kind = row // 4, row % 2, ("keys", "values")[row // 2 % 2]
        line.locator("td").nth(7).click()
        numbers = getattr(cache, kind)[layer, 0, head, 7].tolist()
        cells = part.locator(".gfx-kv-slot td[data-n]")
        assert [to_number(cell) for cell in cells.all_inner_texts()] == pytest.approx(
            numbers, abs=6e-3
        )
        cells.nth(2).click()
        value = part.locator(".gfx-formula .gfx-value").inner_text()
        assert to_number(value) == pytest.approx(numbers[2], abs=6e-7)
    expect(part.locator(".gfx-formula")).to_contain_text("layers.1.v[1,7,2]")
    part.locator(".gfx-formula .gfx-ref").first.click()  # on to what it was made of
    expect(part.locator(".gfx-formula")).to_contain_text("layers.1.attention_norm[7,0]")
    line.locator("td").nth(12).click()
    expect(part.locator(".gfx-kv-slot")).to_contain_text("position 12: empty")


# As a reader ---------------------------------------------------------------------------------


def test_time_is_measured_when_asked_for(lanes):
    part = lanes()
    expect(part.locator(".gfx-kv-time p")).to_have_count(0)
    part.get_by_role("button", name="Measure the time on your machine").click()
    told = part.locator(".gfx-kv-time p")
    expect(told).to_contain_text(
        re.compile(r"take [\d.]+ ms recomputed and [\d.]+ ms with the cache")
    )
    assert all(float(n) > 0 for n in re.findall(r"([\d.]+) ms", told.inner_text()))
    part.get_by_label("tokens to write").fill("3")  # another text, another time
    expect(told).to_have_count(0)


def test_play_goes_to_the_end_by_itself_and_stops(lanes):
    part = lanes(new_tokens=2)
    part.page.emulate_media(reduced_motion="no-preference")
    part.get_by_role("button", name="Play to the end").click()
    expect(part.get_by_role("button", name="Pause")).to_be_visible()
    expect(part.get_by_text("2 of 2")).to_be_visible()
    expect(part.get_by_role("button", name="Play to the end")).to_be_disabled()
    part.get_by_role("button", name="Start").click()
    part.page.wait_for_timeout(700)  # nothing moves any more
    expect(part.get_by_text("0 of 2")).to_be_visible()
    part.page.emulate_media(reduced_motion="reduce")
    part.get_by_role("button", name="Play to the end").click()
    expect(part.get_by_text("2 of 2")).to_be_visible()


def test_by_keyboard_alone(lanes, tiny):
    part = lanes()
    page: Page = part.page
    part.get_by_label("Prompt", exact=True).focus()
    page.keyboard.press("Control+A")
    page.keyboard.type("the dog ran")
    part.get_by_role("button", name="Step", exact=True).focus()
    page.keyboard.press("Enter")
    for _ in range(2):  # over Play, to the slider
        page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    expect(part.get_by_text("5 of 6")).to_be_visible()
    written = VOCABULARY.decode(generate(tiny, encode("the dog ran"), 5).tolist()).split()
    assert words(part.get_by_role("group", name="Cache", exact=True)) == written
    page.keyboard.press("Tab")  # the table of counts: one stop, then arrow keys
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    expect(part.locator(".gfx-formula")).to_contain_text("cache: pass")
    page.keyboard.press("ArrowDown")
    expect(part.locator(".gfx-formula")).to_contain_text("cache: all passes")


def test_an_unknown_word_is_named_and_nothing_else_changes(lanes):
    part = lanes(step=3)
    before = part.get_by_role("group", name="Cache", exact=True).inner_text()
    part.get_by_label("Prompt", exact=True).fill("the cow sat")
    expect(part.get_by_role("alert")).to_contain_text("'cow' is not in the vocabulary")
    assert part.get_by_role("group", name="Cache", exact=True).inner_text() == before
    part.get_by_label("Prompt", exact=True).fill("the mat " * 9)
    expect(part.get_by_role("alert")).to_contain_text("18 tokens do not fit")
    part.get_by_role("button", name="Reset").click()
    expect(part.get_by_label("Prompt", exact=True)).to_have_value("the cat sat")


def test_a_view_can_be_linked_and_comes_back(lanes):
    part = lanes(prompt="mat mat", new_tokens=4)
    choose(part, "no mask")
    step_to(part, 3)
    expect(part.page).to_have_url(re.compile("step=3"))
    assert "fault=no+mask" in part.page.url
    before = part.get_by_role("group", name="Cache", exact=True).inner_text()
    part.page.reload()
    expect(part.get_by_text("3 of 4")).to_be_visible()
    assert part.get_by_role("group", name="Cache", exact=True).inner_text() == before


def test_by_touch(browser, http_site):
    context = browser.new_context(
        viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True
    )
    page = context.new_page()
    page.goto(f"{http_site}/{PAGE}#{ID}?fault=no+mask")
    part = page.locator(f"#{ID}")
    part.get_by_role("button", name="Step", exact=True).tap()
    expect(part.get_by_text("1 of 6", exact=True)).to_be_visible()
    places = part.get_by_role("grid", name="Places of the cache")
    places.locator("tbody tr").nth(6).locator("td").nth(2).tap()
    expect(part.locator(".gfx-kv-slot")).to_contain_text("Block 1, value head 0, position 2: sat")
    part.locator(".gfx-kv-slot td[data-n]").nth(3).tap()
    expect(part.locator(".gfx-formula")).to_contain_text("layers.1.v[0,2,3]")
    part.get_by_role("grid", name="What both lanes say").locator("td").nth(2).tap()
    expect(part.locator(".gfx-formula")).to_contain_text("distance[0]")
    context.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_on_a_phone_nothing_sticks_out_and_axe_finds_nothing(lanes, theme):
    part = lanes(theme=theme, width=360, prompt=SENTENCE, chunk=3, fault="no mask", step=5)
    part.get_by_role("grid", name="Places of the cache").locator("td").first.click()
    part.get_by_text("As a table").click()
    no_sideways_scroll(part.page)
    assert axe(part.page, f"#{ID}") == []
