"""Both models: shapes, counts, names, causality, gradients, and refusals in one sentence."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from glassformer.checkpoints import load_baby_groot, load_tiny
from glassformer.data import groot_vocabulary
from glassformer.models import BabyGrootGPT, Transformer, TransformerConfig
from glassformer.optim import AdamW
from glassformer.training import (
    last_real,
    last_token_logits,
    one_thread,
    train_baby_groot,
    train_tiny,
)
from one_sentence import refused
from test_config import small_configs

few = settings(max_examples=40)
groots = st.tuples(st.integers(1, 30), st.integers(1, 7), st.integers(1, 9))
seeds = st.integers(0, 10_000)


def groot(sizes: tuple[int, int, int], seed: int = 0) -> BabyGrootGPT:
    torch.manual_seed(seed)
    return BabyGrootGPT(*sizes).double()


def llama(config: TransformerConfig, seed: int = 0) -> Transformer:
    """Return a model in float64 whose weights are large enough for each part to matter."""
    torch.manual_seed(seed)
    model = Transformer(config).double()
    for p in model.parameters():
        torch.nn.init.normal_(p, std=0.5)
    return model


SMALL_GROOT = (13, 5, 6)
SMALL_LLAMA = TransformerConfig(11, 12, 2, 6, n_kv_heads=2, max_seq_len=9)
BOTH = [pytest.param(lambda: groot(SMALL_GROOT), id="groot")]
BOTH += [pytest.param(lambda: llama(SMALL_LLAMA), id="llama")]


def logits_of(model, ids: torch.Tensor) -> torch.Tensor:
    returned = model(ids)
    return returned[0] if isinstance(returned, tuple) else returned


def window(model) -> int:
    return model.max_len if isinstance(model, BabyGrootGPT) else model.config.max_seq_len


def draw_ids(data, model, batch: int = 3) -> torch.Tensor:
    length = data.draw(st.integers(1, window(model)), "length")
    torch.manual_seed(data.draw(seeds, "ids"))
    return torch.randint(model.vocab_size, (batch, length))


@few
@given(groots, st.data())
def test_baby_groot_gives_logits_and_attention(sizes, data):
    model = groot(sizes)
    ids = draw_ids(data, model)
    logits, attention = model(ids)
    B, T = ids.shape
    assert logits.shape == (B, T, sizes[0]) and attention.shape == (B, T, T)
    torch.testing.assert_close(attention.sum(dim=-1), torch.ones(B, T, dtype=torch.float64))
    assert (attention.triu(1) == 0).all() and (attention >= 0).all()


@few
@given(small_configs, st.data())
def test_the_transformer_gives_logits(config, data):
    model = llama(config)
    ids = draw_ids(data, model)
    assert model(ids).shape == (*ids.shape, config.vocab_size)


@given(groots)
def test_baby_groot_has_as_many_parameters_as_its_ledger_says(sizes):
    V, T, d = sizes
    embeddings, qkv, norms = V * d + T * d, 3 * (d * d + d), 2 * 2 * d
    ffn, head = (2 * d * d + 2 * d) + (2 * d * d + d), V * d + V
    assert groot(sizes).num_params() == embeddings + qkv + norms + ffn + head


def test_names_and_sizes_of_baby_groots_weights_are_the_published_ones():
    attn = {f"transformer.attn.{n}.{p}" for n in "qkv" for p in ("weight", "bias")}
    norms = {f"transformer.norm{n}.{p}" for n in (1, 2) for p in ("weight", "bias")}
    ffn = {f"transformer.ffn.{n}.{p}" for n in (0, 2) for p in ("weight", "bias")}
    ends = {"token_embedding.weight", "position_embedding.weight", "head.weight", "head.bias"}
    weights = BabyGrootGPT(vocab_size=24, max_len=4).state_dict()
    assert weights.keys() == attn | norms | ffn | ends == load_baby_groot().state_dict().keys()
    shapes = {name: tuple(tensor.shape) for name, tensor in weights.items()}
    assert shapes["token_embedding.weight"] == shapes["head.weight"] == (24, 8)
    assert shapes["position_embedding.weight"] == (4, 8)
    assert shapes["transformer.attn.q.weight"] == (8, 8)
    assert shapes["transformer.ffn.0.weight"] == (16, 8)


def test_names_of_the_transformers_weights_are_the_published_ones():
    layer = {f"attention.w{n}" for n in "qkvo"} | {"attention_norm", "ffn_norm"}
    layer |= {f"feed_forward.w_{n}" for n in ("gate", "up", "down")}
    names = {f"layers.{n}.{part}.weight" for n in (0, 1) for part in layer}
    names |= {"tok_embeddings.weight", "norm.weight", "output.weight"}
    assert load_tiny().state_dict().keys() == names


# What a token can know of the others


@pytest.mark.parametrize("build", BOTH)
def test_later_tokens_change_nothing_earlier(build):
    model = build()

    @few
    @given(st.data())
    def unchanged(data):
        ids = draw_ids(data, model)
        cut = data.draw(st.integers(0, ids.shape[1]), "cut")
        other = ids.clone()
        other[:, cut:] = torch.randint(model.vocab_size, other[:, cut:].shape)
        found, expected = logits_of(model, other), logits_of(model, ids)
        assert torch.equal(found[:, :cut], expected[:, :cut])
        if cut:  # so padding on the right, and its absence, are harmless too
            alone = logits_of(model, ids[:, :cut])
            torch.testing.assert_close(alone, expected[:, :cut], rtol=1e-9, atol=1e-9)

    unchanged()


@pytest.mark.parametrize("build", BOTH)
def test_every_earlier_token_counts(build):
    model = build()
    ids = torch.arange(1, window(model) + 1)[None]
    for place in range(ids.shape[1]):
        other = ids.clone()
        other[0, place] = 0
        changed = (logits_of(model, other) - logits_of(model, ids)).abs().amax(dim=-1)[0]
        assert (changed[:place] == 0).all() and (changed[place:] > 1e-9).all()


@pytest.mark.parametrize("build", BOTH)
def test_sequences_of_a_batch_do_not_meet(build):
    model = build()
    ids = torch.randint(model.vocab_size, (4, window(model)))
    together = logits_of(model, ids)
    for row in range(4):
        alone = logits_of(model, ids[row : row + 1])[0]
        torch.testing.assert_close(together[row], alone, rtol=1e-9, atol=1e-9)


def test_a_model_that_looks_ahead_is_noticed(monkeypatch):
    monkeypatch.setattr(torch.Tensor, "tril", lambda mask: mask)  # BabyGroot's mask, left open
    model, ids = groot(SMALL_GROOT), torch.tensor([[1, 2, 3]])
    other = torch.tensor([[1, 2, 4]])
    assert not torch.equal(model(ids)[0][:, :2], model(other)[0][:, :2])


def test_the_loss_is_read_at_the_last_real_token():
    vocabulary, model = groot_vocabulary(), load_baby_groot()
    X = torch.tensor([[1, 11, 3, 8], [1, 11, 3, 0], [1, 11, 0, 0], [1, 0, 0, 0]])
    assert last_real(X).tolist() == [3, 2, 1, 0]
    logits = last_token_logits(model, X)
    for row, length in zip(logits, (4, 3, 2, 1), strict=True):
        alone = model(X[:1, :length])[0][0, -1]
        torch.testing.assert_close(row, alone, rtol=1e-9, atol=1e-9)
    assert vocabulary.decode(logits.argmax(dim=-1)) == "<END> groot am groot"


# Gradients


@pytest.mark.parametrize("build", BOTH)
def test_gradients_reach_every_parameter(build):
    model = build()
    ids = torch.arange(window(model)).repeat(2, 1) % model.vocab_size
    used = torch.cat([ids, ids.flip(1)])
    F.cross_entropy(logits_of(model, used).flatten(0, 1), used.roll(1, 1).flatten()).backward()
    for name, p in model.named_parameters():
        assert p.grad is not None and torch.isfinite(p.grad).all(), name
        rows = p.grad[: window(model)] if "tok" in name else p.grad  # tokens that occur
        if name == "transformer.attn.k.bias":  # adds one number to a whole row of scores
            assert p.grad.abs().max() < 1e-12
        else:
            assert (rows.abs().sum() > 0).all(), name


@pytest.mark.parametrize(
    "build",
    [
        pytest.param(lambda: groot((5, 3, 4)), id="groot"),
        pytest.param(
            lambda: llama(TransformerConfig(5, 4, 1, 2, n_kv_heads=1, max_seq_len=3)), id="llama"
        ),
    ],
)
def test_gradients_equal_finite_differences(build):
    model = build()
    names = [name for name, _ in model.named_parameters()]
    ids = torch.tensor([[1, 4, 2], [0, 3, 3]])

    def loss(*weights):
        returned = torch.func.functional_call(model, dict(zip(names, weights, strict=True)), ids)
        return F.log_softmax(returned[0] if isinstance(returned, tuple) else returned, dim=-1)

    weights = [p.detach().clone().requires_grad_() for p in model.parameters()]
    assert torch.autograd.gradcheck(loss, weights, fast_mode=True)


# Refusals


@pytest.mark.parametrize("build", BOTH)
@pytest.mark.parametrize(
    ("ids", "words"),
    [
        ("i am", "must be a torch tensor [batch, seq], not str"),
        ([[1, 2]], "must be a torch tensor [batch, seq], not list"),
        (None, "not NoneType"),
        (torch.zeros(1, 0, dtype=torch.int64), "The prompt is empty"),
        (torch.tensor([]), "The prompt is empty"),
        (torch.zeros(0, 3, dtype=torch.int64), "The prompt is empty"),
        (torch.tensor([1, 2]), "shape [batch, seq], not [2]"),
        (torch.tensor(1), "shape [batch, seq], not []"),
        (torch.ones(1, 1, 1, dtype=torch.int64), "shape [batch, seq], not [1, 1, 1]"),
        (torch.tensor([[1.0, 2.0]]), "whole numbers (torch.int64), not torch.float32"),
        (torch.tensor([[True]]), "whole numbers (torch.int64), not torch.bool"),
        (torch.tensor([[1, -1]]), "Token id -1 is out of range; ids go from 0 to 1"),
        (torch.tensor([[1, 99]]), "Token id 99 is out of range; ids go from 0 to 1"),
        (torch.ones(1, 10, dtype=torch.int64), "10 tokens do not fit: the model's window has "),
    ],
)
def test_bad_ids_give_one_clear_sentence(build, ids, words):
    with refused(words):
        build()(ids)


@few
@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=12))
def test_any_ids_give_logits_or_one_clear_sentence(numbers):
    for model in (load_baby_groot(), load_tiny()):
        ids = torch.tensor([numbers])
        good = len(numbers) <= window(model) and all(0 <= n < model.vocab_size for n in numbers)
        if good:
            assert logits_of(model, ids).isfinite().all()
        else:
            with refused():
                model(ids)


def test_an_empty_prompt_or_an_unknown_word_does_not_reach_the_model():
    vocabulary, model = groot_vocabulary(), load_baby_groot()
    with refused("The prompt is empty"):
        model(torch.tensor([vocabulary.encode("")]))
    with refused("'dragon' is not in the vocabulary"):
        model(torch.tensor([vocabulary.encode("groot likes dragon")]))


@pytest.mark.parametrize("wrong", [0, -1, 1.0, True, "8", None])
@pytest.mark.parametrize("name", ["vocab_size", "max_len", "embed_dim"])
def test_bad_sizes_of_baby_groot_are_refused_by_name(name, wrong):
    with refused(f"{name} = {wrong!r}", "whole number, 1 or more"):
        BabyGrootGPT(**{**dict(vocab_size=5, max_len=3, embed_dim=4), name: wrong})


# Training, short


def test_training_gives_the_same_twice_and_leaves_random_numbers_and_threads_alone():
    torch.manual_seed(5)
    before, threads = torch.get_rng_state(), torch.get_num_threads()
    for train, count in ((train_baby_groot, "epochs"), (train_tiny, "steps")):
        (one, history), (two, again) = train(**{count: 3}), train(**{count: 3})
        assert history.losses == again.losses and len(history.losses) == 3
        assert history.accuracies == again.accuracies and len(history.accuracies) == 3
        assert all(map(torch.equal, one.parameters(), two.parameters()))
        assert {0, 3} <= history.snapshots.keys()
        for name, tensor in one.state_dict().items():
            assert torch.equal(history.snapshots[3][name], tensor)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.get_num_threads() == threads


def test_another_seed_draws_and_trains_another_model():
    assert train_tiny(steps=2, seed=1)[1].losses != train_tiny(steps=2, seed=2)[1].losses
    assert train_baby_groot(epochs=1, seed=1)[1].losses != train_baby_groot(epochs=1)[1].losses


def test_one_thread_gives_back_what_was_set_even_after_an_error():
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        with pytest.raises(RuntimeError, match="on purpose"), one_thread():
            assert torch.get_num_threads() == 1
            raise RuntimeError("on purpose")
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)


def test_the_weighted_loss_weighs_each_example_alike():
    _, history = train_baby_groot(epochs=1, batch_size=76)
    assert history.losses == history.weighted_losses  # one batch: nothing to weigh
    _, history = train_baby_groot(epochs=1, batch_size=75)
    assert history.losses != history.weighted_losses  # batches of 75 and 1


def test_the_course_adamw_trains_the_tiny_model_like_pytorchs():
    _, torchs = train_tiny(steps=30)
    _, ours = train_tiny(steps=30, make_optimiser=AdamW)
    assert ours.losses == pytest.approx(torchs.losses, abs=1e-4)
