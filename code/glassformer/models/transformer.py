"""A LLaMA-style Transformer: RMSNorm, rotary positions, grouped-query attention, SwiGLU, KV cache.

B = batch, T = new tokens, S = all tokens so far (cached + new), C = dim, V = vocab_size,
H = query heads, K = key/value heads, G = H / K query heads that share one, D = head_dim.
"""

from __future__ import annotations

import math
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..config import TransformerConfig
from ..refusals import need_kind, within_memory
from ..trace import note
from .checking import check_cache, check_config, check_ids


class RMSNorm(nn.Module):
    """Divide each vector by its root mean square, then scale it (Zhang and Sennrich, 2019)."""

    def __init__(self, dim: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.dim, self.eps = dim, eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x: Tensor) -> Tensor:
        """Return x [..., C] with root mean square 1 in its last dimension, times the weight."""
        if x.dtype.itemsize < 4:  # a square soon exceeds what 16 bits can hold
            return self(x.float()).to(x.dtype)
        mean_square = x.square().sum(dim=-1, keepdim=True) / self.dim  # [..., 1]
        return x * torch.rsqrt(mean_square + self.eps) * self.weight


def rotary_table(head_dim: int, length: int, theta: float = 10_000.0) -> Tensor:
    """Return the turn of each pair of a head at each position, [length, D/2] complex numbers.

    The turn by an angle a is cos a + i sin a (Su et al., 2021); pair 0 turns fastest.
    """
    pair = torch.arange(0, head_dim, 2, dtype=torch.float64)  # [D/2]
    speed = theta ** (-pair / head_dim)  # radians per position
    angles = torch.outer(torch.arange(length, dtype=torch.float64), speed)  # [length, D/2]
    return torch.polar(torch.ones_like(angles), angles)


def rotate(x: Tensor, turns: Tensor) -> Tensor:
    """Turn each pair (x₀, x₁), (x₂, x₃), … of x [..., T, D] as `turns` [T, D/2] says.

    A pair is read as the complex number x₀ + i x₁; multiplying by a turn rotates it:
    (x₀ cos a − x₁ sin a) + i (x₀ sin a + x₁ cos a).
    """
    if x.dtype.itemsize < 4:  # complex numbers have parts of 32 bits or more
        return rotate(x.float(), turns).to(x.dtype)
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)))  # [..., T, D/2, 2] → [..., T, D/2]
    return torch.view_as_real(pairs * turns).flatten(-2)  # [..., T, D/2, 2] → [..., T, D]


@lru_cache(maxsize=16)
def _kept_table(
    head_dim: int, length: int, theta: float, dtype: torch.dtype, device: torch.device
) -> Tensor:
    """Return `rotary_table` as complex numbers of a dtype; made once for all models alike."""
    with torch.inference_mode(False):  # so that a table made while writing can train later
        return rotary_table(head_dim, length, theta).to(device, dtype)


