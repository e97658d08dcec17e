"""The corpora, the vocabulary, examples, and what no model can do better than."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from glassformer.data import (
    CAT_SENTENCES,
    GROOT_SENTENCES,
    SPECIALS,
    Vocabulary,
    accuracy_ceiling,
    cat_vocabulary,
    entropy_floor,
    groot_vocabulary,
    next_token_pairs,
    prefix_pairs,
)
from glassformer.training import tiny_sequences
from one_sentence import refused

GROOT = groot_vocabulary()
X, Y = prefix_pairs(GROOT_SENTENCES, GROOT, max_len=4)

# The corpus: sorted 21 words behind three specials, as both sources number them.
GROOT_WORDS = """<PAD> <START> <END> am angry are cries friend groot happy helps i is leaf likes
needs rocket sad shouts smiles tree water we you"""


def test_groot_vocabulary_is_the_published_one():
    assert GROOT.words == tuple(GROOT_WORDS.split())
    assert len(GROOT) == 24
    assert Vocabulary.from_sentences(GROOT_SENTENCES, SPECIALS) == GROOT
    assert GROOT.encode("<START> i am groot <END>") == [1, 11, 3, 8, 2]


def test_cat_vocabulary_is_the_published_one():
    assert cat_vocabulary().words == ("<pad>", "the", "cat", "dog", "sat", "ran", "on", "mat")
    assert tiny_sequences().tolist()[0] == [1, 2, 4, 6, 1, 7]
    assert tiny_sequences().shape == (4, 6)


@pytest.mark.parametrize("vocabulary", [GROOT, cat_vocabulary()], ids=["groot", "cat"])
def test_decode_undoes_encode(vocabulary):
    @given(st.lists(st.sampled_from(vocabulary.words)))
    def undoes(words):
        text = " ".join(words)
        ids = vocabulary.encode(text)
        assert vocabulary.decode(ids) == text
        assert vocabulary.decode(torch.tensor(ids, dtype=torch.int64)) == text
        assert vocabulary.decode(np.array(ids, dtype=np.int64)) == text
        assert vocabulary.encode(vocabulary.decode(ids)) == ids

    undoes()


@given(st.lists(st.lists(st.sampled_from("abcdefgh"), min_size=1).map(" ".join), min_size=1))
def test_a_vocabulary_holds_each_word_once_specials_first_the_rest_sorted(sentences):
    vocabulary = Vocabulary.from_sentences(sentences, ["<PAD>", "<START>", "<END>"])
    words = vocabulary.words[3:]
    assert vocabulary.words[:3] == ("<PAD>", "<START>", "<END>")
    assert list(words) == sorted(set(" ".join(sentences).split()))
    assert all(word in vocabulary for word in words) and "zebra" not in vocabulary


@pytest.mark.parametrize(
    ("word", "near"), [("grot", "groot"), ("trees", "tree"), ("Rocket", "rocket"), ("amm", "am")]
)
def test_an_unknown_word_is_named_with_the_nearest_known(word, near):
    with refused(repr(word), "nearest known", near):
        GROOT.encode(f"i {word} groot")


@given(st.text(min_size=1).filter(lambda t: set(t.split()) - set(GROOT.words)))
def test_any_unknown_text_is_refused_in_one_line(text):
    with refused("is not in the vocabulary"):
        GROOT.encode(text)


@pytest.mark.parametrize("text", [None, 5, b"i am", ["i", "am"], torch.tensor([1])])
def test_only_a_text_is_encoded(text):
    with refused("encode needs a text"):
        GROOT.encode(text)


@pytest.mark.parametrize("wrong", [-1, 24, 1.0, True, None, "i", [1], math.nan, 10**30])
def test_only_ids_are_decoded(wrong):
    with refused("is not a token id", "from 0 to 23"):
        GROOT.decode([1, wrong])


@pytest.mark.parametrize("wrong", [5, None, "i am", torch.tensor(3)])
def test_only_a_list_of_ids_is_decoded(wrong):
    with refused("list of token ids"):
        GROOT.decode(wrong)


def test_single_ids_from_torch_and_numpy_are_ids():
    assert GROOT.decode([torch.tensor(8), np.int64(12), torch.tensor([9])]) == "groot is happy"


@pytest.mark.parametrize("wrong", ["i am groot", None, 3, ["i am", 3], [b"i am"]])
def test_only_a_list_of_sentences_is_a_corpus(wrong):
    with refused("list of sentences"):
        Vocabulary.from_sentences(wrong)
    with refused("list of sentences"):
        prefix_pairs(wrong, GROOT)


def test_a_vocabulary_needs_a_list_of_different_words():
    with refused("list of words"):
        Vocabulary("abc")
    with refused("'a' stands twice"):
        Vocabulary(("a", "b", "a"))
    with refused("list of words"):
        Vocabulary.from_sentences(["i am"], specials="<PAD>")


@pytest.mark.parametrize("word", ["", " ", "i am", "i\n", "\u2003", " i", "a\tb"])
def test_a_word_is_what_a_text_can_hold(word):
    with refused(repr(word), "is no word", "without blanks"):
        Vocabulary(("i", word))
    with refused("is no word"):
        Vocabulary.from_sentences(["i am"], specials=["<PAD>", word])


@pytest.mark.parametrize("word", [5, None, True, b"i", ["i"]])
def test_a_word_is_a_text(word):
    with refused("list of words", "is not a text"):
        Vocabulary(("i", word))


def test_what_is_refused_is_shown_in_one_short_line():
    for wrong in (torch.zeros(40, 40), list(range(10**5)), "i " * 10**5):
        with refused():
            Vocabulary(wrong)
        with refused():
            prefix_pairs([wrong] if isinstance(wrong, str) else wrong, GROOT)
    with refused("encode needs a text"):
        GROOT.encode(list(range(10**5)))
    with refused("is not a token id"):
        GROOT.decode([10**5_000])


# Examples


def test_the_corpus_gives_76_examples():
    assert len(GROOT_SENTENCES) == 19 and X.shape == (76, 4) and Y.shape == (76,)
    assert X.dtype == Y.dtype == torch.int64
    assert X[:4].tolist() == [[1, 0, 0, 0], [1, 11, 0, 0], [1, 11, 3, 0], [1, 11, 3, 8]]
    assert Y[:4].tolist() == [11, 3, 8, 2]


@given(
    st.lists(
        st.lists(st.sampled_from(GROOT.words[3:]), min_size=1, max_size=6).map(" ".join),
        min_size=1,
        max_size=5,
    ),
    st.integers(7, 9),
)
def test_examples_are_every_prefix_and_what_follows_it(sentences, max_len):
    x, y = prefix_pairs(sentences, GROOT, max_len)
    rebuilt = []
    for row, target in zip(x.tolist(), y.tolist(), strict=True):
        prefix = [i for i in row if i]
        assert row == prefix + [0] * (max_len - len(prefix)), "padding stands on the right"
        if len(prefix) == 1:
            rebuilt.append([1])
        assert prefix == rebuilt[-1]
        rebuilt[-1].append(target)
    assert [GROOT.decode(ids) for ids in rebuilt] == [f"<START> {s} <END>" for s in sentences]


def test_next_token_pairs_are_every_prefix_of_every_sequence():
    x, y = next_token_pairs(torch.tensor([[5, 6, 7], [8, 9, 5]]))
    assert x.tolist() == [[5, -1], [5, 6], [8, -1], [8, 9]]
    assert y.tolist() == [6, 7, 9, 5]


@pytest.mark.parametrize("max_len", [0, -1, True, 4.0, "4", None, 10**9, 10**12])
def test_a_bad_length_of_contexts_is_refused(max_len):
    with refused("max_len"):
        prefix_pairs(GROOT_SENTENCES, GROOT, max_len)


def test_bad_sentences_are_refused():
    with refused("'i am groot'", "contexts of 4 tokens", "max_len is 3"):
        prefix_pairs(GROOT_SENTENCES, GROOT, max_len=3)
    with refused("corpus is empty"):
        prefix_pairs([], GROOT)
    with refused("'dragon' is not in the vocabulary"):
        prefix_pairs(["i am dragon"], GROOT)
    with refused("'<START>' is not in the vocabulary"):
        prefix_pairs(CAT_SENTENCES, cat_vocabulary())
    with refused("pads contexts"):
        prefix_pairs(["i am"], Vocabulary.from_sentences(["i am"], ["<START>", "<END>"]))
    with refused("pads contexts"):
        prefix_pairs(["i <PAD>"], GROOT)


# What no model can do better than


def by_distributions(x: torch.Tensor, y: torch.Tensor) -> tuple[float, float]:
    """Return floor and ceiling from one table of probabilities, as a perfect model has it."""
    contexts, row = torch.unique(x, dim=0, return_inverse=True)
    table = torch.zeros(len(contexts), int(y.max()) + 1, dtype=torch.float64)
    table.index_put_((row, y), torch.ones(len(y), dtype=torch.float64), accumulate=True)
    p = table / table.sum(dim=1, keepdim=True)
    share = table.sum(dim=1) / len(y)
    floor = (share * torch.distributions.Categorical(probs=p).entropy()).sum()
    return floor.item(), (share * p.amax(dim=1)).sum().item()


def test_floors_and_ceilings_of_both_corpora_are_those_found():
    cat_x, cat_y = next_token_pairs(tiny_sequences())
    assert entropy_floor(X, Y) == pytest.approx(0.73611, abs=5e-6)
    assert accuracy_ceiling(X, Y) == 55 / 76
    assert entropy_floor(cat_x, cat_y) == pytest.approx(2 * math.log(2) / 5, abs=1e-12)
    assert entropy_floor(cat_x, cat_y) == pytest.approx(0.27726, abs=5e-6)
    assert accuracy_ceiling(cat_x, cat_y) == 0.8
    for x, y in ((X, Y), (cat_x, cat_y)):
        assert (entropy_floor(x, y), accuracy_ceiling(x, y)) == pytest.approx(
            by_distributions(x, y)
        )


pairs = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 4)), min_size=1)


@given(pairs)
def test_floor_and_ceiling_equal_those_of_a_table_of_probabilities(rows):
    x, y = torch.tensor([r[:2] for r in rows]), torch.tensor([r[2] for r in rows])
    floor, ceiling = by_distributions(x, y)
    assert entropy_floor(x, y) == pytest.approx(floor, abs=1e-9)
    assert accuracy_ceiling(x, y) == pytest.approx(ceiling, abs=1e-9)


@given(pairs, st.randoms(use_true_random=False))
def test_no_model_goes_below_the_floor_or_above_the_ceiling(rows, random):
    x, y = torch.tensor([r[:2] for r in rows]), torch.tensor([r[2] for r in rows])
    beliefs = {
        tuple(c): [random.uniform(0.01, 1) for _ in range(5)]
        for c in torch.unique(x, dim=0).tolist()
    }
    p = torch.tensor([beliefs[tuple(c)] for c in x.tolist()], dtype=torch.float64)
    p = p / p.sum(dim=1, keepdim=True)
    loss = torch.nn.functional.nll_loss(p.log(), y).item()
    right = (p.argmax(dim=1) == y).double().mean().item()
    assert loss >= entropy_floor(x, y) - 1e-12
    assert right <= accuracy_ceiling(x, y) + 1e-12


@pytest.mark.parametrize(
    ("x", "y"), [((0, 4), (0,)), ((3, 4), (2,)), ((3,), (3,)), ((3, 4), (3, 1))]
)
@pytest.mark.parametrize("measure", [entropy_floor, accuracy_ceiling])
def test_contexts_and_targets_that_do_not_fit_are_refused(measure, x, y):
    with refused("Contexts [N, T] and targets [N]", str(list(x))):
        measure(torch.zeros(x, dtype=torch.int64), torch.zeros(y, dtype=torch.int64))


@pytest.mark.parametrize("wrong", [None, 5, [[1, 0], [1, 2]], "i am", np.zeros((2, 2))])
def test_contexts_and_targets_are_tensors(wrong):
    for measure in (entropy_floor, accuracy_ceiling):
        with refused("are tensors", "prefix_pairs"):
            measure(wrong, Y)
        with refused("are tensors", "prefix_pairs"):
            measure(X, wrong)
    with refused("Sequences are a tensor [N, T]"):
        next_token_pairs(wrong)


def test_sequences_have_two_dimensions():
    with refused("shape [N, T], not [3]"):
        next_token_pairs(torch.tensor([1, 2, 3]))


@pytest.mark.parametrize("wrong", [None, 5, "i am", ["<PAD>", "i"], GROOT.words])
def test_examples_need_a_vocabulary(wrong):
    with refused("prefix_pairs needs a Vocabulary"):
        prefix_pairs(GROOT_SENTENCES, wrong)
