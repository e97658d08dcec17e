"""The diagrams of the larger model say what the config and the rotary table say."""

from __future__ import annotations

import dataclasses
import re

import pytest

from glassformer.checkpoints import TINY_CONFIG
from glassformer.figures.llama import (
    llama_architecture,
    rotary_clocks,
    shared_heads,
)
from glassformer.figures.style import to_svg
from glassformer.models import rotary_table

TOKENS = "the cat sat on the mat".split()


def texts(fig) -> list[str]:
    return [text.get_text() for text in fig.axes[0].texts]


def test_architecture_states_the_shapes_of_its_config():
    said = texts(llama_architecture(TINY_CONFIG, TOKENS))
    for text in ("table [8, 32]", "4 q, 2 k, 2 v of 8", "[4, 6, 6]", "twice [6, 64]", "q·k / √8"):
        assert text in said
    assert any("19,104" in text for text in said)
    other = dataclasses.replace(TINY_CONFIG, n_heads=2, n_kv_heads=1)
    assert "2 q, 1 k, 1 v of 16" in texts(llama_architecture(other, TOKENS))


def test_architecture_shows_all_fifteen_concepts():
    pills = [
        t for t in texts(llama_architecture(TINY_CONFIG, TOKENS)) if re.fullmatch(r"[\d, ]+", t)
    ]
    assert {int(n) for pill in pills for n in pill.split(",")} == set(range(1, 16))


def test_clock_hands_point_where_the_turns_point():
    fig = rotary_clocks(rotary_table(8, 3))
    arrows = [t for t in fig.axes[0].texts if getattr(t, "arrow_patch", None)]
    assert len(arrows) == 3 * 4
    start, tip = arrows[1].xyann, arrows[1].xy  # pair 0 at position 1: one radian
    assert (tip[0] - start[0]) / 22 == pytest.approx(0.5403, abs=1e-4)
    assert (start[1] - tip[1]) / 22 == pytest.approx(0.8415, abs=1e-4)


def test_shared_heads_draws_a_line_for_each_query_head():
    fig = shared_heads([("grouped-query", 4, 2), ("multi-query", 4, 1)])
    assert sum(getattr(t, "arrow_patch", None) is not None for t in fig.axes[0].texts) == 8


@pytest.mark.parametrize(
    "make",
    [
        lambda: llama_architecture(TINY_CONFIG, TOKENS),
        lambda: rotary_clocks(rotary_table(8, 6)),
        lambda: shared_heads([("one", 1, 1), ("grouped-query", 4, 2)]),
    ],
)
def test_diagrams_leave_in_the_colours_of_the_palette(make):
    alt = "a diagram with some boxes"
    assert to_svg(make(), alt) == to_svg(make(), alt)
