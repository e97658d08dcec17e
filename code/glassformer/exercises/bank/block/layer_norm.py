"""Exercise block.layer_norm."""

import math

import torch
import torch.nn.functional as F

from ...definition import Exercise, worth

exercise = Exercise(
    "block.layer_norm",
    title="Layer normalisation",
    minutes=15,
    statement=r"""
Bring every row to mean 0 and variance 1 by itself, then scale and shift its columns:

$$
\mu = \frac{1}{d} \sum_j r_j, \qquad \sigma^2 = \frac{1}{d} \sum_j (r_j - \mu)^2, \qquad
N = \gamma \odot \frac{r - \mu}{\sqrt{\sigma^2 + \varepsilon}} + \beta
$$

for any number of axes in front. $\gamma$ and $\beta$ are shared by all rows.
""",
    hints=(
        "How many means are there for a batch `[B, T, d]`? One for each token: along which axis is the sum?",
        "`r.mean(dim=-1, keepdim=True)` keeps the last axis as 1, so that it can be subtracted from the row. "
        "For the variance, mind by what number `var` divides.",
        "`variance = r.var(dim=-1, keepdim=True, unbiased=False)`, then "
        "`gamma * (r - mean) / torch.sqrt(variance + eps) + beta`.",
    ),
    explanation=r"""
The sums run along the row, so a token's norm never depends on its neighbours. The variance divides by $d$: all of
the row is there, it is no sample. $\varepsilon$ stands under the root, next to the variance; it keeps the division
safe for a row of equal numbers, which becomes $\beta$. Mean 0 and variance 1 hold before $\gamma$ and $\beta$, not
after.
""",
    forbidden={
        name: f"`{name}` is what you are asked to build; means, a root and a division are all it takes."
        for name in ("layer_norm", "native_layer_norm", "group_norm")
    },
)


@exercise.starter
def layer_norm(r, gamma, beta, eps):
    """Return the rows normalised, scaled and shifted, same shape.

    r: […, d]; gamma, beta: [d]; eps: a small number.
    """
    raise NotImplementedError("not attempted")


@exercise.solution
def layer_norm(r, gamma, beta, eps):
    mean = r.mean(dim=-1, keepdim=True)  # […, 1], one for each token
    variance = r.var(dim=-1, keepdim=True, unbiased=False)  # […, 1], over d, not d − 1
    z = (r - mean) / torch.sqrt(variance + eps)
    return gamma * z + beta


@exercise.style("spelled out")
def layer_norm(r, gamma, beta, eps):
    d = r.shape[-1]
    away = r - r.sum(dim=-1, keepdim=True) / d
    return away * ((away**2).sum(dim=-1, keepdim=True) / d + eps) ** -0.5 * gamma + beta


@exercise.style("row by row")
def layer_norm(r, gamma, beta, eps):
    rows = []
    for row in r.reshape(-1, r.shape[-1]).tolist():
        mean = sum(row) / len(row)
        variance = sum((x - mean) ** 2 for x in row) / len(row)
        rows.append([(x - mean) / math.sqrt(variance + eps) for x in row])
    return torch.tensor(rows, dtype=r.dtype).reshape(r.shape) * gamma + beta


@exercise.style("mean of squares")
def layer_norm(r, gamma, beta, eps):
    mean = torch.einsum("...d->...", r) / r.shape[-1]
    variance = torch.einsum("...d,...d->...", r, r) / r.shape[-1] - mean**2
    z = (r - mean[..., None]) / torch.sqrt(variance.clamp(min=0) + eps)[..., None]
    return torch.addcmul(beta.expand_as(z), gamma.expand_as(z), z)


@exercise.mutant(
    "Bessel's correction",
    "The variance was divided by d − 1, as `torch.var` does unless told otherwise. That is for samples; all of the "
    "row is there, so divide by d: `unbiased=False`.",
)
def layer_norm(r, gamma, beta, eps):
    mean, variance = r.mean(dim=-1, keepdim=True), r.var(dim=-1, keepdim=True)
    return gamma * (r - mean) / torch.sqrt(variance + eps) + beta


@exercise.mutant(
    "over the tokens",
    "The columns were normalised: mean and variance were taken over the tokens. Each row is normalised by itself, "
    "`dim=-1`; otherwise a token would notice its neighbours, and the future.",
)
def layer_norm(r, gamma, beta, eps):
    mean = r.mean(dim=-2, keepdim=True)
    variance = r.var(dim=-2, keepdim=True, unbiased=False)
    return gamma * (r - mean) / torch.sqrt(variance + eps) + beta


