"""The explorer of the whole pass: each number against PyTorch, followed back, changed, restored."""

from __future__ import annotations

import json
import re
from urllib.parse import parse_qs

import pytest
import torch
from browsing import axe, no_sideways_scroll, watch
from instrument import SITES, copied, formula, opener, query, told, twin, write_page
from playwright.sync_api import Locator, Page, expect

from glassformer.checkpoints import load_baby_groot
from glassformer.data import groot_vocabulary
from glassformer.explorers import Everything
from glassformer.site_explorers import part_file, script_file
from glassformer.trace import trace

SENTENCE = "<START> i am groot"
VOCABULARY = groot_vocabulary()
TABLE = "token_embedding.weight"


# The page ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Return a folder with a page that holds the explorer and nothing else."""
    folder = tmp_path_factory.mktemp("everything")
    files = [part_file("corpus"), part_file("groot"), script_file(Everything.family)]
    scripts = "".join(f'<script defer src="{name}"></script>' for name in files)
    room = '<header style="height: 700px"></header>', '<footer style="height: 300px"></footer>'
    write_page(folder / "page.html", Everything(), scripts, 838, *room)
    return folder


@pytest.fixture
def everything(request, visit):
    """Return a function that opens the explorer in a state and returns its part of the page."""
    return opener(request, visit, "page.html", "everything")


def part_of(page: Page) -> Locator:
    part = page.locator("#explorer-everything")
    expect(part.locator(".gfx")).to_be_visible()
    return part


@pytest.fixture
def finger(browser, http_site):
    """Return the explorer on a phone: 360 pixels wide, and a finger instead of a mouse."""
    context = browser.new_context(
        viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True
    )
    problems = watch(context, f"{http_site}/")
    page = context.new_page()
    page.goto(f"{http_site}/page.html")
    yield part_of(page)
    context.close()
    assert not problems, problems


@pytest.fixture
def groot():
    return load_baby_groot().double()


# What PyTorch says, and what the page shows -------------------------------------------------------


def numbers_of(model, prompt: str = SENTENCE) -> dict[str, torch.Tensor]:
    """Return every number of a pass by name: the trace, and the weights."""
    with torch.no_grad():
        return {**trace(model, VOCABULARY.encode(prompt)), **model.state_dict()}


def changed(model, changes) -> torch.nn.Module:
    with torch.no_grad():
        for name, index, value in changes:
            model.state_dict()[name][tuple(index)] = float(value)
    return model


READ = """(part) => [...part.querySelectorAll("table[data-name]")].map((table) => [
  table.dataset.name,
  [...table.querySelectorAll("[data-n]")].map((cell) => [Number(cell.dataset.n), cell.textContent,
    cell.classList.contains("gfx-moved")])])"""


def as_shown(value: float, digits: int) -> str:
    """Return a number as a cell prints it: two digits, a true minus sign, no negative zero."""
    if value == -1e9:
        return "−10⁹"
    if value != value or abs(value) == float("inf"):
        return {"nan": "NaN", "inf": "∞", "-inf": "−∞"}[str(value)]
    return re.sub(r"^-(?=.*[1-9])", "−", f"{value:.{digits}f}").removeprefix("-")


def check_numbers(part: Locator, wanted: dict[str, torch.Tensor]) -> int:
    """Compare every cell with PyTorch, digit by digit; return how many there are."""
    shown, count, names = part.evaluate(READ), 0, set()
    for name, cells in shown:
        values = wanted[name].double().flatten()
        names.add(name)
        for place, text, _ in cells:
            value = values[place].item()
            if abs(value) >= 999 and value != -1e9 and abs(value) != float("inf"):
                close = float(text.replace("−", "-")) == pytest.approx(value, rel=0.06)
                assert close, (name, place, text, value)
            elif text != as_shown(value, 0 if name == "ids" else 2):
                # the last digit may differ where the next one is a 5 that rounding decides
                assert abs(float(text.replace("−", "-")) - value) < 0.005 + 1e-9, (
                    name,
                    place,
                    text,
                )
            count += 1
        if name != TABLE:  # all of a matrix is there, of the token table the rows in use
            assert sorted({place for place, *_ in cells}) == list(range(values.numel())), name
    assert names == set(wanted)
    return count


