"""Counting as a baseline: probabilities sum to one, losses are those of an outside formula."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.ngrams import NGrams

V = 5
ids = st.lists(st.integers(0, V - 1), min_size=1, max_size=40)


@given(ids, ids, st.integers(1, 4))
def test_probabilities_after_any_context_sum_to_one(text, context, order):
    grams = NGrams(text, V, order)
    total = math.fsum(grams.probability(context, token) for token in range(V))
    assert total == pytest.approx(1, abs=1e-12)


@given(ids, ids)
def test_pairs_are_smoothed_as_witten_and_bell_do(text, others):
    """Their formula for two tokens, written out: (c(hw) + t(h) p(w)) / (c(h) + t(h))."""
    singles, pairs = Counter(text), Counter(zip(text, text[1:], strict=False))
    context, token = others[0], others[-1]
    kinds = len(singles)
    single = (singles[token] + kinds / V) / (len(text) + kinds)
    after = {w for (h, w) in pairs if h == context}
    seen = sum(count for (h, _), count in pairs.items() if h == context)
    expected = (
        (pairs[context, token] + len(after) * single) / (seen + len(after)) if after else single
    )
    assert NGrams(text, V, 2).probability([context], token) == pytest.approx(expected, abs=1e-12)


def test_the_loss_is_the_mean_of_what_each_token_costs():
    grams = NGrams([0, 1, 2, 0, 1, 3], V, 3)
    text = [0, 1, 2, 4]
    nats = [-math.log(grams.probability(text[max(0, i - 2) : i], text[i])) for i in (1, 2, 3)]
    assert grams.loss(text) == pytest.approx(sum(nats) / 3, abs=1e-12)


def test_a_context_helps_where_the_next_token_depends_on_it():
    text = [0, 1, 2, 3, 4] * 50
    grams = NGrams(text, V, 2)
    assert grams.loss(text, order=1) > 1.6 > 0.1 > grams.loss(text, order=2)
