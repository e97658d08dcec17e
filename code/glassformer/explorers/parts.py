"""What the explorers are handed: the corpus and the models, as data."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any

import torch
from safetensors.torch import load, save
from tokenizers import Tokenizer
from torch import Tensor, nn

from ..bpe import BytePairTokenizer
from ..checkpoints import (
    baby_groot_of,
    initial_baby_groot,
    load_baby_groot,
    load_tiny,
    own_tensors,
)
from ..config import TransformerConfig
from ..data import CAT_SENTENCES, GROOT_SENTENCES, Vocabulary, cat_vocabulary, groot_vocabulary
from ..models import BabyGrootGPT, Transformer
from ..records import NOVELIST, load_novelist

Part = dict[str, Any]


def part(name: str) -> Part:
    """Return one part by name, as the course ships it."""
    if name not in PARTS:
        raise ValueError(f"There is no part {name!r}; choose one of {', '.join(PARTS)}.")
    return PARTS[name]()


def corpus_part(vocabulary: Vocabulary, max_len: int) -> Part:
    """Return words, the sentences of Groot that can be written with them, and published losses."""
    sentences = [s for s in GROOT_SENTENCES if _writable(s, vocabulary, max_len - 1)]
    return {
        "words": list(vocabulary.words),
        "sentences": sentences,
        "max_len": max_len,
        "published": _published_losses(),
    }


def groot_part(model: BabyGrootGPT) -> Part:
    """Return the weights of a BabyGrootGPT."""
    return {"weights": _bytes(model)}


def tiny_part(model: Transformer, vocabulary: Vocabulary) -> Part:
    """Return the weights and the config of a Transformer, and what it reads."""
    window = model.config.max_seq_len
    return {
        "weights": _bytes(model),
        "config": model.config.to_dict(),
        "words": list(vocabulary.words),
        "sentences": [s for s in CAT_SENTENCES if _writable(s, vocabulary, window)],
    }


def novelist_part() -> Part:
    """Return the novelist's config, its weights as they ship, and its tokenizer.json."""
    config, tokenizer = _novelist()
    return {"config": dict(config), "weights": NOVELIST.read_bytes(), "tokenizer": tokenizer}


@cache  # the tokenizer is learnt from the novel, which takes a second
def _novelist() -> tuple[dict[str, Any], str]:
    model, tokenizer = load_novelist()
    return model.config.to_dict(), tokenizer.library.to_str()


PARTS = {
    "corpus": lambda: corpus_part(groot_vocabulary(), 4),
    "groot": lambda: groot_part(load_baby_groot()),
    "initial": lambda: groot_part(initial_baby_groot()),
    "tiny": lambda: tiny_part(load_tiny(), cat_vocabulary()),
    "novelist": novelist_part,
}


def tokenizer_of(part: Part) -> BytePairTokenizer:
    """Return the tokenizer that a part holds."""
    return BytePairTokenizer(Tokenizer.from_str(part["tokenizer"]))


def model_of(part: Part) -> BabyGrootGPT | Transformer:
    """Return the model that a part holds, in float64, as the explorers compute with it."""
    weights = {name: t.double() for name, t in load(part["weights"]).items()}
    if "config" not in part:
        return baby_groot_of(weights)
    with torch.random.fork_rng(devices=[]):  # a caller's random numbers stay undisturbed
        model = Transformer(TransformerConfig.from_dict(part["config"])).double()
    model.load_state_dict(weights, strict=False)  # a tied head has no weights of its own
    return model.eval()


def _writable(sentence: str, vocabulary: Vocabulary, room: int) -> bool:
    words = sentence.split()
    return len(words) <= room and all(word in vocabulary for word in words)


def _published_losses() -> list[dict[str, float]]:
    file = resources.files("glassformer").joinpath("published.json")
    losses = json.loads(file.read_text(encoding="utf-8"))["babygroot"]["epoch_loss"]
    return [{"epoch": int(epoch), "loss": loss} for epoch, loss in losses.items()]


def _bytes(model: nn.Module) -> bytes:
    """Return a model's weights as safetensors, each in float32 if that is exact, else float64."""
    return save({name: _smallest(t.detach().cpu()) for name, t in own_tensors(model).items()})


def _smallest(tensor: Tensor) -> Tensor:
    single, double = tensor.float(), tensor.double()
    exact = ((single.double() == double) | double.isnan()).all()
    return single if exact else double