def cell(part: Locator, name: str, *index: int) -> Locator:
    """Return the cell of a number, the first if two show it."""
    widths = {"ids": 1, "logits": 24, "probabilities": 24, "scores": 4, "masked_scores": 4,
              "attention": 4, "ffn_hidden": 16, "ffn_activation": 16,
              "transformer.ffn.2.weight": 16}  # fmt: skip
    place = index[0] if len(index) == 1 else index[0] * widths.get(name, 8) + index[1]
    return part.locator(f'table[data-name="{name}"] [data-n="{place}"]').first


def trail(part: Locator) -> list[str]:
    return part.locator(".gfx-ev-trail li button").all_inner_texts()


def operands(part: Locator) -> Locator:
    return part.locator(".gfx-ev-formula .gfx-ref")


def edit(part: Locator) -> Locator:
    return part.get_by_role("textbox", name="Value of")


PROMPTS = [SENTENCE, "tree", "groot likes", "rocket rocket helps rocket", "<PAD> <END> we you"]


@pytest.mark.parametrize("over", SITES)
@pytest.mark.parametrize("prompt", PROMPTS)
def test_every_number_is_pytorchs(everything, groot, over, prompt):
    part = everything(over, prompt=prompt)
    wanted = numbers_of(groot, prompt)
    count = check_numbers(part, wanted)
    T, rows = len(prompt.split()), len(set(prompt.split()))
    again = 2 * 8 * T  # H₀ and N₁ stand where they are added once more
    assert count == sum(t.numel() for t in wanted.values()) - (24 - rows) * 8 + again
    if prompt == SENTENCE:
        assert count > 1500


def test_the_columns_of_a_weight_stand_above_what_they_make(everything, groot):
    part = everything()
    wanted = numbers_of(groot)
    for grid in part.locator("table[data-name]").all():
        name = grid.get_attribute("data-name")
        rows = grid.evaluate(
            """(table) => [...table.tBodies[0].rows].map((row) =>
              [...row.querySelectorAll("[data-n]")].map((cell) => Number(cell.dataset.n)))"""
        )
        places = torch.arange(wanted[name].numel()).reshape(wanted[name].shape)
        if name == TABLE:
            places = places[wanted["ids"]]
        elif (
            name in dict(groot.named_parameters()) and "embedding" not in name and places.dim() == 2
        ):
            places = places.T  # shown as Wᵀ: [in, out]
        assert rows == (places if places.dim() == 2 else places[None]).tolist(), name


def test_every_number_in_full_by_the_copy_buttons(everything, groot):
    part = everything()
    for name, wanted in numbers_of(groot).items():
        (got,) = copied(part, f"Copy {name} as Python").values()
        assert got.shape == wanted.shape
        assert (got - wanted).abs().max() <= 1e-10 * wanted.abs().max().clamp(min=1), name


def test_the_twin_has_every_number_with_four_digits(everything, groot):
    tables = twin(everything())
    wanted = numbers_of(groot)
    assert len(tables) == len(wanted)
    for caption, rows in tables.items():
        name = caption.split(": ")[1].split(" ")[0]
        values = wanted[name][wanted["ids"].tolist()] if name == TABLE else wanted[name]
        got = [float(x.replace("−", "-").replace("10⁹", "1e9")) for row in rows for x in row[1:]]
        torch.testing.assert_close(
            torch.tensor(got).double(), values.double().flatten(), atol=6e-5, rtol=0
        )


