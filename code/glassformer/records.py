"""What three designs came to when they were trained, so that nobody has to wait for it.

`python -m glassformer.records FOLDER` trains them as `glassformer train` would, in a quarter of an
hour on two cores, and writes what ships: the history of each, and the weights of the smallest, the
novelist. Stopped, it goes on.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import save
from torch import Tensor

from .bpe import BytePairTokenizer
from .checkpoints import load_weights, own_tensors
from .config import TransformerConfig, write_atomically
from .models import Transformer
from .novel import load_novel, split_novel
from .pretraining import Recipe, open_run, train

RECORDS = Path(__file__).with_name("records.json")
NOVELIST = Path(__file__).with_name("weights") / "novelist.safetensors"


def _design(dim: int, n_layers: int) -> TransformerConfig:
    return TransformerConfig(
        vocab_size=2_000, dim=dim, n_layers=n_layers, n_heads=4, n_kv_heads=1,
        max_seq_len=256, ffn_dim_multiplier=4.0, tie_word_embeddings=True,
    )  # fmt: skip


DESIGNS = (
    _design(48, 3),
    _design(96, 4),
    _design(160, 6),
)  # parameters: 168,912, 579,936, 1,996,320


@dataclass(frozen=True)
class Record:
    """A design and what its training told, an entry for each look at the text held out."""

    config: TransformerConfig
    history: list[dict]


def load_records() -> list[Record]:
    """Return the records of the three designs, the smallest first."""
    kept = json.loads(RECORDS.read_text("utf-8"))
    return [Record(TransformerConfig.from_dict(r["config"]), r["history"]) for r in kept]


def load_novelist() -> tuple[Transformer, BytePairTokenizer]:
    """Return the smallest of the three designs, trained, float32, and its tokenizer."""
    config = DESIGNS[0]
    with torch.random.fork_rng(devices=[]):  # a caller's random numbers stay undisturbed
        model = Transformer(config)
    load_weights(model, NOVELIST)
    text, _ = split_novel(load_novel())
    return model.eval(), BytePairTokenizer.train(text, config.vocab_size)


def main(folder: Path) -> None:
    """Train the three designs in a folder, and write what ships."""
    records = []
    for config in DESIGNS:
        run = open_run(config, folder / f"{config.num_params()}", Recipe())
        for _ in train(run, _tell):
            pass
        records.append({"config": config.to_dict(), "history": run.progress.history})
        if config is DESIGNS[0]:
            write_atomically(NOVELIST, save(_halves(run.model)))
    kept = json.dumps(records, indent=1, ensure_ascii=False) + "\n"
    write_atomically(RECORDS, kept.encode())


def _halves(model: Transformer) -> dict[str, Tensor]:
    """Return a model's weights in float16: half the bytes, and its loss stays within 0.001."""
    return {name: t.detach().half() for name, t in own_tensors(model).items()}


def _tell(entry: dict) -> None:
    print(f"step {entry['step']:,}: {entry['held_out_loss']:.3f} nats held out", flush=True)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("Usage: python -m glassformer.records FOLDER")
    main(Path(sys.argv[1]))
