"""BabyGrootGPT: a decoder with one block and one head, 968 parameters for a 24-token world.

B = batch, T = tokens in the sequence, d = embed_dim, V = vocab_size.
"""

import math

import torch
from torch import Tensor, nn

from ..refusals import within_memory
from ..trace import note
from .checking import check_ids, check_sizes


class SelfAttention(nn.Module):
    """One causal attention head with biased projections and no output projection."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.q = nn.Linear(d, d)  # what a token looks for
        self.k = nn.Linear(d, d)  # what a token offers
        self.v = nn.Linear(d, d)  # what a token carries

    def forward(self, h: Tensor) -> tuple[Tensor, Tensor]:
        """Return the context [B, T, d] and the attention weights [B, T, T] of h [B, T, d]."""
        T, d = h.shape[-2:]
        q = note("q", self.q(h))  # [B, T, d]
        k = note("k", self.k(h))  # [B, T, d]
        v = note("v", self.v(h))  # [B, T, d]
        scores = note("scores", q @ k.transpose(-2, -1) / math.sqrt(d))  # [B, T, T]
        past_and_present = torch.ones(T, T, dtype=torch.bool, device=h.device).tril()  # [T, T]
        scores = note("masked_scores", scores.masked_fill(~past_and_present, -1e9))
        attention = note("attention", scores.softmax(dim=-1))  # [B, T, T], rows sum to 1
        return note("context", attention @ v), attention  # [B, T, d]


class Block(nn.Module):
    """Attention and a feed-forward network, each added to its input and then normalised."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.attn = SelfAttention(d)
        self.norm1 = nn.LayerNorm(d)
        self.norm2 = nn.LayerNorm(d)
        self.ffn = nn.Sequential(nn.Linear(d, 2 * d), nn.ReLU(), nn.Linear(2 * d, d))

    def forward(self, h: Tensor) -> tuple[Tensor, Tensor]:
        """Return the block's output [B, T, d] and its attention [B, T, T] for h [B, T, d]."""
        context, attention = self.attn(h)
        r1 = note("r1", h + context)  # residual: nothing of h is lost
        n1 = note("n1", self.norm1(r1))
        widen, relu, narrow = self.ffn
        hidden = note("ffn_hidden", widen(n1))  # [B, T, 2d]
        active = note("ffn_activation", relu(hidden))  # [B, T, 2d], negative units are off
        out = note("ffn_out", narrow(active))  # [B, T, d]
        r2 = note("r2", n1 + out)
        return note("h_out", self.norm2(r2)), attention


class BabyGrootGPT(nn.Module):
    """Token and learned position embeddings, one post-norm block, a head over the vocabulary."""

    def __init__(self, vocab_size: int, max_len: int, embed_dim: int = 8) -> None:
        super().__init__()
        check_sizes(vocab_size=vocab_size, max_len=max_len, embed_dim=embed_dim)
        self.max_len = max_len
        self.token_embedding = nn.Embedding(vocab_size, embed_dim)
        self.position_embedding = nn.Embedding(max_len, embed_dim)
        self.transformer = Block(embed_dim)
        self.head = nn.Linear(embed_dim, vocab_size)

    @property
    def vocab_size(self) -> int:
        """Number of tokens the model knows."""
        return self.token_embedding.num_embeddings

    def num_params(self) -> int:
        """Return the number of trainable parameters."""
        return sum(p.numel() for p in self.parameters())

    @within_memory
    def forward(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits [B, T, V] and attention [B, T, T] for token ids [B, T], T ≤ max_len."""
        check_ids(ids, self.vocab_size, room=self.max_len, window=self.max_len)
        T = note("ids", ids).shape[1]
        tokens = note("token_embedding", self.token_embedding(ids))  # [B, T, d]
        places = self.position_embedding(torch.arange(T, device=ids.device))  # [T, d]
        h0 = note("h0", tokens + note("position_embedding", places.expand_as(tokens)))  # [B, T, d]
        h_out, attention = self.transformer(h0)
        return note("logits", self.head(h_out)), attention  # [B, T, V]