@exercise.mutant(
    "one mean for all",
    "One mean and one variance were taken of the whole tensor. Every token has its own.",
)
def layer_norm(r, gamma, beta, eps):
    return gamma * (r - r.mean()) / torch.sqrt(r.var(unbiased=False) + eps) + beta


@exercise.mutant(
    "no root",
    "The rows were divided by the variance. Divided by its root, the standard deviation, they come out with "
    "variance 1.",
)
def layer_norm(r, gamma, beta, eps):
    mean = r.mean(dim=-1, keepdim=True)
    variance = r.var(dim=-1, keepdim=True, unbiased=False)
    return gamma * (r - mean) / (variance + eps) + beta


@exercise.mutant(
    "epsilon outside",
    "ε was added to the standard deviation; it stands under the root, next to the variance.",
)
def layer_norm(r, gamma, beta, eps):
    mean = r.mean(dim=-1, keepdim=True)
    variance = r.var(dim=-1, keepdim=True, unbiased=False)
    return gamma * (r - mean) / (torch.sqrt(variance) + eps) + beta


@exercise.mutant(
    "no epsilon",
    "ε is missing: a row of equal numbers has variance 0, and becomes 0 divided by 0.",
)
def layer_norm(r, gamma, beta, eps):
    mean = r.mean(dim=-1, keepdim=True)
    variance = r.var(dim=-1, keepdim=True, unbiased=False)
    return gamma * (r - mean) / torch.sqrt(variance) + beta


@exercise.mutant(
    "mean left in",
    "The rows were not shifted to mean 0: dividing by the root mean square alone is RMSNorm, which comes with the "
    "larger model.",
)
def layer_norm(r, gamma, beta, eps):
    return gamma * r / torch.sqrt((r**2).mean(dim=-1, keepdim=True) + eps) + beta


@exercise.mutant(
    "not scaled and shifted",
    "γ and β are missing: these are the rows $z$ with mean 0 and variance 1, and the norm's own scale and shift come "
    "after.",
)
def layer_norm(r, gamma, beta, eps):
    mean = r.mean(dim=-1, keepdim=True)
    variance = r.var(dim=-1, keepdim=True, unbiased=False)
    return (r - mean) / torch.sqrt(variance + eps)


@exercise.mutant(
    "scaled before",
    "The rows were scaled and shifted first and normalised then, which undoes part of it: $\\gamma$ and $\\beta$ come "
    "last.",
)
def layer_norm(r, gamma, beta, eps):
    r = gamma * r + beta
    mean = r.mean(dim=-1, keepdim=True)
    variance = r.var(dim=-1, keepdim=True, unbiased=False)
    return (r - mean) / torch.sqrt(variance + eps)


@exercise.mutant("ready-made", exercise.forbidden["layer_norm"])
def layer_norm(r, gamma, beta, eps):
    return F.layer_norm(r, r.shape[-1:], gamma, beta, eps)


def test_two_rows_by_hand(answer):
    r = torch.tensor([[1.0, 3.0, 3.0, 5.0], [10.0, 10.0, 4.0, 4.0]], dtype=torch.float64)
    gamma = torch.tensor([1.0, 1.0, 2.0, 2.0], dtype=torch.float64)
    beta = torch.tensor([0.0, 1.0, 0.0, 0.0], dtype=torch.float64)
    root = math.sqrt(2)  # mean 3, variance 2; then mean 7, variance 9
    expected = [[-root, 1.0, 0.0, 2 * root], [1.0, 2.0, -2.0, -2.0]]
    answer(r, gamma, beta, 0.0).equals(torch.tensor(expected, dtype=torch.float64))


@worth(3)
def test_any_rows(answer, draw):
    d, eps = 5, 0.01
    gamma, beta = draw.normal(d), draw.normal(d)
    r = 1 + 0.5 * draw.normal(2, 3, d)
    r[1, 2] = draw.whole(1, 9)  # a row of equal numbers
    answer(r, gamma, beta, eps).equals(F.layer_norm(r, (d,), gamma, beta, eps))


def test_one_row(answer, draw):
    gamma, beta, row = draw.normal(7), draw.normal(7), 3 * draw.normal(1, 7)
    answer(row, gamma, beta, 1e-5).equals(F.layer_norm(row, (7,), gamma, beta, 1e-5))