class KVCache:
    """Keys and values of every token seen so far, preallocated to the model's whole window."""

    def __init__(
        self,
        config: TransformerConfig,
        batch_size: int = 1,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str | None = None,
    ) -> None:
        check_cache(config, batch_size, dtype, device)
        shape = (config.n_layers, batch_size, config.kv_heads, config.max_seq_len, config.head_dim)
        with torch.inference_mode(False):  # so that a later pass can write, in whichever mode
            self.keys = torch.zeros(shape, dtype=dtype, device=device)  # [layers, B, K, max, D]
            self.values = torch.zeros(shape, dtype=dtype, device=device)
            self._layers = list(zip(self.keys, self.values, strict=True))  # views, one per block
        self.length = 0  # tokens held; also the position of the next one

    def __setstate__(self, state: dict) -> None:
        """Make the views again where a cache is unpickled or copied: they must share its memory."""
        self.__dict__.update(state)
        self._layers = list(zip(self.keys, self.values, strict=True))

    @property
    def batch_size(self) -> int:
        """Number of sequences cached side by side."""
        return self.keys.shape[1]

    @property
    def room(self) -> int:
        """Number of tokens that still fit."""
        return self.keys.shape[3] - self.length

    def check(self, config: TransformerConfig, batch_size: int) -> None:
        """Raise a ValueError unless the cache was made for this config and batch size."""
        if self.batch_size != batch_size:
            raise ValueError(
                f"The cache holds {self.batch_size} sequence(s) side by side, but the batch has "
                f"{batch_size}; make one with KVCache(config, batch_size={batch_size})."
            )
        made_for = tuple(self.keys.shape[i] for i in (0, 2, 3, 4))
        if made_for != (config.n_layers, config.kv_heads, config.max_seq_len, config.head_dim):
            raise ValueError(
                "The cache was made for a model of another shape; "
                "make one with KVCache(model.config)."
            )

    def append(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Store k, v [B, K, T, D] behind the tokens held; return all of them, [B, K, S, D].

        What is held is constant: gradients reach the new tokens only.
        """
        start, end = self.length, self.length + k.shape[2]
        if k.requires_grad:
            keys, values = self.append(layer, k.detach(), v.detach())
            old_keys, old_values = keys[:, :, :start], values[:, :, :start]
            return torch.cat((old_keys, k), dim=2), torch.cat((old_values, v), dim=2)
        keys, values = self._layers[layer]  # [B, K, max, D] each
        keys[:, :, start:end] = k
        values[:, :, start:end] = v
        keys, values = keys[:, :, :end], values[:, :, :end]
        return (keys, values) if keys.dtype == k.dtype else (keys.to(k.dtype), values.to(v.dtype))

    def advance(self, tokens: int) -> None:
        """Count new tokens as held, once every layer has appended them."""
        self.length += tokens

    def reset(self) -> None:
        """Forget every token; the memory stays."""
        self.length = 0

    def nbytes(self) -> int:
        """Return the bytes that the cache occupies."""
        return self.keys.nbytes + self.values.nbytes


class Attention(nn.Module):
    """Causal attention in which G query heads share each key/value head (Ainslie et al., 2023)."""

    def __init__(self, config: TransformerConfig, layer: int) -> None:
        super().__init__()
        self.layer = layer
        self.H, self.K, self.D = config.n_heads, config.kv_heads, config.head_dim
        self.root_D = math.sqrt(self.D)
        self.wq = nn.Linear(config.dim, self.H * self.D, bias=False)
        self.wk = nn.Linear(config.dim, self.K * self.D, bias=False)
        self.wv = nn.Linear(config.dim, self.K * self.D, bias=False)
        self.wo = nn.Linear(self.H * self.D, config.dim, bias=False)

    def qkv(self, x: Tensor) -> Tensor:
        """Return queries, keys and values of x [B, T, C] side by side, [B, T, (H + 2K)·D]."""
        return torch.cat((self.wq(x), self.wk(x), self.wv(x)), dim=-1)

    def forward(
        self, x: Tensor, turns: Tensor, future: Tensor | None, cache: KVCache | None
    ) -> Tensor:
        """Return what x [B, T, C] gathers, [B, T, C]; `future` [T, S] is True where hidden."""
        B, T, C = x.shape
        H, K, D, layer = self.H, self.K, self.D, self.layer
        heads = self.qkv(x).view(B, T, H + 2 * K, D).transpose(1, 2)  # [B, H + 2K, T, D]
        q, k, v = heads.split_with_sizes((H, K, K), dim=1)  # [B, H, T, D], twice [B, K, T, D]
        note("q", q, layer)
        note("k", k, layer)
        note("v", v, layer)
        turned = rotate(heads[:, : H + K], turns)  # queries and keys turn, values do not
        q, k = turned.split_with_sizes((H, K), dim=1)  # [B, H, T, D], [B, K, T, D]
        note("q_rotated", q, layer)
        note("k_rotated", k, layer)
        if cache is not None:
            k, v = cache.append(layer, k, v)  # [B, K, S, D]
        context = self.attend(q, k, v, future)  # [B, H, T, D]
        context = context.transpose(1, 2).reshape(B, T, C)  # heads side by side again
        return note("attention_out", self.wo(note("context", context, layer)), layer)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, future: Tensor | None) -> Tensor:
        """Return what queries q [B, H, T, D] gather from k, v [B, K, S, D]: [B, H, T, D]."""
        B, H, T, D = q.shape
        K, S, layer = k.shape[1], k.shape[2], self.layer
        rows = H // K * T  # the G·T queries that read one key/value head
        scores = q.reshape(B, K, rows, D) @ k.mT / self.root_D  # [B, K, G·T, S]
        scores = note("scores", scores.view(B, H, T, S), layer)
        if future is not None:
            scores = scores.masked_fill(future, float("-inf"))
        note("masked_scores", scores, layer)
        attention = note("attention", scores.softmax(dim=-1), layer)  # [B, H, T, S], rows sum to 1
        return (attention.view(B, K, rows, S) @ v).view(B, H, T, D)


class SwiGLU(nn.Module):
    """A feed-forward network whose gate decides how much of each unit passes (Shazeer, 2020)."""

    def __init__(self, dim: int, hidden_dim: int, layer: int | None = None) -> None:
        super().__init__()
        self.layer = layer
        self.w_gate = nn.Linear(dim, hidden_dim, bias=False)
        self.w_up = nn.Linear(dim, hidden_dim, bias=False)
        self.w_down = nn.Linear(hidden_dim, dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return each position of x [B, T, C] digested on its own, [B, T, C]."""
        gate = note("ffn_gate", self.w_gate(x), self.layer)  # [B, T, hidden]
        up = note("ffn_up", self.w_up(x), self.layer)  # [B, T, hidden]
        hidden = note("ffn_hidden", F.silu(gate) * up, self.layer)
        return note("ffn_out", self.w_down(hidden), self.layer)  # [B, T, C]


class Block(nn.Module):
    """Attention, then the feed-forward network: both read the stream normalised and add to it."""

    def __init__(self, config: TransformerConfig, layer: int) -> None:
        super().__init__()
        self.layer = layer
        self.attention = Attention(config, layer)
        self.feed_forward = SwiGLU(config.dim, config.ffn_hidden_dim, layer)
        self.attention_norm = RMSNorm(config.dim, config.norm_eps)
        self.ffn_norm = RMSNorm(config.dim, config.norm_eps)

    def forward(self, h: Tensor, turns: Tensor, future: Tensor | None, cache) -> Tensor:
        """Return the residual stream h [B, T, C] with both contributions added."""
        x = note("attention_norm", self.attention_norm(h), self.layer)
        h = note("r1", h + self.attention(x, turns, future, cache), self.layer)
        x = note("ffn_norm", self.ffn_norm(h), self.layer)
        return note("r2", h + self.feed_forward(x), self.layer)


class Transformer(nn.Module):
    """Token embedding, n_layers pre-norm blocks, a final norm, and a head over the vocabulary."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        check_config(config)
        self.config = config
        self.tok_embeddings = nn.Embedding(config.vocab_size, config.dim)
        self.layers = nn.ModuleList(Block(config, layer) for layer in range(config.n_layers))
        self.norm = RMSNorm(config.dim, config.norm_eps)
        self.output = nn.Linear(config.dim, config.vocab_size, bias=False)
        if config.tie_word_embeddings:
            self.output.weight = self.tok_embeddings.weight
        self.apply(self._draw)

    @staticmethod
    def _draw(module: nn.Module) -> None:
        """Draw the weights of one linear or embedding module from N(0, 0.02)."""
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, mean=0.0, std=0.02)

    @property
    def vocab_size(self) -> int:
        """Number of tokens the model knows."""
        return self.output.out_features

    def num_params(self) -> int:
        """Return the number of trainable parameters; equals config.num_params()."""
        return sum(p.numel() for p in self.parameters())

    @within_memory
    def forward(self, ids: Tensor, cache: KVCache | None = None) -> Tensor:
        """Return logits [B, T, V] for ids [B, T]; with a cache, they continue what it holds."""
        need_kind(cache, (KVCache, type(None)), "A pass continues a KVCache(model.config)")
        start = 0 if cache is None else cache.length
        window = self.config.max_seq_len
        check_ids(ids, self.vocab_size, room=window - start, window=window)
        B, T = note("ids", ids).shape
        if cache is not None:
            cache.check(self.config, B)
        h = note("h0", self.tok_embeddings(ids))  # [B, T, C]
        turns = self.rotary(h)[start : start + T]  # [T, D/2]: true positions, also behind a cache
        future = self.future(T, start, h.device) if T > 1 else None  # one new token sees all
        for layer in self.layers:
            h = layer(h, turns, future, cache)
        if cache is not None:
            cache.advance(T)
        return note("logits", self.output(note("h_out", self.norm(h))))  # [B, T, V]

    @staticmethod
    def future(T: int, start: int, device: torch.device | None = None) -> Tensor:
        """Return [T, start + T], True where a query would see a later token than its own."""
        everything = torch.ones(T, start + T, dtype=torch.bool, device=device)
        return everything.triu(diagonal=start + 1)

    def rotary(self, like: Tensor) -> Tensor:
        """Return the turns of the whole window [max_seq_len, D/2] in the precision of `like`."""
        c = self.config
        dtype = torch.promote_types(like.dtype, torch.float32).to_complex()
        return _kept_table(c.head_dim, c.max_seq_len, c.rope_theta, dtype, like.device)
