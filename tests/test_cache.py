"""The KV cache: decoding with it gives what a full pass gives, and known faults are noticed."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from drawn import configs, drawn
from glassformer import generation
from glassformer.checkpoints import load_baby_groot, load_tiny
from glassformer.generation import generate
from glassformer.models import BabyGrootGPT, KVCache, RMSNorm, Transformer, TransformerConfig
from glassformer.models.bare import bare
from glassformer.trace import trace
from one_sentence import refused

few = settings(max_examples=30, deadline=None, derandomize=True)
GQA = TransformerConfig(20, 32, 2, 4, 2, max_seq_len=12)


CONFIGS = configs(st.integers(2, 14), ffn_dim_multiplier=st.just(1.0))


def some_ids(config: TransformerConfig, batch: int = 1) -> torch.Tensor:
    return torch.randint(0, config.vocab_size, (batch, config.max_seq_len))


@torch.no_grad()
def in_pieces(model, ids: torch.Tensor, sizes: list[int], cache: KVCache) -> torch.Tensor:
    """Return the logits of ids [B, T] handed to a model piece by piece through a cache."""
    return torch.cat([model(piece, cache) for piece in ids.split(sizes, dim=1)], dim=1)


@torch.no_grad()
def gap(model: Transformer, ids: torch.Tensor, sizes: list[int]) -> float:
    """Return how far the logits of a pass in pieces are from those of one full pass."""
    cache = KVCache(model.config, len(ids), model.norm.weight.dtype)
    return float((in_pieces(model, ids, sizes, cache) - model(ids)).abs().max())


def all_splits(total: int) -> list[list[int]]:
    """Return every way to cut `total` tokens into pieces: 2^(total − 1) lists of sizes."""
    if total == 0:
        return [[]]
    return [[n, *rest] for n in range(1, total + 1) for rest in all_splits(total - n)]


# Equal to a full pass


@few
@given(CONFIGS, st.integers(0, 9), st.integers(1, 3), st.data())
def test_a_cached_pass_equals_a_full_pass(config, seed, batch, data):
    model = drawn(config, seed)
    ids = some_ids(config, batch)  # up to the last place of the window
    sizes, left = [], config.max_seq_len
    while left:
        sizes.append(data.draw(st.integers(1, left)))
        left -= sizes[-1]
    assert gap(model, ids, sizes) < 1e-12
    assert gap(model, ids, [1] * config.max_seq_len) < 1e-12


@pytest.mark.parametrize("kv_heads", [None, 2, 1])
def test_every_split_of_a_prompt_gives_the_same(kv_heads):
    config = TransformerConfig(20, 16, 2, 4, kv_heads, max_seq_len=7, ffn_dim_multiplier=1.0)
    model = drawn(config)
    ids = some_ids(config, batch=2)
    splits = all_splits(7)
    assert len(splits) == 64
    assert max(gap(model, ids, sizes) for sizes in splits) < 1e-12


@few
@given(CONFIGS, st.integers(0, 9), st.integers(1, 3), st.data())
def test_generate_writes_the_same_with_and_without_a_cache(config, seed, batch, data):
    model = drawn(config, seed)
    start = data.draw(st.integers(1, config.max_seq_len))
    prompt, new = some_ids(config, batch)[:, :start], config.max_seq_len - start + 1
    cached = generate(model, prompt, new)
    assert cached.shape == (batch, start + new)
    assert torch.equal(cached, generate(model, prompt, new, use_cache=False))
    assert torch.equal(cached[0], generate(model, prompt[0], new))
    with torch.no_grad():  # what was written is the most likely, by a pass over the whole text
        likely = model(cached[:, :-1]).argmax(dim=-1)
    assert torch.equal(cached[:, start:], likely[:, start - 1 :])


def test_a_trace_behind_a_cache_is_the_end_of_the_whole_trace():
    model, ids = load_tiny().double(), torch.tensor([1, 2, 4, 6, 1, 7])
    cache = KVCache(model.config, dtype=torch.float64)
    whole, _, end = trace(model, ids), trace(model, ids[:4], cache), trace(model, ids[4:], cache)
    assert list(whole) == list(end)
    for name in ("layers.1.q_rotated", "layers.1.k_rotated", "layers.0.attention", "logits"):
        expected = whole[name][..., -2:, :]
        torch.testing.assert_close(end[name], expected, rtol=0, atol=1e-12)


def test_a_cached_pass_has_the_gradients_of_a_full_pass():
    model, ids = drawn(GQA), some_ids(GQA, batch=2)
    gradients = []
    for cache in (None, KVCache(GQA, 2, torch.float64)):
        model.zero_grad()
        F.cross_entropy(model(ids, cache)[:, :-1].flatten(0, 1), ids[:, 1:].flatten()).backward()
        gradients.append([p.grad.clone() for p in model.parameters()])
    for full, cached in zip(*gradients, strict=True):
        torch.testing.assert_close(cached, full, rtol=0, atol=1e-13)


def test_gradients_stop_at_what_the_cache_holds():
    model, ids = drawn(GQA), some_ids(GQA)
    cache = KVCache(GQA, dtype=torch.float64)
    model(ids[:, :5], cache)
    assert not cache.keys.requires_grad  # so that no graph grows from call to call
    logits = model(ids[:, 5:], cache)
    torch.testing.assert_close(logits, model(ids)[:, 5:], rtol=0, atol=1e-12)
    logits.sum().backward()
    used = model.tok_embeddings.weight.grad.abs().sum(dim=-1) > 0
    assert set(used.nonzero().flatten().tolist()) == set(ids[0, 5:].tolist())


def test_a_cache_works_in_and_out_of_inference_mode():
    model, ids = drawn(GQA), some_ids(GQA)
    with torch.inference_mode():
        cache = KVCache(GQA, dtype=torch.float64)
        first = model(ids[:, :5], cache)
    last = model(ids[:, 5:], cache)
    torch.testing.assert_close(torch.cat((first, last), 1), model(ids), rtol=0, atol=1e-12)


# Classic faults


def wrong_position(self, like, right=Transformer.rotary):
    """Return a table that gives every cached step position 0, a published mistake."""
    return right(self, like)[:1].expand(self.config.max_seq_len, -1)


def step_by_step_at_zero(monkeypatch):
    forward = Transformer.forward

    def faulty(self, ids, cache=None):
        if cache is None or not cache.length:
            return forward(self, ids, cache)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Transformer, "rotary", wrong_position)
            return forward(self, ids, cache)

    monkeypatch.setattr(Transformer, "forward", faulty)


def mask_from_the_left(monkeypatch):
    def faulty(T, start, device=None):
        return torch.ones(T, start + T, dtype=torch.bool).triu(diagonal=1)

    monkeypatch.setattr(Transformer, "future", staticmethod(faulty))


def mask_nothing(monkeypatch):
    def faulty(T, start, device=None):
        return torch.zeros(T, start + T, dtype=torch.bool)

    monkeypatch.setattr(Transformer, "future", staticmethod(faulty))


def store_one_place_off(monkeypatch):
    append = KVCache.append

    def faulty(self, layer, k, v):
        return append(self, layer, k.roll(1, dims=2), v)

    monkeypatch.setattr(KVCache, "append", faulty)


def forget_to_advance(monkeypatch):
    monkeypatch.setattr(KVCache, "advance", lambda self, tokens: None)


def share_one_layer(monkeypatch):
    append = KVCache.append
    monkeypatch.setattr(KVCache, "append", lambda self, layer, k, v: append(self, 0, k, v))


@pytest.mark.parametrize(
    "fault",
    [
        step_by_step_at_zero,
        mask_from_the_left,
        mask_nothing,
        store_one_place_off,
        forget_to_advance,
        share_one_layer,
    ],
)
def test_classic_faults_are_noticed(monkeypatch, fault):
    model, ids = drawn(GQA), some_ids(GQA)
    sizes = [5, 4, 3]
    assert gap(model, ids, sizes) < 1e-12
    fault(monkeypatch)
    assert gap(model, ids, sizes) > 1e-2


def test_position_zero_in_generate_is_noticed(monkeypatch):
    model, prompt = drawn(GQA), some_ids(GQA)[:, :3]
    assert torch.equal(generate(model, prompt, 9), generate(model, prompt, 9, use_cache=False))
    step_by_step_at_zero(monkeypatch)
    faulty = generate(model, prompt, 9)
    assert not torch.equal(faulty, generate(model, prompt, 9, use_cache=False))


# The cache itself


@few
@given(CONFIGS, st.integers(1, 3), st.sampled_from([torch.float32, torch.float64]))
def test_it_takes_the_bytes_that_the_config_says(config, batch, dtype):
    cache = KVCache(config, batch, dtype)
    expected = config.kv_cache_bytes(batch_size=batch, bytes_per_value=dtype.itemsize)
    assert cache.nbytes() == expected
    assert cache.batch_size == batch
    assert cache.nbytes() != config.kv_cache_bytes(config.max_seq_len + 1, batch, dtype.itemsize)


def test_it_knows_its_length_and_forgets():
    model, ids = drawn(GQA), some_ids(GQA)
    cache = KVCache(GQA, dtype=torch.float64)
    first = in_pieces(model, ids, [5, 7], cache)
    assert (cache.length, cache.room) == (12, 0)
    cache.reset()
    assert (cache.length, cache.room) == (0, 12)
    assert torch.equal(in_pieces(model, ids, [5, 7], cache), first)  # old keys do no harm


def test_one_token_past_the_window_is_refused():
    model, ids = drawn(GQA), some_ids(GQA)
    cache = KVCache(GQA, dtype=torch.float64)
    in_pieces(model, ids, [12], cache)
    with pytest.raises(ValueError, match="12 places, of which 12 are taken"):
        model(ids[:, :1], cache)
    assert cache.length == 12
    with pytest.raises(ValueError, match="at most 10 new tokens"):
        generate(model, ids[:, :3], 11)
    assert len(generate(model, ids[0, :3], 10)) == 13  # the last one written needs no place


def test_another_batch_or_model_is_refused():
    model, ids = drawn(GQA), some_ids(GQA, batch=2)
    with pytest.raises(ValueError, match="batch_size=2"):
        model(ids, KVCache(GQA, dtype=torch.float64))
    other = TransformerConfig(20, 32, 2, 4, 4, max_seq_len=12)
    with pytest.raises(ValueError, match="another shape"):
        model(ids, KVCache(other, 2, torch.float64))


@pytest.mark.parametrize(
    "ids, told",
    [
        ([[1]], "must be a torch tensor"),
        (torch.tensor([[1.0]]), "whole numbers"),
        (torch.tensor([1]), r"shape \[batch, seq\]"),
        (torch.zeros(1, 0, dtype=torch.long), "empty"),
        (torch.tensor([[20]]), "Token id 20 is out of range; ids go from 0 to 19"),
        (torch.tensor([[-1, 3]]), "Token id -1"),
        (torch.zeros(1, 13, dtype=torch.long), "13 tokens do not fit"),
    ],
)
def test_wrong_ids_are_refused_in_one_sentence(ids, told):
    cache = KVCache(GQA, dtype=torch.float64)
    with pytest.raises(ValueError, match=told) as caught:
        drawn(GQA)(ids, cache)
    assert "\n" not in str(caught.value) and cache.length == 0


def test_a_cache_of_another_dtype_works():
    model, ids = drawn(GQA, dtype=torch.float32), some_ids(GQA)
    for dtype, bound in ((torch.float64, 1e-5), (torch.float16, 0.1), (torch.bfloat16, 0.5)):
        cache = KVCache(GQA, dtype=dtype)
        logits = in_pieces(model, ids, [5, 1, 1, 5], cache)
        assert logits.dtype == torch.float32
        assert (logits - model(ids)).abs().max() < bound


# The twin that writes


@few
@given(CONFIGS, st.integers(0, 9), st.integers(1, 3))
def test_the_bare_twin_gives_what_the_model_gives(config, seed, batch):
    model = drawn(config, seed)
    ids = some_ids(config, batch)
    with torch.no_grad():
        torch.testing.assert_close(bare(model)(ids), model(ids), rtol=0, atol=1e-12)
    seen, twin_seen = trace(model, ids), trace(bare(model), ids)
    assert list(seen) == list(twin_seen)
    for name, tensor in seen.items():
        torch.testing.assert_close(twin_seen[name], tensor, rtol=0, atol=1e-12)


@pytest.mark.parametrize("load", [load_baby_groot, load_tiny])
def test_the_bare_twin_shares_the_weights_and_changes_nothing(load):
    model = load()
    before = {name: set(vars(module)) for name, module in model.named_modules()}
    twin = bare(model)
    assert twin is not model and isinstance(twin, type(model))
    ours, theirs = dict(model.named_parameters()), dict(twin.named_parameters())
    assert ours.keys() == theirs.keys()
    assert all(ours[name] is theirs[name] for name in ours)
    generate(model, [1, 2], 3)
    assert before == {name: set(vars(module)) for name, module in model.named_modules()}


class Doubled(nn.Module):
    """A layer that a learner puts in place of another."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return 2 * self.inner(x)


