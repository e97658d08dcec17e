"""The explorer of a trained model: its files are read in the page, its numbers are PyTorch's."""

from __future__ import annotations

import base64
import json
import re

import pytest
import torch
from browsing import axe, no_sideways_scroll
from instrument import (
    SITES,
    formula,
    matrix,
    numbers,
    opener,
    query,
    sentence,
    to_number,
    told,
    twin,
    write_page,
)
from playwright.sync_api import expect
from test_explorers_together import FRAGMENTS, monkey, unharmed

from glassformer.bpe import BytePairTokenizer
from glassformer.checkpoints import save_model
from glassformer.explorers import Reader
from glassformer.generation import generate, next_token_probabilities
from glassformer.huggingface import export
from glassformer.models import Transformer, TransformerConfig
from glassformer.novel import load_novel
from glassformer.records import load_novelist
from glassformer.site_explorers import part_file, script_file
from glassformer.trace import trace

FILES = ("config.json", "model.safetensors", "tokenizer.json")
PROMPT = "The whale’s way, it is"
SCRIPTS = (
    f'<script type="text/plain" data-part="novelist" src="{part_file("novelist")}"></script>'
    f'<script defer src="{script_file(Reader.family)}"></script>'
)


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Return a folder with two pages of the explorer alone, on one of them far below."""
    folder = tmp_path_factory.mktemp("reader")
    for name, above in {"reader": "", "below": '<div style="height: 400vh"></div>'}.items():
        write_page(folder / f"{name}.html", Reader(), SCRIPTS, 760, above)
    return folder


@pytest.fixture
def reader(request, visit):
    """Return a function that opens the explorer in a state and returns its part of the page."""
    return opener(request, visit, "reader.html", "reader")


@pytest.fixture(scope="module")
def mine(tmp_path_factory):
    """Return a model, its tokenizer, and the two folders that hold them, by kind."""
    folder = tmp_path_factory.mktemp("mine")
    tokenizer = BytePairTokenizer.train(load_novel()[:60_000], 300)
    config = TransformerConfig(310, 32, 3, 4, 2, max_seq_len=64, tie_word_embeddings=True)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = Transformer(config).eval()
    for weight in (p for p in model.parameters() if p.dim() > 1):
        weight.data *= 4  # so that it prefers some tokens to others
    folders = {"trained": folder / "trained", "exported": folder / "exported"}
    save_model(model, folders["trained"])
    export(model, folders["exported"])
    for path in folders.values():
        tokenizer.save(path / "tokenizer.json")
    return model, tokenizer, folders


def words_of(tokenizer, ids) -> list[str]:
    """Return tokens as the explorer shows them."""
    return [tokenizer.decode([i]).replace(" ", "␣") for i in ids]


def choose(part, files) -> None:
    part.locator("input[type=file]").set_input_files(files)


def opened(part, folder) -> None:
    """Choose a folder's files, and wait until their model is shown."""
    choose(part, [folder / name for name in FILES])
    expect(part.get_by_role("group", name="The model's files")).to_contain_text("Your model:")


def shows(part, model, ids, words, t, layer, temperature=0.8) -> None:
    """Fail unless the explorer shows what PyTorch makes of ids, at a position and in a block."""
    expect(part.get_by_text("Reading:")).to_have_count(0)
    seen, shown = trace(model.double(), ids), twin(part)
    model.float()
    assert [row[2] for row in shown["The text"]] == words
    assert [int(row[1]) for row in shown["The text"]] == list(ids)
    logits = seen["logits"][t]
    shares = next_token_probabilities(logits, temperature)
    rows = shown[f"What comes next after position {t}"]
    best = [int(row[1]) for row in rows]
    assert (shares[best] >= shares.topk(len(best)).values - 1e-9).all()
    want = torch.stack([logits[best], shares[best]], dim=1)
    got = torch.tensor([[float(x.replace("−", "-")) for x in row[2:]] for row in rows])
    assert torch.allclose(got.double(), want, atol=1e-4)
    attention = numbers(shown[f"Attention from position {t}, block {layer}"])
    assert torch.allclose(attention, seen[f"layers.{layer}.attention"][:, t, : t + 1], atol=6e-5)
    grid = matrix(part, f"Attention from position {t}, block {layer}")
    assert torch.allclose(grid, attention, atol=0.006)
    bar = part.get_by_role("list", name="The likeliest tokens").get_by_role("listitem").first
    printed = to_number(bar.locator(".gfx-number").inner_text())
    assert printed == pytest.approx(shares.max().item(), abs=6e-4)
    kept = numbers(shown[f"In the cache of position {t}, block {layer}"])
    want = [seen[f"layers.{layer}.{name}"][:, t] for name in ("k_rotated", "v")]
    assert torch.allclose(kept, torch.cat(want), atol=6e-5)


