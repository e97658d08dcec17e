"""The course's code against independent code: PyTorch's own layers, and Hugging Face's LLaMA."""

from __future__ import annotations

import json
import sys
import warnings
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from transformers import LlamaForCausalLM
from transformers.generation import logits_process
from transformers.utils import logging

from drawn import configs, drawn
from glassformer import huggingface
from glassformer.checkpoints import initial_tiny, load_baby_groot, load_tiny, save_model
from glassformer.data import GROOT_SENTENCES, groot_vocabulary, prefix_pairs
from glassformer.generation import generate, next_token_probabilities
from glassformer.huggingface import export, to_huggingface
from glassformer.models import (
    BabyGrootGPT,
    RMSNorm,
    Transformer,
    TransformerConfig,
    rotary_table,
    rotate,
)
from glassformer.optim import AdamW
from glassformer.trace import trace
from glassformer.training import tiny_sequences
from one_sentence import refused

logging.set_verbosity_error()
logging.disable_progress_bar()

few = settings(max_examples=25, deadline=None, derandomize=True)


CONFIGS = configs(
    st.sampled_from([12, 16, 33]),
    ffn_dim_multiplier=st.sampled_from([1.0, 4.0]),
    norm_eps=st.sampled_from([1e-6, 1e-5, 1e-2]),
    rope_theta=st.sampled_from([10.0, 10_000.0, 500_000.0]),
)


def some_ids(config: TransformerConfig, batch: int = 2, seq: int | None = None) -> torch.Tensor:
    return torch.randint(0, config.vocab_size, (batch, seq or config.max_seq_len))


def exact(llama: LlamaForCausalLM) -> LlamaForCausalLM:
    """Let a float64 LLaMA compute in float64 where it falls back to float32: norms and angles."""
    llama.double()
    for module in list(llama.modules()):
        for name, child in module.named_children():
            if type(child).__name__ == "LlamaRMSNorm":
                norm = nn.RMSNorm(child.weight.shape, child.variance_epsilon, dtype=torch.float64)
                norm.weight = child.weight
                setattr(module, name, norm)
    llama.model.rotary_emb = ExactAngles(llama.config)
    return llama


class ExactAngles(nn.Module):
    """cos and sin of a LLaMA's rotary angles, half-split, in float64."""

    def __init__(self, config) -> None:
        super().__init__()
        self.dim, self.theta = config.head_dim, config.rope_parameters["rope_theta"]

    def forward(self, x, position_ids):
        exponents = torch.arange(0, self.dim, 2, dtype=torch.float64) / self.dim
        angles = position_ids[..., None].double() / self.theta**exponents
        return torch.cat((angles, angles), -1).cos(), torch.cat((angles, angles), -1).sin()


@torch.no_grad()
def gap(model: Transformer, llama: LlamaForCausalLM, ids: torch.Tensor) -> float:
    """Return the largest difference between two models' logits."""
    return float((model(ids) - llama(ids).logits).abs().max())


# Hugging Face's LLaMA


@few
@given(CONFIGS, st.integers(0, 9))
def test_logits_equal_those_of_hugging_face(config, seed):
    model = drawn(config, seed, torch.float32)
    ids = some_ids(config)
    assert gap(model, to_huggingface(model), ids) < 1e-5
    model.double()
    assert gap(model, exact(to_huggingface(model)), ids) < 1e-10


@pytest.mark.parametrize("load", [initial_tiny, load_tiny])
def test_the_shipped_weights_agree_with_hugging_face(load):
    ids = torch.cat((tiny_sequences(), some_ids(load().config, batch=4, seq=6)))
    assert gap(load(), to_huggingface(load()), ids) < 1e-5
    assert gap(load().double(), exact(to_huggingface(load().double())), ids) < 1e-10


GQA = TransformerConfig(20, 32, 2, 4, 2, max_seq_len=32)


def test_wrong_rotary_pairs_are_noticed(monkeypatch):
    model = drawn(GQA, dtype=torch.float32)
    monkeypatch.setattr(huggingface, "halves", lambda weight, head_dim: weight)
    assert gap(model, to_huggingface(model), some_ids(GQA)) > 1e-2


def test_position_zero_everywhere_is_noticed(monkeypatch):
    model, ids = drawn(GQA, dtype=torch.float32), some_ids(GQA)
    llama = to_huggingface(model)
    assert gap(model, llama, ids) < 1e-5
    monkeypatch.setattr(Transformer, "rotary", lambda self, like: torch.ones(32, 4) + 0j)
    assert gap(model, llama, ids) > 1e-2


