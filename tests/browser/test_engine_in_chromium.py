"""The engine in a real Chromium computes PyTorch's numbers: every intermediate, every gradient."""

from __future__ import annotations

import random
import subprocess

import pytest
import torch
import torch.nn.functional as F
from browsing import ROOT

from glassformer.models import BabyGrootGPT, Transformer, TransformerConfig
from glassformer.trace import trace
from glassformer.training import last_token_logits

EXPLORERS = ROOT / "code/explorers"
LIMIT = 1e-10  # of the largest entry
SHAPES = ((24, 4, 8), (5, 3, 2), (40, 9, 6))  # vocabulary, window, width of BabyGroots
CONFIGS = (
    dict(vocab_size=8, dim=32, n_layers=2, n_heads=4, n_kv_heads=2, max_seq_len=16),
    dict(vocab_size=11, dim=12, n_layers=3, n_heads=3, n_kv_heads=1, max_seq_len=20),
    dict(vocab_size=6, dim=8, n_layers=1, n_heads=2, max_seq_len=9, tie_word_embeddings=True),
)

MODEL = """const tensors = Object.fromEntries(Object.entries(given.weights).map(
    ([name, [shape, data]]) => [name, { shape, data: Float64Array.from(data) }]));
  const model = given.config
    ? new engine.Transformer(given.config, tensors) : engine.BabyGroot.fromWeights(tensors);"""
TRACES = f"""(given) => {{
  {MODEL}
  const plain = ([name, {{ shape, data }}]) => [name, [shape, [...data]]];
  const traced = (ids) => Object.fromEntries(Object.entries(model.trace(ids)).map(plain));
  return given.prompts.map(traced);
}}"""
PIECES = f"""(given) => {{
  {MODEL}
  return given.prompts.map((ids) => {{
    const cache = new engine.KVCache(model.config), logits = [];
    for (let start = 0, size = 1; start < ids.length; start += size, size = 1 + (size % 3))
      logits.push(...model.forward(ids.slice(start, start + size), {{ cache }}).data);
    return logits;
  }});
}}"""
GRADIENTS = f"""(given) => {{
  {MODEL}
  const pass = new engine.LastTokenPass(model);
  given.prompts.forEach((ids, n) => {{
    pass.forward(ids);
    pass.backward(given.targets[n], 1 / given.prompts.length);
  }});
  return [...pass.gradients];
}}"""


@pytest.fixture(scope="module")
def engine(browser, tmp_path_factory):
    """Return a page in which the engine's sources are there as `engine`."""
    script = tmp_path_factory.mktemp("engine") / "engine.js"
    command = [EXPLORERS / "node_modules/.bin/esbuild", EXPLORERS / "src/engine/index.js"]
    options = ["--bundle", "--format=iife", "--global-name=engine", f"--outfile={script}"]
    subprocess.run([*command, *options, "--log-level=warning"], check=True, timeout=120)
    page = browser.new_page()
    page.set_content("<title>engine</title>")
    page.add_script_tag(path=script)
    yield page
    page.close()


def drawn(model: torch.nn.Module, seed: int) -> torch.nn.Module:
    """Return the model in float64 with weights drawn wide, norms and biases too."""
    torch.manual_seed(seed)
    model = model.double()
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(torch.randn_like(weight) * (0.3, 1.0)[seed % 2])
    return model


def given(model, prompts, **more) -> dict:
    weights = {n: (list(w.shape), w.flatten().tolist()) for n, w in model.state_dict().items()}
    if getattr(getattr(model, "config", None), "tie_word_embeddings", False):
        weights.pop("output.weight", None)
    return {"weights": weights, "prompts": prompts, **more}


def prompts_for(vocab_size: int, window: int, seed: int, count: int) -> list[list[int]]:
    draw = random.Random(seed)
    lengths = [draw.randint(1, window) for _ in range(count)]
    return [[draw.randrange(vocab_size) for _ in range(n)] for n in lengths]


def distance(ours: torch.Tensor, wanted: torch.Tensor) -> float:
    """Return the largest difference, relative to the largest finite entry."""
    finite = wanted[wanted.isfinite() & (wanted > -1e8)]
    hidden = ~wanted.isfinite() | (wanted <= -1e8)
    assert torch.equal(ours[hidden], wanted[hidden])
    scale = finite.abs().max() if finite.numel() else torch.tensor(1.0)
    return ((ours - wanted)[~hidden].abs().max() / scale.clamp(min=1e-300)).item()


def check_traces(found: list[dict], model, prompts: list[list[int]]) -> None:
    for ids, ours in zip(prompts, found, strict=True):
        seen = trace(model, torch.tensor(ids))
        assert list(ours) == list(seen)
        for name, wanted in seen.items():
            shape, data = ours[name]
            assert shape == list(wanted.shape), name
            tensor = torch.tensor(data, dtype=torch.float64).reshape(shape)
            assert distance(tensor, wanted.double()) <= LIMIT, name


@pytest.mark.parametrize("sizes", SHAPES)
@pytest.mark.parametrize("seed", range(4))
def test_every_intermediate_of_baby_groot_is_pytorchs(engine, sizes, seed):
    model = drawn(BabyGrootGPT(*sizes), seed)
    prompts = prompts_for(sizes[0], sizes[1], seed, 10)
    check_traces(engine.evaluate(TRACES, given(model, prompts)), model, prompts)


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("seed", range(4))
def test_every_intermediate_of_the_transformer_is_pytorchs(engine, config, seed):
    model = drawn(Transformer(TransformerConfig(**config)), seed)
    prompts = prompts_for(config["vocab_size"], config["max_seq_len"], seed, 10)
    data = given(model, prompts, config=config)
    check_traces(engine.evaluate(TRACES, data), model, prompts)
    with torch.no_grad():
        for ids, logits in zip(prompts, engine.evaluate(PIECES, data), strict=True):
            wanted = model(torch.tensor([ids]))[0].flatten()
            assert distance(torch.tensor(logits, dtype=torch.float64), wanted) <= LIMIT


@pytest.mark.parametrize("sizes", SHAPES)
@pytest.mark.parametrize("seed", range(4))
def test_every_gradient_of_baby_groot_is_autograds(engine, sizes, seed):
    model = drawn(BabyGrootGPT(*sizes), seed)
    draw = random.Random(seed)
    rows = [[draw.randrange(1, sizes[0]) for _ in range(sizes[1])] for _ in range(12)]
    targets = [draw.randrange(sizes[0]) for _ in rows]
    found = engine.evaluate(GRADIENTS, given(model, rows, targets=targets))
    F.cross_entropy(last_token_logits(model, torch.tensor(rows)), torch.tensor(targets)).backward()
    wanted = torch.cat([p.grad.flatten() for p in model.parameters()])
    assert distance(torch.tensor(found, dtype=torch.float64), wanted) <= LIMIT


def test_a_weight_changed_a_little_is_noticed(engine):
    model, prompts = drawn(BabyGrootGPT(24, 4, 8), 0), [[1, 11, 3, 8]]
    found = engine.evaluate(TRACES, given(model, prompts))
    with torch.no_grad():
        model.transformer.attn.q.weight[0, 0] += 1e-8
    with pytest.raises(AssertionError, match="q"):
        check_traces(found, model, prompts)
