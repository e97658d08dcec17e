"""The explorer of chapter 1: a sentence, its examples, and what the corpus knows of them."""

from __future__ import annotations

import math

import pytest
import torch
from browsing import axe, no_sideways_scroll
from instrument import (
    SITES,
    cell,
    cells,
    copied,
    formula,
    matrix,
    opener,
    query,
    sentence,
    texts,
    to_number,
    told,
    twin,
)
from playwright.sync_api import expect

from glassformer.data import (
    GROOT_SENTENCES,
    entropy_floor,
    groot_vocabulary,
    next_token_counts,
    prefix_pairs,
)

VOCABULARY = groot_vocabulary()
X, Y = prefix_pairs(GROOT_SENTENCES, VOCABULARY)
COUNTS, FLOOR = next_token_counts(X, Y), entropy_floor(X, Y)
KNOWS = "What the corpus knows of each context"


@pytest.fixture
def tokens(request, visit):
    return opener(request, visit, "book/01_data.html", "tokens")


def write(part, text: str) -> None:
    part.get_by_label("A sentence", exact=True).fill(text)
    expect(sentence(part)).to_contain_text(f"“{text}”")


def entropy(followers) -> float:
    total = followers.total()
    return -sum(n / total * math.log(n / total) for n in followers.values())


@pytest.mark.parametrize("over", SITES)
def test_every_sentence_of_the_corpus_becomes_pytorchs_examples(tokens, over):
    part = tokens(over)
    for text in GROOT_SENTENCES if over == "file_site" else GROOT_SENTENCES[::6]:
        write(part, text)
        x, y = prefix_pairs([text], VOCABULARY)
        assert torch.equal(matrix(part, "contexts").long(), x)
        assert torch.equal(matrix(part, "targets").long()[:, 0], y)
        shown = [text.split("\n") for text in part.locator(".gfx-token").all_inner_texts()]
        ids = VOCABULARY.encode(f"<START> {text} <END>")
        assert shown == [[VOCABULARY.words[i], str(i)] for i in ids]
        *rows, whole = cells(part, KNOWS)
        for context, target, row in zip(x.tolist(), y.tolist(), rows, strict=True):
            followers = COUNTS[tuple(context)]
            n, f = followers.total(), followers[target]
            adds = n * entropy(followers) / len(X)
            want = [-math.log(f / n), entropy(followers), adds]
            assert row == [str(n), str(f), *(f"{number + 0:.4f}" for number in want)]
        assert whole[2] == f"{math.log(19):.4f}"
    (made,) = copied(part, "Copy contexts as Python").values()
    assert torch.equal(made.long(), x)


def test_what_follows_and_the_share_of_the_floor(tokens):
    part = tokens(sentence="groot likes leaf", example=1)
    bars = part.get_by_role("list", name="What follows <START> groot in the corpus")
    words = [label for (label,) in texts(bars.get_by_role("listitem"), ".gfx-bar-label")]
    assert words == ["is", "likes", "helps"]
    assert bars.locator(".gfx-number").all_inner_texts() == [
        "42.9\u202f%",
        "42.9\u202f%",
        "14.3\u202f%",
    ]
    assert bars.locator(".gfx-chosen").inner_text().startswith("likes")
    own = [tuple(c) for c in prefix_pairs(["groot likes leaf"], VOCABULARY)[0].tolist()]
    adds = sum(COUNTS[c].total() * entropy(COUNTS[c]) / len(X) for c in own)
    assert f"leaves 3 of them open: that adds {adds:.4f} to the floor of {FLOOR:.4f}" in told(part)
    floor = part.get_by_role("list", name="What each open context adds to the floor")
    lines = [label for (label,) in texts(floor.get_by_role("listitem"), ".gfx-bar-label")]
    assert lines == ["✓ <START>", "✓ groot", "groot is", "✓ groot likes", "tree"]
    shares = [to_number(text) for text in floor.locator(".gfx-number").all_inner_texts()]
    assert abs(sum(shares) - 1) < 0.0026
    part.get_by_label("<START> groot likes", exact=True).check()
    expect(part.get_by_role("list", name="What follows <START> groot likes")).to_be_visible()
    assert "example=2" in query(part.page)


