"""The explorers in Python: their state, their words, and what notebooks and pages get of them."""

from __future__ import annotations

import copy
import inspect
import json
import math
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import ipywidgets
import nbformat
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load
from torch import nn
from traitlets import TraitError

from chapters import ROOT
from glassformer.checkpoints import (
    initial_baby_groot,
    initial_tiny,
    load_baby_groot,
    load_tiny,
    own_tensors,
)
from glassformer.data import (
    CAT_SENTENCES,
    GROOT_SENTENCES,
    Vocabulary,
    cat_vocabulary,
    entropy_floor,
    groot_vocabulary,
    prefix_pairs,
)
from glassformer.explorers import (
    EXPLORERS,
    Attention,
    Block,
    Designer,
    Embedding,
    Everything,
    KvCache,
    Matmul,
    Modern,
    Reader,
    Rope,
    Sampling,
    Tokens,
    Training,
    base,
)
from glassformer.explorers.parts import PARTS, part, tokenizer_of
from glassformer.explorers.words import ranked, table, told
from glassformer.generation import next_token_probabilities
from glassformer.models import BabyGrootGPT, Transformer, TransformerConfig
from glassformer.notebooks import NOTEBOOK_METADATA, WIDGET_VIEW, normalise
from glassformer.records import load_novelist
from glassformer.site import EXPLORER_MIME, notebook_palette_css
from glassformer.site_explorers import explorer_html, safe_json
from glassformer.trace import trace
from glassformer.training import last_token_logits
from test_book import run_nbval

NAMES = "tokens training embedding attention block sampling everything modern rope matmul"
NAMES = [*NAMES.split(), "kv-cache", "designer", "reader"]
WITH_MODEL = {name: kind for name, kind in EXPLORERS.items() if {"groot", "tiny"} & set(kind.needs)}

every = pytest.mark.parametrize("kind", EXPLORERS.values(), ids=EXPLORERS)


@pytest.fixture(autouse=True)
def close_widgets():
    """No explorer outlives its test."""
    yield
    ipywidgets.Widget.close_all()


def groot_trace(prompt: str = "<START> i am groot") -> dict[str, torch.Tensor]:
    """The trained BabyGroot's numbers, straight from the package."""
    return trace(load_baby_groot(), groot_vocabulary().encode(prompt))


def tiny_trace(prompt: str = "the cat sat on the mat") -> dict[str, torch.Tensor]:
    """The trained tiny Transformer's numbers, in float64 as the page computes them."""
    return trace(load_tiny().double(), cat_vocabulary().encode(prompt))


def lines(explorer) -> list[list[str]]:
    """Return each line of an explorer's words, cut into words."""
    return [line.split() for line in explorer.text().splitlines()]


def row(name: str, values) -> list[str]:
    """Return the line of a table that shows these numbers under a name."""
    return [name, *(told(value) for value in values.tolist())]


# State ------------------------------------------------------------------------------------------


def test_there_are_thirteen():
    assert list(EXPLORERS) == NAMES


@every
def test_all_state_reaches_the_front_end(kind):
    explorer = kind()
    assert explorer.state_names()
    for name in ("explorer", "data", *explorer.state_names()):
        assert name in explorer.keys, name  # what ipywidgets keeps in step on both sides
    assert explorer.explorer in EXPLORERS and set(explorer.data) == set(kind.needs)
    assert explorer.state == {name: getattr(explorer, name) for name in explorer.state_names()}


@every
def test_what_the_front_end_sets_python_reads(kind):
    explorer, other = kind(), {"query": 0, "seed": 7, "dim": 4, "sentence": "we are groot"}
    reads_text = kind.reads == "tiny" or kind is Reader
    other["prompt"] = "the dog" if reads_text else "<START> groot"
    change = {name: other[name] for name in explorer.state_names() if name in other}
    assert change
    explorer.set_state(change)  # what arrives from the browser
    assert explorer.state == kind().state | change


@every
def test_the_signature_shows_the_state(kind):
    given = inspect.signature(kind).parameters
    shown = {name: p.default for name, p in given.items() if name not in ("model", "vocabulary")}
    assert shown == kind().state
    assert ("model" in given) == (kind in WITH_MODEL.values())


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Attention(promt="i"), "no 'promt'; it has prompt, query.* Did you mean 'prompt'"),
        (lambda: Attention(prompt="i am root"), "'root' is not in the vocabulary; the nearest"),
        (lambda: Attention(prompt=""), "The prompt is empty"),
        (lambda: Attention(prompt="i am groot i am"), "5 tokens do not fit: .* has 4 places"),
        (lambda: Attention(prompt="i " * 300), "The prompt has 600 letters; 400 is the most"),
        (lambda: Attention(query=-1), "should not be less than 0"),
        (lambda: Attention(step="nowhere"), "'step' trait .* expected any of"),
        (lambda: Tokens(sentence="i am groot i"), "needs contexts of 5 tokens"),
        (lambda: Tokens(sentence="i am root"), "'root' is not in the vocabulary"),
        (lambda: Embedding(token="i am"), "One word is compared with another; 'i am' is 2"),
        (lambda: Embedding(other="root"), "'root' is not in the vocabulary"),
        (lambda: Sampling(written="root"), "'root' is not in the vocabulary"),
        (lambda: Sampling(temperature=math.nan), "'temperature' trait"),
        (lambda: Sampling(temperature=math.inf), "should not be greater"),
        (lambda: Everything(name="heads.bias"), "There is no 'heads.bias'; there are ids"),
        (
            lambda: Everything(changes=[["head.bias", [99], 1]]),
            r"head.bias has shape \[24\]; \[99\]",
        ),
        (lambda: Everything(changes=[["head.bias", [0], "much"]]), "A change is a weight"),
        (lambda: Everything(changes=[["q", [0, 0], 1]]), "There is no 'q'"),
        (lambda: KvCache(prompt="i am"), "'i' is not in the vocabulary"),
        (lambda: Reader(prompt="a 字"), "The letter '字' does not occur in the text"),
        (lambda: Reader(prompt=""), "The prompt is empty"),
        (lambda: Reader(prompt="i " * 300), "The prompt has 600 letters; 400 is the most"),
        (lambda: Reader(prompt="X" * 400), "tokens do not fit: .* has 256 places"),
        (lambda: Attention(vocabulary=groot_vocabulary()), "A vocabulary comes with the model"),
    ],
)
def test_a_state_that_cannot_be_is_told_in_a_sentence(make, sentence):
    with pytest.raises((TraitError, TypeError, ValueError), match=sentence) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_a_refused_state_leaves_the_explorer_as_it_was():
    explorer = Attention(prompt="<START> i am")
    with pytest.raises(TraitError, match="root"):
        explorer.prompt = "i am root"
    assert explorer.prompt == "<START> i am"


