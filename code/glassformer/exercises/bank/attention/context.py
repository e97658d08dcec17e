"""Exercise attention.context."""

import math

import torch
import torch.nn.functional as F

from ...definition import Exercise, worth

exercise = Exercise(
    "attention.context",
    title="One causal head",
    minutes=18,
    statement=r"""
Put the steps together: from queries, keys and values to the context,

$$
\text{context} = A V, \qquad A = \text{softmax}\Bigl(\text{mask}\Bigl(\frac{Q K^\top}{\sqrt{D}}\Bigr)\Bigr)
$$

for a batch. No token looks ahead. Values may have another width than queries and keys.
""",
    hints=(
        "Four steps, and the shapes tell most of them: `[B, T, D]`, `[B, T, T]` three times, `[B, T, D_v]`.",
        "Scores, divided by √D; the future set to −10⁹; `softmax(dim=-1)`; times the values.",
        "`future = torch.ones(T, T, dtype=torch.bool).triu(1)`, then "
        "`scores.masked_fill(future, -1e9).softmax(dim=-1) @ v`.",
    ),
    explanation=r"""
The order is what matters: the mask before softmax, so that the remaining shares sum to 1, and the values last.
Each row of $A$ mixes the rows of $V$: $[B, T, T] \cdot [B, T, D_v] \to [B, T, D_v]$. The scale comes from the
width over which the scores were summed, that of queries and keys.
""",
    forbidden={
        "scaled_dot_product_attention": "PyTorch has all of it behind this one name; here you are asked to write "
        "what is behind it.",
    },
)


@exercise.starter
def attend(q, k, v):
    """Return the context [B, T, D_v] of one causal head.

    q, k: [B, T, D]; v: [B, T, D_v].
    """
    raise NotImplementedError("not attempted")


@exercise.solution
def attend(q, k, v):
    T, D = q.shape[-2:]
    scores = q @ k.transpose(-2, -1) / math.sqrt(D)  # [B, T, T]
    future = torch.ones(T, T, dtype=torch.bool).triu(diagonal=1)  # [T, T]
    A = scores.masked_fill(future, -1e9).softmax(dim=-1)  # [B, T, T], rows sum to 1
    return A @ v  # [B, T, T] @ [B, T, D_v] -> [B, T, D_v]


@exercise.style("token by token")
def attend(q, k, v):
    rows = []
    for t in range(q.shape[1]):
        past_k, past_v = k[:, : t + 1], v[:, : t + 1]  # all that token t can see
        shares = F.softmax((past_k * q[:, t, None]).sum(dim=-1) / q.shape[-1] ** 0.5, dim=-1)
        rows.append((shares[..., None] * past_v).sum(dim=1))
    return torch.stack(rows, dim=1)


@exercise.style("einsum")
def attend(q, k, v):
    T, D = q.shape[1:]
    mask = torch.full((T, T), -torch.inf, dtype=q.dtype).triu(1)
    A = torch.softmax(torch.einsum("btd,bsd->bts", q, k) * D**-0.5 + mask, dim=2)
    return torch.einsum("bts,bsv->btv", A, v)


@exercise.style("powers")
def attend(q, k, v):
    scores = torch.bmm(q, k.mT).div(math.sqrt(q.size(2)))
    powers = (scores - scores.amax(dim=-1, keepdim=True)).exp().tril()
    return powers @ v / powers.sum(dim=-1, keepdim=True)


@exercise.mutant(
    "no mask",
    "The future is open: every row draws on all values, those of later tokens too. Hide them before softmax.",
)
def attend(q, k, v):
    return (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).softmax(dim=-1) @ v


@exercise.mutant(
    "not scaled",
    "The scores are not divided by √D, so the shares are too sharp: differences between scores grow with "
    "the width.",
)
def attend(q, k, v):
    future = torch.ones(q.shape[1], q.shape[1], dtype=torch.bool).triu(diagonal=1)
    return (q @ k.transpose(-2, -1)).masked_fill(future, -1e9).softmax(dim=-1) @ v


