"""What the models ask of the sizes, token ids and caches they are given."""

import torch
from torch import Tensor

from ..config import TransformerConfig
from ..refusals import LARGEST, bad, need_kind, need_memory, need_whole

_MOST_BLOCKS = 10_000  # each is dozens of Python objects, however small its matrices
_LARGEST_TABLE = 10**8  # numbers in a table of rotary turns


def check_sizes(**sizes: int) -> None:
    """Raise a one-sentence ValueError unless a BabyGrootGPT of these three sizes can be built."""
    for name, value in sizes.items():
        need_whole(name, value)
    V, T, d = sizes.values()
    numbers = 2 * V * d + V + T * d + 7 * d * d + 10 * d
    need_memory(numbers, "The model", f"make {', '.join(sizes)} smaller")


def check_config(config: TransformerConfig) -> None:
    """Raise a one-sentence ValueError unless a config is valid, also now, and can be built."""
    need_kind(config, TransformerConfig, "A Transformer is made from a TransformerConfig")
    need_memory(config.num_params(), "The model", "make vocab_size, dim or n_layers smaller")
    if config.n_layers > _MOST_BLOCKS:
        rule = f"a model that is built has at most {_MOST_BLOCKS:,} blocks"
        raise bad("n_layers", config.n_layers, rule)
    if config.max_seq_len * config.head_dim > _LARGEST_TABLE:
        most = _LARGEST_TABLE // config.head_dim
        rule = f"with heads of {config.head_dim:,}, the window of a model that is built has "
        raise bad("max_seq_len", config.max_seq_len, f"{rule}at most {most:,} places")


def check_cache(config: TransformerConfig, batch_size: int, dtype: torch.dtype, device) -> None:
    """Raise a one-sentence ValueError unless a KVCache of these can be made."""
    need_kind(config, TransformerConfig, "A KVCache is made from a TransformerConfig")
    config.check()
    need_whole("batch_size", batch_size, most=LARGEST)
    if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
        rule = "keys and values are floating-point numbers, such as torch.float32"
        raise bad("dtype", dtype, rule)
    try:
        torch.empty(0, device=device)
    except (RuntimeError, TypeError, AssertionError):
        raise bad("device", device, "PyTorch has no such device here; 'cpu' always works") from None
    numbers = config.kv_cache_values(config.max_seq_len, batch_size)
    need_memory(numbers, "The cache", "make max_seq_len or batch_size smaller", dtype)


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