def test_changes_to_a_model_show_in_what_it_writes():
    """A wrapped or replaced layer, a new norm, a changed method or a hook: `generate` uses it."""

    def wrap_queries(model):
        model.layers[0].attention.wq = Doubled(model.layers[0].attention.wq)

    def bias_values(model):
        model.layers[1].attention.wv = nn.Linear(32, 16).double()

    def wider_epsilon(model):
        model.norm.eps = 10.0
        model.layers[0].ffn_norm = RMSNorm(32, 3.0).double()

    def replace_method(model):
        feed_forward = model.layers[0].feed_forward
        feed_forward.forward = lambda x, own=feed_forward.forward: 3 * own(x)

    def hook(model):
        model.layers[0].attention.wv.register_forward_hook(lambda module, inputs, out: -out)

    def pruned(model):
        nn.utils.parametrizations.weight_norm(model.layers[0].attention.wk)
        model.layers[0].attention.wk.parametrizations.weight.original0.data.mul_(4)

    prompt = some_ids(GQA)[:, :3]
    for change in (wrap_queries, bias_values, wider_epsilon, replace_method, hook, pruned):
        model = drawn(GQA)
        with torch.no_grad():
            plain = model(prompt)
            change(model)
            changed = model(prompt)
            assert (changed - plain).abs().max() > 1e-3, change.__name__
            torch.testing.assert_close(bare(model)(prompt), changed, rtol=0, atol=1e-12)
        text = generate(model, prompt, 9)
        with torch.no_grad():
            assert torch.equal(text[:, 3:], model(text[:, :-1]).argmax(-1)[:, 2:])


