"""The explorer of chapter 9: a design, its costs and its config.json, against the package."""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace
from pathlib import Path

import pytest
from browsing import axe, no_sideways_scroll
from instrument import SITES, opener, texts
from playwright.sync_api import expect

from glassformer.checkpoints import TINY_CONFIG
from glassformer.explorers import Designer
from glassformer.huggingface import llama_config
from glassformer.milestones import M1_BUDGET, M1_LONGEST_WINDOW, judge_m1, judge_m2
from glassformer.models import TransformerConfig

ROOT = Path(__file__).resolve().parents[2]
PAGE = "book/09_m1_config.html"
ID = "explorer-designer"
PLAIN = TransformerConfig(2_048, 128, 4, 4, n_kv_heads=2, max_seq_len=256)
COUNTS = ("vocab_size", "dim", "n_layers", "n_heads", "n_kv_heads", "max_seq_len")


@pytest.fixture
def designer(request, visit):
    """Return a function that opens the explorer in a state and returns its part of the page."""
    return opener(request, visit, PAGE, "designer")


def box(part, field: str):
    return part.get_by_role("textbox", name=re.compile(rf"^{field} "))


def enter(part, config: TransformerConfig) -> None:
    """Write a design into the boxes, field by field."""
    for field in (*COUNTS, "ffn_dim_multiplier"):
        value = config.kv_heads if field == "n_kv_heads" else getattr(config, field)
        box(part, field).fill(str(value))
    part.get_by_role("checkbox").set_checked(config.tie_word_embeddings)


def figures(part, label: str) -> dict[str, str]:
    """Return the first figure of each row of a table, by the head of its row."""
    rows = part.get_by_role("grid", name=label).locator("tbody tr")
    return {head: first for head, first, *_ in texts(rows, "th, td")}


def saved(part, path: Path) -> Path:
    """Download config.json as a reader does."""
    with part.page.expect_download() as download:
        part.get_by_text("Download config.json").click()
    assert download.value.suggested_filename == "config.json"
    download.value.save_as(path)
    return path


def book_designs() -> dict[str, TransformerConfig]:
    """Return the designs that chapter 9 defines, from the cells that define them."""
    notebook = json.loads((ROOT / "book/09_m1_config.ipynb").read_text(encoding="utf-8"))
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    found: dict = {"TransformerConfig": TransformerConfig, "M1_BUDGET": M1_BUDGET}
    for start in ("plain = ", "designs = "):
        exec(next(cell for cell in cells if cell.startswith(start)), found)
    return {"plain": found["plain"], **found["designs"]}


def llama_3() -> TransformerConfig:
    """Return Llama 3 8B as chapter 8 writes it."""
    source = (ROOT / "book/08_kv_cache.ipynb").read_text(encoding="utf-8")
    cell = next(c for c in json.loads(source)["cells"] if "llama_3 = " in "".join(c["source"]))
    code = "".join(cell["source"])
    found: dict = {"TransformerConfig": TransformerConfig}
    exec(code[code.index("llama_3 = ") : code.index("\nprint")], found)
    return found["llama_3"]


BOOK = {**book_designs(), "tiny LLaMA": TINY_CONFIG, "Llama 3 8B": llama_3()}


def shares_config(config: TransformerConfig, part) -> None:
    """Assert that everything shown of a valid design is what the package computes."""
    tables = config.vocab_size * config.dim
    hidden = 3 * config.dim * config.ffn_hidden_dim * config.n_layers
    norms = (2 * config.n_layers + 1) * config.dim
    head = 0 if config.tie_word_embeddings else tables
    attention = config.num_params() - tables - hidden - norms - head
    assert figures(part, "Where the parameters are") == {
        "token table": f"{tables:,}",
        "attention": f"{attention:,}",
        "feed-forward": f"{hidden:,}",
        "norms": f"{norms:,}",
        "output head": f"{head:,}",
    }
    costs = figures(part, "What it costs")
    assert costs["head size"] == f"{config.head_dim:,}"
    assert costs["hidden size of SwiGLU"] == f"{config.ffn_hidden_dim:,}"
    assert costs["cache, numbers a token"] == f"{config.kv_cache_values():,}"
    assert costs["FLOPs, first token"] == f"{config.flops_per_token(1):,}"
    assert costs["FLOPs, last token"] == f"{config.flops_per_token():,}"
    size, unit = costs["cache, full window"].split()
    scale = {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}[unit]
    assert float(size.replace(",", "")) == pytest.approx(config.kv_cache_bytes() / scale, abs=0.05)
    total = part.locator(".gfx-ds-total").inner_text()
    assert total.startswith(f"{config.num_params():,} of {M1_BUDGET:,} parameters")
    left = M1_BUDGET - config.num_params()
    assert f"{abs(left):,} {'to spare' if left >= 0 else 'too many'}" in total