def test_numbers_are_explained_down_to_counts(tokens):
    part = tokens(sentence="groot likes leaf", example=1)
    c = COUNTS[(1, 8, 0, 0)]
    key, value, line = formula(part)
    assert key.startswith("adds[") and abs(value - 7 * entropy(c) / 76) < 1e-6
    assert "7 · 1.004 / 76" in line.replace("\n", " ").replace("  ", " ")
    operands = part.locator(".gfx-formula-filled .gfx-ref")
    operands.nth(1).click()
    key, value, _ = formula(part)
    assert key.startswith("entropy[") and abs(value - entropy(c)) < 1e-6
    assert operands.all_inner_texts() == [
        "3",
        "7",
        "3",
        "7",
        "3",
        "7",
        "3",
        "7",
        "1",
        "7",
        "1",
        "7",
    ]
    operands.nth(0).click()
    assert "is follows “<START> groot”" in formula(part)[2]
    cell(part, KNOWS, 4, 2).hover()
    key, value, line = formula(part)
    assert (key, round(value, 4)) == ("sentence_loss", 2.9444) and "ln 19" in line
    cell(part, "contexts", 1, 1).hover()
    assert formula(part)[:2] == ("contexts[1,1]", 8) and "groot" in formula(part)[2]
    cell(part, "contexts", 1, 2).focus()
    assert "padding" in formula(part)[2]
    part.get_by_role("list", name="What each open").locator(".gfx-number").first.focus()
    operands.nth(1).click()
    key, value, line = formula(part)
    assert key == "floor" and abs(value - FLOOR) < 1e-6 and "42 contexts" in line


def test_what_the_corpus_has_not(tokens):
    part = tokens(sentence="happy i am", example=2)
    assert [row[:3] for row in cells(part, KNOWS)[:4]] == [
        ["19", "1", f"{math.log(19):.4f}"], ["1", "0", "∞"], ["0", "0", "∞"], ["0", "0", "∞"],
    ]  # fmt: skip
    assert "No sentence of the corpus begins with “<START> happy i”" in part.inner_text()
    assert formula(part)[1] == 0 and "no such context" in formula(part)[2]
    part.get_by_label("<START> happy", exact=True).check()
    expect(part.locator(".gfx-body")).to_contain_text("i never follows here.")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "i am root",
            "The word 'root' is not in the vocabulary; the nearest known: groot, rocket.",
        ),
        ("i am groot i", "'i am groot i' needs contexts of 5 tokens, but max_len is 4."),
        ("i <PAD> am", "whose id 0 is what pads contexts"),
        ("<b>i</b> 🌳", "The word '<b>i</b>' is not in the vocabulary"),
        ("أنا غروت", "is not in the vocabulary"),
    ],
)
def test_a_sentence_that_cannot_be_read_is_explained_and_nothing_else_changes(
    tokens, text, problem
):
    part = tokens()
    before = matrix(part, "contexts"), told(part), cells(part, KNOWS)
    part.get_by_label("A sentence", exact=True).fill(text)
    expect(part.locator(".gfx-error")).to_contain_text(problem)
    assert torch.equal(matrix(part, "contexts"), before[0])
    assert (told(part), cells(part, KNOWS)) == before[1:]
    write(part, "groot is sad")
    expect(part.locator(".gfx-error")).to_be_empty()


def test_short_sentences_and_the_tables(tokens):
    part = tokens()
    for text, examples in (("", 1), ("groot", 2), ("you are", 3)):
        part.get_by_label("A sentence", exact=True).fill(text)
        expect(sentence(part)).to_contain_text(f"“{text}” gives {examples} examples")
        tables = twin(part)
        assert len(tables["Examples"]) == examples
        ids = VOCABULARY.encode(f"<START> {text} <END>")
        assert tables["Tokens"] == [[VOCABULARY.words[i], str(i)] for i in ids]
    floor = next(rows for caption, rows in tables.items() if caption.startswith("The floor"))
    assert abs(sum(to_number(row[3]) for row in floor) - FLOOR) < 3e-4


def test_keyboard_alone(tokens):
    part = tokens()
    page = part.page
    part.get_by_label("A sentence", exact=True).focus()
    page.keyboard.press("Control+A")
    page.keyboard.type("tree needs water")
    expect(sentence(part)).to_contain_text("“tree needs water”")
    part.get_by_label("<START>", exact=True).focus()
    page.keyboard.press("ArrowRight")
    expect(part.get_by_role("list", name="What follows <START> tree in the corpus")).to_be_visible()
    cell(part, "contexts", 0, 0).focus()
    for key in ("ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    assert formula(part)[:2] == ("contexts[1,1]", 20)
    part.get_by_role("button", name="Reset").focus()
    page.keyboard.press("Enter")
    expect(sentence(part)).to_contain_text("“i am groot”")


@pytest.mark.parametrize(
    ("theme", "width"), [("light", 1440), ("dark", 1440), ("light", 360), ("dark", 360)]
)
def test_everyone_can_read_it(tokens, theme, width):
    part = tokens(theme=theme, width=width, sentence="groot likes leaf", example=1)
    assert axe(part.page, "#explorer-tokens") == []
    no_sideways_scroll(part.page)


def test_on_a_phone_bars_keep_to_their_rows(tokens):
    part = tokens(width=360)
    sticking_out = """(bars) => bars.filter((bar) =>
      bar.lastElementChild.getBoundingClientRect().right > bar.getBoundingClientRect().right)"""
    assert part.locator(".gfx-bar").evaluate_all(sticking_out) == []