@exercise.mutant(
    "scaled by the values",
    "The scores were divided by the root of the *values'* width. They are sums over the width of queries and "
    "keys; values have no part in them yet.",
)
def attend(q, k, v):
    future = torch.ones(q.shape[1], q.shape[1], dtype=torch.bool).triu(diagonal=1)
    scores = q @ k.transpose(-2, -1) / math.sqrt(v.shape[-1])
    return scores.masked_fill(future, -1e9).softmax(dim=-1) @ v


@exercise.mutant(
    "over the queries",
    "The softmax ran over the queries, so it is the columns of $A$ that sum to 1: early tokens gather next to "
    "nothing, late ones too much. It should run over the keys, `dim=-1`.",
)
def attend(q, k, v):
    future = torch.ones(q.shape[1], q.shape[1], dtype=torch.bool).triu(diagonal=1)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    return scores.masked_fill(future, -1e9).softmax(dim=-2) @ v


@exercise.mutant(
    "masked after softmax",
    "The future was struck out after softmax. Those shares had been given away by then, and what is left in a "
    "row sums to less than 1.",
)
def attend(q, k, v):
    A = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).softmax(dim=-1)
    return A.tril() @ v


@exercise.mutant(
    "zeros as mask",
    "The future got the score 0, and with it a share: softmax makes nothing only of scores far below all others.",
)
def attend(q, k, v):
    return (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).tril().softmax(dim=-1) @ v


@exercise.mutant(
    "weights turned",
    "The weights were transposed before they met the values: row $t$ of $A$ says what token $t$ *takes*; here "
    "it says what is taken from it.",
)
def attend(q, k, v):
    future = torch.ones(q.shape[1], q.shape[1], dtype=torch.bool).triu(diagonal=1)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    return scores.masked_fill(future, -1e9).softmax(dim=-1).transpose(-2, -1) @ v


@exercise.mutant(
    "the past hidden",
    "The mask is on the wrong side: each token sees itself and what comes after. The future stands above the "
    "diagonal.",
)
def attend(q, k, v):
    past = torch.ones(q.shape[1], q.shape[1], dtype=torch.bool).tril(diagonal=-1)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    return scores.masked_fill(past, -1e9).softmax(dim=-1) @ v


@exercise.mutant(
    "weights alone",
    "These are the attention weights; the context is what they gather, $A V$.",
)
def attend(q, k, v):
    future = torch.ones(q.shape[1], q.shape[1], dtype=torch.bool).triu(diagonal=1)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    return scores.masked_fill(future, -1e9).softmax(dim=-1)


@exercise.mutant("ready-made", exercise.forbidden["scaled_dot_product_attention"])
def attend(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def test_two_tokens_by_hand(answer):
    q = torch.tensor([[[7.0, 1.0, 0.0, 0.0], [2.0, 0.0, 0.0, 0.0]]], dtype=torch.float64)
    k = torch.tensor([[[math.log(3), 0.0, 1.0, 0.0], [0.0, 2.0, 0.0, 1.0]]], dtype=torch.float64)
    v = torch.tensor([[[4.0, 8.0, 0.0], [0.0, 4.0, -4.0]]], dtype=torch.float64)
    expected = [[[4.0, 8.0, 0.0], [3.0, 7.0, -1.0]]]  # row 1: three quarters and one quarter
    answer(q, k, v).equals(torch.tensor(expected, dtype=torch.float64))


@worth(4)
def test_any_size(answer, draw):
    B, T, D, D_v = 2, 6, 5, 3
    q, k, v = draw.normal(B, T, D), draw.normal(B, T, D), draw.normal(B, T, D_v)
    answer(q, k, v).equals(F.scaled_dot_product_attention(q, k, v, is_causal=True))
