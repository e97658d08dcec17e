"""Byte-pair encoding: the lines to read find what the library finds, and nothing is left out."""

from __future__ import annotations

import json
import os
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glassformer.bpe import BytePairTokenizer, cut, learn, merge, words_of
from glassformer.novel import load_novel, split_novel
from one_sentence import refused

texts = st.text("ab “–é\n'1", min_size=1, max_size=200)


def library(tokenizer: BytePairTokenizer) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the vocabulary and the merges of the library's tokenizer."""
    model = json.loads(tokenizer.library.to_str())["model"]
    return sorted(model["vocab"], key=model["vocab"].get), [tuple(m) for m in model["merges"]]


@pytest.fixture(scope="module")
def loomings():
    """Return the novel's first chapter."""
    return load_novel().split("\n\nCHAPTER 2.")[0]


def test_the_lines_to_read_find_the_library_s_merges_in_the_novel(loomings):
    tokenizer = BytePairTokenizer.train(loomings, 400)
    assert learn(words_of(loomings), 400) == library(tokenizer)


@settings(max_examples=200)
@given(texts, st.integers(0, 40))
def test_they_find_them_in_any_text(text, more):
    size = len(set(text.encode())) + more
    assert learn(words_of(text), size) == library(BytePairTokenizer.train(text, size))


def test_words_are_cut_as_the_library_cuts_them(loomings):
    tokenizer = BytePairTokenizer.train(loomings, 300)
    _, merges = library(tokenizer)
    for word in words_of(loomings):
        assert list(cut("".join(word), merges)) == [
            token.value for token in tokenizer.library.model.tokenize("".join(word))
        ]


def test_another_order_of_merges_is_noticed(loomings):
    vocabulary, merges = learn(words_of(loomings), 120)
    assert (vocabulary, merges[::-1]) != library(BytePairTokenizer.train(loomings, 120))


@given(st.lists(st.sampled_from("ab"), max_size=12))
def test_a_merge_takes_pairs_from_the_left_and_keeps_every_letter(letters):
    word = merge(tuple(letters), ("a", "a"))
    assert "".join(word) == "".join(letters)
    assert ("a", "a") not in zip(word, word[1:], strict=False)


@pytest.fixture(scope="module")
def tokenizer():
    return BytePairTokenizer.train(split_novel(load_novel())[0], 1024)


def test_the_whole_novel_comes_back(tokenizer):
    for part in split_novel(load_novel()):
        assert tokenizer.decode(tokenizer.encode(part)) == part


@settings(max_examples=60)
@given(st.text("“Whale—’ \n", max_size=30))
def test_pieces_come_one_by_one_and_letters_whole(tokenizer, text):
    ids = tokenizer.encode(text)
    assert "".join(tokenizer.decode_stream(iter(ids))) == text == tokenizer.decode(ids)


@pytest.mark.parametrize("prompt, letter", [("Call é me", "é"), ("鯨", "鯨"), ("a\0b", "\\x00")])
def test_a_letter_that_never_occurred_is_named(tokenizer, prompt, letter):
    with refused(f"The letter '{letter}' does not occur", "write the prompt without it"):
        tokenizer.encode(prompt)


def test_a_prompt_of_bytes_that_are_no_text_is_refused(tokenizer):
    with refused("bytes that are no text", "UTF-8"):
        tokenizer.encode("whale \udcff")


def test_a_vocabulary_must_hold_every_letter(loomings):
    letters = len(set(loomings.encode()))
    assert len(BytePairTokenizer.train(loomings, letters)) == letters
    with refused(f"vocab_size = {letters - 1} is too small", f"set it to {letters} or more"):
        BytePairTokenizer.train(loomings, letters - 1)


def test_a_text_supports_only_so_many_pieces():
    words = Counter({tuple("ab"): 1, tuple("ac"): 1})
    assert learn(words, 10**6) == (["a", "b", "c"], [])


def test_a_saved_tokenizer_is_the_same(tokenizer, tmp_path):
    tokenizer.save(tmp_path / "tokenizer.json")
    again = BytePairTokenizer.load(tmp_path / "tokenizer.json")
    assert library(again) == library(tokenizer) and len(again) == 1024


@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"model": {"type": "BPE"}}', "\ud800"])
def test_a_broken_file_is_refused_in_a_sentence(tmp_path, content):
    path = tmp_path / "tokenizer.json"
    path.write_bytes(content.encode("utf-8", "surrogatepass"))
    with refused("is not a tokenizer"):
        BytePairTokenizer.load(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="a pipe with a name")
def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "tokenizer.json")
    with refused("cannot be read", "not a file"):
        BytePairTokenizer.load(tmp_path / "tokenizer.json")


def test_a_missing_file_says_who_writes_it(tmp_path):
    with refused("There is no", "`glassformer train` writes it"):
        BytePairTokenizer.load(tmp_path / "tokenizer.json")
