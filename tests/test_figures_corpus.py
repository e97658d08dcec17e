"""Figures and tables of the corpus and of the floor: what they say is what the data hold."""

from __future__ import annotations

import re

import pytest
import torch

from glassformer.data import GROOT_SENTENCES, entropy_floor, groot_vocabulary, prefix_pairs
from glassformer.figures import Table, bars, examples, near_the_floor, prefix_tree
from glassformer.figures.style import to_svg

vocabulary = groot_vocabulary()
X, Y = prefix_pairs(GROOT_SENTENCES, vocabulary)


def svg(figure) -> str:
    return to_svg(figure, "A figure that a test draws.")


def test_examples_name_every_token_with_its_id():
    drawn = svg(examples(X[:4], Y[:4], vocabulary.words))
    for word in ("&lt;START&gt;", "&lt;PAD&gt;", "&lt;END&gt;", "groot", "am"):
        assert f">{word}<" in drawn
    assert drawn.count(">&lt;PAD&gt;<") == 6
    assert drawn.count(">11<") == 4


def test_the_tree_frames_open_contexts_with_their_entropy():
    drawn = svg(prefix_tree(X, Y, vocabulary.words))
    framed = r">\d\.\d{3} nats<"
    assert len(re.findall(framed, drawn)) == 5
    for text in ("2.155 nats", "1.004 nats", "1.099 nats", "0.693 nats", "groot ×7"):
        assert text in drawn
    assert not re.findall(framed, svg(prefix_tree(X[:4], Y[:4], vocabulary.words)))


def test_the_floor_is_named_with_its_value():
    floor = entropy_floor(X, Y)
    curves = {"noisy": [0.8, 0.7, 0.75], "steady": [0.76, 0.75, 0.74]}
    drawn = svg(near_the_floor(range(3), curves, floor, "Loss", published={1: 0.7, 9: 5.0}))
    assert "floor 0.736" in drawn and "steady" in drawn


def test_bars_carry_their_values_and_notes():
    drawn = svg(bars({"a": 1.5, "b": torch.tensor(0.25).item()}, "Two", notes=["one", "other"]))
    assert "1.500 · one" in drawn and "0.250 · other" in drawn


def test_figures_are_the_same_bytes_twice():
    assert svg(prefix_tree(X, Y, vocabulary.words)) == svg(prefix_tree(X, Y, vocabulary.words))


def test_a_table_escapes_markup_and_sets_numbers_flush_right():
    shown = Table([["<PAD>", 0], ["groot", -12]], ["token", "id"], "Ids")
    assert "&lt;PAD&gt;" in shown._repr_html_() and "<PAD>" not in shown._repr_html_()
    assert '<td class="text-right">-12</td>' in shown._repr_html_()
    assert repr(shown) == "Ids\ntoken   id\n<PAD>    0\ngroot  -12"


def test_a_table_refuses_a_row_that_does_not_fit():
    with pytest.raises(ValueError, match="needs 2 cells"):
        Table([["a"]], ["token", "id"])