@pytest.mark.parametrize("over", SITES)
def test_before_anything_is_dropped_the_novelist_reads(reader, over):
    part = reader(over, prompt=PROMPT, query=2, layer=1)
    model, tokenizer = load_novelist()
    ids = tokenizer.encode(PROMPT)
    shows(part, model, ids, words_of(tokenizer, ids), 2, 1)
    assert "After “’”, position 2" in told(part) and "holds 8 of 256 tokens" in told(part)
    expect(part).to_contain_text("The novelist, 168,912 parameters, trained for this chapter")


@pytest.mark.parametrize("over", SITES)
def test_the_novelist_is_loaded_once_the_explorer_is_near(request, visit, over):
    address = f"{request.getfixturevalue(over)}/below.html"
    part = visit(address).locator("#explorer-reader")
    loaded = "performance.getEntriesByType('resource').map((entry) => entry.name).join()"
    there = "Boolean(globalThis.glassformerParts?.novelist)"
    part.page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 300)))")
    assert part_file("novelist") not in part.page.evaluate(loaded)
    assert not part.page.evaluate(there) and part.locator(".gf-explorer-text").is_visible()
    part.page.evaluate("scrollTo(0, 2.5 * innerHeight)")  # still out of sight
    expect(part.locator(".gfx")).to_be_visible()
    assert part.page.evaluate(there)
    linked = visit(f"{address}#explorer-reader?prompt=Call+me").locator("#explorer-reader")
    expect(linked.locator(".gfx-rd-text")).to_be_in_viewport()
    expect(linked.locator(".gfx-rd-text")).to_have_text("Call me")


def test_without_the_novelist_the_words_stay(request, visit):
    page = visit(f"{request.getfixturevalue('http_site')}/below.html")
    page.evaluate("document.querySelector('[data-part]').removeAttribute('src')")
    page.evaluate("scrollTo(0, 3 * innerHeight)")
    expect(page.get_by_text("This explorer could not start")).to_be_visible()
    expect(page.locator(".gf-explorer-text")).to_be_visible()


@pytest.mark.parametrize("over", SITES)
@pytest.mark.parametrize("kind", ["trained", "exported"])
def test_a_model_of_ones_own_is_read_in_the_page(reader, mine, over, kind):
    model, tokenizer, folders = mine
    part = reader(over, prompt=PROMPT)
    opened(part, folders[kind])
    expect(part).to_contain_text(f"{model.config.num_params():,} parameters")
    ids = tokenizer.encode(PROMPT)
    words = words_of(tokenizer, ids)
    shows(part, model, ids, words, len(ids) - 1, 0)
    part.get_by_role("slider", name="block").fill("2")
    part.get_by_role("group", name="Which token is looked at?").get_by_role("button").nth(3).click()
    shows(part, model, ids, words, 3, 2)
    assert part.locator(".gfx-rd-text").inner_text() == PROMPT


def test_it_writes_what_generate_writes_and_goes_back(reader, mine):
    model, tokenizer, folders = mine
    part = reader(prompt=PROMPT, temperature=0)
    opened(part, folders["trained"])
    ids, text = tokenizer.encode(PROMPT), part.locator(".gfx-rd-text")
    want = generate(model, torch.tensor(ids), 6).tolist()
    for n in range(1, 7):
        part.get_by_role("button", name="Step").click()
        expect(sentence(part)).to_contain_text(f"holds {len(ids) + n} of 64 tokens")
        assert text.inner_text() == tokenizer.decode(want[: len(ids) + n])
    expect(part.locator(".gfx-rd-pace")).to_contain_text("ms a token")
    part.get_by_role("button", name="Back", exact=True).click()
    expect(text).to_have_text(tokenizer.decode(want[:-1]))
    part.get_by_role("button", name="Play").click()  # to the end, for who wants no motion
    expect(sentence(part)).to_contain_text("holds 64 of 64 tokens")
    whole = generate(model, torch.tensor(ids), 64 - len(ids)).tolist()
    assert [int(row[1]) for row in twin(part)["The text"]] == whole
    expect(part.get_by_role("button", name="Step")).to_be_disabled()
    part.get_by_role("button", name="Start", exact=True).click()
    expect(text).to_have_text(PROMPT)


