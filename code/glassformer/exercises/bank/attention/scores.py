"""Exercise attention.scores."""

import math

import torch

from ...definition import Exercise, worth

exercise = Exercise(
    "attention.scores",
    title="Scaled scores",
    minutes=8,
    statement=r"""
How well does each query fit each key? Return the scores

$$
\frac{Q K^\top}{\sqrt{D}}
$$

for a batch. A row belongs to the token that asks, a column to the one that is asked. There may be more keys
than queries.
""",
    hints=(
        "Each of $T$ queries meets each of $S$ keys, and the width $D$ disappears in the sum.",
        "`k.transpose(-2, -1)` is `[B, D, S]`; with a batch, `k.T` would turn all axes around.",
        "`q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])`.",
    ),
    explanation=r"""
$[B, T, D] \cdot [B, D, S] \to [B, T, S]$. For numbers with variance 1, a dot product over $D$ terms has
variance $D$, hence the standard deviation $\sqrt{D}$; divided by it, scores have one size at every width,
and softmax does not start out saturated.
""",
    forbidden={
        "scaled_dot_product_attention": "PyTorch's attention has the scores inside and does not give them "
        "away; write the product yourself."
    },
)


@exercise.starter
def scores(q, k):
    """Return the scaled scores [B, T, S].

    q: [B, T, D], queries; k: [B, S, D], keys.
    """
    raise NotImplementedError("not attempted")


@exercise.solution
def scores(q, k):
    return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # [B, T, D] @ [B, D, S] -> [B, T, S]


@exercise.style("einsum")
def scores(q, k):
    return torch.einsum("btd,bsd->bts", q, k) * q.shape[-1] ** -0.5


@exercise.style("loop")
def scores(q, k):
    (B, T, D), S = q.shape, k.shape[1]
    out = torch.empty(B, T, S, dtype=q.dtype)
    for b in range(B):
        for t in range(T):
            for s in range(S):
                out[b, t, s] = (q[b, t] * k[b, s]).sum() / D**0.5
    return out


@exercise.style("scaled first")
def scores(q, k):
    return torch.bmm(q / q.size(-1) ** 0.5, k.mT)


@exercise.mutant(
    "not scaled",
    "The scores are not divided by √D. The wider the vectors, the larger they become, and softmax gives "
    "nearly all to one key.",
)
def scores(q, k):
    return q @ k.transpose(-2, -1)


@exercise.mutant(
    "divided by D",
    "Divided by D instead of its root: a dot product spreads with √D, so these scores come out too small, and "
    "the shares too even.",
)
def scores(q, k):
    return q @ k.transpose(-2, -1) / q.shape[-1]


@exercise.mutant(
    "root of the length",
    "Divided by the root of the number of tokens. How many products are added up is the *width* of the "
    "vectors, D.",
)
def scores(q, k):
    return q @ k.transpose(-2, -1) / math.sqrt(q.shape[1])


@exercise.mutant(
    "root of the keys",
    "Divided by the root of the number of keys. The size of a dot product depends on the width D, not on how "
    "many keys are asked.",
)
def scores(q, k):
    return q @ k.transpose(-2, -1) / math.sqrt(k.shape[1])


@exercise.mutant(
    "keys ask",
    "Rows and columns are interchanged: here the keys ask. A row belongs to the query, $Q K^\\top$, for "
    "asking and offering are two things.",
)
def scores(q, k):
    return k @ q.transpose(-2, -1) / math.sqrt(q.shape[-1])


@exercise.mutant(
    "multiplied by the root",
    "Multiplied by √D where it should be divided: large scores grow larger still.",
)
def scores(q, k):
    return q @ k.transpose(-2, -1) * math.sqrt(q.shape[-1])


@exercise.mutant(
    "cosines",
    "Each vector was divided by its own length: these are cosines. In attention a query may ask loudly and a "
    "key answer loudly; only the width is divided out.",
)
def scores(q, k):
    q = q / q.norm(dim=-1, keepdim=True)
    k = k / k.norm(dim=-1, keepdim=True)
    return q @ k.transpose(-2, -1)


@exercise.mutant(
    "softmax already",
    "These are shares already: softmax comes later, after the mask.",
)
def scores(q, k):
    return (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).softmax(dim=-1)


@exercise.mutant(
    "all axes turned",
    "`k.T` turns all axes around, the batch's too. Only the last two change places: `k.transpose(-2, -1)`.",
)
def scores(q, k):
    return q @ k.permute(2, 1, 0) / math.sqrt(q.shape[-1])


def test_two_queries_three_keys_by_hand(answer):
    q = torch.tensor([[[2.0, 0.0, 1.0, 1.0], [0.0, 4.0, 0.0, 0.0]]], dtype=torch.float64)
    k = torch.tensor([[[1.0, 1.0, 0.0, 0.0], [3.0, 0.0, 2.0, 2.0], [0.0, -1.0, 0.0, 4.0]]]).double()
    answer(q, k).equals(torch.tensor([[[1.0, 5.0, 2.0], [2.0, 0.0, -2.0]]], dtype=torch.float64))


@worth(2)
def test_any_size(answer, draw):
    q, k = draw.normal(2, 3, 5), draw.normal(2, 7, 5)
    expected = [
        [[sum(a * b) / math.sqrt(5) for b in y] for a in x] for x, y in zip(q, k, strict=True)
    ]
    answer(q, k).equals(torch.tensor(expected, dtype=torch.float64))
