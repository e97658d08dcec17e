"""Exercise block.feed_forward."""

import torch
import torch.nn.functional as F
from torch import nn

from ...definition import Exercise, worth

exercise = Exercise(
    "block.feed_forward",
    title="Each token alone",
    minutes=8,
    statement=r"""
Write the feed-forward network: widen a row, set all negative numbers to zero, narrow it again,

$$
\text{FFN}(n) = W_2 \, \text{ReLU}(W_1 n + b_1) + b_2, \qquad \text{ReLU}(x) = \max(0, x) ,
$$

for any number of rows. In the formula $n$ is a column; in the code tokens are rows, and the matrices are
stored as PyTorch stores them, `[out, in]`.
""",
    hints=(
        "$[\\dots, d] \\to [\\dots, 2d] \\to [\\dots, d]$: between which two steps does the bend stand?",
        "For rows, $W_1 n + b_1$ reads `n @ W1.T + b1`; `.clamp(min=0)` is ReLU.",
        "`(n @ W1.T + b1).clamp(min=0) @ W2.T + b2`.",
    ),
    explanation=r"""
Nothing here has an index for the position: the products run over the last axis alone, so whatever stands in front,
batch or tokens, goes through row by row. The bend stands between the matrices. It must not follow the
second, for what the network adds to the stream may well be negative.
""",
)


@exercise.starter
def feed_forward(n, W1, b1, W2, b2):
    """Return what the feed-forward network puts out, […, d].

    n: […, d]; W1: [hidden, d]; b1: [hidden]; W2: [d, hidden]; b2: [d].
    """
    raise NotImplementedError("not attempted")


@exercise.solution
def feed_forward(n, W1, b1, W2, b2):
    hidden = n @ W1.T + b1  # […, d] -> […, hidden]
    activation = hidden.clamp(min=0)  # ReLU: units below 0 are off
    return activation @ W2.T + b2  # […, hidden] -> […, d]


@exercise.style("torch.nn")
def feed_forward(n, W1, b1, W2, b2):
    return F.linear(F.relu(F.linear(n, W1, b1)), W2, b2)


@exercise.style("unit by unit")
def feed_forward(n, W1, b1, W2, b2):
    out = b2.expand_as(n)
    for unit in range(len(b1)):
        x = (n * W1[unit]).sum(dim=-1) + b1[unit]
        out = out + torch.where(x > 0, x, 0.0)[..., None] * W2[:, unit]
    return out


@exercise.style("einsum")
def feed_forward(n, W1, b1, W2, b2):
    hidden = torch.einsum("...d,hd->...h", n, W1) + b1
    return torch.einsum("...h,dh->...d", hidden * (hidden > 0), W2) + b2


@exercise.mutant(
    "no bend",
    "ReLU is missing. Without the bend the two matrices are one, and widening buys nothing.",
)
def feed_forward(n, W1, b1, W2, b2):
    return (n @ W1.T + b1) @ W2.T + b2


@exercise.mutant(
    "bend at the end, too",
    "ReLU was applied to the output as well: then the network could only ever add to the stream, never take "
    "away.",
)
def feed_forward(n, W1, b1, W2, b2):
    return ((n @ W1.T + b1).clamp(min=0) @ W2.T + b2).clamp(min=0)


@exercise.mutant(
    "bend at the end",
    "ReLU stands behind the second matrix; it belongs between the two, where it switches units off.",
)
def feed_forward(n, W1, b1, W2, b2):
    return ((n @ W1.T + b1) @ W2.T + b2).clamp(min=0)


@exercise.mutant(
    "bend at the start",
    "ReLU was applied to what comes in: half of what the stream says would be thrown away before anyone has "
    "read it.",
)
def feed_forward(n, W1, b1, W2, b2):
    return (n.clamp(min=0) @ W1.T + b1) @ W2.T + b2


@exercise.mutant(
    "no biases",
    "The biases are missing; without $b_1$ every unit would switch at exactly 0.",
)
def feed_forward(n, W1, b1, W2, b2):
    return (n @ W1.T).clamp(min=0) @ W2.T


@exercise.mutant(
    "bias after the bend",
    "The first bias was added after ReLU. It is part of what decides whether a unit is on: $W_1 n + b_1$ first, "
    "then the bend.",
)
def feed_forward(n, W1, b1, W2, b2):
    return ((n @ W1.T).clamp(min=0) + b1) @ W2.T + b2


@exercise.mutant(
    "absolute value",
    "The negative numbers were turned positive. ReLU sets them to 0: the unit is off.",
)
def feed_forward(n, W1, b1, W2, b2):
    return (n @ W1.T + b1).abs() @ W2.T + b2


@exercise.mutant(
    "GELU",
    "A smooth bend was used, GELU; BabyGroot's is ReLU, with nothing at all left below 0.",
)
def feed_forward(n, W1, b1, W2, b2):
    return F.gelu(n @ W1.T + b1) @ W2.T + b2


@exercise.mutant(
    "added already",
    "The row that came in was added. The residual belongs to the block; the network returns its own part only.",
)
def feed_forward(n, W1, b1, W2, b2):
    return n + (n @ W1.T + b1).clamp(min=0) @ W2.T + b2


@exercise.mutant(
    "not transposed",
    "The matrices are not transposed. They are stored as `[out, in]`, and for rows the product is "
    "`n @ W1.T`.",
)
def feed_forward(n, W1, b1, W2, b2):
    return (n @ W1 + b1).clamp(min=0) @ W2 + b2


def test_one_row_by_hand(answer):
    n = torch.tensor([[1.0, -2.0]], dtype=torch.float64)
    W1 = torch.tensor([[2.0, 0.0], [0.0, 1.0], [1.0, 1.0]], dtype=torch.float64)
    b1 = torch.tensor([1.0, 0.5, 1.5], dtype=torch.float64)  # hidden: 3, -1.5 (off), 0.5
    W2 = torch.tensor([[1.0, 5.0, 2.0], [-1.0, 5.0, 0.0]], dtype=torch.float64)
    b2 = torch.tensor([0.25, 0.0], dtype=torch.float64)
    answer(n, W1, b1, W2, b2).equals(torch.tensor([[4.25, -3.0]], dtype=torch.float64))


@worth(2)
def test_any_rows(answer, draw):
    d, hidden = 3, 7
    weights = draw.normal(hidden, d), draw.normal(hidden), draw.normal(d, hidden), draw.normal(d)
    ffn = nn.Sequential(nn.Linear(d, hidden), nn.ReLU(), nn.Linear(hidden, d)).double()
    for parameter, weight in zip(ffn.parameters(), weights, strict=True):
        parameter.data = weight
    for shape in ((2, 5, d), (d,)):
        n = 2 * draw.normal(*shape)
        answer(n, *weights).equals(ffn(n).detach())
