"""Models with random weights, as the tests draw them."""

from __future__ import annotations

import torch

from glassformer.models import Transformer, TransformerConfig


def drawn(config: TransformerConfig, seed: int = 0, dtype=torch.float64) -> Transformer:
    """Return a model whose weights are large enough for every part to matter."""
    torch.manual_seed(seed)
    model = Transformer(config).to(dtype).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.copy_(torch.randn(weight.shape) * 0.2 + ("norm" in name))
    return model
