"""The same model for training: attention in one call that never writes its scores down.

Written out, attention makes a table [T, S] of scores for every head, masks it, and takes its
softmax: three tables that go through memory, and again on the way back. PyTorch's
`scaled_dot_product_attention` works through them in pieces that stay in the processor's cache (Dao
et al., 2022). What comes out is the same up to rounding.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from .transformer import Attention, Transformer


class FusedAttention(Attention):
    """Attention whose scores are never seen, and so cannot be traced."""

    def qkv(self, x: Tensor) -> Tensor:
        """Return queries, keys and values of x [B, T, C] side by side, by one product for three."""
        weights = torch.cat((self.wq.weight, self.wk.weight, self.wv.weight))  # [(H + 2K)·D, C]
        return F.linear(x, weights)  # [B, T, (H + 2K)·D]

    def attend(self, q: Tensor, k: Tensor, v: Tensor, future: Tensor | None) -> Tensor:
        """Return what queries q [B, H, T, D] gather from k, v [B, K, S, D]: [B, H, T, D]."""
        own = future is None or q.shape[2] == k.shape[2]  # nothing cached: PyTorch masks by itself
        return F.scaled_dot_product_attention(
            q, k, v, None if own else ~future, is_causal=own and future is not None, enable_gqa=True
        )


def fuse(model: Transformer) -> Transformer:
    """Return the model itself, its attention fused from now on; the weights stay as they are."""
    for block in model.layers:
        block.attention.__class__ = FusedAttention
    return model
