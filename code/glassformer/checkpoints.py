"""Weights as data: those that ship with the course, and folders of one's own.

A model folder holds config.json and model.safetensors.
"""

from __future__ import annotations

import os
from dataclasses import replace
from importlib import resources
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn

from .config import TransformerConfig, write_atomically
from .models import BabyGrootGPT, Transformer
from .refusals import as_path, need_kind, need_regular

TINY_CONFIG = TransformerConfig(
    vocab_size=8,
    dim=32,
    n_layers=2,
    n_heads=4,
    n_kv_heads=2,
    max_seq_len=16,
    ffn_dim_multiplier=2.0,
)

_WEIGHTS = resources.files("glassformer") / "weights"


def load_baby_groot() -> BabyGrootGPT:
    """Return the trained BabyGrootGPT, float64, the same on every machine."""
    return _baby_groot("baby_groot.safetensors")


def initial_baby_groot() -> BabyGrootGPT:
    """Return BabyGrootGPT as it was drawn with seed 42, before training, float64."""
    return _baby_groot("baby_groot_initial.safetensors")


def load_tiny() -> Transformer:
    """Return the trained tiny Transformer, float32 as published, the same on every machine."""
    return _tiny("tiny.safetensors")


def initial_tiny() -> Transformer:
    """Return the tiny Transformer as it was drawn with seed 42, before training, float32."""
    return _tiny("tiny_initial.safetensors")


def _baby_groot(name: str) -> BabyGrootGPT:
    return baby_groot_of(_shipped(name))


def baby_groot_of(weights: dict[str, Tensor]) -> BabyGrootGPT:
    """Return the BabyGrootGPT that has these weights, float64."""
    vocab_size, dim = weights["token_embedding.weight"].shape
    with torch.random.fork_rng(devices=[]):  # a caller's random numbers stay undisturbed
        model = BabyGrootGPT(vocab_size, weights["position_embedding.weight"].shape[0], dim)
    model.double().load_state_dict(weights)
    return model.eval()


def _tiny(name: str) -> Transformer:
    with torch.random.fork_rng(devices=[]):
        model = Transformer(replace(TINY_CONFIG))  # a copy, so that a change stays the caller's
    model.load_state_dict(_shipped(name))
    return model.eval()


def _shipped(name: str) -> dict[str, Tensor]:
    return load((_WEIGHTS / name).read_bytes())


def save_weights(model: nn.Module, path: str | os.PathLike[str]) -> None:
    """Write a model's weights as safetensors; whoever reads meanwhile sees a whole file."""
    need_kind(model, nn.Module, "save_weights needs a model, such as load_tiny()")
    write_atomically(as_path(path), save(own_tensors(model)))


def load_weights(model: nn.Module, path: str | os.PathLike[str]) -> None:
    """Fill a model with the weights of a safetensors file; ValueError says what does not fit."""
    need_kind(model, nn.Module, "load_weights needs a model to fill, such as initial_tiny()")
    path = as_path(path)
    _fill(model, path, _read(path))


def _read(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a safetensors file; ValueError says in one line what is wrong."""
    try:
        need_regular(path, "read")
        return load(path.read_bytes())
    except FileNotFoundError:
        raise ValueError(f"There is no checkpoint {path}; save one with save_model.") from None
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}.") from None
    except MemoryError:
        raise ValueError(f"{path} cannot be read: it is larger than memory.") from None
    except SafetensorError as error:
        raise ValueError(f"{path} is not a whole safetensors file ({error}).") from None


def _fill(model: nn.Module, path: Path, tensors: dict[str, Tensor]) -> None:
    """Copy tensors into a model's weights of the same names and shapes."""
    _check_same(path, own_tensors(model), tensors)
    model.load_state_dict(tensors, strict=False)


def _check_same(path: Path, wanted: dict[str, Tensor], found: dict[str, Tensor]) -> None:
    """Raise a ValueError that names the first weight that is missing, foreign or misshapen."""
    for name in sorted(wanted.keys() | found.keys()):
        if name not in found:
            raise ValueError(f"{path} lacks the weight {name}; it belongs to another model.")
        if name not in wanted:
            raise ValueError(f"{path} has a weight {name} that this model does not have.")
        if wanted[name].shape != found[name].shape:
            raise ValueError(
                f"{path}: {name} has shape {list(found[name].shape)}, "
                f"the model needs {list(wanted[name].shape)}."
            )


def own_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Return the weights by name, a tied output head left out: it is the embedding."""
    weights = {name: t.contiguous() for name, t in model.state_dict().items()}
    if isinstance(model, Transformer) and model.config.tie_word_embeddings:
        del weights["output.weight"]
    return weights


def save_model(model: Transformer, folder: str | os.PathLike[str]) -> None:
    """Write config.json and model.safetensors of a Transformer into a folder."""
    need_kind(model, Transformer, "save_model needs a Transformer (save_weights takes any model)")
    folder = as_path(folder)
    model.config.to_json(folder / "config.json")
    save_weights(model, folder / "model.safetensors")


def load_model(folder: str | os.PathLike[str]) -> Transformer:
    """Return the Transformer that a folder holds, float32."""
    path = as_path(folder) / "model.safetensors"
    config = TransformerConfig.from_json(path.with_name("config.json"))
    tensors = _read(path)
    held, needed = sum(t.numel() for t in tensors.values()), config.num_params()
    if held != needed:  # seen before anything is built, however large
        raise ValueError(
            f"{path} holds {held:,} numbers, but the model of its config.json has {needed:,} "
            "parameters; they do not belong together."
        )
    with torch.random.fork_rng(devices=[]):  # a caller's random numbers stay undisturbed
        model = Transformer(config)
    _fill(model, path, tensors)
    return model.eval()
