"""Draw and train the weights that ship with the course: python -m glassformer.draw_weights FOLDER.

BabyGroot's first weights need ATEN_CPU_CAPABILITY=avx2, the tiny Transformer's
ATEN_CPU_CAPABILITY=default: PyTorch's normal distribution differs between the two in the last
float32 digit, and these are the kernels whose numbers were published. So each is drawn in a
process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import torch

from .checkpoints import save_weights
from .training import draw_baby_groot, draw_tiny, train_baby_groot, train_tiny

_KERNELS = {"baby_groot": "avx2", "tiny": "default"}


def draw(name: str, folder: Path) -> None:
    """Write one model's initial weights, as seed 42 draws them under this process's kernels."""
    torch.manual_seed(42)
    model = draw_baby_groot() if name == "baby_groot" else draw_tiny()
    save_weights(model, folder / f"{name}_initial.safetensors")


def main(folder: Path) -> None:
    """Write all four files: each model's initial weights and its trained ones."""
    for name, kernels in _KERNELS.items():
        environment = {**os.environ, "ATEN_CPU_CAPABILITY": kernels}
        command = [sys.executable, "-m", "glassformer.draw_weights", str(folder), name]
        subprocess.run(command, env=environment, check=True)
    save_weights(train_baby_groot()[0], folder / "baby_groot.safetensors")
    save_weights(train_tiny()[0], folder / "tiny.safetensors")


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[2] in _KERNELS:
        draw(sys.argv[2], Path(sys.argv[1]))
    elif len(sys.argv) == 2:
        main(Path(sys.argv[1]))
    else:
        sys.exit("Usage: python -m glassformer.draw_weights FOLDER")