def test_playing_writes_token_by_token_until_it_is_stopped(reader, mine):
    part = reader()
    part.page.emulate_media(reduced_motion="no-preference")
    opened(part, mine[2]["trained"])
    part.get_by_role("button", name="Play").click()
    expect(sentence(part)).to_contain_text(re.compile(r"^\d+ tokens are written"))
    stop = part.get_by_role("button", name="Stop")
    if stop.count():  # a busy machine may have come to the end
        stop.click(timeout=5_000)
    expect(part.get_by_role("button", name="Play")).to_be_visible()
    before = told(part)
    part.page.wait_for_timeout(300)
    assert told(part) == before


def test_a_number_leads_to_how_it_is_made(reader):
    part = reader(temperature=0.5)
    part.locator(".gfx-bars .gfx-number").first.hover()
    key, value, filled = formula(part)
    model, tokenizer = load_novelist()
    logits = trace(model.double(), tokenizer.encode("The whale"))["logits"][-1]
    shares = next_token_probabilities(logits, 0.5)
    assert key == f"share[{shares.argmax()}]" and "e" in filled
    assert value == pytest.approx(shares.max().item(), abs=1e-6)
    part.get_by_role("grid", name="Attention from position").locator("td[data-n]").nth(1).hover()
    key, value, filled = formula(part)
    assert key == "layers.0.attention[0,1,1]" and 0 < value < 1
    part.get_by_title("bytes held").hover()
    assert formula(part)[0] == "bytes held"


# Files that cannot be read -----------------------------------------------------------------------


def spoilt(folder) -> dict[str, tuple[dict[str, bytes], str]]:
    """Return bad sets of files by kind, each with what is said of them."""
    good = {name: (folder / name).read_bytes() for name in FILES}
    config = json.loads(good["config.json"])
    pieces = json.loads(good["tokenizer.json"])
    pieces["model"]["merges"][0] = ["x", "__proto__"]
    without = {name: content for name, content in good.items() if name != "model.safetensors"}
    return {
        "one alone": ({"config.json": good["config.json"]}, "no model.safetensors, no tokenizer"),
        "no weights": (without, "There is no model.safetensors among them"),
        "others": ({"<b>notes</b>.txt": b"x"}, "There is no config.json"),
        "a broken config": (good | {"config.json": b"{"}, "config.json is not JSON"),
        "no text": (good | {"config.json": b"\xff\xfe"}, "config.json is not UTF-8"),
        "a large config": (good | {"config.json": b" " * 70_000}, "larger than 64 KiB"),
        "another design": (
            good | {"config.json": json.dumps(config | {"n_layers": 2}).encode()},
            "The weights hold",
        ),
        "a huge design": (
            good | {"config.json": json.dumps(config | {"vocab_size": 10**12}).encode()},
            "this page reads models of at most 10,000,000",
        ),
        "half the weights": (
            good | {"model.safetensors": good["model.safetensors"][:5000]},
            "not a whole safetensors file",
        ),
        "another tokenizer": (
            good | {"tokenizer.json": json.dumps(pieces).encode()},
            "merge 0 has a piece that the vocabulary lacks",
        ),
        "markup": (good | {"tokenizer.json": b"<script>alert(1)</script>"}, "it is not JSON"),
    }


def test_wrong_files_get_one_sentence_and_change_nothing(reader, mine):
    part = reader()
    before = told(part)
    for kind, (files, wanted) in spoilt(mine[2]["trained"]).items():
        choose(
            part,
            [
                {"name": name, "mimeType": "application/octet-stream", "buffer": content}
                for name, content in files.items()
            ],
        )
        news = part.get_by_role("group", name="The model's files").get_by_role("alert")
        expect(news).to_contain_text(wanted)
        assert news.inner_text().count("\n") == 0 and told(part) == before, kind
    opened(part, mine[2]["trained"])
    part.get_by_role("button", name="Back to the novelist").click()
    expect(sentence(part)).to_have_text(before)