def test_its_name_stays():
    with pytest.raises(TraitError):
        Attention().explorer = "block"


# In words ---------------------------------------------------------------------------------------


@every
def test_words_say_what_one_can_do_and_where(kind):
    words = kind().text()
    assert words.startswith(kind.title) and kind.invites in words
    assert "course's site" in words and "JupyterLab" in words
    blocks = words.split("\n\n")
    assert all(block.strip() for block in blocks)
    assert any("\n" in block for block in blocks), "no table"
    assert words == kind().text()


def test_tokens_in_words():
    explorer = Tokens(sentence="groot likes leaf")
    X, Y = prefix_pairs(GROOT_SENTENCES, groot_vocabulary(), 4)
    contexts = [tuple(x) for x in X.tolist()]
    for x, y in zip(*prefix_pairs(["groot likes leaf"], groot_vocabulary(), 4), strict=True):
        count = contexts.count(tuple(x.tolist()))
        begin = [*map(str, x.tolist()), groot_vocabulary().words[y], str(y.item()), str(count)]
        assert begin in [line[:-1] for line in lines(explorer)]
    assert f"{entropy_floor(X, Y):.4f}" in explorer.text()
    total = sum(float(line[-1]) for line in lines(explorer) if len(line) == 8 and line[0] == "1")
    assert 0 < total < entropy_floor(X, Y)  # four of the corpus's contexts


def test_training_in_words():
    X, Y = prefix_pairs(GROOT_SENTENCES, groot_vocabulary(), 4)
    with torch.no_grad():
        logits = last_token_logits(initial_baby_groot(), X)
    words = Training(mask=False, residuals=False).text()
    assert f"{nn.functional.cross_entropy(logits, Y):.4f}" in words
    assert "without mask and residuals" in words and "450    0.7264" in words


def test_embedding_in_words():
    seen, given = (
        groot_trace("<START> i am"),
        {"prompt": "<START> i am", "token": "i", "other": "am"},
    )
    explorer = Embedding(**given)
    for name in ("token_embedding", "h0"):
        assert row("i", seen[name][1]) in lines(explorer)
    assert row("1", seen["position_embedding"][1]) in lines(explorer)
    one, other = load_baby_groot().token_embedding.weight[[11, 3]]
    alike = nn.functional.cosine_similarity(one, other, dim=0).item()
    assert f"of i and am is {told(alike)} and was" in explorer.text()
    before = trace(initial_baby_groot(), [1, 11, 3])["h0"][1]
    assert row("i", before) in lines(Embedding(**given, trained=False))


@pytest.mark.parametrize(
    ("step", "names"),
    [
        ("qkv", ["q", "k", "v"]),
        ("scores", ["scores"]),
        ("attention", ["attention"]),
        ("context", ["context"]),
    ],
)
def test_attention_in_words(step, names):
    seen = groot_trace()
    for name in names:
        assert row("am", seen[name][2]) in lines(Attention(step=step))
    assert f"{100 * seen['attention'][2, 1]:.1f} % i" in Attention().text()


def test_attention_in_words_hides_the_future_and_follows_its_switches():
    seen = groot_trace()
    scores, raw = seen["scores"], seen["scores"] * math.sqrt(8)
    assert [*row("am", scores[2, :3]), "hidden"] in lines(Attention(step="masked_scores"))
    assert row("am", scores[2]) in lines(Attention(step="masked_scores", mask=False))
    assert row("am", raw[2]) in lines(Attention(step="scores", scale=False))
    assert row("am", raw[2]) in lines(Attention(step="products"))
    open_ = scores.softmax(dim=-1)
    assert row("am", open_[2]) in lines(Attention(mask=False))
    assert row("am", (open_ @ seen["v"])[2]) in lines(Attention(mask=False, step="context"))
    assert "without scale and mask" in Attention(mask=False, scale=False).text()


def test_block_in_words():
    seen, explorer = groot_trace(), Block(step="n1")
    for stage in Block.STAGES:
        x = seen[stage][2]
        mean, variance = x.mean(), ((x - x.mean()) ** 2).mean()
        numbers = [told(n.item()) for n in (mean, variance, (x @ x).sqrt())]
        assert [stage, str(len(x)), *numbers] in lines(explorer)
    assert f"n1 is {', '.join(told(x) for x in seen['n1'][2].tolist())}." in explorer.text()
    fires = (seen["ffn_activation"][2] > 0).sum().item()
    assert f"{fires} of 16 hidden units fire" in explorer.text()


