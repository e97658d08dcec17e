"""Predictions in the page: asked, judged, kept in the browser, asked again, and listed."""

from __future__ import annotations

import json
import re
from collections import Counter

import pytest
from browsing import DESK, PHONE, THEMES, axe, look, no_sideways_scroll, watched
from playwright.sync_api import expect

from chapters import CHAPTERS, read
from glassformer.questions import QUESTION_MIME

KEY = "glassformer-predictions"


def stored(path) -> list[dict]:
    """Return the questions that a chapter stores, as its page gets them."""
    outputs = [o for cell in read(path).cells for o in cell.get("outputs", ())]
    return [o.data[QUESTION_MIME] for o in outputs if QUESTION_MIME in o.get("data", {})]


QUESTIONS = {path.stem: stored(path) for path in CHAPTERS}
ALL = {data["name"]: data for chapter in QUESTIONS.values() for data in chapter}
FIRST, SECOND = "01_data", "02_model"
ONE_OF_EACH = ["data-padding", "data-tokens", "data-first-word", "data-shapes"]


def written(data: dict, answer) -> str:
    """Return an answer as a reader gives it."""
    return str(answer) if data["kind"] in ("number", "shape") else answer


def right(name: str) -> str:
    return written(ALL[name], ALL[name]["right"])


def wrong(name: str) -> tuple[str, str]:
    """Return a likely wrong answer, and what is said to it."""
    answer, sentence = ALL[name]["likely"][0]
    return written(ALL[name], answer), sentence


def box_of(page, name: str):
    """Return the box of a question, also where it is asked again."""
    return page.locator(f".predict[data-question={name}]")


def give(box, name: str, answer: str) -> None:
    """Give an answer in a box, as its kind asks for it."""
    kind = ALL[name]["kind"]
    if kind == "choice":
        box.get_by_role("radio").nth(ALL[name]["choices"].index(answer)).check()
    elif kind == "token":
        box.get_by_role("combobox").select_option(answer)
    else:
        box.get_by_role("textbox").fill(answer)


def commit(box, name: str, answer: str) -> None:
    """Give an answer and commit to it."""
    give(box, name, answer)
    box.get_by_role("button", name="Commit to this answer").click()


def kept(page) -> dict:
    """Return what the browser keeps."""
    return page.evaluate("key => JSON.parse(localStorage.getItem(key))", KEY)


# One box ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("chapter", QUESTIONS)
def test_every_question_is_judged(visit, http_site, chapter):
    page = visit(f"{http_site}/book/{chapter}.html")
    for data in QUESTIONS[chapter]:
        name = data["name"]
        box = box_of(page, name)
        answer = box.locator("> details")
        expect(answer).to_be_hidden()
        for given, sentence in data["likely"]:
            commit(box, name, written(data, given))
            expect(box.get_by_role("status")).to_have_text(f"✗ Not quite. {sentence}")
            expect(answer).to_have_attribute("open", "")
            box.get_by_role("button", name="Answer again").click()
            expect(answer).to_be_hidden()
            expect(box.get_by_role("status")).to_be_empty()
        commit(box, name, right(name))
        expect(box.get_by_role("status")).to_have_text("✓ Right. ")
        expect(answer).to_be_visible()
        assert kept(page)[name]["last"]["right"] and not kept(page)[name]["first"]["right"]


def test_nothing_is_judged_before_there_is_an_answer(visit, http_site):
    page = visit(f"{http_site}/book/{FIRST}.html")
    for name in ONE_OF_EACH:
        box = box_of(page, name)
        unreadable = {"number": "many", "shape": "[4, four]"}.get(ALL[name]["kind"])
        if unreadable:
            give(box, name, unreadable)
        box.get_by_role("button", name="Commit to this answer").click()
        expect(box.get_by_role("status")).to_contain_text("Write a" if unreadable else "first.")
        expect(box.locator("> details")).to_be_hidden()
    assert kept(page) is None