def test_files_can_be_dropped_and_a_letter_unknown_is_named(reader, mine):
    part = reader(written=3)
    files = [
        [name, base64.b64encode((mine[2]["exported"] / name).read_bytes()).decode()]
        for name in FILES
    ]
    part.get_by_role("group", name="The model's files").evaluate(
        """(zone, files) => {
          const dataTransfer = new DataTransfer();
          const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
          for (const [name, text] of files) dataTransfer.items.add(new File([bytes(text)], name));
          for (const type of ["dragover", "drop"])
            zone.dispatchEvent(new DragEvent(type, { dataTransfer, bubbles: true }));
        }""",
        files,
    )
    expect(part.get_by_text("Your model", exact=True)).to_be_visible()
    expect(part.locator(".gfx-rd-text")).to_have_text("The whale")  # nothing is written yet
    before = told(part)
    box = part.get_by_label("Prompt", exact=True)
    for text, wanted in {
        "whale 字": "The letter '字' does not occur",
        "<img src=x onerror=alert(1)>": "The letter '<' does not occur",
        "": "at least one letter",
        "Call me Ishmael, the old man said " * 9: "tokens do not fit",
    }.items():
        box.fill(text)
        expect(part.locator(".gfx-prompt .gfx-error")).to_contain_text(wanted)
        assert told(part) == before
    box.fill("Call me")
    expect(part.locator(".gfx-rd-text")).to_have_text("Call me")
    expect(part.locator(".gfx-prompt .gfx-error")).to_have_text("")


def test_broken_links_and_weights_that_are_no_numbers_break_nothing(reader, mine, tmp_path):
    model, tokenizer, _ = mine
    broken = Transformer(model.config)
    broken.load_state_dict(model.state_dict())
    with torch.no_grad():
        broken.layers[1].attention.wk.weight[0, 0] = float("nan")
        broken.tok_embeddings.weight[5, 1] = float("inf")
    save_model(broken, tmp_path)
    tokenizer.save(tmp_path / "tokenizer.json")
    part = reader(prompt=PROMPT)
    opened(part, tmp_path)
    page, title = part.page, part.page.title()
    for fragment in FRAGMENTS:
        page.evaluate("(f) => { location.hash = `#explorer-reader?${f}`; }", fragment)
        page.evaluate("new Promise(requestAnimationFrame)")
        unharmed(page, part, title)
    monkey(part, 40)
    unharmed(page, part, title)


# As a reader -------------------------------------------------------------------------------------


def test_by_keyboard_a_view_is_made_that_can_be_linked(reader):
    part = reader()
    keyboard = part.page.keyboard
    part.get_by_role("button", name="Step").focus()
    keyboard.press("Enter")
    keyboard.press("Enter")
    part.get_by_role("slider", name="temperature").focus()
    keyboard.press("Home")
    part.get_by_role("slider", name="block").focus()
    keyboard.press("End")
    part.get_by_role("group", name="Which token is looked at?").get_by_role("button").first.focus()
    keyboard.press("Enter")
    state = query(part.page)
    assert set(state.split("&")) == {"written=2", "temperature=0", "layer=2", "query=0"}
    before = told(part)
    part.page.reload()
    expect(sentence(part)).to_have_text(before)
    part.get_by_role("button", name="Reset").click()
    expect(sentence(part)).to_contain_text("position 1")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_on_a_phone_nothing_sticks_out_and_axe_finds_nothing(reader, mine, theme):
    part = reader(theme=theme, width=360, prompt=PROMPT, written=20)
    for own in (False, True):
        if own:
            opened(part, mine[2]["trained"])
            part.get_by_role("button", name="Step").click()
        twin(part)
        no_sideways_scroll(part.page)
        assert axe(part.page, "#explorer-reader") == []
    name, field = part.get_by_text("seed").bounding_box(), part.get_by_label("seed").bounding_box()
    assert name["x"] + name["width"] <= field["x"]  # beside it, as with the sliders