def test_sampling_in_words():
    z = groot_trace("<START> groot likes")["logits"][-1]
    p, drawn = z.softmax(dim=-1), next_token_probabilities(z, 0.5, 2, 0.9)
    leaf = groot_vocabulary().encode("leaf")[0]
    shown = lines(Sampling(temperature=0.5, top_k=2, top_p=0.9))
    shares = [f"{100 * p[leaf]:.1f}", "%", f"{100 * drawn[leaf]:.1f}", "%"]
    assert ["leaf", told(z[leaf].item()), *shares] in shown
    assert "goes on: leaf <END>" in Sampling().text()
    assert ["leaf", told(z[leaf].item()), *shares[:2], "100.0", "%"] in lines(
        Sampling(temperature=0)
    )
    longer = groot_trace("groot likes leaf water")["logits"][-1]  # the window slides
    best = groot_vocabulary().words[longer.argmax()]
    assert [best, told(longer.max().item())] in [
        line[:2] for line in lines(Sampling(written="leaf water"))
    ]


def test_sampling_in_words_stops_at_the_end_and_looks_back():
    over = Sampling(written="leaf <END> leaf").text()
    assert (
        "“<START> groot likes leaf <END>” is written and over. After “<START> groot likes leaf”"
        in over
    )
    assert Sampling(written="leaf <END>", back=1).text() == over
    assert "After “<START> groot likes” the five" in Sampling(written="leaf <END>", back=2).text()
    assert "After “<START> groot likes” the five" in Sampling(written="leaf", back=9).text()


@pytest.mark.parametrize("seed", [0, 1, 2**31 - 1])
@pytest.mark.parametrize("written", ["", "friend", "friend likes"])
def test_sampling_in_words_says_what_is_drawn(seed, written):
    prompt = f"<START> groot likes {written}".split()[-4:]
    shares = next_token_probabilities(groot_trace(" ".join(prompt))["logits"][-1], 1.5)
    number = torch.rand(3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)[
        len(written.split())
    ]
    left = 0.0
    for place in shares.argsort(descending=True, stable=True).tolist():
        if left <= number < left + shares[place]:
            break
        left += shares[place].item()
    words = Sampling(seed=seed, written=written, temperature=1.5).text()
    said = f"gives {number:.4f}, which falls between {left:.4f} and {left + shares[place]:.4f}: "
    assert f"Seed {seed} {said}{groot_vocabulary().words[place]} is drawn." in words


def test_everything_in_words():
    seen = groot_trace()
    shown = lines(Everything())
    for name, tensor in seen.items():
        assert [name, *" × ".join(map(str, tensor.shape)).split(), str(tensor.numel())] in shown
    assert f"makes {sum(t.numel() for t in seen.values())} numbers" in Everything().text()
    assert f"probabilities[3, 2] = {seen['probabilities'][3, 2]:.4f}" in Everything().text()


def test_everything_in_words_follows_changed_weights():
    changed = load_baby_groot()
    with torch.no_grad():
        changed.transformer.attn.q.weight[3, 0] = 2.5
    value = trace(changed, groot_vocabulary().encode("<START> i am groot"))["scores"][3, 1]
    change = ["transformer.attn.q.weight", [3, 0], 2.5]
    words = Everything(name="scores", index=[3, 1], changes=[change]).text()
    assert f"scores[3, 1] = {told(value.item(), 4)}" in words
    assert told(value.item(), 4) not in Everything(name="scores", index=[3, 1]).text()
    assert "transformer.attn.q.weight[3, 0] = 2.50" in words


def test_everything_keeps_what_json_cannot_write_as_text():
    odd = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
    shown = Everything(changes=[["head.bias", [n], odd[name]] for n, name in enumerate(odd)])
    assert shown.changes == [["head.bias", [n], name] for n, name in enumerate(odd)]
    assert (
        json.loads(json.dumps(shown.page(), allow_nan=False))["state"]["changes"] == shown.changes
    )
    assert Everything(changes=shown.changes).changes == shown.changes
    assert "probabilities[3, 2] = nan" in shown.text().lower()


def test_modern_in_words_counts_every_parameter_once():
    counted = [line for line in Modern().text().splitlines() if re.search(r" \d+$", line)]
    groot, tiny = (sum(int(re.findall(r"\d+", line)[n]) for line in counted[:-1]) for n in (-2, -1))
    assert [groot, tiny] == [load_baby_groot().num_params(), load_tiny().num_params()]
    assert counted[-1].split() == ["all", str(groot), str(tiny)]


def rope_rows(**state) -> list[list[str]]:
    return [line for line in lines(Rope(**state)) if len(line) == 3 and line[0].isdigit()]


def test_rope_in_words_follows_the_distance_alone():
    score = tiny_trace()["layers.1.scores"][3, 5, 2].item()
    rows = rope_rows(layer=1, head=3, key=2, key_at=2)
    assert rows == [
        [at, key_at, told(score, 4)] for at, key_at in (("5", "2"), ("6", "3"), ("15", "12"))
    ]
    assert rope_rows(layer=1, head=3, key=2, key_at=1)[0][2] != told(score, 4)