AS_WRITTEN = [
    ("data-tokens", " 24.0 ", "Right"),
    ("data-tokens", "2.4e1", "Right"),
    ("data-tokens", "72/3", "Right"),
    ("data-tokens", "25", "Not quite"),
    ("data-tokens", "24 tokens", "Write a number"),
    ("data-tokens", "1,2,3", "Write a number"),
    ("data-sentence-loss", "2.94", "Right"),
    ("data-sentence-loss", "2,94", "Right"),
    ("data-sentence-loss", "2,944", "Right"),
    ("data-sentence-loss", "0,736", "mean over the four tokens"),
    ("data-sentence-loss", "1/0", "Write a number"),
    ("data-sentence-loss", "2.94 nats", "Right"),
    ("data-sentence-loss", "1/19", "negative logarithm"),
    ("data-sentence-loss", "0.74", "mean over the four tokens"),
    ("data-sentence-loss", "−2.94", "Not quite"),
    ("data-shapes", "76,4", "Right"),
    ("data-shapes", "(76, 4)", "Right"),
    ("data-shapes", "76 × 4", "Right"),
    ("data-shapes", "76", "shape of Y"),
    ("data-shapes", "(76,)", "shape of Y"),
    ("data-shapes", "[]", "Write a shape"),
    ("data-shapes", "304", "Not quite"),
]


def test_answers_are_read_as_they_are_written(visit, http_site):
    page = visit(f"{http_site}/book/{FIRST}.html")
    for name, given, verdict in AS_WRITTEN:
        box = box_of(page, name)
        again = box.get_by_role("button", name="Answer again")
        if again.is_visible():
            again.click()
        commit(box, name, given)
        expect(box.get_by_role("status")).to_contain_text(verdict)


@pytest.mark.parametrize("over", ["http_site", "file_site"])
def test_an_answer_is_remembered(visit, request, over):
    page = visit(f"{request.getfixturevalue(over)}/book/{FIRST}.html")
    for name in ONE_OF_EACH:
        commit(box_of(page, name), name, wrong(name)[0])
    page.reload()
    for name in ONE_OF_EACH:
        box = box_of(page, name)
        expect(box.get_by_role("status")).to_contain_text(wrong(name)[1])
        expect(box.locator("> details")).to_be_visible()
        assert kept(page)[name]["first"]["given"] == wrong(name)[0]


def test_the_keyboard_is_enough(visit, http_site):
    page = visit(f"{http_site}/book/{FIRST}.html")
    box = box_of(page, "data-examples")
    box.get_by_role("radio").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(box.get_by_role("status")).to_contain_text("Right")
    expect(box.get_by_role("button", name="Answer again")).to_be_focused()
    page.keyboard.press("Space")
    expect(box.get_by_role("radio").first).to_be_focused()
    box = box_of(page, "data-tokens")
    box.get_by_role("textbox").focus()
    page.keyboard.type("24")
    page.keyboard.press("Enter")
    expect(box.get_by_role("status")).to_contain_text("Right")


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("width", [PHONE, DESK])
def test_questions_in_every_state_suit_every_reader(visit, http_site, theme, width):
    page = visit(f"{http_site}/book/{FIRST}.html", theme, width)
    look(page, theme, width)
    states = {
        "asked": lambda box, name: None,
        "unreadable": lambda box, name: box.get_by_role("button").first.click(),
        "wrong": lambda box, name: commit(box, name, wrong(name)[0]),
    }
    for reach in states.values():
        for name in ONE_OF_EACH:
            reach(box_of(page, name), name)
            assert axe(page, f"#{name}") == []
        no_sideways_scroll(page)
    for name in ONE_OF_EACH:
        box_of(page, name).get_by_role("button", name="Answer again").click()
        commit(box_of(page, name), name, right(name))
        assert axe(page, f"#{name}") == []
    no_sideways_scroll(page)


