"""Writing: greedy, by chance within exact definitions, in batches, up to the window's end."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from glassformer.checkpoints import TINY_CONFIG, load_baby_groot, load_tiny
from glassformer.data import groot_vocabulary
from glassformer.generation import MOST_NEW_TOKENS, generate, next_token_probabilities, stream
from glassformer.models import BabyGrootGPT
from one_sentence import refused

GROOT, WORDS, TINY = load_baby_groot(), groot_vocabulary(), load_tiny().double()
END = WORDS.encode("<END>")[0]
BOTH = [pytest.param(GROOT, id="groot"), pytest.param(TINY, id="tiny")]


few = settings(max_examples=40)
logit_lists = st.lists(st.floats(-20, 20, allow_subnormal=False), min_size=1, max_size=12)
temperatures = st.floats(0.05, 20)


def window(model) -> int:
    return model.max_len if isinstance(model, BabyGrootGPT) else model.config.max_seq_len


def last_logits(model, ids: list[int]) -> torch.Tensor:
    returned = model(torch.tensor([ids[-window(model) :]]))
    return (returned[0] if isinstance(returned, tuple) else returned)[0, -1]


prompts = st.lists(st.integers(0, 7), min_size=1, max_size=6)


# Greedy


@few
@given(prompts, st.integers(0, 10))
def test_greedy_writes_the_largest_logit_each_time(prompt, count):
    for model in (GROOT, TINY):  # BabyGroot slides its window of four
        expected = list(prompt)
        for _ in range(count):
            expected.append(int(last_logits(model, expected).argmax()))
        written = generate(model, prompt, count)
        assert written.tolist() == expected and written.dtype == torch.int64
        assert generate(model, prompt, count, use_cache=False).tolist() == expected


@pytest.mark.parametrize("model", BOTH)
def test_a_batch_writes_what_its_rows_write(model):
    ids = torch.tensor([[1, 2, 3], [4, 5, 6], [7, 1, 1]])
    together = generate(model, ids, 6)
    assert together.shape == (3, 9)
    for row in range(3):
        assert torch.equal(together[row], generate(model, ids[row], 6))
    assert generate(model, ids[:1], 6).shape == (1, 9), "two dimensions in, two out"


def test_it_stops_at_the_stop_token():
    text = generate(GROOT, WORDS.encode("<START> i am"), 10, stop_id=END)
    assert WORDS.decode(text) == "<START> i am groot <END>"
    on = generate(GROOT, WORDS.encode("<START> i am"), 10)
    assert len(on) == 13 and on[:5].tolist() == text.tolist()


def test_a_row_that_has_stopped_repeats_the_stop_token_until_all_have():
    ids, mat = torch.tensor([[6, 1], [2, 4]]), 7  # "on the", "cat sat"
    text = generate(TINY, ids, 10, stop_id=mat)
    alone = [generate(TINY, row, 10, stop_id=mat) for row in ids]
    assert len(alone[0]) != len(alone[1]), "rows of different lengths are the point"
    assert text.shape[1] == max(len(row) for row in alone)
    for row, written in zip(text, alone, strict=True):
        assert torch.equal(row[: len(written)], written)
        assert (row[len(written) :] == mat).all()


def test_a_stop_token_in_the_prompt_does_not_stop():
    text = generate(GROOT, [*WORDS.encode("<START> i am groot <END>"), 1], 2, stop_id=END)
    assert len(text) == 8 or text[-1] == END


@pytest.mark.parametrize("model", BOTH)
def test_no_new_token_gives_the_prompt_back(model):
    assert generate(model, [1, 2, 3], 0).tolist() == [1, 2, 3]
    assert generate(model, [1, 2, 3], 0, temperature=1.0).tolist() == [1, 2, 3]


def test_the_prompt_stays_as_it_was():
    ids = torch.tensor([[1, 2, 3]])
    generate(TINY, ids, 4)
    generate(GROOT, ids, 4, stop_id=END)
    assert ids.tolist() == [[1, 2, 3]]


# The window


def test_a_transformer_fills_its_window_to_the_last_place():
    for prompt in ([1], [1] * 10, [1] * 16):
        most = 16 - len(prompt) + 1  # the last token written is not read again
        for use_cache in (True, False):
            assert len(generate(TINY, prompt, most, use_cache=use_cache)) == 17
            with refused("window has 16 places", f"at most {most} new tokens"):
                generate(TINY, prompt, most + 1, use_cache=use_cache)
    with refused("window has 16 places"):
        generate(TINY, [1] * 17, 1)


def test_baby_groot_reads_its_last_four_tokens_only():
    one = generate(GROOT, [5, 6, 1, 11, 3, 8], 3)
    two = generate(GROOT, [9, 9, 9, 1, 11, 3, 8], 3)
    assert one[-3:].tolist() == two[-3:].tolist() == generate(GROOT, [1, 11, 3, 8], 3)[-3:].tolist()


# Chance, by definition


@given(logit_lists, temperatures)
def test_a_temperature_divides_the_logits(logits, temperature):
    p = next_token_probabilities(torch.tensor(logits, dtype=torch.float64), temperature)
    weights = [math.exp((x - max(logits)) / temperature) for x in logits]
    assert p.tolist() == pytest.approx([w / sum(weights) for w in weights], abs=1e-12)
    assert p.sum().item() == pytest.approx(1)


@given(logit_lists, temperatures, st.integers(1, 15))
def test_top_k_keeps_k_of_the_most_likely_in_proportion(logits, temperature, k):
    x = torch.tensor(logits, dtype=torch.float64)
    all_p = next_token_probabilities(x, temperature)
    p = next_token_probabilities(x, temperature, top_k=k)
    kept = [i for i in range(len(logits)) if p[i] > 0]
    positive = sum(1 for q in all_p.tolist() if q > 0)
    assert len(kept) == min(k, len(logits)) or len(kept) == positive
    left = [i for i in range(len(logits)) if i not in kept]
    assert not left or max(all_p[left]) <= min(all_p[kept])
    assert p.sum().item() == pytest.approx(1)
    torch.testing.assert_close(p[kept], all_p[kept] / all_p[kept].sum())


@given(logit_lists, temperatures, st.floats(1e-6, 1))
def test_top_p_keeps_the_smallest_set_that_reaches_p_in_proportion(logits, temperature, top_p):
    x = torch.tensor(logits, dtype=torch.float64)
    all_p = next_token_probabilities(x, temperature)
    p = next_token_probabilities(x, temperature, top_p=top_p)
    kept = [i for i in range(len(logits)) if p[i] > 0]
    assert kept and p.sum().item() == pytest.approx(1)
    torch.testing.assert_close(p[kept], all_p[kept] / all_p[kept].sum())
    if top_p == 1:
        assert torch.equal(p, all_p)
        return
    left = [i for i in range(len(logits)) if i not in kept]
    assert not left or max(all_p[left]) <= min(all_p[kept]), "only the least likely go"
    assert all_p[kept].sum() >= top_p - 1e-9, "what is kept reaches p"
    assert all_p[kept].sum() - all_p[kept].min() < top_p + 1e-9, "one fewer would not"


@given(logit_lists, temperatures, st.integers(1, 12), st.floats(0.01, 0.99))
def test_top_p_looks_at_what_top_k_left(logits, temperature, k, top_p):
    x = torch.tensor(logits, dtype=torch.float64)
    both = next_token_probabilities(x, temperature, k, top_p)
    after_k = next_token_probabilities(x, temperature, top_k=k)
    in_turn = next_token_probabilities(after_k.log(), 1.0, top_p=top_p)
    torch.testing.assert_close(both, in_turn)


def test_distributions_of_a_batch_are_those_of_its_rows():
    x = torch.randn(3, 4, 9, generator=torch.Generator().manual_seed(0))
    p = next_token_probabilities(x, 0.7, 5, 0.8)
    for i in range(3):
        for j in range(4):
            torch.testing.assert_close(p[i, j], next_token_probabilities(x[i, j], 0.7, 5, 0.8))


def test_ties_still_leave_exactly_k():
    p = next_token_probabilities(torch.zeros(6), top_k=2)
    assert sorted(p.tolist()) == [0, 0, 0, 0, 0.5, 0.5]
    p = next_token_probabilities(torch.zeros(6), top_p=0.5)
    assert sorted(p.tolist()) == pytest.approx([0, 0, 0, 1 / 3, 1 / 3, 1 / 3])


@pytest.mark.parametrize(
    ("dtype", "temperature"),
    [
        (dtype, temperature)
        for dtype in (torch.float32, torch.float64)
        for temperature in (1e-30, 1e-40, 1e-300, 1e300)
    ],
)
def test_extreme_temperatures_still_give_a_distribution(dtype, temperature):
    p = next_token_probabilities(torch.tensor([1.0, 3.0, 2.0], dtype=dtype), temperature)
    expected = [0.0, 1.0, 0.0] if temperature < 1 else [1 / 3] * 3
    assert p.tolist() == pytest.approx(expected)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("top_p", [5e-324, 1e-300, 1e-40, 1e-8])
def test_the_smallest_top_p_leaves_the_most_likely_token(dtype, top_p):
    for logits, expected in (([1.0, 3.0, 2.0], [0.0, 1.0, 0.0]), ([7.0], [1.0])):
        p = next_token_probabilities(torch.tensor(logits, dtype=dtype), top_p=top_p)
        assert p.tolist() == expected
    assert generate(load_tiny(), [1, 2], 4, 1.0, top_p=top_p).tolist() == (
        generate(load_tiny(), [1, 2], 4).tolist()
    )


@pytest.mark.parametrize("model", BOTH)
def test_what_is_drawn_follows_the_distribution(model):
    prompt, count = [1, 2], 4_000
    ids = torch.tensor([prompt] * count)
    drawn = generate(
        model, ids, 1, temperature=1.3, top_k=5, generator=torch.Generator().manual_seed(0)
    )[:, -1]
    p = next_token_probabilities(last_logits(model, prompt).double(), 1.3, top_k=5)
    shares = torch.bincount(drawn, minlength=model.vocab_size).double() / count
    spread = (p * (1 - p) / count).sqrt()
    assert ((shares - p).abs() <= 5 * spread).all() and (shares[p == 0] == 0).all()
    assert ((shares - 1 / model.vocab_size).abs() > 5 * spread).any(), "not just any distribution"


# Random numbers


@pytest.mark.parametrize("model", BOTH)
def test_a_generator_makes_it_reproducible_and_leaves_the_global_one_alone(model):
    def write(seed):
        generator = torch.Generator().manual_seed(seed)
        return generate(model, [1, 2], 12, temperature=1.5, generator=generator).tolist()

    torch.manual_seed(7)
    before = torch.get_rng_state()
    assert write(1) == write(1)
    assert len({tuple(write(seed)) for seed in range(8)}) > 1
    generate(model, [1, 2], 12)  # greedy draws nothing
    assert torch.equal(torch.get_rng_state(), before)
    generate(model, [1, 2], 12, temperature=1.5)
    assert not torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("model", BOTH)
def test_writing_leaves_the_model_as_it_was(model):
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    training = model.training
    text = generate(model, [1, 2], 3)
    assert model.training == training and not text.is_inference()
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, before[name])


# Refusals

NOT_NUMBERS = [math.nan, "1", True, False, [1], None, 1j]
BAD = {
    "temperature": [-0.1, -1, math.inf, -math.inf, *NOT_NUMBERS],
    "top_k": [0, -1, 2.0, *[v for v in NOT_NUMBERS if v is not None]],
    "top_p": [0, 0.0, -0.5, 1.001, math.inf, *[v for v in NOT_NUMBERS if v is not None]],
    "max_new_tokens": [-1, 2.0, math.inf, 10**13, *NOT_NUMBERS],
    "stop_id": [-1, 8, 24, 1.0, *[v for v in NOT_NUMBERS if v is not None]],
}
CASES = [(name, value) for name, values in BAD.items() for value in values]


@pytest.mark.parametrize(("name", "value"), CASES)
def test_a_bad_choice_is_refused_by_name_and_value(name, value):
    models = [GROOT] if (name, value) == ("stop_id", 8) else [TINY, GROOT]
    if (name, value) == ("stop_id", 8):
        models = [TINY]  # its words end at 7
    for model in models:
        arguments = {"max_new_tokens": 2, "temperature": 1.0, name: value}
        with refused(f"{name} = {value!r}"):
            generate(model, [1, 2], **arguments)


@pytest.mark.parametrize("value", [0, *BAD["temperature"]])
def test_a_distribution_needs_a_temperature_above_zero(value):
    with refused("emperature"):
        next_token_probabilities(torch.zeros(3), value)


BAD_PROMPTS = [
    ([], "The prompt is empty"),
    (torch.zeros(1, 0, dtype=torch.int64), "The prompt is empty"),
    ("i am", "token ids"),
    (None, "token ids"),
    (["i", "am"], "token ids"),
    ([[1, 2], [3]], "token ids"),
    (3, "shape [seq] or [batch, seq]"),
    ([[[1]]], "shape [seq] or [batch, seq]"),
    ([1.5, 2.0], "whole numbers"),
    ([True], "whole numbers"),
    ([1, 99], "99 is out of range"),
    ([-3], "-3 is out of range"),
]


@pytest.mark.parametrize("model", BOTH)
@pytest.mark.parametrize("count", [0, 2])
@pytest.mark.parametrize(("ids", "words"), BAD_PROMPTS)
def test_a_bad_prompt_gives_one_clear_sentence(model, ids, words, count):
    with refused(words):
        generate(model, ids, count)


# Broken weights


def broken(load, value: float):
    """Return a model whose head gives a value that is no finite number."""
    model = load()
    head = model.head.bias if isinstance(model, BabyGrootGPT) else model.output.weight
    head.data[3] = value
    return model


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("load", [load_baby_groot, load_tiny])
@pytest.mark.parametrize("use_cache", [True, False])
def test_a_model_with_broken_weights_writes_nothing(load, temperature, use_cache):
    with refused("largest logit is nan", "weights are broken"):
        generate(broken(load, math.nan), [1, 2], 3, temperature, use_cache=use_cache)
    model = load()
    for parameter in model.parameters():
        parameter.data.fill_(math.inf)
    with refused("not a finite number"):
        generate(model, [1, 2], 3, temperature, use_cache=use_cache)


def test_one_broken_row_of_a_batch_is_seen():
    model = load_baby_groot()
    model.token_embedding.weight.data[9] = math.nan
    ids = torch.tensor([[1, 2], [1, 9], [3, 4]])
    with refused("largest logit is nan"):
        generate(model, ids, 1)
    assert generate(model, ids[::2], 1).shape == (2, 3)


BAD_LOGITS = [
    ([math.nan, 1.0], "is nan"),
    ([math.inf, 1.0], "is inf"),
    ([math.inf, -math.inf], "is inf"),
    ([-math.inf, -math.inf], "is -inf"),
    ([[0.0, 1.0], [math.nan, 0.0]], "is nan"),
]


@pytest.mark.parametrize("choices", [{}, {"top_k": 1}, {"top_p": 0.5}, {"temperature": 1e-300}])
@pytest.mark.parametrize(("logits", "words"), BAD_LOGITS)
def test_logits_without_a_finite_largest_have_no_distribution(logits, words, choices):
    with refused(words, "not a finite number"):
        next_token_probabilities(torch.tensor(logits), **choices)


def test_a_logit_of_minus_infinity_rules_a_token_out():
    p = next_token_probabilities(torch.tensor([0.0, -math.inf, 0.0]))
    assert p.tolist() == [0.5, 0.0, 0.5]
    likely = generate(load_baby_groot(), [1, 11, 3], 1)[-1]
    model = load_baby_groot()
    model.head.bias.data[likely] = -math.inf
    assert generate(model, [1, 11, 3], 1)[-1] != likely


@pytest.mark.parametrize(
    "logits",
    [None, 5, [1.0, 2.0], "x", torch.tensor([1, 2]), torch.tensor(1.0), torch.zeros(3, 0)],
)
def test_logits_are_a_tensor_of_floating_point_numbers(logits):
    with refused("Logits are"):
        next_token_probabilities(logits)


# More than can be


def test_baby_groot_writes_up_to_a_bound():
    for count in (MOST_NEW_TOKENS + 1, 10**9, 10**30, 10**5_000):
        with refused("max_new_tokens = 1", "from 0 to 100,000") if count < 10**99 else refused():
            generate(GROOT, [1], count)
    assert len(generate(GROOT, [1, 2], 1_000)) == 1_002


@pytest.mark.parametrize("model", [None, 5, "groot", TINY_CONFIG, torch.nn.Linear(2, 2), generate])
def test_only_a_model_of_the_course_writes(model):
    with refused("generate needs a BabyGrootGPT or a Transformer"):
        generate(model, [1], 1)


@pytest.mark.parametrize("generator", [5, "seed", torch.manual_seed])
def test_chance_comes_from_a_generator(generator):
    with refused("torch.Generator"):
        generate(TINY, [1], 1, temperature=1.0, generator=generator)


@pytest.mark.parametrize("use_cache", [True, False])
def test_a_config_changed_since_is_refused(use_cache):
    model = load_tiny()
    model.config.max_seq_len = "16"
    with refused("max_seq_len = '16'"):
        generate(model, [1], 1, use_cache=use_cache)


def test_ids_beyond_64_bits_are_no_ids():
    with refused("token ids"):
        generate(GROOT, [10**30], 1)


# One by one


@few
@given(prompts, st.integers(0, 10), st.integers(0, 5))
def test_a_stream_gives_what_generate_gives(prompt, count, seed):
    by_chance = {"temperature": 1.3, "top_k": 5, "top_p": 0.9}
    drawn = [torch.Generator().manual_seed(seed) for _ in range(2)]
    streamed = list(stream(TINY, prompt, count, generator=drawn[0], **by_chance))
    whole = generate(TINY, prompt, count, generator=drawn[1], **by_chance)
    assert streamed == whole[len(prompt) :].tolist()


@few
@given(st.lists(st.integers(0, 7), min_size=1, max_size=40), st.integers(0, 60))
def test_a_stream_longer_than_the_window_goes_on_from_its_later_half(prompt, count):
    size, text = window(TINY), list(prompt)[-window(TINY) :]
    streamed = stream(TINY, prompt, count)
    for _ in range(count):
        if len(text) == size + 1:  # full, and the last token has nowhere to stand
            text = text[-(size // 2) :]
        expected = int(last_logits(TINY, text).argmax())
        text.append(expected)
        assert next(streamed) == expected
    assert list(streamed) == []


def test_a_stream_tells_no_one_that_gradients_are_off():
    for _ in stream(TINY, [1], 3):
        assert torch.is_grad_enabled() and not torch.is_inference_mode_enabled()


@pytest.mark.parametrize(
    "ids, told", [([], "The prompt is empty"), ([99], "99"), ("a", "token ids")]
)
def test_a_stream_refuses_what_generate_refuses(ids, told):
    with refused(told):
        next(stream(TINY, ids, 3))


def test_only_a_transformer_streams():
    with refused("stream needs a Transformer"):
        next(stream(GROOT, [1], 3))
