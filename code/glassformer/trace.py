"""Watch one forward pass: every intermediate by name, from token ids to probabilities.

The models call `note(name, tensor)` where something worth seeing is made. Outside `trace` that
does nothing; inside, the tensor is kept. So there is one forward pass, and it is the real one.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

_recording: dict[str, Tensor] | None = None


def note(name: str, tensor: Tensor, layer: int | None = None) -> Tensor:
    """Keep a tensor [B, …] under `name`, or `layers.N.name`, while `trace` runs; return it."""
    if _recording is not None:
        _recording[name if layer is None else f"layers.{layer}.{name}"] = tensor
    return tensor


def trace(model: nn.Module, ids: Sequence[int] | Tensor, cache=None) -> dict[str, Tensor]:
    """Return every named intermediate of one pass of a model over ids [T] or [B, T], in order.

    Tensors have the model's dtype; ids of one dimension give tensors without the batch dimension.
    With a KVCache the pass continues from what the cache holds.
    """
    global _recording
    try:
        ids = torch.as_tensor(ids)
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(
            "trace needs token ids: a list of whole numbers or a tensor; encode words first."
        ) from None
    batched = ids.dim() != 1
    before, _recording = _recording, {}
    try:
        with torch.no_grad():
            arguments = (ids if batched else ids[None],)  # [B, T]
            model(*arguments) if cache is None else model(*arguments, cache)
            note("probabilities", _recording["logits"].softmax(dim=-1))  # [B, T, V]
        seen = _recording
    finally:
        _recording = before
    return seen if batched else {name: tensor[0] for name, tensor in seen.items()}
