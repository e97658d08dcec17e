"""The course's Transformer as a Hugging Face LLaMA: same weights, same tokens, other names.

One thing differs besides names. Both turn a head's numbers in pairs, but Hugging Face pairs number
i with number i + D/2, where this course pairs neighbours. So the rows of wq and wk are put in
another order; scores do not change, since queries and keys are reordered alike.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors.torch import save
from torch import Tensor

from .config import TransformerConfig, write_atomically
from .models import Transformer
from .refusals import as_path, need_kind, need_regular

if TYPE_CHECKING:
    from transformers import LlamaForCausalLM

_NAMES = {
    "attention.wo": "self_attn.o_proj",
    "attention.wv": "self_attn.v_proj",
    "feed_forward.w_gate": "mlp.gate_proj",
    "feed_forward.w_up": "mlp.up_proj",
    "feed_forward.w_down": "mlp.down_proj",
    "attention_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
}


def llama_config(config: TransformerConfig, dtype: torch.dtype = torch.float32) -> dict[str, Any]:
    """Return the config.json of a LLaMA with this shape, as plain data."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": config.vocab_size,
        "hidden_size": config.dim,
        "intermediate_size": config.ffn_hidden_dim,
        "num_hidden_layers": config.n_layers,
        "num_attention_heads": config.n_heads,
        "num_key_value_heads": config.kv_heads,
        "head_dim": config.head_dim,
        "max_position_embeddings": config.max_seq_len,
        "hidden_act": "silu",
        "rms_norm_eps": config.norm_eps,
        "rope_theta": config.rope_theta,  # read by version 4 of transformers
        "rope_parameters": {"rope_type": "default", "rope_theta": config.rope_theta},  # by 5
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": config.tie_word_embeddings,
        "bos_token_id": None,  # no id has a meaning of its own, so none ends the text
        "eos_token_id": None,
        "pad_token_id": None,
        "torch_dtype": str(dtype).removeprefix("torch."),
    }


def llama_weights(model: Transformer) -> dict[str, Tensor]:
    """Return a model's weights under a LLaMA's names, queries and keys in its order of pairs."""
    config = model.config
    weights = {
        "model.embed_tokens.weight": model.tok_embeddings.weight,
        "model.norm.weight": model.norm.weight,
    }
    if not config.tie_word_embeddings:
        weights["lm_head.weight"] = model.output.weight
    for i, block in enumerate(model.layers):
        layer = f"model.layers.{i}"
        for ours, theirs in _NAMES.items():
            weights[f"{layer}.{theirs}.weight"] = block.get_submodule(ours).weight
        wq, wk = block.attention.wq.weight, block.attention.wk.weight
        weights[f"{layer}.self_attn.q_proj.weight"] = halves(wq, config.head_dim)
        weights[f"{layer}.self_attn.k_proj.weight"] = halves(wk, config.head_dim)
    return {name: weight.detach() for name, weight in weights.items()}


def halves(weight: Tensor, head_dim: int) -> Tensor:
    """Reorder the rows of a weight [heads·D, C] from neighbours paired to halves paired.

    In each head, rows 0, 1, 2, 3, … become 0, 2, 4, …, 1, 3, 5, …
    """
    pairs = weight.unflatten(0, (-1, head_dim // 2, 2))  # [heads, D/2, 2, C]
    return pairs.transpose(1, 2).flatten(0, 2)  # [heads, 2, D/2, C] → [heads·D, C]


def to_huggingface(model: Transformer) -> LlamaForCausalLM:
    """Return a LlamaForCausalLM with copies of a model's weights, in its dtype, for inference."""
    _check(model)
    try:
        from transformers import LlamaConfig, LlamaForCausalLM
    except ImportError:
        raise ValueError(
            "to_huggingface needs transformers: pip install transformers. export works without."
        ) from None
    weights = llama_weights(model)
    like = model.tok_embeddings.weight
    with torch.random.fork_rng(devices=[]):  # a caller's random numbers stay undisturbed
        llama = LlamaForCausalLM(LlamaConfig(**llama_config(model.config, like.dtype)))
    llama.to(like.device, like.dtype).load_state_dict(
        weights, strict=not model.config.tie_word_embeddings
    )
    return llama.eval()


def export(model: Transformer, folder: str | os.PathLike[str]) -> None:
    """Write config.json and model.safetensors for LlamaForCausalLM.from_pretrained(folder)."""
    _check(model)
    folder = as_path(folder)
    _check_free(folder)
    weights = {name: weight.cpu().contiguous() for name, weight in llama_weights(model).items()}
    config = llama_config(model.config, model.tok_embeddings.weight.dtype)
    write_atomically(folder / "model.safetensors", save(weights, metadata={"format": "pt"}))
    write_atomically(folder / "config.json", (json.dumps(config, indent=2) + "\n").encode())


def export_trained(folder: Path, out: Path) -> None:
    """Write the model and the tokenizer of a trained folder for Hugging Face."""
    from .pretraining import load_trained

    model, tokenizer = load_trained(folder)
    export(model, out)
    about = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": model.config.max_seq_len,
        "clean_up_tokenization_spaces": False,
    }
    tokenizer.save(out / "tokenizer.json")
    write_atomically(out / "tokenizer_config.json", (json.dumps(about, indent=2) + "\n").encode())


def _check(model: object) -> None:
    need_kind(model, Transformer, "Only a Transformer has the shape of a LLaMA")
    model.config.check()


def _check_free(folder: Path) -> None:
    """Raise a ValueError if a model of another kind, such as the course's own, lies there."""
    try:
        need_regular(folder / "config.json", "read")
        there = json.loads((folder / "config.json").read_bytes())
        is_llama = isinstance(there, dict) and there.get("model_type") == "llama"
    except (FileNotFoundError, NotADirectoryError):
        return
    except (OSError, ValueError):
        is_llama = False
    if not is_llama:
        raise ValueError(
            f"{folder} holds a config.json of another kind; export to a folder of its own."
        )