def test_another_epsilon_is_noticed():
    model = drawn(GQA, dtype=torch.float32)
    llama = to_huggingface(model)
    model.norm.eps *= 100
    assert gap(model, llama, some_ids(GQA)) > 1e-5


@few
@given(CONFIGS, st.integers(0, 9))
def test_generate_writes_what_hugging_face_writes(config, seed):
    model = drawn(config, seed, torch.float32)
    prompt = some_ids(config, seq=4)
    new = config.max_seq_len - 4
    theirs = to_huggingface(model).generate(prompt, max_new_tokens=new, do_sample=False)
    assert generate(model, prompt, new).tolist() == theirs.tolist()
    assert generate(model, prompt, new, use_cache=False).tolist() == theirs.tolist()


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("kv_heads", [None, 2, 1])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_an_export_loads_and_writes_the_same_tokens(tmp_path, kv_heads, tied, dtype):
    config = TransformerConfig(
        20, 32, 2, 4, kv_heads, max_seq_len=24, rope_theta=500.0, tie_word_embeddings=tied
    )
    model = drawn(config, dtype=dtype)
    export(model, tmp_path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["config.json", "model.safetensors"]
    llama = LlamaForCausalLM.from_pretrained(tmp_path).eval()
    assert llama.dtype == dtype
    assert llama.num_parameters() == config.num_params()
    ids = some_ids(config)
    bound = {torch.float32: 1e-5, torch.float64: 1e-4, torch.bfloat16: 0.2}[dtype]
    assert gap(model, llama, ids) < bound  # in float64 Hugging Face's norms are still float32
    if dtype != torch.bfloat16:  # whose rounding decides between close tokens
        theirs = llama.generate(ids[:, :4], max_new_tokens=20, do_sample=False)
        assert generate(model, ids[:, :4], 20).tolist() == theirs.tolist()


def test_exports_copy_the_weights_and_leave_random_numbers_alone(tmp_path):
    model = drawn(GQA, dtype=torch.float32)
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    llama = to_huggingface(model)
    assert torch.equal(torch.rand(3), expected)
    before = llama.lm_head.weight.clone()
    with torch.no_grad():
        model.output.weight.zero_()
    assert torch.equal(llama.lm_head.weight, before)
    assert not llama.training


def test_an_export_says_what_is_wrong(tmp_path):
    model = drawn(GQA, dtype=torch.float32)
    for wrong in (export, lambda model, _: to_huggingface(model)):
        with pytest.raises(ValueError, match="not a BabyGrootGPT"):
            wrong(load_baby_groot(), tmp_path)
    save_model(model, tmp_path / "own")
    with pytest.raises(ValueError, match="another kind"):
        export(model, tmp_path / "own")
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="cannot be written"):
        export(model, tmp_path / "file")
    export(model, tmp_path / "new")
    export(model, tmp_path / "new")  # over an export of before
    config = json.loads((tmp_path / "new" / "config.json").read_text())
    assert config["num_key_value_heads"] == 2 and config["eos_token_id"] is None


@pytest.mark.parametrize("wrong", [None, 5, "model", {}, GQA])
def test_only_a_model_is_exported(tmp_path, wrong):
    for use in (lambda model: export(model, tmp_path), to_huggingface):
        with refused("Only a Transformer has the shape of a LLaMA, not "):
            use(wrong)


@pytest.mark.parametrize("folder", [None, 5, b"llama", "a\0b"])
def test_an_export_needs_a_folder(folder):
    with refused("path = ", "must be a text or a Path"):
        export(drawn(GQA), folder)


def test_a_config_changed_since_is_not_exported(tmp_path):
    model = drawn(replace(GQA))
    model.config.n_heads = 0
    for use in (lambda model: export(model, tmp_path), to_huggingface):
        with refused("n_heads = 0 cannot be"):
            use(model)


