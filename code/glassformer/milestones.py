"""The course's milestones: what a reader's own design must meet, judged from its config.json."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from .config import TransformerConfig
from .models import Transformer
from .refusals import as_path

WORKSPACE = Path("checkpoints/myllm")  # relative to the course's folder; ignored by git

M1_BUDGET = 2_000_000  # parameters
M1_BATCH = (4, 32)  # sequences, tokens in each
# What is tried out is bounded, so that no design costs gigabytes or minutes to judge.
M1_LARGEST_VOCABULARY = 2**18
M1_LONGEST_WINDOW = 2**20
_BLOCKS_BUILT = 64  # blocks are alike: a deeper design is judged with this many

M2_CACHE = 8_000_000  # bytes, in float32
M2_BATCH = (8, 512)  # sequences, tokens in each


@dataclass(frozen=True)
class Judgement:
    """What keeps a config.json from a milestone, and whether the milestone was begun at all."""

    findings: list[str]
    begun: bool = True


@dataclass(frozen=True)
class Milestone:
    """What a design must meet, under the name and for the points that the graders give it."""

    name: str
    points: int
    short_of: Callable[[TransformerConfig], list[str]]
    choice: str = ""  # the field that it asks to be chosen; left open, it is not begun

    def judge(self, path: str | os.PathLike[str]) -> Judgement:
        """Judge a config.json; one that cannot be read gives one finding."""
        path = as_path(path)
        try:
            config = TransformerConfig.from_json(path)
        except ValueError as error:
            return Judgement([f"{error}{_misplaced(path)}"])
        begun = not self.choice or getattr(config, self.choice) is not None
        return Judgement(self.short_of(config), begun)


def judge_m1(path: str | os.PathLike[str]) -> list[str]:
    """Return what keeps a config.json from milestone M1, one sentence each; empty if it passes.

    A file that cannot be read gives one finding. Sizes are judged by formula before anything is
    built, so no design, however large, costs memory or time.
    """
    return M1.judge(path).findings


def _short_of_m1(config: TransformerConfig) -> list[str]:
    findings = _beyond_bounds(config, M1_BATCH[1])
    for field, bound in (
        ("vocab_size", M1_LARGEST_VOCABULARY),
        ("max_seq_len", M1_LONGEST_WINDOW),
    ):
        value = getattr(config, field)
        if value > bound:
            findings.append(
                f"{field} = {value:,} is more than a model of this size can be tried out with: "
                f"set it to {bound:,} or less."
            )
    return findings or _wrong_logits(config)


def judge_m2(path: str | os.PathLike[str]) -> list[str]:
    """Return what keeps a config.json from milestone M2, one sentence each; empty if it passes.

    Keys and values of a batch (8, 512) must take less than 8,000,000 bytes in float32, by a choice
    of n_kv_heads that stands in the file, and within M1's parameters.
    """
    return M2.judge(path).findings


def _short_of_m2(config: TransformerConfig) -> list[str]:
    findings = []
    if config.n_kv_heads is None:
        findings.append(
            f"n_kv_heads is left open, so each of the {config.n_heads} query heads keeps keys and "
            "values of its own: choose how many they share, and write it down; chapter 8 counts "
            "what each costs."
        )
    findings += _beyond_bounds(config, M2_BATCH[1])
    if _cache_of(config) >= M2_CACHE:
        findings.append(_over_cache(config))
    return findings


def _cache_of(config: TransformerConfig) -> int:
    return config.kv_cache_bytes(M2_BATCH[1], M2_BATCH[0])


def _over_cache(config: TransformerConfig) -> str:
    """Say by how much a cache is too large, and which n_kv_heads would do."""
    most = (M2_CACHE - 1) // _cache_of(replace(config, n_kv_heads=1))  # 122 or fewer
    fits = [heads for heads in range(1, most + 1) if config.n_heads % heads == 0]
    advice = (
        f"with all else as it is, take n_kv_heads at most {max(fits)}"
        if fits
        else "no n_kv_heads alone can mend that: take fewer layers, or more and smaller heads"
    )
    return (
        f"The cache of {M2_BATCH[0]} sequences of {M2_BATCH[1]} tokens takes {_cache_of(config):,} "
        f"bytes, and {M2_CACHE:,} are the limit; {advice}."
    )


M1 = Milestone("m1.design", 10, _short_of_m1)
M2 = Milestone("m2.cache", 5, _short_of_m2, choice="n_kv_heads")
MILESTONES = (M1, M2)


def _beyond_bounds(config: TransformerConfig, tokens: int) -> list[str]:
    """Say what both milestones ask: the budget, and a window for so many tokens."""
    findings = [_over_budget(config)] if config.num_params() > M1_BUDGET else []
    if config.max_seq_len < tokens:
        findings.append(
            f"max_seq_len = {config.max_seq_len} is too short for {tokens} tokens: "
            f"set it to {tokens} or more."
        )
    return findings


def design_started(path: str | os.PathLike[str]) -> bool:
    """Return whether there is a config.json to judge, or a file that was meant to be it."""
    path = as_path(path)
    return os.path.lexists(path) or bool(_misplaced(path))


def _misplaced(path: Path) -> str:
    """Return a sentence naming a file that was likely meant to be `path`; empty if none was."""
    if os.path.lexists(path) or not path.parent.is_dir():
        return ""
    near = [*path.parent.glob("*"), *path.parent.glob("*/*")]
    name = re.compile(r"config.*\.json|config\.json.*", re.IGNORECASE)  # "config (1).json" too
    meant = sorted(p for p in near if name.fullmatch(p.name) and p.is_file())
    return f" Was {meant[0]} meant? Move it to {path}." if meant else ""


def _over_budget(config: TransformerConfig) -> str:
    over = config.num_params() - M1_BUDGET
    ways = [
        f"{field} at most {largest:,}"
        for field in ("vocab_size", "dim", "n_layers")
        if (largest := largest_within(config, field, M1_BUDGET))
    ]
    advice = (
        f"with all else as it is, take {', or '.join(ways)}"
        if ways
        else ("no single field can mend that: make dim, vocab_size and n_layers smaller together")
    )
    return (
        f"The design has {config.num_params():,} parameters, {over:,} more than the "
        f"{M1_BUDGET:,} allowed; {advice}."
    )


def largest_within(config: TransformerConfig, field: str, budget: int) -> int:
    """Return the largest value of one field, the others unchanged, within a budget; 0 if none is.

    Only values that make a valid config count: dim moves in steps of 2 · n_heads.
    """
    step = 2 * config.n_heads if field == "dim" else 1
    low, high = 0, getattr(config, field) // step  # in steps; `high` itself is over budget
    while high - low > 1:
        middle = (low + high) // 2
        fits = replace(config, **{field: middle * step}).num_params() <= budget
        low, high = (middle, high) if fits else (low, middle)
    return low * step


def _wrong_logits(config: TransformerConfig) -> list[str]:
    """Build the model and run a batch of random tokens; a design that passed the formulas fits."""
    blocks = min(config.n_layers, _BLOCKS_BUILT)
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        model = Transformer(replace(config, max_seq_len=M1_BATCH[1], n_layers=blocks))
        logits = model(torch.randint(config.vocab_size, M1_BATCH))  # [4, 32, V]
    expected = (*M1_BATCH, config.vocab_size)
    if tuple(logits.shape) != expected:
        return [f"A batch {M1_BATCH} gave logits {tuple(logits.shape)}, not {expected}."]
    return []