# Against the package -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", BOOK)
def test_the_designs_of_the_book(designer, name):
    part = designer()
    part.get_by_role("button", name=name, exact=True).click()
    shares_config(BOOK[name], part)
    for field in COUNTS:
        value = BOOK[name].kv_heads if field == "n_kv_heads" else getattr(BOOK[name], field)
        assert box(part, field).input_value() == str(value)
    assert part.get_by_role("checkbox").is_checked() == BOOK[name].tie_word_embeddings
    expect(part.get_by_role("button", name=name, exact=True)).to_have_attribute(
        "aria-pressed", "true"
    )


@pytest.mark.parametrize("over", SITES)
@pytest.mark.parametrize("name", ["plain", "many layers", "long memory"])
def test_the_file_is_accepted_by_the_milestones(designer, tmp_path, over, name):
    part = designer(over)
    part.get_by_role("button", name=name, exact=True).click()
    expect(part.get_by_text("Milestone M1 accepts this design.")).to_be_visible()
    expect(part.get_by_text("Milestone M2 accepts this design.")).to_have_count(
        int(name == "long memory")
    )
    path = saved(part, tmp_path / "config.json")
    assert judge_m1(path) == []
    assert (judge_m2(path) == []) == (name == "long memory")
    assert TransformerConfig.from_json(path) == BOOK[name]


JUDGED = {
    "over": replace(PLAIN, dim=256),
    "far over": replace(
        PLAIN, vocab_size=128_256, dim=4_096, n_layers=32, n_heads=32, n_kv_heads=8
    ),
    "no single field": TransformerConfig(2_000_000, 4_000, 500, 4, n_kv_heads=4),
    "short window": replace(PLAIN, max_seq_len=31),
    "just long enough": replace(PLAIN, max_seq_len=32),
    "long window": replace(PLAIN, max_seq_len=2**20 + 1),
    "many words": TransformerConfig(2**18 + 1, 2, 1, 1, n_kv_heads=1),
    "everything": TransformerConfig(2**19, 64, 4, 4, n_kv_heads=2, max_seq_len=2**21),
    "M2's window": replace(PLAIN, n_kv_heads=1, max_seq_len=512),
    "one token less": replace(PLAIN, n_kv_heads=1, max_seq_len=511),
    "488 numbers a token": TransformerConfig(256, 122, 2, 1, n_kv_heads=1, max_seq_len=512),
    "489 would be odd, 492": TransformerConfig(256, 82, 3, 1, n_kv_heads=1, max_seq_len=512),
    "fewer heads would do": TransformerConfig(256, 96, 6, 12, n_kv_heads=12, max_seq_len=512),
    "no count of heads would do": TransformerConfig(8, 16, 200, 2, n_kv_heads=1, max_seq_len=512),
    "both, over": replace(PLAIN, dim=256, n_kv_heads=1, max_seq_len=512),
    "M2 alone": TransformerConfig(2**18 + 1, 2, 1, 1, n_kv_heads=1, max_seq_len=512),
}


def drawn_designs() -> list[TransformerConfig]:
    """Return a few dozen valid designs, many of them near a bound of M2."""
    pick = random.Random(2).choice
    designs = []
    for _ in range(24):
        heads = pick([1, 2, 4, 6, 12])
        designs.append(
            TransformerConfig(
                pick([1, 256, 4_096]),
                2 * heads * pick([2, 5, 8, 10]),
                pick([1, 3, 6, 12, 40]),
                heads,
                n_kv_heads=pick([n for n in range(1, heads + 1) if heads % n == 0]),
                max_seq_len=pick([31, 32, 511, 512, M1_LONGEST_WINDOW + 1]),
                tie_word_embeddings=pick([True, False]),
            )
        )
    return designs