@pytest.mark.parametrize("load", [load_baby_groot, load_tiny])
def test_a_model_that_has_written_can_train_and_be_copied(load):
    model = load()
    text = generate(model, [1, 2], 3)
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model)), copy.copy(model)):
        assert torch.equal(generate(twin, [1, 2], 3), text)
    ids = torch.tensor([[1, 2, 3]])
    output = model(ids)
    (output[0] if isinstance(output, tuple) else output).square().mean().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
    optimiser = torch.optim.SGD(model.parameters(), lr=1e-3)
    optimiser.step()
    model.train()
    generate(model, [1, 2], 3)
    assert model.training


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16, torch.float32])
def test_a_model_that_has_written_can_change_its_dtype(dtype):
    model = load_tiny()
    text = generate(model, [1, 2], 6)
    model.to(dtype)
    assert torch.equal(generate(model, [1, 2], 6), text)
    assert model(text[None, :-1]).dtype == dtype


def test_what_was_written_can_be_learned_from():
    model = load_tiny()
    text = generate(model, [1, 2], 6)[None]
    logits = model(text[:, :-1])
    F.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten()).backward()
    assert model.tok_embeddings.weight.grad.abs().sum() > 0


def test_generate_is_cached_unless_told_otherwise(monkeypatch):
    made = []
    monkeypatch.setattr(generation, "KVCache", lambda *a: made.append(a) or KVCache(*a))
    generate(load_tiny(), [1, 2], 3, use_cache=False)
    assert not made
    generate(load_tiny(), [1, 2], 3)
    assert len(made) == 1