@pytest.mark.parametrize("prompt", PROMPTS[:3])
def test_the_likeliest_words_are_ranked(everything, groot, prompt):
    part = everything(prompt=prompt)
    p = numbers_of(groot, prompt)["probabilities"][-1]
    best = p.argsort(descending=True, stable=True)[:12]
    bars = part.locator(".gfx-bars li")
    assert bars.locator(".gfx-bar-label").all_inner_texts() == [VOCABULARY.words[w] for w in best]
    shares = [
        text.split("%")[0].strip() for text in bars.locator(".gfx-bar-value").all_inner_texts()
    ]
    assert shares == [f"{100 * p[w]:.1f}" for w in best]
    assert f"comes {VOCABULARY.words[best[0]]}, with {100 * p[best[0]]:.1f}" in told(part)


# Followed back ------------------------------------------------------------------------------------

STORY = [
    ("probabilities", 3, 2), ("logits", 3, 2), ("h_out", 3, 4), ("r2", 3, 4), ("ffn_out", 3, 4),
    ("ffn_activation", 3, 10), ("ffn_hidden", 3, 10), ("n1", 3, 1), ("r1", 3, 1), ("context", 3, 1),
    ("attention", 3, 0), ("masked_scores", 3, 0), ("scores", 3, 0), ("q", 3, 7), ("h0", 3, 5),
    ("token_embedding", 3, 5), (TABLE, 8, 5),
]  # fmt: skip


def lights(part: Locator, kind: str) -> set[str]:
    """Return the addresses of the cells with a mark."""
    return set(
        part.evaluate(
            """(part, kind) => [...part.querySelectorAll(`td.${kind}`)]
              .map((cell) => `${cell.closest("table").dataset.name} ${cell.dataset.n}`)""",
            kind,
        )
    )


@pytest.mark.parametrize("over", SITES)
def test_a_probability_is_followed_to_the_embedding_with_the_mouse(everything, groot, over):
    part = everything(over)
    wanted = numbers_of(groot)
    for n, (name, *index) in enumerate(STORY):
        if n:  # what leads on is lit, and is in view or can be scrolled to
            expect(cell(part, name, *index)).to_have_class(re.compile("gfx-made"))
        cell(part, name, *index).click()
        key, value, _ = formula(part)
        assert key == f"{name}[{','.join(map(str, index))}]"
        assert value == pytest.approx(wanted[name][tuple(index)].item(), abs=1e-6)
        assert len(trail(part)) == n + 1
    assert trail(part)[0] == "p[3,2]" and trail(part)[-1] == "E[8,5]"
    assert "a learned number" in part.locator(".gfx-ev-formula").inner_text()
    part.get_by_role("button", name="Back", exact=True).click()
    assert trail(part)[-1] == "Eₜ[3,5]"
    part.get_by_role("button", name="z[3,2]", exact=True).click()
    assert trail(part) == ["p[3,2]", "z[3,2]"] and formula(part)[0] == "logits[3,2]"


def test_operands_in_the_formula_lead_on_and_scroll_only_when_needed(everything):
    part = everything()
    page = part.page
    cell(part, "logits", 3, 2).click()
    before = page.evaluate("scrollY")
    part.get_by_role("button", name="head.bias[2]").click()  # in view: nothing moves
    assert page.evaluate("scrollY") == before and trail(part)[-1] == "b_head[2]"
    part.get_by_role("button", name="Back", exact=True).click()
    part.get_by_role("button", name="h_out[3,4]").click()
    expect(cell(part, "h_out", 3, 4)).to_be_in_viewport()
    for _ in range(30):  # the first operand, again and again, ends at a table's row or at an id
        if not operands(part).count():
            break
        operands(part).first.click()
        panel = part.locator(".gfx-ev-panel").bounding_box()
        tops = [held.bounding_box()["y"] for held in part.locator("td.gfx-held").all()]
        assert any(0 <= top < panel["y"] - 5 for top in tops), "it is hidden or out of view"
        assert panel["y"] + panel["height"] <= 901, "the formula is out of view"
    assert formula(part)[0].startswith(TABLE)