def test_without_scripts_the_box_reads(browser, http_site):
    context = browser.new_context(java_script_enabled=False)
    try:
        page = context.new_page()
        page.goto(f"{http_site}/book/{FIRST}.html")
        box = page.locator("#data-examples")
        expect(box.get_by_role("radio")).to_have_count(len(ALL["data-examples"]["choices"]))
        box.locator("summary").click()
        expect(box.locator(".sd-card-body")).to_contain_text("every token but the first")
        expect(page.locator(".predict button, .gf-veil")).to_have_count(0)
        expect(page.locator(".gf-tells-data-tokens").first).to_contain_text("24 tokens")
        assert set(in_sight(page)) == {True}
        page.goto(f"{http_site}/book/{SECOND}.html")
        expect(page.locator(".gf-recall")).to_be_hidden()
        page.goto(f"{http_site}/book/progress.html")
        expect(page.locator(".gf-progress a[href='01_data.html#data-tokens']")).to_be_visible()
    finally:
        context.close()


# What tells the answer stays covered --------------------------------------------------------------

TWO = ("data-first-word", "data-ceiling")  # one output tells the answers of both


def in_sight(page, name: str = "") -> list[bool]:
    """Return for each output that tells an answer, or this one, whether anything is to be seen."""
    return page.locator(f"[class*=gf-tells-{name}]").evaluate_all(
        """(outputs) => outputs.map((output) => [...output.querySelectorAll("*")].some((part) =>
          !part.closest(".gf-veil") && part.checkVisibility({ visibilityProperty: true })))"""
    )


def height(page) -> int:
    """Return the height of the whole page, in CSS pixels."""
    return page.evaluate("document.documentElement.scrollHeight")


def between(path) -> Counter:
    """Return how many cells of a chapter show something between a question and its asking."""
    counts, to_come, waiting = Counter(), {data["name"] for data in stored(path)}, set()
    for cell in read(path).cells:
        outputs = cell.get("outputs", ())
        asked = {
            o.data[QUESTION_MIME]["name"] for o in outputs if QUESTION_MIME in o.get("data", {})
        }
        to_come -= asked
        waiting &= to_come
        if cell.cell_type == "markdown":
            waiting |= to_come & set(re.findall(r":name: (\S+)", cell.source))
        elif outputs and not asked and "remove-cell" not in cell.metadata.get("tags", ()):
            counts.update(waiting)
    return counts


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_what_stands_between_a_question_and_its_asking_is_marked(site, path):
    text = (site / "book" / f"{path.stem}.html").read_text(encoding="utf-8")
    assert Counter(re.findall(r"gf-tells-([\w-]+)", text)) == between(path)


def test_what_tells_is_covered_until_there_is_an_answer(visit, http_site):
    page = visit(f"{http_site}/book/{FIRST}.html")
    assert set(in_sight(page)) == {False}
    output = page.locator(".gf-tells-data-tokens").first
    assert "24" not in output.aria_snapshot() and "show it" in output.aria_snapshot()
    size = output.bounding_box()
    commit(box_of(page, "data-tokens"), "data-tokens", wrong("data-tokens")[0])
    assert "24 tokens" in output.aria_snapshot()
    after = output.bounding_box()
    assert (after["width"], after["height"]) == (size["width"], size["height"])
    for _ in range(2):  # at once, and when the page is opened again
        assert in_sight(page, "data-tokens") == [True, True]
        assert set(in_sight(page, "data-examples")) == {False}
        page.reload()
    page.evaluate("localStorage.clear()")
    page.reload()
    assert set(in_sight(page)) == {False}


def test_a_result_is_shown_to_those_who_ask_for_it(visit, http_site):
    page = visit(f"{http_site}/book/{FIRST}.html")
    before = height(page)
    cover = page.locator(".gf-tells-data-tokens").last
    cover.get_by_role("link", name="Answer first: how many tokens are there?").press("Enter")
    expect(page.locator("#data-tokens")).to_be_in_viewport()
    cover.get_by_role("link").focus()
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_have_text("show it")
    page.keyboard.press("Enter")
    expect(cover).to_be_focused()
    assert in_sight(page, "data-tokens") == [True, True]
    assert height(page) == before and kept(page) is None
    for answered, left in zip(reversed(TWO), (1, 0), strict=True):  # the nearest comes first
        assert page.locator(f".gf-tells-{answered} .gf-veil:visible").count() == 1
        commit(box_of(page, answered), answered, right(answered))
        assert in_sight(page, answered) == [not left]


