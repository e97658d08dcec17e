"""Exercise modern.repeat_heads."""

import torch

from ...definition import Exercise, worth

exercise = Exercise(
    "modern.repeat_heads",
    title="Who reads which head?",
    minutes=6,
    statement=r"""
In grouped-query attention $H$ query heads share $K$ key heads: with four on two, query heads 0 and 1 read key head 0, query heads
2 and 3 read key head 1. Lay the keys out so that each query head finds its own: from `(B, K, T, D)` make `(B, H, T, D)`.
""",
    hints=(
        "With $H = 6$ and $K = 2$: which key head does query head 2 read, and which query head 3?",
        "Query head $h$ reads key head `h // (H // K)`: each key head comes `H // K` times in a row.",
        "`k.repeat_interleave(H // k.shape[1], dim=1)`; `repeat` would lay the whole row of heads out again and again.",
    ),
    explanation=r"""
`repeat_interleave` repeats each head in its place: 0, 0, 1, 1. `repeat` gives 0, 1, 0, 1: all shapes are right, every query head
finds *some* key head, and a model whose weights were trained for the other order writes nonsense. (A fast implementation
copies nothing; it lets the queries of a group meet their key head together, as this course's model does.)
""",
)


@exercise.starter
def repeat_heads(k, H):
    """Return one key head for each query head, [B, H, T, D].

    k: [B, K, T, D]; H: number of query heads, a multiple of K.
    """
    raise NotImplementedError("not attempted")


@exercise.solution
def repeat_heads(k, H):
    return k.repeat_interleave(H // k.shape[1], dim=1)


@exercise.style("expand")
def repeat_heads(k, H):
    B, K, T, D = k.shape
    return k[:, :, None].expand(B, K, H // K, T, D).reshape(B, H, T, D)


@exercise.style("indexing")
def repeat_heads(k, H):
    group = H // k.shape[1]
    return torch.stack([k[:, h // group] for h in range(H)], dim=1)


@exercise.mutant(
    "taken in turns",
    "The query heads take the key heads in turns, 0, 1, 0, 1; neighbours share one: 0, 0, 1, 1. `repeat` lays the row out "
    "again and again, `repeat_interleave` repeats each head in its place.",
)
def repeat_heads(k, H):
    return k.repeat(1, H // k.shape[1], 1, 1)


@exercise.mutant(
    "each H times",
    "Each key head was repeated H times; it serves $H / K$ query heads.",
)
def repeat_heads(k, H):
    return k.repeat_interleave(H, dim=1)


@exercise.mutant(
    "tokens repeated",
    "The tokens were repeated; the heads are in dimension 1.",
)
def repeat_heads(k, H):
    return k.repeat_interleave(H // k.shape[1], dim=2)


@exercise.mutant(
    "one for all",
    "All query heads read key head 0: that is multi-query attention. Here each group has its own.",
)
def repeat_heads(k, H):
    return k[:, :1].expand(-1, H, -1, -1)


@exercise.mutant(
    "mean of the heads",
    "All query heads read the mean of the key heads; each reads one of them, untouched.",
)
def repeat_heads(k, H):
    return k.mean(dim=1, keepdim=True).expand(-1, H, -1, -1)


@exercise.mutant(
    "sequences repeated",
    "The sequences of the batch were repeated; the heads are in dimension 1.",
)
def repeat_heads(k, H):
    return k.repeat_interleave(H // k.shape[1], dim=0)


def test_four_on_two(answer):
    k = torch.tensor([3.0, 5.0], dtype=torch.float64).view(1, 2, 1, 1)
    wanted = torch.tensor([3.0, 3.0, 5.0, 5.0], dtype=torch.float64).view(1, 4, 1, 1)
    answer(k, 4).equals(wanted)


@worth(2)
def test_any_sharing(answer, draw):
    K, group = draw.whole(2, 4), draw.whole(2, 4)
    k = draw.normal(2, K, 3, 5)
    answer(k, K * group).equals(torch.stack([k[:, n // group] for n in range(K * group)], dim=1))