def test_rope_in_words_turns_the_pairs_it_is_told_to():
    seen, heads = tiny_trace(), {"q": 3, "k": 1}
    q, k = (seen[f"layers.1.{name}"][head, {"q": 5, "k": 2}[name]] for name, head in heads.items())
    told_score = rope_rows(layer=1, head=3, key=2, key_at=2, turned="none")[0][2]
    assert told_score == told((q @ k).item() / 8**0.5, 4)
    q_turned, k_turned = (
        seen[f"layers.1.{n}_rotated"][heads[n], at] for n, at in (("q", 5), ("k", 2))
    )
    mixed = q @ k - q[2:4] @ k[2:4] + q_turned[2:4] @ k_turned[2:4]
    told_score = rope_rows(layer=1, head=3, key=2, key_at=2, turned="one", pair=1)[0][2]
    assert told_score == told(mixed.item() / 8**0.5, 4)


def test_modern_refuses_a_word_that_the_second_model_does_not_know():
    with pytest.raises(TraitError, match="'zebra' is not in the vocabulary"):
        Modern(tiny_prompt="the zebra")


@pytest.mark.parametrize(
    ("which", "product"), [(w, product) for w, all_ in Matmul.PRODUCTS.items() for product in all_]
)
def test_matmul_in_words_arrives_at_the_traced_number(which, product):
    explorer = Matmul(which=which, product=product, layer=1, head=2, row=2, column=1)
    if which == "groot":
        value = groot_trace()[product][2, 1]
    else:
        seen = tiny_trace()
        value = seen["logits"][2, 1] if product == "logits" else seen[f"layers.1.{product}"]
        if product == "scores":
            value = value[2, 2, 1]
        elif product == "context":
            value = value.unflatten(-1, (4, 8))[2, 2, 1]
        elif product in ("q", "k", "v"):
            value = value.transpose(0, 1).flatten(1)[2, 1]
        elif product != "logits":
            value = value[2, 1]
    assert re.search(rf"(is|it is) {re.escape(told(value.item(), 4))}\.", explorer.text())


def test_matmul_shows_the_scores_where_a_model_lacks_a_product():
    assert "scores of “<START> i am groot”" in Matmul(product="ffn_gate").text()
    assert "scores of “the cat sat" in Matmul(which="tiny", product="ffn_hidden").text()


def test_kv_cache_in_words():
    config = load_tiny().config
    shown = lines(KvCache(prompt="the cat sat", new_tokens=2))
    whole, first = config.multiplications(4), config.multiplications(3)
    step = config.multiplications(1, past=3)
    assert ["on", f"{first:,}", f"{first:,}", "192"] in shown
    assert ["the", f"{whole:,}", f"{step:,}", "256"] in shown
    chunks = config.multiplications(2) + config.multiplications(1, past=2)
    assert ["on", f"{first:,}", f"{chunks:,}", "192"] in lines(KvCache(chunk=2))
    assert "writes 14 tokens" in KvCache(new_tokens=64).text()  # what fits the window


def test_reader_in_words():
    model, tokenizer = load_novelist()
    prompt = "The whale’s\nway, it is"
    ids = tokenizer.encode(prompt)
    seen, explorer = trace(model.double(), ids), Reader(prompt=prompt, query=4, layer=1)
    shown = lines(explorer)
    assert ["The", "␣whale", "’", "s", "↵"] in shown
    for head, values in enumerate(seen["layers.1.attention"][:, 4, :5]):
        assert ["head", str(head), *map(told, values.tolist())] in shown
    shares = next_token_probabilities(seen["logits"][4], 0.8)
    for i in shares.topk(10).indices.tolist():
        word = tokenizer.decode([i]).replace(" ", "␣").replace("\n", "↵")
        assert [word, told(100 * shares[i].item(), 1), "%"] in shown
    numbers = model.config.kv_cache_values(len(ids))
    assert f"holds {len(ids)} of 256 tokens, {numbers} numbers" in explorer.text()
    assert f"The novelist, {model.num_params():,} parameters" in explorer.text()
    greedy = lines(Reader(prompt=prompt, query=4, temperature=0))
    assert ["↵", "100.0", "%"] in greedy and tokenizer.decode([seen["logits"][4].argmax()]) == "\n"
    assert ["head", "0", "1.00"] in lines(Reader(query=0))


def test_reader_tells_of_the_last_tokens_where_there_are_many():
    prompt = "Call me Ishmael. " * 20
    _, tokenizer = load_novelist()
    count = len(tokenizer.encode(prompt))
    explorer = Reader(prompt=prompt)
    assert count > 100 and f"of {count} tokens at the last 16:" in explorer.text()
    assert {len(line) for line in lines(explorer) if line[:1] == ["head"]} == {18}


def test_designer_in_words():
    explorer = Designer()
    assert explorer.config == TransformerConfig(2048, 128, 4, 4, 2, 256)
    assert f"{explorer.config.num_params():,} parameters" in explorer.text()
    parts = explorer._ledger(explorer.config)
    assert sum(parts.values()) == explorer.config.num_params()
    for tied in (
        explorer.config,
        TransformerConfig(300, 64, 2, 8, None, 64, tie_word_embeddings=True),
    ):
        assert sum(Designer._ledger(tied).values()) == tied.num_params()
    assert "n_heads = 3 cannot be: it must divide dim = 128" in Designer(n_heads=3).text()


def test_designer_says_what_the_milestones_say():
    plain = Designer().text()
    assert "Milestone M1 accepts this design." in plain
    assert "Milestone M2 does not accept it yet: max_seq_len = 256 is too short" in plain
    assert "takes 8,388,608 bytes" in plain
    both = Designer(n_kv_heads=1, max_seq_len=512).text()
    assert "Milestone M1 accepts" in both and "Milestone M2 accepts" in both
    over = Designer(dim=256, n_kv_heads=1, max_seq_len=512).text()
    assert "Milestone M1 does not accept it yet: The design has" in over
    assert over.count("more than the 2,000,000 allowed") == 1
    assert "Milestone M2 does not accept it yet: It allows no more parameters" in over