VERDICTS = {  # by the milestones that refuse
    (): "accepted by milestones M1 and M2",
    ("M1",): "accepted by milestone M2, not yet by M1",
    ("M2",): "accepted by milestone M1, not yet by M2",
    ("M1", "M2"): "accepted by neither milestone yet",
}


def judgements(path: Path) -> dict[str, list[str]]:
    """Return what the judges say of a file; what M2 asks as M1 does, in a word."""
    first = judge_m1(path)
    said = "It allows no more parameters than M1."
    return {
        "M1": first,
        "M2": [said if finding in first else finding for finding in judge_m2(path)],
    }


def verdict(name: str, found: list[str]) -> list[str]:
    """Return the lines in which a milestone's verdict is shown."""
    refused, accepted = f"Milestone {name} does not accept it yet:", f"✓ Milestone {name} accepts"
    return [refused, *found] if found else [f"{accepted} this design."]


def test_what_the_milestones_would_say_is_said_in_their_words(designer, tmp_path):
    part = designer()
    seen = set()
    for number, config in enumerate([*JUDGED.values(), *drawn_designs()]):
        path = tmp_path / f"{number}.json"
        config.to_json(path)
        load(part, path.name, path.read_bytes())
        expect(part.get_by_text(f"{path.name} is loaded.", exact=True)).to_be_visible()
        wanted = judgements(path)
        shown = texts(part.locator(".gfx-ds-verdict"), "p")
        assert shown == [verdict(name, found) for name, found in wanted.items()]
        refusing = tuple(name for name, found in wanted.items() if found)
        assert VERDICTS[refusing] in part.locator(".gfx-sentence").inner_text()
        in_python = Designer(**config.to_dict()).text()
        assert all(" ".join(lines).removeprefix("✓ ") in in_python for lines in shown)
        seen.add(refusing)
    assert seen == set(VERDICTS)


@pytest.mark.parametrize("config", [PLAIN, JUDGED["fewer heads would do"]])
def test_the_file_says_how_many_key_value_heads_there_are(designer, tmp_path, config):
    part = designer()
    enter(part, config)
    data = json.loads(saved(part, tmp_path / "config.json").read_text(encoding="utf-8"))
    assert data["n_kv_heads"] == config.n_kv_heads


@pytest.mark.parametrize(
    "changes",
    [
        {"n_heads": 6},
        {"n_kv_heads": 3},
        {"dim": 132},
        {"n_layers": 0},
        {"ffn_dim_multiplier": 0},
        {"n_heads": 5, "n_kv_heads": 3},
        {"dim": 132, "n_kv_heads": 8},
        {"vocab_size": 0, "dim": 0},
    ],
)
def test_every_broken_rule_is_named(designer, changes):
    part = designer()
    for field, value in changes.items():
        box(part, field).fill(str(value))
    shown = part.locator(".gfx-ds-broken li").all_inner_texts()
    with pytest.raises(ValueError) as refusal:
        replace(PLAIN, **changes)
    said = str(refusal.value).replace("= 0.0 ", "= 0 ")  # Python writes a number with its point
    assert said in shown and len(shown) == len(changes)
    assert all(any(text.startswith(f"{field} = ") for text in shown) for field in changes)
    for field in changes:
        expect(box(part, field)).to_have_attribute("aria-invalid", "true")
    expect(part.get_by_role("button", name="Download config.json")).to_be_disabled()
    part.get_by_role("button", name="plain", exact=True).click()
    shares_config(PLAIN, part)
    expect(part.locator(".gfx-ds-broken li")).to_have_count(0)


@pytest.mark.parametrize(
    "text", ["", "abc", "1.5", "-4", "2000000000000", "<b>1</b>", "1e400", "٣"]
)
def test_what_is_no_value_is_named_and_the_state_stays(designer, text):
    part = designer()
    box(part, "dim").fill(text)
    expect(part.locator(".gfx-ds-broken li")).to_have_count(1)
    expect(part.locator(".gfx-ds-broken li")).to_contain_text("dim = ")
    part.page.wait_for_timeout(400)  # the state would be in the address by now
    part.page.reload()
    assert box(part, "dim").input_value() == "128"


