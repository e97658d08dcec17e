"""Watch one forward pass: every intermediate by name, from token ids to probabilities.

The models call `note(name, tensor)` where something worth seeing is made. Outside `trace` that
does nothing; inside, the tensor is kept. So there is one forward pass, and it is the real one.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from inspect import signature

import torch
from torch import Tensor, nn

from .refusals import as_ids, need_kind

# Each thread has its own: traces that run side by side do not meet.
_recording: ContextVar[dict[str, Tensor] | None] = ContextVar("recording", default=None)


def note(name: str, tensor: Tensor, layer: int | None = None) -> Tensor:
    """Keep a tensor [B, …] under `name`, or `layers.N.name`, while `trace` runs; return it."""
    seen = _recording.get()
    if seen is not None:
        seen[name if layer is None else f"layers.{layer}.{name}"] = tensor
    return tensor


def trace(model: nn.Module, ids: Sequence[int] | Tensor, cache=None) -> dict[str, Tensor]:
    """Return every named intermediate of one pass of a model over ids [T] or [B, T], in order.

    Tensors have the model's dtype; ids of one dimension give tensors without the batch dimension.
    With a KVCache the pass continues from what the cache holds.
    """
    _check(model, cache)
    ids = as_ids(ids)
    batched = ids.dim() != 1
    seen: dict[str, Tensor] = {}
    before = _recording.set(seen)
    try:
        with torch.no_grad():
            arguments = (ids if batched else ids[None],)  # [B, T]
            model(*arguments) if cache is None else model(*arguments, cache)
            if "logits" not in seen:
                raise ValueError(f"A {type(model).__name__} notes no logits; trace a course model.")
            note("probabilities", seen["logits"].softmax(dim=-1))  # [B, T, V]
    finally:
        _recording.reset(before)
    return seen if batched else {name: tensor[0] for name, tensor in seen.items()}


def _check(model: nn.Module, cache) -> None:
    need_kind(model, nn.Module, "trace needs a model, such as load_baby_groot()")
    if cache is not None and "cache" not in signature(model.forward).parameters:
        raise ValueError(f"A {type(model).__name__} has no cache; trace it without one.")