def test_a_config_as_it_stands_in_a_file_is_a_design():
    config = TransformerConfig(300, 64, 2, 8)
    assert Designer(**config.to_dict()).config.kv_heads == 8
    with pytest.raises(ValueError, match="vocab_size"):
        _ = Designer(vocab_size=0).config


def test_equal_numbers_are_ranked_alike_everywhere():
    assert ranked(torch.tensor([0.125, 0.5, 0.125 + 1e-12, 0.5 - 1e-12])) == [1, 3, 0, 2]
    assert told(0.125 + 1e-15) == told(0.125 - 1e-15) == told(0.125)
    assert table(["", "a"], [["row", "−1.00"]]) == "         a\nrow  −1.00"


def test_every_kernel_tells_the_same():
    code = (
        "from glassformer.explorers import EXPLORERS\n"
        "for kind in EXPLORERS.values(): print(kind().text())"
    )
    here = os.environ | {"PYTHONUTF8": "1"}
    told_by = {
        subprocess.run(
            [sys.executable, "-c", code],
            env=here | {"ATEN_CPU_CAPABILITY": kernels},
            capture_output=True,
            encoding="utf-8",
            check=True,
        ).stdout
        for kernels in ("default", "avx2")
    }
    assert len(told_by) == 1 and "0.9382" in told_by.pop()


# The reader's own model ---------------------------------------------------------------------------


def nudged(model: nn.Module) -> nn.Module:
    """A model that is not the course's: every weight moved a little."""
    with torch.no_grad():
        for weight in model.parameters():
            weight += 0.1 * torch.sin(torch.arange(weight.numel())).view_as(weight)
    return model


def mine(kind) -> nn.Module:
    return nudged(load_baby_groot() if "groot" in kind.needs else load_tiny())


@pytest.mark.parametrize("kind", WITH_MODEL.values(), ids=WITH_MODEL)
def test_a_model_of_ones_own_is_shown(kind):
    model = mine(kind)
    explorer, changed = kind(model=model), kind()
    assert explorer.model is model
    replaced = "groot" if "groot" in kind.needs else "tiny"
    sent = load(explorer.data[replaced]["weights"])
    assert sent.keys() == own_tensors(model).keys()
    for name, weight in own_tensors(model).items():
        assert torch.equal(sent[name].double(), weight.double()), name
    if kind is not Modern:  # its table counts parameters only
        assert explorer.text() != changed.text()
    changed.model = model
    assert changed.text() == explorer.text() and changed.data == explorer.data
    given = explorer.page()["data"]
    assert [name for name, data in given.items() if data is not None] == [replaced]
    changed.model = None
    assert changed.text() == kind().text() and set(changed.page()["data"].values()) <= {None}


def test_the_courses_own_model_given_is_no_other():
    for model in (load_baby_groot(), load_tiny(), load_tiny().double()):
        assert set(Matmul(model=model).page()["data"].values()) == {None}


def test_a_model_trained_on_is_shown_once_it_is_given_again():
    model = load_baby_groot()
    explorer = Attention(model=model)
    before = explorer.text()
    nudged(model)
    assert explorer.text() == before
    explorer.model = model
    assert explorer.text() != before


def test_two_models_can_both_be_ones_own():
    explorer = Matmul(model=mine(Attention))
    explorer.model = tiny = mine(Rope)
    assert explorer.model is tiny
    shown = [name for name, data in explorer.page()["data"].items() if data is not None]
    assert shown == ["groot", "tiny"]


@pytest.mark.parametrize(
    ("kind", "model", "sentence"),
    [
        (Attention, load_tiny, "Attention shows a BabyGrootGPT, and this is a Transformer"),
        (Rope, load_baby_groot, "Rope shows a Transformer, and this is a BabyGrootGPT"),
        (
            Modern,
            lambda: nn.Linear(2, 2),
            "shows a BabyGrootGPT or a Transformer, and this is a Li",
        ),
        (Attention, lambda: "groot", "this is a str; give one such as load_baby_groot"),
        (Tokens, load_baby_groot, "Tokens takes no model"),
        (Reader, load_tiny, "Reader takes no model from Python: drop the model's three files"),
        (Attention, lambda: BabyGrootGPT(30, 4), "knows 30 tokens, but the vocabulary has 24"),
        (Attention, lambda: BabyGrootGPT(24, 2), "4 tokens do not fit: .* window has 2 places"),
    ],
)
def test_a_model_that_cannot_be_shown_is_told_in_a_sentence(kind, model, sentence):
    with pytest.raises(ValueError, match=sentence):
        kind(model=model())
    explorer = kind()
    before = explorer.data
    with pytest.raises(ValueError, match=sentence):
        explorer.model = model()
    assert explorer.data is before and explorer.text() == kind().text()


def test_a_model_with_words_of_its_own_brings_them():
    vocabulary = Vocabulary.from_sentences(["rocket likes groot a lot"])
    model = BabyGrootGPT(len(vocabulary), 6, 4)
    with pytest.raises(ValueError, match="'i' is not in the vocabulary"):
        Attention(model=model, vocabulary=vocabulary)
    explorer = Attention(model=model, vocabulary=vocabulary, prompt="rocket likes groot a lot")
    corpus = explorer.data["corpus"]
    assert corpus["words"] == list(vocabulary.words) and corpus["max_len"] == 6
    assert corpus["sentences"] == [] and explorer.vocabulary == vocabulary
    seen = trace(model.double(), vocabulary.encode(explorer.prompt))
    assert row("groot", seen["attention"][2]) in lines(explorer)
    assert explorer.page()["data"]["corpus"]["words"] == list(vocabulary.words)