def test_without_transformers_an_export_still_works(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    export(drawn(GQA, dtype=torch.float32), tmp_path)
    with pytest.raises(ValueError, match="pip install transformers"):
        to_huggingface(drawn(GQA, dtype=torch.float32))


# How the next token is chosen


def warped(logits, temperature, top_k, top_p):
    """Return the probabilities that transformers' own warpers leave."""
    scores = logits_process.TemperatureLogitsWarper(temperature)(None, logits)
    if top_k is not None:
        scores = logits_process.TopKLogitsWarper(top_k)(None, scores)
    if top_p is not None:
        scores = logits_process.TopPLogitsWarper(top_p)(None, scores)
    return scores.softmax(dim=-1)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    st.integers(0, 999),
    st.floats(0.1, 5.0),
    st.none() | st.integers(1, 12),
    st.none() | st.floats(0.01, 1.0, exclude_min=True),
)
def test_temperature_top_k_and_top_p_equal_transformers(seed, temperature, top_k, top_p):
    torch.manual_seed(seed)
    logits = torch.randn(3, 10, dtype=torch.float64) * 3
    ours = next_token_probabilities(logits, temperature, top_k, top_p)
    theirs = warped(logits, temperature, top_k, top_p)
    assert torch.equal(ours > 0, theirs > 0)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)


def test_other_choices_are_noticed():
    logits = torch.randn(3, 10, dtype=torch.float64)
    for other in ((1.1, 3, None), (1.0, 4, None), (1.0, 3, 0.2)):
        differ = next_token_probabilities(logits, *other) - warped(logits, 1.0, 3, None)
        assert differ.abs().max() > 1e-3


# PyTorch's own layers


def encoder_layer(model: BabyGrootGPT) -> nn.TransformerEncoderLayer:
    """Return PyTorch's layer with BabyGroot's weights; its output projection is the identity."""
    block, d = model.transformer, model.token_embedding.embedding_dim
    layer = nn.TransformerEncoderLayer(
        d, nhead=1, dim_feedforward=2 * d, dropout=0.0, batch_first=True, dtype=torch.float64
    )
    heads = (block.attn.q, block.attn.k, block.attn.v)
    own = {
        "self_attn.in_proj_weight": torch.cat([head.weight for head in heads]),
        "self_attn.in_proj_bias": torch.cat([head.bias for head in heads]),
        "self_attn.out_proj.weight": torch.eye(d),
        "self_attn.out_proj.bias": torch.zeros(d),
    }
    for theirs, ours in {"linear1": "ffn.0", "linear2": "ffn.2", "norm1": "norm1"}.items():
        own |= {f"{theirs}.{k}": v for k, v in block.get_submodule(ours).state_dict().items()}
    own |= {f"norm2.{k}": v for k, v in block.norm2.state_dict().items()}
    layer.load_state_dict(own)
    return layer


@pytest.mark.parametrize("trained", [True, False])
def test_the_block_of_baby_groot_equals_an_encoder_layer(trained):
    torch.manual_seed(0)
    model = load_baby_groot() if trained else BabyGrootGPT(24, 7, embed_dim=6).double()
    T = model.max_len
    h0 = torch.randn(5, T, model.token_embedding.embedding_dim, dtype=torch.float64)
    layer = encoder_layer(model)
    causal = nn.Transformer.generate_square_subsequent_mask(T, dtype=torch.float64)
    with torch.no_grad():
        ours, _ = model.transformer(h0)
        torch.testing.assert_close(ours, layer(h0, src_mask=causal), rtol=0, atol=1e-12)
        assert (ours - layer(h0)).abs().max() > 1e-3  # without a mask it differs


def test_baby_groot_equals_the_encoder_layer_on_its_corpus():
    model = load_baby_groot()
    X, _ = prefix_pairs(GROOT_SENTENCES, groot_vocabulary(), max_len=4)
    seen = trace(model, X)
    causal = nn.Transformer.generate_square_subsequent_mask(4, dtype=torch.float64)
    with torch.no_grad():
        theirs = encoder_layer(model)(seen["h0"], src_mask=causal)
    torch.testing.assert_close(seen["h_out"], theirs, rtol=0, atol=1e-12)


@few
@given(st.integers(0, 99), st.sampled_from([1, 3, 32]), st.sampled_from([1e-6, 1e-2]))
def test_rms_norm_equals_pytorch(seed, dim, eps):
    torch.manual_seed(seed)
    norm = RMSNorm(dim, eps).double()
    nn.init.normal_(norm.weight)
    x = torch.randn(2, 3, dim, dtype=torch.float64)
    theirs = F.rms_norm(x, (dim,), norm.weight, eps)
    torch.testing.assert_close(norm(x), theirs, rtol=0, atol=1e-13)
    assert (norm(x) - F.rms_norm(x, (dim,), norm.weight, eps + 0.1)).abs().max() > 1e-6