@pytest.mark.parametrize("twin", [copy.deepcopy, lambda cache: pickle.loads(pickle.dumps(cache))])
def test_a_copied_cache_goes_on_alone(twin):
    model = load_tiny().double()
    cache = KVCache(model.config, dtype=torch.float64)
    with torch.no_grad():
        model(torch.tensor([[1, 2, 4]]), cache)
        other = twin(cache)
        expected = model(torch.tensor([[6]]), cache)
        held = other.keys.clone()
        torch.testing.assert_close(model(torch.tensor([[6]]), other), expected)
    assert not torch.equal(other.keys, held), "what is appended lands in the cache's own memory"
    torch.testing.assert_close(other.keys, cache.keys)


# Refusals


@pytest.mark.parametrize(
    "dtype",
    [torch.int64, torch.int8, torch.uint8, torch.bool, torch.complex64, None, float, "float32", 32],
)
def test_a_cache_holds_floating_point_numbers(dtype):
    with refused("dtype = ", "floating-point"):
        KVCache(GQA, dtype=dtype)


@pytest.mark.parametrize("batch_size", [0, -1, 1.0, True, "1", None, 10**13])
def test_a_cache_holds_a_whole_number_of_sequences(batch_size):
    with refused(f"batch_size = {batch_size!r}", "whole number"):
        KVCache(GQA, batch_size)