def test_a_transformer_of_any_shape_is_sent_whole():
    config = TransformerConfig(8, 16, 1, 2, 1, 12, tie_word_embeddings=True)
    model = nudged(Transformer(config)).double()
    with torch.no_grad():
        model.layers[0].attention.wq.weight[0, 0] = math.nan
    held = Rope(model=model).data["tiny"]
    assert TransformerConfig.from_dict(held["config"]) == config
    sent = load(held["weights"])
    assert "output.weight" not in sent and sent["tok_embeddings.weight"].dtype == torch.float32
    assert math.isnan(sent["layers.0.attention.wq.weight"][0, 0])
    model.layers[0].attention.wq.weight.data[0, 0] = 1e300
    sent = load(Rope(model=model).data["tiny"]["weights"])
    assert sent["layers.0.attention.wq.weight"][0, 0] == 1e300


# Parts --------------------------------------------------------------------------------------------


def test_parts_are_the_courses_corpus_and_models():
    assert list(PARTS) == ["corpus", "groot", "initial", "tiny", "novelist"]
    corpus, tiny = part("corpus"), part("tiny")
    assert corpus["words"] == list(groot_vocabulary().words) and corpus["max_len"] == 4
    assert corpus["sentences"] == list(GROOT_SENTENCES)
    published = json.loads((ROOT / "code/glassformer/published.json").read_text(encoding="utf-8"))
    losses = published["babygroot"]["epoch_loss"]
    assert {str(p["epoch"]): p["loss"] for p in corpus["published"]} == losses and len(losses) == 10
    assert tiny["words"] == list(cat_vocabulary().words)
    assert tiny["sentences"] == list(CAT_SENTENCES)
    models = {"groot": load_baby_groot(), "initial": initial_baby_groot(), "tiny": load_tiny()}
    for name, model in models.items():
        sent = load(part(name)["weights"])
        for key, weight in model.state_dict().items():
            assert torch.equal(sent[key].to(weight.dtype), weight), (name, key)
    with pytest.raises(ValueError, match="no part 'tinny'; choose one of corpus, groot"):
        part("tinny")


def test_the_novelist_is_a_part_as_it_ships():
    model, tokenizer = load_novelist()
    held = part("novelist")
    assert TransformerConfig.from_dict(held["config"]) == model.config
    sent = load(held["weights"])
    assert sent.keys() == own_tensors(model).keys() and len(held["weights"]) < 350_000
    for name, weight in own_tensors(model).items():
        assert sent[name].dtype == torch.float16 and torch.equal(sent[name].float(), weight)
    text = "Call me Ishmael. Some years ago"
    assert tokenizer_of(held).encode(text) == tokenizer.encode(text)
    assert json.loads(held["tokenizer"])["model"]["type"] == "BPE" and "\n" not in held["tokenizer"]
    held["config"]["dim"] = 1
    assert part("novelist")["config"]["dim"] == model.config.dim


def test_the_untrained_tiny_model_differs():
    assert Rope(model=initial_tiny()).text() != Rope().text()


# In notebooks -------------------------------------------------------------------------------------


@every
def test_a_cell_gets_the_widget_the_words_and_the_sites_explorer(kind):
    explorer = kind()
    data, _ = explorer._repr_mimebundle_()
    assert set(data) == {"text/plain", EXPLORER_MIME, WIDGET_VIEW}
    assert data["text/plain"] == explorer.text()
    assert data[WIDGET_VIEW]["model_id"] == explorer.model_id
    page = json.loads(json.dumps(data[EXPLORER_MIME], allow_nan=False))
    assert page == {
        "explorer": explorer.explorer,
        "state": explorer.state,
        "data": dict.fromkeys(kind.needs),
    }
    assert repr(explorer).startswith(f"{kind.__name__}(") and "0x" not in repr(explorer)


def test_the_widget_carries_the_bundle_and_colours():
    state = Attention().get_state()
    static = ROOT / "code/glassformer/explorers/static"
    assert state["_esm"] == (static / "notebook.js").read_text(encoding="utf-8")
    assert state["_css"].endswith((static / "explorers.css").read_text(encoding="utf-8"))
    assert state["_css"].startswith(notebook_palette_css(colab=False))
    assert isinstance(state["data"]["groot"]["weights"], bytes)


def test_each_notebook_finds_its_theme():
    css = notebook_palette_css(colab=False)
    for mark in (
        "data-jp-theme-light",
        "vscode-dark",
        'html[theme="dark"]',
        "prefers-color-scheme",
    ):
        assert mark in css
    assert css.count("--gf-query:") == 3
    assert "prefers-color-scheme" not in notebook_palette_css(colab=True)


def test_without_its_bundle_an_explorer_says_what_to_run(monkeypatch, tmp_path):
    monkeypatch.setattr(base, "STATIC", tmp_path)
    with pytest.raises(FileNotFoundError, match="notebook.js is missing.*make bundle"):
        Attention()


