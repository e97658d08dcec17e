"""Configs, and models with random weights, as the tests draw them."""

from __future__ import annotations

import torch
from hypothesis import strategies as st

from glassformer.models import Transformer, TransformerConfig


@st.composite
def configs(draw, windows, **choices) -> TransformerConfig:
    """Draw small valid configs: multi-head, grouped-query and multi-query, tied or not.

    `windows` draws max_seq_len; each of `choices` draws the field of its name.
    """
    kv_heads = draw(st.sampled_from([1, 2, 3]))
    heads = kv_heads * draw(st.sampled_from([1, 2, 4]))
    return TransformerConfig(
        vocab_size=draw(st.integers(2, 40)),
        dim=heads * draw(st.sampled_from([2, 6, 8])),
        n_layers=draw(st.integers(1, 3)),
        n_heads=heads,
        n_kv_heads=None if kv_heads == heads else kv_heads,
        max_seq_len=draw(windows),
        **{name: draw(strategy) for name, strategy in choices.items()},
        tie_word_embeddings=draw(st.booleans()),
    )


def drawn(config: TransformerConfig, seed: int = 0, dtype=torch.float64) -> Transformer:
    """Return a model whose weights are large enough for every part to matter."""
    torch.manual_seed(seed)
    model = Transformer(config).to(dtype).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.copy_(torch.randn(weight.shape) * 0.2 + ("norm" in name))
    return model
