"""Exercise attention.heads."""

import torch
import torch.nn.functional as F

from ...definition import Exercise, worth

exercise = Exercise(
    "attention.heads",
    title="Several heads: split and merge",
    minutes=25,
    statement=r"""
Multi-head attention runs several heads side by side, each on its own slice of the vector. With $n_h$ heads,
head 0 has the first $d_h = d / n_h$ numbers of every query, key and value, head 1 the next $d_h$, and so on.
Split, let each head attend causally for itself, and write what the heads gathered side by side again, in
the same order.

`F.scaled_dot_product_attention(q, k, v, is_causal=True)` may do the attending: it takes any axes in front of
`[T, d_h]`.
""",
    hints=(
        "Each head needs a `[T, d_h]` of its own, so the axis of the heads has to come *before* that of the tokens: "
        "`[B, H, T, D]`.",
        "`x.view(B, T, H, D)` cuts each token's row into slices; `.transpose(1, 2)` then brings the heads to the "
        "front. `x.view(B, H, T, D)` at once would cut across tokens.",
        "The way back is the same in reverse: `out.transpose(1, 2).reshape(B, T, d)`.",
    ),
    explanation=r"""
`view` never moves a number; it only says anew where rows end. The numbers of one token lie side by side, so they
can be cut into $n_h$ slices, $[B, T, d] \to [B, T, n_h, d_h]$, and it takes a `transpose` to bring all tokens of
one head together. On the way back the transpose comes first. The scale is $\sqrt{d_h}$, for that is how many
products each score adds up.
""",
)


@exercise.starter
def multi_head(q, k, v, n_heads):
    """Return the context [B, T, d] of n_heads causal heads.

    q, k, v: [B, T, d]; n_heads: whole number that divides d.
    """
    raise NotImplementedError("not attempted")