def test_one_button_shows_what_tells_two_answers(visit, http_site):
    page = visit(f"{http_site}/book/{FIRST}.html")
    page.locator(f".gf-tells-{TWO[0]}").get_by_role("button").click()
    assert [in_sight(page, name) for name in TWO] == [[True], [True]]
    assert page.locator(".gf-veil").count() == len(in_sight(page)) - 1


def test_on_paper_nothing_is_covered(visit, http_site):
    page = visit(f"{http_site}/book/{FIRST}.html")
    page.emulate_media(media="print")
    assert set(in_sight(page)) == {True}
    assert page.locator(".gf-veil:visible").count() == 0


def test_what_is_not_covered_is_found(visit, http_site):
    page = visit(f"{http_site}/book/{FIRST}.html")
    page.add_style_tag(content=".gf-veil ~ .text_html * { visibility: visible }")
    assert in_sight(page, "data-tokens") == [False, True]


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("width", [320, PHONE, DESK])
def test_covers_suit_every_reader(visit, http_site, theme, width):
    page = visit(f"{http_site}/book/{FIRST}.html", theme, width)
    assert axe(page, ".gf-tells-data-tokens, .gf-tells-data-ceiling") == []
    no_sideways_scroll(page)
    page.emulate_media(forced_colors="active")
    page.add_style_tag(content="* { letter-spacing: 0.12em; word-spacing: 0.16em }")  # WCAG 1.4.12
    assert set(in_sight(page)) == {False}
    for cover in page.locator(".gf-veil:visible").all():
        outside, inside = (
            cover.locator("..").bounding_box(),
            cover.locator("span").first.bounding_box(),
        )
        assert inside["height"] <= outside["height"] and inside["width"] <= outside["width"]


# What the browser keeps is data -----------------------------------------------------------------

RESULT = {"given": "3", "right": False}
RIGHT = {"given": "4", "right": True}
ENTRY = {"first": RESULT, "last": RESULT}
MARKUP = "<img src=x onerror=alert(1)>"
FOREIGN = {
    "no JSON": "{",
    "a list": "[1]",
    "null": "null",
    "a number": "7",
    "no entries": '{"data-examples": 3}',
    "half an entry": json.dumps({"data-examples": {"first": RESULT}}),
    "other types": json.dumps(
        {"data-examples": {"first": {"given": 3, "right": 1}, "last": RESULT}}
    ),
    "markup": json.dumps({"data-examples": {"first": RESULT, "last": RESULT | {"given": MARKUP}}}),
    "names": json.dumps({MARKUP: ENTRY, "__proto__": ENTRY, "a": ENTRY}),
}


def test_foreign_content_of_the_store_does_no_harm(visit, http_site):
    page = visit(f"{http_site}/book/progress.html")
    for content in FOREIGN.values():
        page.evaluate("([key, content]) => localStorage.setItem(key, content)", [KEY, content])
        page.reload()
        expect(page.locator(".gf-progress-summary")).to_contain_text("answered")
        expect(page.locator("img[src=x]")).to_have_count(0)
    for chapter in (FIRST, SECOND):
        for kind in ("half an entry", "markup", "names"):
            page.goto(f"{http_site}/book/{chapter}.html")
            page.evaluate("([k, v]) => localStorage.setItem(k, v)", [KEY, FOREIGN[kind]])
            page.reload()
            expect(page.locator("img[src=x]")).to_have_count(0)
    page.goto(f"{http_site}/book/{FIRST}.html")
    box = box_of(page, "data-examples")
    expect(box.get_by_role("status")).to_be_empty()
    commit(box, "data-examples", right("data-examples"))
    assert kept(page) == {"data-examples": {"first": RIGHT, "last": RIGHT}}


