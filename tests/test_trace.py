"""The trace shows the one forward pass, by the names that everything else uses."""

from __future__ import annotations

import math
import threading

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from glassformer import trace as trace_module
from glassformer.checkpoints import load_baby_groot, load_tiny
from glassformer.models import BabyGrootGPT, KVCache, Transformer, TransformerConfig
from glassformer.trace import note, trace
from one_sentence import refused

GROOT_NAMES = """ids token_embedding position_embedding h0 q k v scores masked_scores attention
context r1 n1 ffn_hidden ffn_activation ffn_out r2 h_out logits probabilities""".split()

LAYER_NAMES = """attention_norm q k v q_rotated k_rotated scores masked_scores attention context
attention_out r1 ffn_norm ffn_gate ffn_up ffn_hidden ffn_out r2""".split()

# Unequal sizes, so that no transposed tensor can pass.
CONFIG = TransformerConfig(11, 24, 3, 6, n_kv_heads=2, max_seq_len=9, ffn_dim_multiplier=3.0)


def groot() -> BabyGrootGPT:
    torch.manual_seed(0)
    return BabyGrootGPT(vocab_size=13, max_len=5, embed_dim=6).double()


def llama() -> Transformer:
    torch.manual_seed(0)
    model = Transformer(CONFIG).double()
    for p in model.parameters():
        torch.nn.init.normal_(p)
    return model


def llama_names(layers: int) -> list[str]:
    blocks = [f"layers.{n}.{name}" for n in range(layers) for name in LAYER_NAMES]
    return ["ids", "h0", *blocks, "h_out", "logits", "probabilities"]


def same(found: torch.Tensor, expected: torch.Tensor) -> None:
    assert found.shape == expected.shape, f"{list(found.shape)} is not {list(expected.shape)}"
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)


def test_names_stand_in_the_order_of_the_pass():
    assert list(trace(groot(), [1, 2, 3])) == GROOT_NAMES
    assert list(trace(llama(), [1, 2, 3])) == llama_names(3)
    assert list(trace(load_tiny(), [1, 2, 3])) == llama_names(2)


def groot_by_hand(model: BabyGrootGPT, ids: torch.Tensor) -> dict[str, torch.Tensor]:
    """Compute each intermediate of one sequence [T] from the one before, with torch alone."""
    w, T, d = model.state_dict(), len(ids), 6
    t = {"ids": ids, "token_embedding": w["token_embedding.weight"][ids]}
    t["position_embedding"] = w["position_embedding.weight"][:T]
    t["h0"] = t["token_embedding"] + t["position_embedding"]
    for name in "qkv":
        key = f"transformer.attn.{name}"
        t[name] = torch.einsum("ti,oi->to", t["h0"], w[f"{key}.weight"]) + w[f"{key}.bias"]
    t["scores"] = torch.einsum("ti,si->ts", t["q"], t["k"]) / math.sqrt(d)
    t["masked_scores"] = t["scores"].clone()
    for row in range(T):
        t["masked_scores"][row, row + 1 :] = -1e9
    exp = t["masked_scores"].exp()
    t["attention"] = exp / exp.sum(dim=1, keepdim=True)
    t["context"] = torch.einsum("ts,sd->td", t["attention"], t["v"])
    t["r1"] = t["h0"] + t["context"]
    norm = lambda x, n: F.layer_norm(  # noqa: E731
        x, (d,), w[f"transformer.{n}.weight"], w[f"transformer.{n}.bias"]
    )
    t["n1"] = norm(t["r1"], "norm1")
    t["ffn_hidden"] = F.linear(t["n1"], w["transformer.ffn.0.weight"], w["transformer.ffn.0.bias"])
    t["ffn_activation"] = t["ffn_hidden"].clamp(min=0)
    t["ffn_out"] = F.linear(
        t["ffn_activation"], w["transformer.ffn.2.weight"], w["transformer.ffn.2.bias"]
    )
    t["r2"] = t["n1"] + t["ffn_out"]
    t["h_out"] = norm(t["r2"], "norm2")
    t["logits"] = F.linear(t["h_out"], w["head.weight"], w["head.bias"])
    t["probabilities"] = F.softmax(t["logits"], dim=1)
    return t


def turned(x: torch.Tensor, theta: float) -> torch.Tensor:
    """Turn each pair of neighbours of x [heads, T, D] by its position's angle, by a 2×2 matrix."""
    _, T, D = x.shape
    out = torch.empty_like(x)
    for t in range(T):
        for i in range(0, D, 2):
            a = t * theta ** (-i / D)
            turn = torch.tensor(
                [[math.cos(a), -math.sin(a)], [math.sin(a), math.cos(a)]], dtype=x.dtype
            )
            out[:, t, i : i + 2] = x[:, t, i : i + 2] @ turn.T
    return out