@exercise.solution
def multi_head(q, k, v, n_heads):
    B, T, d = q.shape

    def split(x):
        return x.view(B, T, n_heads, d // n_heads).transpose(1, 2)  # [B, H, T, D]

    out = F.scaled_dot_product_attention(split(q), split(k), split(v), is_causal=True)
    return out.transpose(1, 2).reshape(B, T, d)  # [B, H, T, D] -> [B, T, H, D] -> [B, T, d]


@exercise.style("head by head")
def multi_head(q, k, v, n_heads):
    heads = zip(*(x.chunk(n_heads, dim=-1) for x in (q, k, v)))
    outs = [F.scaled_dot_product_attention(*head, is_causal=True) for head in heads]
    return torch.cat(outs, dim=-1)


@exercise.style("einsum")
def multi_head(q, k, v, n_heads):
    q, k, v = (x.unflatten(-1, (n_heads, -1)) for x in (q, k, v))  # [B, T, H, D]
    scores = torch.einsum("bthd,bshd->bhts", q, k) * q.shape[-1] ** -0.5
    future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    A = scores.masked_fill(future, -torch.inf).softmax(dim=-1)
    return torch.einsum("bhts,bshd->bthd", A, v).flatten(-2)


@exercise.style("heads in the batch")
def multi_head(q, k, v, n_heads):
    def split(x):
        return torch.cat(x.split(x.shape[-1] // n_heads, dim=-1))  # [H·B, T, D]

    out = F.scaled_dot_product_attention(split(q), split(k), split(v), is_causal=True)
    return torch.cat(out.split(len(q)), dim=-1)


@exercise.mutant(
    "cut across tokens",
    "`view(B, H, T, D)` cuts across tokens: the numbers of one token end up in the rows of several. Cut each token's "
    "row first, `view(B, T, H, D)`, then move the heads to the front with `transpose(1, 2)`.",
)
def multi_head(q, k, v, n_heads):
    B, T, d = q.shape
    q, k, v = (x.reshape(B, n_heads, T, d // n_heads) for x in (q, k, v))
    out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return out.reshape(B, T, d)


@exercise.mutant(
    "merged without the way back",
    "Split right, merged wrong: the heads still stand before the tokens when the rows are written together, so a "
    "row holds one head's numbers of several tokens. First `transpose(1, 2)`, then `reshape`.",
)
def multi_head(q, k, v, n_heads):
    B, T, d = q.shape
    q, k, v = (x.view(B, T, n_heads, d // n_heads).transpose(1, 2) for x in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True).reshape(B, T, d)


@exercise.mutant(
    "every other number",
    "The heads were dealt out like cards: head 0 got every $n_h$-th number. A head is a slice of neighbours: "
    "`view(B, T, H, D)`, with the heads before the width.",
)
def multi_head(q, k, v, n_heads):
    B, T, d = q.shape
    q, k, v = (x.view(B, T, d // n_heads, n_heads).permute(0, 3, 1, 2) for x in (q, k, v))
    out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return out.permute(0, 2, 3, 1).reshape(B, T, d)


@exercise.mutant(
    "heads attend to heads",
    "The heads of one token attended to each other, and no token to any other: the `transpose(1, 2)` after the "
    "`view` is missing, so the axis that attention runs over is that of the heads.",
)
def multi_head(q, k, v, n_heads):
    B, T, d = q.shape
    q, k, v = (x.view(B, T, n_heads, d // n_heads) for x in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True).reshape(B, T, d)


@exercise.mutant(
    "a single head",
    "This is one head on the whole vector: one set of shares for all. Each head makes shares of its own from its "
    "slice.",
)
def multi_head(q, k, v, n_heads):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


@exercise.mutant(
    "root of the whole width",
    "The scores were divided by √d, the width of the whole vector. A head's scores add up $d_h$ products; divide "
    "by $\\sqrt{d_h}$.",
)
def multi_head(q, k, v, n_heads):
    B, T, d = q.shape
    q, k, v = (x.view(B, T, n_heads, d // n_heads).transpose(1, 2) for x in (q, k, v))
    out = F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=d**-0.5)
    return out.transpose(1, 2).reshape(B, T, d)


@exercise.mutant(
    "averaged",
    "The heads were averaged, which leaves $d_h$ numbers for each token. Each keeps its own place in the "
    "vector: write them side by side.",
)
def multi_head(q, k, v, n_heads):
    B, T, d = q.shape
    q, k, v = (x.view(B, T, n_heads, d // n_heads).transpose(1, 2) for x in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True).mean(dim=1)


@exercise.mutant(
    "no mask",
    "The heads look ahead: `is_causal=True`, or a mask, is missing. The rule is the same for every head.",
)
def multi_head(q, k, v, n_heads):
    B, T, d = q.shape
    q, k, v = (x.view(B, T, n_heads, d // n_heads).transpose(1, 2) for x in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(B, T, d)


@exercise.mutant(
    "still split",
    "The heads still stand apart, `[B, H, T, D]`; merge them into rows of width $d$.",
)
def multi_head(q, k, v, n_heads):
    B, T, d = q.shape
    q, k, v = (x.view(B, T, n_heads, d // n_heads).transpose(1, 2) for x in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def test_two_heads_of_one_number_by_hand(answer):
    ln3 = 1.0986122886681098
    q = torch.tensor([[[0.0, 0.0], [1.0, 1.0]]], dtype=torch.float64)
    k = torch.tensor([[[ln3, 0.0], [0.0, 0.0]]], dtype=torch.float64)
    v = torch.tensor([[[4.0, 8.0], [0.0, 2.0]]], dtype=torch.float64)
    expected = [[[4.0, 8.0], [3.0, 5.0]]]  # head 0 gives ¾ and ¼, head 1 one half to each
    answer(q, k, v, 2).equals(torch.tensor(expected, dtype=torch.float64))


@worth(4)
def test_any_size(answer, draw):
    for B, H, T, D in ((2, 3, 5, 4), (3, 4, 5, 2)):
        q, k, v = (draw.normal(B, T, H * D) for _ in range(3))
        expected = torch.empty(B, T, H * D, dtype=torch.float64)
        for h in range(H):
            part = slice(h * D, (h + 1) * D)
            for t in range(T):  # one query, and what it may see
                weights = torch.einsum("bd,bsd->bs", q[:, t, part], k[:, : t + 1, part]) / D**0.5
                shares = weights.exp() / weights.exp().sum(dim=-1, keepdim=True)
                expected[:, t, part] = torch.einsum("bs,bsd->bd", shares, v[:, : t + 1, part])
        answer(q, k, v, H).equals(expected)