@few
@given(CONFIGS, st.integers(0, 9))
def test_attention_equals_pytorch(config, seed):
    model = drawn(config, seed)
    seen = trace(model, some_ids(config))
    for layer in range(config.n_layers):
        q, k, v, attention, context = (
            seen[f"layers.{layer}.{name}"]
            for name in ("q_rotated", "k_rotated", "v", "attention", "context")
        )
        group = config.n_heads // config.kv_heads
        k, v = (x.repeat_interleave(group, dim=1) for x in (k, v))
        theirs = F.scaled_dot_product_attention(q, k, v, is_causal=True)  # [B, H, T, D]
        theirs = theirs.transpose(1, 2).flatten(2)
        torch.testing.assert_close(context, theirs, rtol=0, atol=1e-12)
        assert (attention.triu(1) == 0).all()
        all_see_all = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        assert (context - all_see_all).abs().max() > 1e-9


@few
@given(st.integers(0, 99), st.sampled_from([2, 8, 10]), st.sampled_from([10.0, 10_000.0]))
def test_rotate_is_the_published_formula(seed, head_dim, theta):
    torch.manual_seed(seed)
    x = torch.randn(2, 3, 9, head_dim, dtype=torch.float64)
    turned = rotate(x, rotary_table(head_dim, 9, theta))
    for position in range(9):
        for pair in range(head_dim // 2):
            angle = torch.tensor(position * theta ** (-2 * pair / head_dim), dtype=torch.float64)
            even, odd = x[..., position, 2 * pair], x[..., position, 2 * pair + 1]
            expected = torch.stack(
                (
                    even * angle.cos() - odd * angle.sin(),
                    even * angle.sin() + odd * angle.cos(),
                )
            )
            found = turned[..., position, 2 * pair : 2 * pair + 2].movedim(-1, 0)
            torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


def test_rotation_keeps_lengths_and_knows_only_distances():
    torch.manual_seed(0)
    turns = rotary_table(8, 50)
    q, k = torch.randn(2, 8, dtype=torch.float64)
    at = [rotate(x.expand(50, 8), turns) for x in (q, k)]
    torch.testing.assert_close(at[0].norm(dim=-1), q.norm().expand(50))
    scores = at[0] @ at[1].mT  # [50, 50]: one number for each distance
    for distance in (0, 1, 17):
        along = scores.diagonal(distance)
        torch.testing.assert_close(along, along[0].expand_as(along), rtol=0, atol=1e-12)


def test_sixteen_bits_rotate_and_normalise_like_thirty_two():
    x = torch.randn(1, 2, 5, 8) * 300  # whose squares 16 bits cannot hold
    for dtype in (torch.float16, torch.bfloat16):
        short = x.to(dtype)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            turned = rotate(short, rotary_table(8, 5).to(torch.complex64))
            scaled = RMSNorm(8).to(dtype)(short)
        assert turned.dtype == scaled.dtype == dtype
        wide = short.float()
        turned_wide = rotate(wide, rotary_table(8, 5).to(torch.complex64))
        assert torch.equal(turned, turned_wide.to(dtype))
        assert torch.equal(scaled, RMSNorm(8)(wide).to(dtype))


def test_the_table_of_turns_is_made_once():
    first, second = drawn(GQA, dtype=torch.float32), drawn(GQA, dtype=torch.float32)
    h = torch.zeros(1)
    assert first.rotary(h) is second.rotary(h)
    assert first.rotary(h).dtype == torch.complex64
    assert first.rotary(h.double()).dtype == torch.complex128


# The optimiser


def train(make, steps: int = 1000) -> list[torch.Tensor]:
    """Fit a small network to random targets with an optimiser; return its weights."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)).double()
    x, y = torch.randn(32, 4, dtype=torch.float64), torch.randn(32, 2, dtype=torch.float64)
    optimiser = make(network.parameters(), lr=3e-3, weight_decay=0.02)
    for _ in range(steps):
        optimiser.zero_grad()
        F.mse_loss(network(x), y).backward()
        optimiser.step()
    return [p.detach() for p in network.parameters()]


def test_adamw_takes_the_steps_of_pytorch():
    for ours, theirs in zip(train(AdamW), train(torch.optim.AdamW), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)
    other = train(torch.optim.Adam)  # whose decay is part of the gradient
    assert max((a - b).abs().max() for a, b in zip(train(AdamW), other, strict=True)) > 1e-3