def test_a_probability_is_followed_to_the_embedding_with_the_keyboard_alone(everything):
    part = everything()
    page = part.page
    cell(part, "probabilities", 0, 0).focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    assert formula(part)[0] == "probabilities[3,2]"
    page.keyboard.press("Enter")
    for n in range(30):
        focused = page.evaluate("document.activeElement.getAttribute('aria-label') ?? ''")
        if focused.startswith("Value of"):
            break
        page.keyboard.press("Enter")
        assert len(trail(part)) == n + 2, "the focus was lost"
    assert trail(part)[-1].startswith("E[") and trail(part)[0] == "p[3,2]"
    page.keyboard.press("Escape")  # to the number on the page
    assert page.evaluate("document.activeElement.closest('table').dataset.name") == TABLE
    page.keyboard.press("+")
    assert "One weight is changed" in told(part)
    page.keyboard.press("-")
    assert "changed" not in told(part)
    page.keyboard.press("Enter")
    page.keyboard.press("Shift+Tab")
    for _ in range(5):
        page.keyboard.press("Backspace")
    assert trail(part)[-1] != "E[8,0]" and formula(part)[0] != TABLE


def test_a_probability_is_followed_to_the_embedding_with_a_finger(finger):
    part = finger
    for name, *index in STORY[:3] + STORY[-3:]:
        cell(part, name, *index).tap()
    assert trail(part) == ["H₀[3,5]", "Eₜ[3,5]", "E[8,5]"]
    for name, *index in STORY:
        cell(part, name, *index).tap()
        assert part.locator(".gfx-ev-panel").bounding_box()["y"] < 740
    assert len(trail(part)) == len(STORY)
    part.get_by_role("button", name="E[8,5] up by 0.1").tap()
    assert "One weight is changed" in told(part)
    no_sideways_scroll(part.page)


def test_pointing_lights_the_operands_and_leaves_when_the_mouse_leaves(everything):
    part = everything()
    cell(part, "h0", 2, 3).click()
    assert lights(part, "gfx-held") == {"h0 19"}
    assert lights(part, "gfx-made") == {"token_embedding 19", "position_embedding 19"}
    cell(part, "q", 2, 5).hover()
    assert lights(part, "gfx-pointed") == {"q 21"}
    lit = {f"h0 {16 + i}" for i in range(8)} | {
        f"transformer.attn.q.weight {40 + i}" for i in range(8)
    }
    assert lights(part, "gfx-lit") == lit | {"transformer.attn.q.bias 5"}
    assert formula(part)[0] == "q[2,5]" and lights(part, "gfx-held") == {"h0 19"}
    part.locator(".gfx-ev-trail").hover()
    assert formula(part)[0] == "h0[2,3]" and not lights(part, "gfx-lit")


# Changed and restored -----------------------------------------------------------------------------


def typed(part: Locator, name: str, index, text: str) -> None:
    cell(part, name, *index).click()
    edit(part).fill(text)


def moved(part: Locator) -> dict[str, set[int]]:
    marks: dict[str, set[int]] = {}
    for name, cells in part.evaluate(READ):
        marks.setdefault(name, set()).update(place for place, _, mark in cells if mark)
    return marks


def differing(now: dict, before: dict) -> dict[str, set[int]]:
    return {
        name: set((tensor.flatten() != before[name].flatten()).nonzero().flatten().tolist())
        for name, tensor in now.items()
    }


