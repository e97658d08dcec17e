"""Exercise attention.qkv."""

import torch
import torch.nn.functional as F

from ...definition import Exercise, worth

exercise = Exercise(
    "attention.qkv",
    title="Queries, keys and values",
    minutes=8,
    statement=r"""
Turn each row of the stream into a query, a key and a value, each by a matrix and a bias of its own:

$$
Q = H W_Q^\top + b_Q, \qquad K = H W_K^\top + b_K, \qquad V = H W_V^\top + b_V
$$

Tokens are rows, and the matrices are stored as PyTorch stores them, `[out, in]`.
""",
    hints=(
        "`h` is `[B, T, d]` and `W_Q` is `[D, d]`. Which axis has to disappear in the product?",
        "A product `a @ b` sums over the last axis of `a` and the last but one of `b`; `W_Q.T` is `[d, D]`.",
        "`h @ W_Q.T + b_Q` is one of the three; return all three as a tuple, in the order Q, K, V.",
    ),
    explanation=r"""
$[B, T, d] \cdot [d, D] + [D] \to [B, T, D]$: every row of every sequence goes through the same matrix, alone,
and the bias is added to each row. Row $j$ of $W_Q$ makes number $j$ of every query; hence the transpose. The
three views are made of the same $H$; none is made of another.
""",
)


@exercise.starter
def project(h, W_Q, b_Q, W_K, b_K, W_V, b_V):
    """Return (Q, K, V), a tuple of [B, T, D], [B, T, D] and [B, T, D_v].

    h: [B, T, d]; W_Q, W_K: [D, d]; b_Q, b_K: [D]; W_V: [D_v, d]; b_V: [D_v].
    """
    raise NotImplementedError("not attempted")


@exercise.solution
def project(h, W_Q, b_Q, W_K, b_K, W_V, b_V):
    Q = h @ W_Q.T + b_Q  # [B, T, d] @ [d, D] + [D] -> [B, T, D]
    K = h @ W_K.T + b_K
    V = h @ W_V.T + b_V
    return Q, K, V


@exercise.style("F.linear")
def project(h, W_Q, b_Q, W_K, b_K, W_V, b_V):
    return F.linear(h, W_Q, b_Q), F.linear(h, W_K, b_K), F.linear(h, W_V, b_V)


@exercise.style("einsum")
def project(h, W_Q, b_Q, W_K, b_K, W_V, b_V):
    pairs = ((W_Q, b_Q), (W_K, b_K), (W_V, b_V))
    return tuple(torch.einsum("btd,od->bto", h, W) + b for W, b in pairs)


@exercise.style("one matrix, then split")
def project(h, W_Q, b_Q, W_K, b_K, W_V, b_V):
    together = h @ torch.cat([W_Q, W_K, W_V]).T + torch.cat([b_Q, b_K, b_V])
    return together.split([len(b_Q), len(b_K), len(b_V)], dim=-1)


@exercise.style("tokens as columns")
def project(h, W_Q, b_Q, W_K, b_K, W_V, b_V):
    def view(W, b):
        return (W @ h.transpose(-2, -1) + b[:, None]).transpose(-2, -1)

    return view(W_Q, b_Q), view(W_K, b_K), view(W_V, b_V)


@exercise.mutant(
    "not transposed",
    "The matrices are not transposed. They are stored as `[out, in]`: row $j$ of $W_Q$ makes number $j$ of a "
    "query, so the product needs $W_Q^\\top$.",
)
def project(h, W_Q, b_Q, W_K, b_K, W_V, b_V):
    return h @ W_Q + b_Q, h @ W_K + b_K, h @ W_V + b_V


@exercise.mutant(
    "matrix first",
    "The matrix stands on the left, as where tokens are columns. Here tokens are rows, and `W @ h` would mix "
    "one token with another; write $H W^\\top$.",
)
def project(h, W_Q, b_Q, W_K, b_K, W_V, b_V):
    return W_Q @ h + b_Q, W_K @ h + b_K, W_V @ h + b_V


@exercise.mutant(
    "no biases",
    "The biases are missing; BabyGroot's three projections each add one to every row.",
)
def project(h, W_Q, b_Q, W_K, b_K, W_V, b_V):
    return h @ W_Q.T, h @ W_K.T, h @ W_V.T


@exercise.mutant(
    "left as columns",
    "In what comes out tokens are columns. Row $t$ of a matrix always belongs to token $t$ in this book: "
    "transpose back.",
)
def project(h, W_Q, b_Q, W_K, b_K, W_V, b_V):
    h = h.transpose(-2, -1)
    return W_Q @ h + b_Q[:, None], W_K @ h + b_K[:, None], W_V @ h + b_V[:, None]


@exercise.mutant(
    "one from another",
    "The keys were made of the queries, and the values of the keys. All three are views of the same row "
    "of the stream, side by side.",
)
def project(h, W_Q, b_Q, W_K, b_K, W_V, b_V):
    Q = h @ W_Q.T + b_Q
    K = Q @ W_K.T + b_K
    V = K @ W_V.T + b_V
    return Q, K, V


@exercise.mutant(
    "another order",
    "Keys and values have changed places: return queries, keys, values, in this order.",
)
def project(h, W_Q, b_Q, W_K, b_K, W_V, b_V):
    return h @ W_Q.T + b_Q, h @ W_V.T + b_V, h @ W_K.T + b_K


@exercise.mutant(
    "values as they are",
    "The values are the rows of the stream themselves. What a token hands over is a view of its own, too, "
    "made by $W_V$ and $b_V$.",
)
def project(h, W_Q, b_Q, W_K, b_K, W_V, b_V):
    return h @ W_Q.T + b_Q, h @ W_K.T + b_K, h.clone()


@exercise.mutant(
    "added to the stream",
    "The row itself was added to each view. Queries, keys and values take its place inside attention; the "
    "addition to the stream comes in the block, and with the context.",
)
def project(h, W_Q, b_Q, W_K, b_K, W_V, b_V):
    return h + h @ W_Q.T + b_Q, h + h @ W_K.T + b_K, h + h @ W_V.T + b_V


def test_two_tokens_by_hand(answer):
    h = torch.tensor([[[1.0, 2.0], [3.0, 5.0]]], dtype=torch.float64)
    W_Q, b_Q = (
        torch.tensor([[1.0, 10.0], [0.0, 100.0]]).double(),
        torch.tensor([0.5, 0.25]).double(),
    )
    W_K, b_K = torch.tensor([[2.0, 0.0], [1.0, 1.0]]).double(), torch.tensor([0.0, 7.0]).double()
    W_V, b_V = torch.tensor([[0.0, 1.0], [-1.0, 0.0]]).double(), torch.tensor([3.0, 0.0]).double()
    Q, K = [[[21.5, 200.25], [53.5, 500.25]]], [[[2.0, 10.0], [6.0, 15.0]]]
    expected = tuple(
        torch.tensor(x, dtype=torch.float64) for x in (Q, K, [[[5.0, -1.0], [8.0, -3.0]]])
    )
    answer(h, W_Q, b_Q, W_K, b_K, W_V, b_V).equals(expected)


@worth(2)
def test_any_size(answer, draw):
    B, T, d, D, D_v = 2, 7, 5, 3, 4
    weights = [draw.normal(D, d), draw.normal(D), draw.normal(D, d), draw.normal(D)]
    weights += [draw.normal(D_v, d), draw.normal(D_v)]
    h = draw.normal(B, T, d)
    expected = tuple(F.linear(h, *weights[i : i + 2]) for i in (0, 2, 4))
    answer(h, *weights).equals(expected)
