"""Exercise modern.grouped_attention."""

import math

import torch
import torch.nn.functional as F

from ...definition import Exercise, worth

exercise = Exercise(
    "modern.grouped_attention",
    title="Four heads on two",
    minutes=25,
    statement=r"""
Causal attention with grouped heads, from queries, keys and values (already turned) to the context that the output matrix
reads. Each query head $h$ attends by itself, to key head and value head `h // (H // K)`; at the end the heads' answers are laid side
by side, head 0 first:

$$
\bigl[A_0 V_0 \,\|\, A_1 V_0 \,\|\, A_2 V_1 \,\|\, A_3 V_1\bigr], \qquad
A_h = \operatorname{softmax}\!\left(\frac{Q_h K_{h'}^\top}{\sqrt{d_h}} + \text{mask}\right)
$$
""",
    hints=(
        "Give each query head its own key head first; then it is what you know with one dimension more in front. Which is the "
        "size under the root?",
        "`scores = q @ k.transpose(-2, -1) / math.sqrt(D)`, `(B, H, T, T)`; hide what lies above the diagonal; softmax over the "
        "keys; times `v`.",
        "From `(B, H, T, D)` to `(B, T, H·D)`: `context.transpose(1, 2).flatten(2)`. Without the `transpose` numbers of several "
        "tokens would end up in one row.",
    ),
    explanation=r"""
All that is new is bookkeeping: a dimension for the heads, which `@` treats as a batch, and the sharing of key heads. The scale is the
root of the size of *one* head, for that is how many products are summed in a score. In the end a token's numbers must lie together, so
heads and tokens change places before they are flattened.
""",
    forbidden={
        "scaled_dot_product_attention": "`scaled_dot_product_attention` does all of this; build it from scores, mask and softmax."
    },
)


@exercise.starter
def grouped_attention(q, k, v):
    """Return the context of each token, heads side by side, [B, T, H·D].

    q: [B, H, T, D]; k, v: [B, K, T, D]; H is a multiple of K.
    """
    raise NotImplementedError("not attempted")


@exercise.solution
def grouped_attention(q, k, v):
    B, H, T, D = q.shape
    group = H // k.shape[1]
    k, v = k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1)  # [B, H, T, D]
    scores = q @ k.transpose(-2, -1) / math.sqrt(D)  # [B, H, T, T]
    future = torch.ones(T, T).triu(diagonal=1).bool()
    attention = scores.masked_fill(future, -math.inf).softmax(dim=-1)
    return (attention @ v).transpose(1, 2).flatten(2)  # [B, T, H, D] -> [B, T, H·D]


@exercise.style("head by head")
def grouped_attention(q, k, v):
    H, K, T = q.shape[1], k.shape[1], q.shape[2]
    hidden = torch.full((T, T), float("-inf"), dtype=q.dtype).triu(1)
    heads = []
    for h in range(H):
        shared = h * K // H
        scores = torch.bmm(q[:, h], k[:, shared].mT) * q.shape[-1] ** -0.5
        heads.append(F.softmax(scores + hidden, dim=2) @ v[:, shared])
    return torch.cat(heads, dim=-1)


@exercise.style("einsum over groups")
def grouped_attention(q, k, v):
    B, H, T, D = q.shape
    groups = q.reshape(B, k.shape[1], -1, T, D)  # [B, K, G, T, D]
    scores = torch.einsum("bkgtd,bksd->bkgts", groups, k) / D**0.5
    t = torch.arange(T)
    scores = torch.where(t <= t[:, None], scores, -1e30)
    return torch.einsum("bkgts,bksd->btkgd", scores.softmax(-1), v).reshape(B, T, H * D)


@exercise.style("without copies")
def grouped_attention(q, k, v):
    B, H, T, D = q.shape
    rows = q.reshape(B, k.shape[1], -1, D) @ k.mT / math.sqrt(D)  # [B, K, G·T, T]
    weights = rows.view(B, H, T, T).exp().tril()
    weights = weights / weights.sum(dim=-1, keepdim=True)
    context = weights.view(rows.shape) @ v
    return context.view(B, H, T, D).permute(0, 2, 1, 3).reshape(B, T, -1)


@exercise.mutant(
    "heads taken in turns",
    "The query heads take the key heads in turns, 0, 1, 0, 1; neighbours share one: 0, 0, 1, 1.",
)
def grouped_attention(q, k, v):
    B, H, T, D = q.shape
    group = H // k.shape[1]
    k, v = k.repeat(1, group, 1, 1), v.repeat(1, group, 1, 1)
    scores = q @ k.mT / math.sqrt(D)
    scores = scores.masked_fill(torch.ones(T, T).triu(1).bool(), -math.inf)
    return (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)