def test_a_number_is_taken_as_the_page_writes_it(designer):
    part = designer()
    box(part, "vocab_size").fill("8,192")
    shares_config(replace(PLAIN, vocab_size=8_192), part)
    box(part, "vocab_size").press("Tab")
    assert box(part, "vocab_size").input_value() == "8192"
    box(part, "vocab_size").fill("8,19")  # no group of three: neither 819 nor 8.19
    expect(part.locator(".gfx-ds-broken li")).to_contain_text("vocab_size = ")


def test_numbers_follow_from_the_fields(designer):
    part = designer(vocab_size=1000, dim=96, n_heads=6)
    part.get_by_role("grid", name="Where the parameters are").locator("td").nth(2).hover()
    formula = part.locator(".gfx-formula")
    expect(formula).to_contain_text("4 · (2 · 96 · 96 + 2 · 96 · 2 · 16)")
    formula.locator(".gfx-ref").last.click()  # the head size, which is no field
    expect(formula).to_contain_text("16 = 96 / 6")
    formula.locator(".gfx-ref").first.click()
    expect(formula).to_contain_text("chosen")
    part.get_by_role("grid", name="What it costs").locator("td").last.hover()
    config = TransformerConfig(1000, 96, 4, 6, n_kv_heads=2, max_seq_len=256)
    expect(formula.locator(".gfx-value")).to_have_text(f"{config.flops_per_token():,}")
    shown = formula.locator(".gfx-formula-filled").inner_text().split("=")[1].split("a token")[0]
    worked_out = eval(re.sub(r"[,\s]", "", shown).replace("·", "*"))
    assert worked_out == config.flops_per_token()


# Files -------------------------------------------------------------------------------------------


def load(part, name: str, content: bytes) -> None:
    part.locator("input[type=file]").set_input_files(
        {"name": name, "mimeType": "application/json", "buffer": content}
    )


@pytest.mark.parametrize("over", SITES)
def test_a_file_is_loaded_and_what_it_does_not_know_is_kept(designer, tmp_path, over):
    part = designer(over)
    mine = TransformerConfig(
        300,
        48,
        3,
        6,
        n_kv_heads=None,
        max_seq_len=77,
        ffn_dim_multiplier=2.5,
        norm_eps=1e-6,
        rope_theta=5e5,
        tie_word_embeddings=True,
        extra={"name": "<b>my first</b>", "tags": [1, {"a": None}]},
    )
    mine.to_json(tmp_path / "mine.json")
    load(part, "mine.json", (tmp_path / "mine.json").read_bytes())
    expect(part.get_by_text("mine.json is loaded.")).to_be_visible()
    shares_config(mine, part)
    again = TransformerConfig.from_json(saved(part, tmp_path / "config.json"))
    assert again == replace(mine, n_kv_heads=6) and again.extra == mine.extra
    part.get_by_role("button", name="Reset").click()
    assert TransformerConfig.from_json(saved(part, tmp_path / "config.json")) == PLAIN


BAD_FILES = {
    "empty": (b"", "is empty"),
    "no JSON": (b"{dim: 3", "is not JSON"),
    "a list": (b"[1]", "A config is an object"),
    "lacking": (b'{"dim": 32}', "lacks vocab_size, n_layers, n_heads"),
    "a rule": (
        b'{"vocab_size": 8, "dim": 32, "n_layers": 2, "n_heads": 5}',
        "n_heads = 5 cannot be",
    ),
    "a point": (b'{"vocab_size": 8.0, "dim": 32, "n_layers": 2, "n_heads": 4}', "without a point"),
    "twice": (
        b'{"vocab_size": 8, "dim": 32, "dim": 32, "n_layers": 2, "n_heads": 4}',
        "stands twice",
    ),
    "a mark": (b'\xef\xbb\xbf{"dim": 3}', "byte-order mark"),
    "not UTF-8": (b'{"name": "\xff"}', "not UTF-8"),
    "large": (b" " * 70_000, "larger than 64 KiB"),
    "markup": (b"<script>alert(1)</script>", "is not JSON"),
}