@pytest.mark.parametrize("seed", range(4))
def test_random_weights_changed_in_the_page_and_in_pytorch(everything, groot, seed):
    part = everything(("http_site", "file_site")[seed % 2])
    draw = torch.Generator().manual_seed(seed)
    before = {name: t.clone() for name, t in numbers_of(groot).items()}
    names = list(groot.state_dict())
    changes = []
    for k in torch.randperm(len(names), generator=draw)[:5].tolist():
        shape = groot.state_dict()[names[k]].shape
        index = [int(torch.randint(size, (1,), generator=draw)) for size in shape]
        if names[k] == TABLE:
            index[0] = (1, 11, 3, 8)[seed]  # a row in use
        value = round(float(torch.randn((), generator=draw) * 2), 3)
        typed(part, names[k], index, str(value).replace("-", "−"))
        changes.append([names[k], index, value])
    now = numbers_of(changed(groot, changes))
    check_numbers(part, now)
    for name in ("logits", "probabilities", "context"):
        (got,) = copied(part, f"Copy {name} as Python").values()
        torch.testing.assert_close(got, now[name], rtol=1e-10, atol=1e-12)
    marked, different = moved(part), differing(now, before)
    for name, places in different.items():
        if name == TABLE:
            assert marked[name] <= places
        else:  # PyTorch may round the last bit of an unmoved number otherwise in another product
            sure = {
                p for p in places if abs(now[name].flatten()[p] - before[name].flatten()[p]) > 1e-12
            }
            assert sure <= marked[name] <= places | sure, name
    assert f"{len(changes)} weights are changed" in told(part)
    state = parse_qs(query(part.page))
    assert json.loads(state["changes"][0]) == changes
    assert Everything(changes=changes).changes == changes
    part.get_by_role("button", name="Restore all").click()
    check_numbers(part, before)
    assert not any(moved(part).values()) and "changed" not in told(part)


def test_nudged_taken_back_and_the_difference_shown(everything, groot):
    part = everything()
    name, index = "transformer.attn.v.weight", [3, 1]
    cell(part, name, *index).click()
    own = groot.state_dict()[name][tuple(index)].item()
    up, down = (part.get_by_role("button", name=f"W_V[3,1] {way} by 0.1") for way in ("up", "down"))
    for button in (up, up, down, up):
        button.click()
    before = numbers_of(load_baby_groot().double())
    now = numbers_of(changed(groot, [[name, index, own + 0.2]]))
    check_numbers(part, now)
    assert f"was {own:.6f}" in part.locator(".gfx-ev-was").inner_text().replace("−", "-")
    part.get_by_text("show the difference").click()
    for shown, cells in part.evaluate(READ)[1:]:  # ids stay as they are
        gap = (now[shown] - before[shown]).double().flatten()
        for place, text, mark in cells:
            assert float(text.replace("−", "-")) == pytest.approx(gap[place].item(), abs=0.0051)
            assert mark or text == "0", (shown, place, text)
    assert json.loads(parse_qs(query(part.page))["difference"][0]) is True
    edit(part).press("ArrowDown")
    part.get_by_role("button", name="Restore", exact=True).click()
    check_numbers(part, before)


@pytest.mark.parametrize("text", ["NaN", "∞", "-inf", "1e100", "0"])
def test_what_is_no_usual_number_spreads_as_in_pytorch(everything, text):
    part = everything()
    for name, index in (
        (TABLE, [3, 2]), ("transformer.attn.k.bias", [1]), ("transformer.ffn.0.weight", [3, 1]),
        ("transformer.norm2.weight", [0]), ("head.bias", [2]),
    ):  # fmt: skip
        typed(part, name, index, text)
        change = [name, index, text.replace("∞", "inf")]
        now = numbers_of(changed(load_baby_groot().double(), [change]))
        for shown, cells in part.evaluate(READ):
            wanted = now[shown].double().flatten()
            for place, label, _ in cells:
                assert (label == "NaN") == bool(wanted[place].isnan()), (name, shown, place, label)
        (got,) = copied(part, "Copy logits as Python").values()
        torch.testing.assert_close(got, now["logits"], rtol=1e-9, atol=1e-9, equal_nan=True)
        assert ("to NaN" in told(part)) == bool(now["probabilities"].isnan().any())
        part.get_by_role("button", name="Restore all").click()
    check_numbers(part, numbers_of(load_baby_groot().double()))


def test_a_linked_nan_is_there_after_a_reload(everything):
    part = everything()
    typed(part, "head.bias", [2], "NaN")
    part.page.wait_for_timeout(350)
    part.page.reload()
    expect(edit(part)).to_have_value("NaN")
    assert "comes no word" in told(part) and "to NaN" in told(part)


