"""Random inputs for tests, all from one seed: an instructor's own seed makes them secret."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

import torch
from torch import Tensor

Item = TypeVar("Item")
WORDS = "ada bert cleo dora emil fred gina hugo ida juri kai lea mara nils olga paul".split()


class Draw:
    """A source of random inputs; the same seed and test give the same ones on every machine."""

    def __init__(self, seed: int, test: str) -> None:
        self._random = random.Random(f"{seed} {test}")
        self._generator = torch.Generator().manual_seed(self._random.getrandbits(60))

    def normal(self, *shape: int) -> Tensor:
        """Return numbers around 0, float64."""
        return torch.randn(shape, generator=self._generator, dtype=torch.float64)

    def whole(self, low: int, high: int) -> int:
        """Return a whole number, low ≤ n ≤ high."""
        return self._random.randint(low, high)

    def ids(self, size: int, *shape: int) -> Tensor:
        """Return token ids, each from 0 to size − 1."""
        return torch.randint(size, shape, generator=self._generator)

    def pick(self, items: Sequence[Item], count: int) -> list[Item]:
        """Return some of the items, all different, in random order."""
        return self._random.sample(list(items), count)

    def sentences(self, count: int, words: Sequence[str] = WORDS, longest: int = 4) -> list[str]:
        """Return sentences of one to `longest` words; words and sentences may come twice."""
        lengths = [self._random.randint(1, longest) for _ in range(count)]
        return [" ".join(self._random.choices(list(words), k=n)) for n in lengths]