def test_the_package_alone_needs_neither_widgets_nor_sphinx():
    code = (
        "import sys, glassformer, glassformer.site, glassformer.trace\n"
        "print([m for m in ('anywidget', 'ipywidgets', 'sphinx', 'docutils') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


def cell(explorer, source: str) -> nbformat.NotebookNode:
    """Return a cell that ends in an explorer, as a kernel leaves it."""
    data, _ = explorer._repr_mimebundle_()
    output = nbformat.v4.new_output("execute_result", copy.deepcopy(data), execution_count=1)
    return nbformat.v4.new_code_cell(source, execution_count=1, outputs=[output])


def test_stored_notebooks_have_no_widget_view():
    notebook = nbformat.v4.new_notebook(cells=[cell(Rope(), "Rope()")])
    assert WIDGET_VIEW in notebook.cells[0].outputs[0].data
    assert set(normalise(notebook).cells[0].outputs[0].data) == {"text/plain", EXPLORER_MIME}


def test_nbval_compares_words_and_state_and_misses_no_widget_view(tmp_path):
    source = "from glassformer.explorers import Rope\n\nRope(query=4)"
    cells = [cell(Rope(query=4), source) for _ in range(3)]
    words = cells[1].outputs[0].data
    words["text/plain"] = words["text/plain"].replace("query at", "query on")
    cells[2].outputs[0].data[EXPLORER_MIME]["state"]["query"] = 3
    told = run_nbval(nbformat.v4.new_notebook(cells=cells), tmp_path)
    assert "2 failed, 1 passed" in told
    assert re.findall(r"FAILED demo.ipynb::Cell (\d)", told) in ([], ["1", "2"])


# On pages -----------------------------------------------------------------------------------------


class Outline(HTMLParser):
    """Read a page's elements, and the data of its JSON scripts."""

    def __init__(self):
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[dict] = []
        self.text, self.script = "", ""

    def handle_starttag(self, tag, attributes):
        """Keep the element."""
        self.tags.append(tag)
        self.attributes.append(dict(attributes))

    def handle_data(self, data):
        """Keep texts, scripts apart."""
        if self.tags and self.cdata_elem == "script":
            self.script += data
        else:
            self.text += data


@given(st.text(), st.text(alphabet="<>/script!-&\"'{}", max_size=30), st.text(max_size=20))
def test_no_text_leaves_its_place_in_a_page(prompt, nasty, words):
    state = {"prompt": prompt + nasty, "list": [nasty], nasty: prompt}
    page = {"explorer": "attention", "state": state, "data": {"groot": None}}
    # Words have no markup either; what a browser reads of a line end is not the question here.
    said = re.sub(r"[\r\n\0]+", " ", words + nasty)
    outline = Outline()
    outline.feed(explorer_html(page, f"{said}.\n\n{said}\nand more"))
    outline.close()
    assert outline.tags == ["div", "script", "div", "p", "pre"]
    assert json.loads(outline.script) == page
    assert said in outline.text


@pytest.mark.parametrize("text", ["</script>", "<!--<script>", "]]>", "\u2028", "&lt;"])
def test_json_in_a_page_cannot_end_its_script(text):
    shown = safe_json({text: text})
    assert "<" not in shown and json.loads(shown) == {text: text}
    with pytest.raises(ValueError, match="JSON"):
        safe_json({"a": math.nan})


CONF = """
project = "x"
extensions = ["myst_nb", "glassformer.site"]
html_theme = "basic"
nb_execution_mode = "off"
nb_ipywidgets_js = {}
"""
INDEX = """
# Index

```{toctree}
bare
late
notebook
```

```{explorer} attention
:prompt: <START> i am
:query: 1
:scale: false
```

```{explorer} attention
```

```{explorer} everything
:index: [3, 2]
:changes: [["head.bias", [2], 0.5]]
```
"""


def sphinx(source: Path, *options: str) -> tuple[int, str]:
    """Build the pages in a folder; return the exit status and what was told."""
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", *options]
    command += [str(source), str(source.parent / "site")]
    run = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace")
    return run.returncode, run.stderr


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> Path:
    """A small site, built on two processes: three pages with explorers, one without."""
    folder = tmp_path_factory.mktemp("pages")
    source = folder / "source"
    source.mkdir()
    (source / "conf.py").write_text(CONF, encoding="utf-8")
    (source / "index.md").write_text(INDEX, encoding="utf-8")
    (source / "bare.md").write_text("# Bare\n\nNo explorer.\n", encoding="utf-8")
    (source / "late.md").write_text("# Late\n\n```{explorer} reader\n```\n", encoding="utf-8")
    own = KvCache(model=mine(KvCache), prompt="the dog")
    notebook = nbformat.v4.new_notebook(cells=[cell(own, "mine"), cell(Tokens(), "Tokens()")])
    notebook.cells.insert(0, nbformat.v4.new_markdown_cell("# Notebook"))
    state = {"version_major": 2, "version_minor": 0, "state": {"a": {"model_name": "AnyModel"}}}
    notebook.metadata = nbformat.from_dict(NOTEBOOK_METADATA)
    notebook.metadata["widgets"] = {"application/vnd.jupyter.widget-state+json": state}
    nbformat.write(notebook, source / "notebook.ipynb")
    assert sphinx(source, "-j", "2") == (0, "")
    return folder


def page(pages: Path, name: str) -> str:
    return (pages / "site" / f"{name}.html").read_text(encoding="utf-8")


def loads(text: str) -> list[str]:
    """Return the explorers' files that a page loads, in order."""
    return re.findall(r'(?:src|href)="_static/(glassformer-[\w.-]+?)(?:\?[^"]*)?"', text)


def explorers_in(text: str) -> list[tuple[str, dict]]:
    found = re.findall(
        r'<div class="gf-explorer" id="([\w-]+)" data-explorer="[\w-]+">'
        r'<script type="application/json">(.*?)</script>',
        text,
    )
    return [(place, json.loads(data)) for place, data in found]


def test_a_page_has_its_explorers_each_under_a_name_of_its_own(pages):
    (one, first), (two, second), (three, third) = explorers_in(page(pages, "index"))
    assert [one, two, three] == [
        "explorer-attention",
        "explorer-attention-2",
        "explorer-everything",
    ]
    assert first == Attention(prompt="<START> i am", query=1, scale=False).page()
    assert second == Attention().page()
    assert third == Everything(changes=[["head.bias", [2], 0.5]]).page()


def test_a_page_holds_the_words_where_no_script_runs(pages):
    outline = Outline()
    outline.feed(page(pages, "index"))
    for explorer in (Attention(prompt="<START> i am", query=1, scale=False), Attention()):
        for block in explorer.text().split("\n\n"):
            assert block in outline.text


def test_a_page_loads_what_its_explorers_need_and_no_more(pages):
    style = "glassformer-explorers.css"
    script, other = (f"glassformer-explorers-{family}.js" for family in ("groot", "llama"))
    corpus, groot = "glassformer-part-corpus.js", "glassformer-part-groot.js"
    assert loads(page(pages, "index")) == [style, corpus, groot, script]
    assert loads(page(pages, "notebook")) == [style, corpus, script, other]  # the model came along
    assert loads(page(pages, "bare")) == []
    for name in loads(page(pages, "index")):
        assert (pages / "site/_static" / name).is_file()
    assert not re.search(r'type="module"|fetch\(|blob:', page(pages, "index"))


def test_a_heavy_part_is_named_in_its_page_and_loaded_by_no_browser(pages):
    text, part_of_it = page(pages, "late"), "glassformer-part-novelist.js"
    assert part_of_it in loads(text) and len(loads(text)) == 3
    (tag,) = re.findall(rf"<script [^>]*{part_of_it}[^>]*>", text)
    assert 'type="text/plain"' in tag and 'data-part="novelist"' in tag and "?v=" in tag
    assert "text/plain" not in page(pages, "index")


def test_a_notebooks_explorer_is_the_one_that_ran(pages):
    text = page(pages, "notebook")
    (place, own), (_, tokens) = explorers_in(text)
    assert place == "explorer-kv-cache"
    assert own == KvCache(model=mine(KvCache), prompt="the dog").page()
    assert own["data"]["tiny"]["weights"]["$bytes"] and tokens == Tokens().page()
    assert "widget-state" not in text and "widget-view" not in text


def test_a_parts_script_gives_the_page_what_python_has(pages):
    for name in PARTS:
        script = (pages / "site/_static" / f"glassformer-part-{name}.js").read_text("utf-8")
        start = f"(globalThis.glassformerParts ??= {{}}).{name} = "
        assert script.startswith(start) and script.endswith(";\n")
        assert json.loads(script[len(start) : -2]) == json.loads(
            json.dumps(base.jsonable(part(name)))
        )


def test_building_again_changes_no_page_that_stays(pages):
    before = {name: page(pages, name) for name in ("index", "notebook")}
    (pages / "source/bare.md").write_text("# Bare\n\nStill none.\n", encoding="utf-8")
    assert sphinx(pages / "source") == (0, "")
    assert "Still none" in page(pages, "bare") and loads(page(pages, "bare")) == []
    (pages / "source/index.md").write_text(INDEX.replace("# Index", "# Start"), encoding="utf-8")
    assert sphinx(pages / "source") == (0, "")
    assert explorers_in(page(pages, "index")) == explorers_in(before["index"])
    assert loads(page(pages, "index")) == loads(before["index"])
    assert page(pages, "notebook").replace("Start", "Index") == before["notebook"]


def test_other_formats_hold_the_words(pages):
    assert sphinx(pages / "source", "-b", "text", "-d", str(pages / "text")) == (0, "")
    words = (pages / "site/index.txt").read_text(encoding="utf-8")
    assert " ".join(Attention().text().split()) in " ".join(words.split())


BAD = {
    "```{explorer} atention\n```": "no explorer 'atention'; there are tokens, training",
    "```{explorer} attention\n:promt: i am\n```": "no 'promt'; it has prompt, query, step",
    "```{explorer} attention\n:prompt: i am root\n```": "'root' is not in the vocabulary",
    "```{explorer} attention\n:query: two\n```": "query = 'two' cannot be read",
    "```{explorer} attention\n:query: -1\n```": "should not be less than 0",
    "```{explorer} attention\n:step: nowhere\n```": "expected any of",
    "```{explorer} attention\n:mask: 2.5\n```": "'mask' trait",
    "```{explorer} everything\n:index: 3\n```": "'index' trait",
    "```{explorer} designer\n:dim: NaN\n```": "'dim' trait",
}


def test_a_directive_that_cannot_be_fails_the_strict_build(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    (source / "conf.py").write_text(CONF, encoding="utf-8")
    (source / "index.md").write_text("# Bad\n\n" + "\n\n".join(BAD), encoding="utf-8")
    status, told = sphinx(source)
    assert status == 1
    warnings = [line for line in told.splitlines() if "WARNING: explorer" in line]
    assert len(warnings) == len(BAD)
    for sentence, warning in zip(BAD.values(), warnings, strict=True):
        assert sentence in warning and "index.md:" in warning
    assert loads((tmp_path / "site/index.html").read_text(encoding="utf-8")) == []


def test_a_site_without_its_bundle_says_what_to_run(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    (source / "conf.py").write_text(
        CONF + "import glassformer.explorers.base as base\nbase.STATIC /= 'nowhere'\n"
    )
    (source / "index.md").write_text("# Index\n")
    status, told = sphinx(source)
    assert status and "site-groot.js is missing): run `make bundle`" in told
