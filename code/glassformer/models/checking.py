"""What both models ask of the token ids they are given."""

import torch
from torch import Tensor


def check_ids(ids: Tensor, vocab_size: int, room: int, window: int) -> None:
    """Raise a one-sentence ValueError unless ids [B, T] hold 1 … room tokens below vocab_size."""
    if not isinstance(ids, Tensor):
        raise ValueError(
            f"Token ids must be a torch tensor [batch, seq], not {type(ids).__name__}."
        )
    if ids.numel() == 0:
        raise ValueError("The prompt is empty; give at least one token.")
    if ids.dtype not in (torch.int64, torch.int32):
        raise ValueError(f"Token ids must be whole numbers (torch.int64), not {ids.dtype}.")
    if ids.dim() != 2:
        raise ValueError(f"Token ids must have shape [batch, seq], not {list(ids.shape)}.")
    if ids.shape[1] > room:
        past = f", of which {window - room} are taken" if room < window else ""
        raise ValueError(
            f"{ids.shape[1]} tokens do not fit: the model's window has {window} places{past}."
        )
    low, high = (bound.item() for bound in ids.aminmax())
    if low < 0 or high >= vocab_size:
        wrong = low if low < 0 else high
        raise ValueError(f"Token id {wrong} is out of range; ids go from 0 to {vocab_size - 1}.")