@pytest.mark.parametrize("kind", BAD_FILES)
def test_a_bad_file_gives_a_sentence_and_changes_nothing(designer, kind):
    part = designer()
    content, wanted = BAD_FILES[kind]
    load(part, "<b>bad</b>.json", content)
    expect(part.locator(".gfx-ds-file [role=status]")).to_contain_text(wanted)
    shares_config(PLAIN, part)
    load(part, "good.json", json.dumps(BOOK["many words"].to_dict()).encode())
    expect(part.get_by_text("good.json is loaded.")).to_be_visible()
    shares_config(BOOK["many words"], part)


DROP = """(zone, files) => {
  const dataTransfer = new DataTransfer();
  for (const [name, text] of files)
    dataTransfer.items.add(new File([text], name, { type: "application/json" }));
  for (const type of ["dragover", "drop"])
    zone.dispatchEvent(new DragEvent(type, { dataTransfer, bubbles: true }));
}"""


def test_a_file_can_be_dropped_alone_or_with_a_trained_models_others(designer):
    part = designer()
    zone, design = part.get_by_role("group", name="config.json"), BOOK["long memory"]
    zone.evaluate(DROP, [["dropped.json", json.dumps(design.to_dict())]])
    expect(part.get_by_text("dropped.json is loaded.")).to_be_visible()
    shares_config(design, part)
    part.get_by_role("button", name="Reset").click()
    text = json.dumps(llama_config(design))  # as export writes it
    others = [["tokenizer.json", "{}"], ["model.safetensors", "x"]]
    zone.evaluate(DROP, [*others, ["config.json", text]])
    expect(part.get_by_text("config.json is loaded.")).to_be_visible()
    shares_config(
        replace(design, ffn_dim_multiplier=1.5 * design.ffn_hidden_dim / design.dim), part
    )


# As a reader ---------------------------------------------------------------------------------


def test_by_keyboard_alone(designer):
    part = designer()
    keyboard = part.page.keyboard
    box(part, "n_layers").focus()
    keyboard.press("Control+A")
    keyboard.type("6")
    keyboard.press("Tab")  # to its slider
    keyboard.press("ArrowRight")
    assert box(part, "n_layers").input_value() == "7"
    keyboard.press("Tab")
    keyboard.press("Control+A")
    keyboard.type("8")
    box(part, "ffn_dim_multiplier").focus()
    keyboard.press("Control+A")
    keyboard.type("2.75")
    part.get_by_role("checkbox").focus()
    keyboard.press("Space")
    config = replace(
        PLAIN, n_layers=7, n_heads=8, ffn_dim_multiplier=2.75, tie_word_embeddings=True
    )
    shares_config(config, part)


def test_sliders_lead_to_valid_designs_alone(designer):
    part = designer()
    for field in ("vocab_size", "dim", "n_layers", "max_seq_len", "ffn_dim_multiplier"):
        slider = part.get_by_label(f"{field}, valid values")
        for place in (slider.get_attribute("max"), "0", "3"):
            slider.fill(place)
            expect(part.locator(".gfx-ds-broken li")).to_have_count(0)


def test_a_view_can_be_linked_and_comes_back(designer):
    part = designer()
    part.get_by_role("button", name="long memory").click()
    expect(part.page).to_have_url(re.compile("dim=192"))
    part.page.reload()
    shares_config(BOOK["long memory"], part)
    part.get_by_role("button", name="Reset").click()
    shares_config(PLAIN, part)


def test_by_touch(browser, http_site):
    context = browser.new_context(
        viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True
    )
    page = context.new_page()
    page.goto(f"{http_site}/{PAGE}#{ID}")
    part = page.locator(f"#{ID}")
    part.get_by_role("button", name="many words").tap()
    shares_config(BOOK["many words"], part)
    part.get_by_role("checkbox").tap()
    shares_config(replace(BOOK["many words"], tie_word_embeddings=False), part)
    part.get_by_role("grid", name="What it costs").locator("td").nth(2).tap()
    expect(part.locator(".gfx-formula")).to_contain_text("512 = 2 · 4 · 2 · 32")
    context.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("state", [{}, {"dim": 1024}, {"dim": 131, "n_kv_heads": 3}])
def test_on_a_phone_nothing_sticks_out_and_axe_finds_nothing(designer, theme, state):
    part = designer(theme=theme, width=360, **state)
    for closed in part.locator("summary").all():
        closed.click()
    no_sideways_scroll(part.page)
    assert axe(part.page, f"#{ID}") == []