def test_a_store_that_is_forbidden_does_no_harm(browser, http_site):
    with watched(browser, f"{http_site}/", mathematics=False) as page:
        page.add_init_script(
            """for (const name of ["getItem", "setItem"]) {
              const usual = Storage.prototype[name];
              Storage.prototype[name] = function (key, value) {
                if (key === "KEY") throw new DOMException("no", "SecurityError");
                return usual.call(this, key, value);
              };
            }""".replace("KEY", KEY)
        )
        page.goto(f"{http_site}/book/{FIRST}.html")
        box = box_of(page, "data-examples")
        commit(box, "data-examples", right("data-examples"))
        expect(box.get_by_role("status")).to_contain_text("Right")
        page.goto(f"{http_site}/book/progress.html")
        page.on("dialog", lambda dialog: dialog.accept())
        page.get_by_role("button", name="Clear all").click()
        expect(page.get_by_role("status")).to_contain_text("keeps nothing")


# What was missed comes back ---------------------------------------------------------------------


@pytest.mark.parametrize("over", ["http_site", "file_site"])
def test_what_was_missed_comes_back_once(visit, request, over):
    site = request.getfixturevalue(over)
    page = visit(f"{site}/book/{SECOND}.html")
    expect(page.locator(".gf-recall")).to_be_hidden()
    page.goto(f"{site}/book/{FIRST}.html")
    commit(box_of(page, "data-tokens"), "data-tokens", right("data-tokens"))
    for name in ("data-examples", "data-shapes"):
        commit(box_of(page, name), name, wrong(name)[0])
    page.goto(f"{site}/book/{SECOND}.html")
    recall = page.get_by_role("region", name="Before you go on")
    expect(recall.locator(".predict")).to_have_count(2)
    for name in ("data-examples", "data-shapes"):
        box = box_of(recall, name)
        expect(box.get_by_role("status")).to_be_empty()
        commit(box, name, right(name))
        expect(box.get_by_role("status")).to_contain_text("Right")
        expect(box.locator("> details")).to_be_visible()
    page.reload()
    expect(page.locator(".gf-recall")).to_be_hidden()
    assert kept(page)["data-shapes"]["first"]["right"] is False


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_what_comes_back_suits_every_reader(visit, http_site, width):
    missed = {data["name"]: ENTRY for data in QUESTIONS[FIRST]}
    page = visit(f"{http_site}/book/{FIRST}.html", "dark", width)
    page.evaluate("([k, v]) => localStorage.setItem(k, v)", [KEY, json.dumps(missed)])
    page.goto(f"{http_site}/book/{SECOND}.html")
    expect(page.locator(".gf-recall .predict")).to_have_count(len(missed))
    look(page, "dark", width)
    no_sideways_scroll(page)
    assert axe(page, ".gf-recall") == []
    ids = page.evaluate("[...document.querySelectorAll('.gf-recall [id]')].map((e) => e.id)")
    assert ids == ["gf-recall"]


def test_search_finds_a_question_in_its_own_chapter(site):
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    titles = json.loads(index[index.index("(") + 1 : index.rindex(")")])["alltitles"]
    places = titles["Predict: how many examples?"]
    assert len(places) == 1


# All predictions --------------------------------------------------------------------------------