@pytest.mark.parametrize("config", [None, 5, "tiny", {}, load_tiny(), GQA.to_dict()])
def test_models_and_caches_are_made_from_a_config(config):
    for make in (KVCache, Transformer):
        with refused("made from a TransformerConfig"):
            make(config)


@pytest.mark.parametrize("device", ["nowhere", "", 1.5, [], "cpu:x"])
def test_a_cache_is_on_a_device_that_is_there(device):
    with refused("device = ", "'cpu' always works"):
        KVCache(GQA, device=device)


TOO_LARGE = {
    "vocab_size": 10**12,
    "dim": 8 * 10**11,
    "n_layers": 20_000,
    "max_seq_len": 10**12,
}


@pytest.mark.parametrize(("name", "value"), TOO_LARGE.items())
def test_a_model_too_large_to_build_is_refused_unbuilt(name, value):
    with refused(name):
        Transformer(replace(GQA, **{name: value}))


def test_a_cache_too_large_to_make_is_refused_unmade():
    for config, batch in ((GQA, 10**9), (replace(GQA, max_seq_len=10**12), 1)):
        with refused("The cache would hold", "make max_seq_len or batch_size smaller"):
            KVCache(config, batch)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch, "zeros", lambda *args, **kwargs: pytest.fail("it was made"))
        with refused("The cache would hold"):
            KVCache(GQA, 10**9)


def test_a_cache_may_be_made_for_a_model_too_large_to_build():
    assert KVCache(replace(GQA, vocab_size=10**12)).nbytes() == KVCache(GQA).nbytes()


@pytest.mark.parametrize("name", ["vocab_size", "max_len", "embed_dim"])
@pytest.mark.parametrize("value", [10**10, pytest.param(10**5_000, id="5,001 digits")])
def test_a_baby_groot_too_large_to_build_is_refused_unbuilt(name, value):
    with refused("The model would hold", "make vocab_size, max_len, embed_dim smaller"):
        BabyGrootGPT(**{**dict(vocab_size=24, max_len=4, embed_dim=8), name: value})


def test_what_pytorch_says_of_memory_becomes_one_sentence(monkeypatch):
    def greedy(self, like):
        return torch.empty(2**60)

    monkeypatch.setattr(Transformer, "rotary", greedy)
    for run in (drawn(GQA), bare(drawn(GQA))):
        with refused("more memory than there is"):
            run(some_ids(GQA))
    with refused("more memory than there is"):
        generate(drawn(GQA), [1], 1)


def test_another_error_of_pytorch_stays_what_it_is(monkeypatch):
    monkeypatch.setattr(Transformer, "rotary", lambda self, like: like @ like)
    with pytest.raises(RuntimeError, match="size"):
        drawn(GQA)(some_ids(GQA))


def test_memory_that_this_machine_lacks_is_told(monkeypatch):
    def none_left(*args, **kwargs):
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory")

    monkeypatch.setattr(torch, "empty", none_left)
    with refused("more than this machine's memory holds"):
        BabyGrootGPT(24, 4)