@exercise.mutant(
    "not transposed",
    "The heads were flattened without changing places with the tokens, so that a row holds numbers of several tokens: "
    "`transpose(1, 2)` first.",
)
def grouped_attention(q, k, v):
    B, H, T, D = q.shape
    k, v = (x.repeat_interleave(H // x.shape[1], dim=1) for x in (k, v))
    scores = q @ k.mT / math.sqrt(D)
    scores = scores.masked_fill(torch.ones(T, T).triu(1).bool(), -math.inf)
    return (scores.softmax(-1) @ v).reshape(B, T, H * D)


@exercise.mutant(
    "numbers before heads",
    "The numbers of the heads are interleaved; lay the heads side by side, all of head 0 first.",
)
def grouped_attention(q, k, v):
    B, H, T, D = q.shape
    k, v = (x.repeat_interleave(H // x.shape[1], dim=1) for x in (k, v))
    scores = q @ k.mT / math.sqrt(D)
    scores = scores.masked_fill(torch.ones(T, T).triu(1).bool(), -math.inf)
    return (scores.softmax(-1) @ v).permute(0, 2, 3, 1).flatten(2)


@exercise.mutant(
    "scaled by the width",
    "The scores were divided by the root of the whole width, $H \\cdot D$; a score sums the products of one head: $\\sqrt{d_h}$.",
)
def grouped_attention(q, k, v):
    B, H, T, D = q.shape
    k, v = (x.repeat_interleave(H // x.shape[1], dim=1) for x in (k, v))
    scores = q @ k.mT / math.sqrt(H * D)
    scores = scores.masked_fill(torch.ones(T, T).triu(1).bool(), -math.inf)
    return (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)


@exercise.mutant(
    "not scaled",
    "The scores are not divided by $\\sqrt{d_h}$, so softmax is too sure of itself.",
)
def grouped_attention(q, k, v):
    T, H = q.shape[2], q.shape[1]
    k, v = (x.repeat_interleave(H // x.shape[1], dim=1) for x in (k, v))
    scores = (q @ k.mT).masked_fill(torch.ones(T, T).triu(1).bool(), -math.inf)
    return (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)


@exercise.mutant(
    "no mask",
    "Nothing is hidden: tokens see what follows them. The mask is the same for every head.",
)
def grouped_attention(q, k, v):
    H, D = q.shape[1], q.shape[3]
    k, v = (x.repeat_interleave(H // x.shape[1], dim=1) for x in (k, v))
    return ((q @ k.mT / math.sqrt(D)).softmax(-1) @ v).transpose(1, 2).flatten(2)


@exercise.mutant(
    "softmax over the heads",
    "The shares of the *heads* sum to 1: softmax ran over dimension 1. Each head has its own, over the keys: `dim=-1`.",
)
def grouped_attention(q, k, v):
    B, H, T, D = q.shape
    k, v = (x.repeat_interleave(H // x.shape[1], dim=1) for x in (k, v))
    shares = (q @ k.mT / math.sqrt(D)).softmax(dim=1).tril()
    return (shares @ v).transpose(1, 2).flatten(2)


@exercise.mutant(
    "values of head 0",
    "The key heads are shared as they should be, but all query heads read the values of head 0; values are shared like keys.",
)
def grouped_attention(q, k, v):
    B, H, T, D = q.shape
    k, v = k.repeat_interleave(H // k.shape[1], dim=1), v[:, :1]
    scores = q @ k.mT / math.sqrt(D)
    scores = scores.masked_fill(torch.ones(T, T).triu(1).bool(), -math.inf)
    return (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)


@exercise.mutant(
    "cut after softmax",
    "What is hidden was cut out after softmax, so the rows no longer sum to 1: hide the scores before.",
)
def grouped_attention(q, k, v):
    H, D = q.shape[1], q.shape[3]
    k, v = (x.repeat_interleave(H // x.shape[1], dim=1) for x in (k, v))
    return ((q @ k.mT / math.sqrt(D)).softmax(-1).tril() @ v).transpose(1, 2).flatten(2)


@exercise.mutant("ready-made", exercise.forbidden["scaled_dot_product_attention"])
def grouped_attention(q, k, v):
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], dim=1) for x in (k, v))
    context = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return context.transpose(1, 2).flatten(2)


def test_four_heads_that_listen_evenly(answer):
    q = torch.zeros(1, 4, 2, 1, dtype=torch.float64)  # no query: equal shares of what is seen
    k = torch.ones(1, 2, 2, 1, dtype=torch.float64)
    v = torch.tensor(
        [[[[2.0], [4.0]], [[10.0], [30.0]]]], dtype=torch.float64
    )  # two heads, two tokens
    rows = [[[2.0, 2.0, 10.0, 10.0], [3.0, 3.0, 20.0, 20.0]]]
    answer(q, k, v).equals(torch.tensor(rows, dtype=torch.float64))


@worth(3)
def test_any_heads(answer, draw):
    B, K, group, T, D = 2, draw.whole(2, 3), draw.whole(2, 3), 4, 5
    q, k, v = draw.normal(B, K * group, T, D), draw.normal(B, K, T, D), draw.normal(B, K, T, D)
    context = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    answer(q, k, v).equals(torch.cat(context.unbind(dim=1), dim=-1))