def llama_by_hand(model: Transformer, ids: torch.Tensor) -> dict[str, torch.Tensor]:
    """Compute each intermediate of one sequence [T] from the one before, with torch alone."""
    c, w, T = model.config, model.state_dict(), len(ids)
    H, K, D = 6, 2, 4
    rms = lambda x, key: F.rms_norm(x, (c.dim,), w[key], c.norm_eps)  # noqa: E731
    h = w["tok_embeddings.weight"][ids]
    t = {"ids": ids, "h0": h}
    for n in range(c.n_layers):
        here = f"layers.{n}."
        x = rms(h, here + "attention_norm.weight")
        q, k, v = (
            (x @ w[f"{here}attention.w{letter}.weight"].T).view(T, heads, D).transpose(0, 1)
            for letter, heads in (("q", H), ("k", K), ("v", K))
        )
        qr, kr = turned(q, c.rope_theta), turned(k, c.rope_theta)
        scores = torch.stack([qr[i] @ kr[i * K // H].T / math.sqrt(D) for i in range(H)])
        masked = scores.masked_fill(torch.ones(T, T).triu(1).bool(), -math.inf)
        attention = F.softmax(masked, dim=-1)
        context = torch.cat([attention[i] @ v[i * K // H] for i in range(H)], dim=-1)
        out = context @ w[here + "attention.wo.weight"].T
        r1 = h + out
        y = rms(r1, here + "ffn_norm.weight")
        gate, up = (y @ w[f"{here}feed_forward.w_{part}.weight"].T for part in ("gate", "up"))
        hidden = gate * torch.sigmoid(gate) * up
        ffn_out = hidden @ w[here + "feed_forward.w_down.weight"].T
        h = r1 + ffn_out
        values = (x, q, k, v, qr, kr, scores, masked, attention, context, out, r1, y, gate, up)
        values += (hidden, ffn_out, h)
        t |= {here + name: value for name, value in zip(LAYER_NAMES, values, strict=True)}
    t["h_out"] = rms(h, "norm.weight")
    t["logits"] = t["h_out"] @ w["output.weight"].T
    t["probabilities"] = F.softmax(t["logits"], dim=-1)
    return t


@pytest.mark.parametrize(
    ("build", "by_hand", "length", "words"),
    [(groot, groot_by_hand, 5, 13), (llama, llama_by_hand, 9, 11)],
    ids=["groot", "llama"],
)
def test_every_tensor_equals_its_formula(build, by_hand, length, words):
    model = build()

    @settings(max_examples=15)
    @given(st.lists(st.integers(0, words - 1), min_size=1, max_size=length))
    def equals(ids):
        seen = trace(model, ids)
        expected = by_hand(model, torch.tensor(ids))
        assert list(seen) == list(expected)
        for name, tensor in expected.items():
            same(seen[name], tensor)

    equals()


def test_a_wrong_formula_is_seen():
    model, ids = groot(), torch.tensor([1, 2, 3])
    expected = groot_by_hand(model, ids)
    with pytest.raises(AssertionError):
        same(trace(model, ids)["scores"], expected["scores"] * math.sqrt(6))
    with pytest.raises(AssertionError):
        same(trace(model, ids)["q"], expected["q"].T)


@pytest.mark.parametrize("model", [load_baby_groot(), load_tiny()], ids=["groot", "tiny"])
def test_it_observes_what_the_model_returns(model):
    ids = torch.tensor([[1, 3, 2], [4, 5, 6]])
    batched = trace(model, ids)
    returned = model(ids)
    logits = returned[0] if isinstance(returned, tuple) else returned
    assert torch.equal(batched["logits"], logits)
    assert torch.equal(batched["probabilities"], logits.softmax(dim=-1))
    assert torch.equal(batched["ids"], ids)
    if isinstance(returned, tuple):
        assert torch.equal(batched["attention"], returned[1])
    dtype = next(model.parameters()).dtype
    assert all(t.dtype == dtype for name, t in batched.items() if name != "ids")
    assert not any(t.requires_grad for t in batched.values())


@pytest.mark.parametrize("build", [groot, llama])
def test_one_dimension_in_gives_no_batch_dimension_out(build):
    model = build()
    ids = torch.tensor([[1, 2, 3, 4], [5, 4, 3, 3]])
    batched = trace(model, ids)
    for row in range(2):
        alone = trace(model, ids[row])
        assert list(alone) == list(batched)
        for name, tensor in alone.items():
            same(tensor, batched[name][row])
    assert all(tensor.shape[0] == 2 for tensor in batched.values())


def test_with_a_cache_it_continues():
    model, cache = llama(), KVCache(CONFIG, dtype=torch.float64)
    whole = trace(model, [1, 2, 3, 4, 5])
    trace(model, [1, 2, 3], cache)
    rest = trace(model, [4, 5], cache)
    assert cache.length == 5 and list(rest) == list(whole)
    same(rest["logits"], whole["logits"][3:])
    same(rest["layers.2.attention"], whole["layers.2.attention"][:, 3:])


def test_nothing_is_recorded_outside():
    assert trace_module._recording.get() is None
    tensor = torch.ones(2)
    assert note("anything", tensor) is tensor
    groot()(torch.tensor([[1, 2]]))
    assert trace_module._recording.get() is None


def test_traces_in_two_threads_do_not_meet():
    """Each waits in the middle of its pass until the other is there too."""
    both, seen = threading.Barrier(2, timeout=30), {}

    class Waiting(torch.nn.Module):
        def forward(self, ids):
            note("before", ids)
            both.wait()
            note("logits", torch.zeros(*ids.shape, 3))
            both.wait()

    def run(word):
        seen[word] = trace(Waiting(), [word, word])

    threads = [threading.Thread(target=run, args=(word,)) for word in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for word in (1, 2):
        assert list(seen[word]) == ["before", "logits", "probabilities"]
        assert seen[word]["before"].tolist() == [word, word]


def test_a_pass_in_one_thread_is_not_recorded_by_a_trace_in_another():
    class Busy(torch.nn.Module):
        def forward(self, ids):
            other = threading.Thread(target=lambda: groot()(torch.tensor([[1, 2]])))
            other.start()
            other.join()
            note("logits", torch.zeros(*ids.shape, 3))

    assert list(trace(Busy(), [1])) == ["logits", "probabilities"]


class Inner(torch.nn.Module):
    """Traces another model in the middle of its own pass, then fails if asked to."""

    def __init__(self, fails: bool) -> None:
        super().__init__()
        self.fails = fails

    def forward(self, ids):
        note("before", ids)
        trace(groot(), [1, 2])
        note("after", ids)
        if self.fails:
            raise RuntimeError("on purpose")
        note("logits", torch.zeros(*ids.shape, 3))


def test_traces_can_be_nested():
    assert list(trace(Inner(fails=False), [1])) == ["before", "after", "logits", "probabilities"]


def test_a_pass_that_fails_leaves_nothing_behind():
    with pytest.raises(RuntimeError, match="on purpose"):
        trace(Inner(fails=True), [1])
    assert trace_module._recording.get() is None
    assert list(trace(groot(), [1])) == GROOT_NAMES


@pytest.mark.parametrize("build", [groot, llama])
@pytest.mark.parametrize(
    ("ids", "words"),
    [
        ([], "empty"),
        ("i am", "encode words first"),
        (["i", "am"], "encode words first"),
        (None, "encode words first"),
        ([1.0, 2.0], "whole numbers"),
        ([True, False], "whole numbers"),
        ([1, 99], "99 is out of range"),
        ([-1], "-1 is out of range"),
        (3, "shape [batch, seq], not []"),
        ([[[1]]], "shape [batch, seq], not [1, 1, 1]"),
        ([1] * 10, "10 tokens do not fit"),
    ],
)
def test_bad_ids_give_one_clear_sentence(build, ids, words):
    with refused(words):
        trace(build(), ids)
    assert trace_module._recording.get() is None


@pytest.mark.parametrize("model", [5, None, "groot", CONFIG, torch.ones(2), trace])
def test_only_a_model_is_traced(model):
    with refused("trace needs a model"):
        trace(model, [1, 2])


def test_a_model_without_logits_is_refused():
    with refused("Identity notes no logits"):
        trace(torch.nn.Identity(), [1, 2])
    assert trace_module._recording.get() is None


@pytest.mark.parametrize("cache", [5, True, "cache", {}, torch.ones(2), CONFIG])
def test_only_a_cache_is_continued(cache):
    with refused("continues a KVCache(model.config)"):
        trace(llama(), [1, 2], cache)
    with refused("continues a KVCache(model.config)"):
        llama()(torch.tensor([[1]]), cache)


def test_baby_groot_has_no_cache():
    with refused("BabyGrootGPT has no cache"):
        trace(groot(), [1, 2], KVCache(CONFIG))