def test_all_predictions_are_listed_exported_cleared_and_imported(visit, http_site, tmp_path):
    page = visit(f"{http_site}/book/{FIRST}.html")
    commit(box_of(page, "data-tokens"), "data-tokens", right("data-tokens"))
    commit(box_of(page, "data-shapes"), "data-shapes", wrong("data-shapes")[0])
    box = box_of(page, "data-examples")
    commit(box, "data-examples", wrong("data-examples")[0])
    box.get_by_role("button", name="Answer again").click()
    commit(box, "data-examples", right("data-examples"))
    before = kept(page)

    page.goto(f"{http_site}/book/progress.html")
    rows = page.locator(".gf-progress li")
    expect(rows).to_have_count(len(ALL))
    for name, words in {
        "data-tokens": "✓ right at the first try",
        "data-examples": "✓ right, but not at the first try",
        "data-shapes": "✗ missed",
        "model-log": "not answered",
    }.items():
        row = page.locator(f"li[data-question={name}] .gf-progress-state")
        expect(row).to_have_text(words)
    summary = page.locator(".gf-progress-summary")
    counts = f"3 of {len(ALL)} answered: 1 right at the first try, 1 still missed."
    expect(summary).to_have_text(counts)

    with page.expect_download() as download:
        page.get_by_role("button", name="Export to a file").click()
    assert download.value.suggested_filename == "glass-transformer-predictions.json"
    file = tmp_path / "mine.json"
    download.value.save_as(file)
    assert json.loads(file.read_text(encoding="utf-8"))["answers"] == before

    page.once("dialog", lambda dialog: dialog.dismiss())
    page.get_by_role("button", name="Clear all").click()
    assert kept(page) == before
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Clear all").click()
    expect(summary).to_contain_text(f"0 of {len(ALL)} answered")
    assert kept(page) == {}

    page.locator("input[type=file]").set_input_files(file)
    expect(summary).to_have_text(counts)
    assert kept(page) == before


def test_what_is_counted_as_missed_is_listed_as_missed(visit, http_site):
    page = visit(f"{http_site}/book/{FIRST}.html")
    box = box_of(page, "data-tokens")
    commit(box, "data-tokens", right("data-tokens"))
    box.get_by_role("button", name="Answer again").click()
    commit(box, "data-tokens", wrong("data-tokens")[0])
    page.goto(f"{http_site}/book/progress.html")
    counts = f"1 of {len(ALL)} answered: 1 right at the first try, 1 still missed."
    expect(page.locator(".gf-progress-summary")).to_have_text(counts)
    row = page.locator("li[data-question=data-tokens]")
    expect(row.locator(".gf-progress-state")).to_have_text("✗ missed the last time")
    expect(row).to_have_attribute("data-state", "wrong")


GOOD = {"kind": "The Glass Transformer: predictions", "version": 1, "answers": {}}
BROKEN = {
    "no JSON": b"{",
    "no text": b"\xff\xfe\x00",
    "another kind": json.dumps({"cells": []}).encode(),
    "another version": json.dumps(GOOD | {"version": 2}).encode(),
    "a list of answers": json.dumps(GOOD | {"answers": [1]}).encode(),
    "an odd name": json.dumps(GOOD | {"answers": {MARKUP: ENTRY}}).encode(),
    "half an entry": json.dumps(GOOD | {"answers": {"data-tokens": {"first": RESULT}}}).encode(),
    "too long": json.dumps(
        GOOD
        | {"answers": {"data-tokens": {"first": RESULT | {"given": "9" * 201}, "last": RESULT}}}
    ).encode(),
    "too large": b" " * 1_000_001,
}


def test_a_broken_file_is_refused_in_one_sentence(visit, http_site):
    page = visit(f"{http_site}/book/progress.html")
    for name, content in BROKEN.items():
        file = {"name": f"{name}.json", "mimeType": "application/json", "buffer": content}
        page.locator("input[type=file]").set_input_files(file)
        expect(page.get_by_role("status")).to_have_text(
            f"“{name}.json” holds no predictions that this page has exported: choose another file."
        )
    assert kept(page) is None


def test_the_list_names_every_question_where_it_is(site):
    text = (site / "book" / "progress.html").read_text(encoding="utf-8")
    for chapter, questions in QUESTIONS.items():
        page = (site / "book" / f"{chapter}.html").read_text(encoding="utf-8")
        for data in questions:
            assert f'href="{chapter}.html#{data["name"]}"' in text
            assert page.count(f'id="{data["name"]}"') == 1