def test_what_is_no_number_changes_nothing(everything, groot):
    part = everything()
    for text in ("abc", "", "1 2", "<b>1</b>", "--1", "٣", "1" + "e" * 30):
        typed(part, "head.bias", [2], text)
        expect(part.locator(".gfx-ev-editor .gfx-error")).to_contain_text("is no number")
        check_numbers(part, numbers_of(groot))


def test_sixty_four_changes_are_the_most(everything, groot):
    changes = [["head.weight", [n, 0], 1] for n in range(24)]
    changes += [["head.weight", [n, 1], 1] for n in range(24)]
    changes += [["head.weight", [n, 2], 1] for n in range(16)]
    part = everything(changes=json.dumps(changes))
    assert "64 weights are changed" in told(part)
    cell(part, "head.bias", 0).click()
    expect(part.locator(".gfx-ev-panel")).to_contain_text("64 changed weights are the most")
    cell(part, "head.bias", 0).focus()
    part.page.keyboard.press("+")
    assert "64 weights are changed" in told(part)
    typed(part, "head.weight", [3, 0], "2")  # one of those may still be changed
    check_numbers(part, numbers_of(changed(groot, [*changes, ["head.weight", [3, 0], 2]])))


# Links, prompts, hosts ----------------------------------------------------------------------------


def test_a_view_can_be_linked(everything, groot):
    changes = [["transformer.attn.q.weight", [2, 3], 2], ["head.bias", [4], "NaN"]]
    state = {
        "prompt": "groot likes",
        "name": "context",
        "index": "[1, 3]",
        "changes": json.dumps(changes),
    }
    part = everything(**state)
    assert trail(part) == ["context[1,3]"]
    check_numbers(part, numbers_of(changed(groot, changes), "groot likes"))
    part.get_by_role("button", name="Reset").click()
    check_numbers(part, numbers_of(load_baby_groot().double()))
    assert trail(part) == ["p[3,2]"] and query(part.page) == ""


@pytest.mark.parametrize(
    "state",
    [
        {"name": "nothing", "index": "[1]"},
        {"name": "__proto__", "index": "[]"},
        {"index": "[9, 9]"},
        {"index": "x", "changes": "{"},
        {"changes": '[["head.bias", [2], "<img src=x>"]]'},
        {"changes": '[["head.bias", [99], 1], ["constructor", [], 1]]'},
        {"prompt": "<img src=x onerror=alert(1)>", "difference": "perhaps"},
    ],
)
def test_a_link_with_nonsense_shows_the_usual_pass(everything, groot, state):
    part = everything(**state)
    assert trail(part) == ["p[3,2]"] and "changed" not in told(part)
    check_numbers(part, numbers_of(groot))


def test_a_word_it_does_not_know_is_named_and_nothing_else_changes(everything, groot):
    part = everything()
    box = part.get_by_label("Prompt")
    for text, said in (
        ("i am grot", "groot"), ("", "at least one word"), ("i am groot i am", "do not fit"),
        ("🌳", "🌳"), ("<b>i</b>", "<b>i</b>"), ("مرحبا", "مرحبا"),
    ):  # fmt: skip
        box.fill(text)
        expect(part.locator(".gfx-prompt .gfx-error")).to_contain_text(said)
        check_numbers(part, numbers_of(groot))
    box.fill("we you")
    check_numbers(part, numbers_of(groot, "we you"))
    assert trail(part)[0].startswith("p[1,")  # p[3,2] is gone: the likeliest word instead


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 768, 1440])
def test_all_can_read_it(everything, theme, width):
    changes = json.dumps([["transformer.ffn.0.weight", [3, 1], 2]])
    for state in (
        {},
        {"changes": changes, "difference": "true", "name": "head.weight", "index": "[2, 1]"},
    ):
        part = everything(theme=theme, width=width, **state)
        assert axe(part.page, "#explorer-everything") == []
        no_sideways_scroll(part.page)
