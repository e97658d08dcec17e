"""Exercise modern.rms_norm."""

import math

import torch
import torch.nn.functional as F

from glassformer.models import RMSNorm

from ...definition import Exercise, worth

exercise = Exercise(
    "modern.rms_norm",
    title="RMSNorm",
    minutes=8,
    statement=r"""
Normalise each token's vector by its root mean square, then scale it as learned:

$$
\operatorname{RMSNorm}(x) = \frac{x}{\sqrt{\frac{1}{d} \sum_{i=1}^{d} x_i^2 + \varepsilon}} \odot g
$$
""",
    hints=(
        "Read the name from the back: square, mean, root. Over which dimension?",
        "`x.square().mean(dim=-1, keepdim=True)` has shape `(B, T, 1)`, one number for each token.",
        "`x / (x.square().mean(dim=-1, keepdim=True) + eps).sqrt() * weight`.",
    ),
    explanation=r"""
`keepdim=True` keeps the mean squares as a column, so that each row is divided by its own. $\varepsilon$ stands under the
root: a vector of zeros is divided by $\sqrt{\varepsilon}$ and stays zeros. No mean is taken away, and there is no shift:
that is all that separates it from LayerNorm.
""",
    forbidden={
        name: "A ready-made norm does the work here; write it with `square`, `mean` and `sqrt`."
        for name in ("rms_norm", "layer_norm", "forward")
    },
)


@exercise.starter
def rms(x, weight, eps):
    """Return x with root mean square 1 in each vector, times the weight, [B, T, d].

    x: [B, T, d]; weight: [d], called g above; eps: a number.
    """
    raise NotImplementedError("not attempted")


@exercise.solution
def rms(x, weight, eps):
    mean_square = x.square().mean(dim=-1, keepdim=True)  # [B, T, 1]
    return x / (mean_square + eps).sqrt() * weight


@exercise.style("rsqrt")
def rms(x, weight, eps):
    return weight * x * torch.rsqrt((x * x).sum(-1, keepdim=True) / x.shape[-1] + eps)


@exercise.style("einsum")
def rms(x, weight, eps):
    scale = (torch.einsum("btd,btd->bt", x, x) / len(weight) + eps) ** -0.5
    return torch.einsum("btd,bt,d->btd", x, scale, weight)


@exercise.style("vector by vector")
def rms(x, weight, eps):
    result = torch.empty_like(x)
    for b in range(len(x)):
        for t, vector in enumerate(x[b]):
            result[b, t] = vector / math.sqrt(vector.pow(2).mean().item() + eps) * weight
    return result


@exercise.mutant(
    "mean taken away",
    "The mean was taken away first, as LayerNorm does; RMSNorm leaves it where it is.",
)
def rms(x, weight, eps):
    x = x - x.mean(dim=-1, keepdim=True)
    return x / (x.square().mean(dim=-1, keepdim=True) + eps).sqrt() * weight


@exercise.mutant(
    "no root",
    "The vectors were divided by the mean square itself; the root is missing, and with it ten times $x$ would come out "
    "ten times smaller.",
)
def rms(x, weight, eps):
    return x / (x.square().mean(dim=-1, keepdim=True) + eps) * weight


@exercise.mutant(
    "sum of squares",
    "The squares were added up, not averaged: each vector has length 1 now, where its root mean square should be 1.",
)
def rms(x, weight, eps):
    return x / (x.square().sum(dim=-1, keepdim=True) + eps).sqrt() * weight


@exercise.mutant(
    "one scale for all",
    "All tokens were divided by one and the same number; each vector is normalised by itself, over `dim=-1`.",
)
def rms(x, weight, eps):
    return x / (x.square().mean() + eps).sqrt() * weight


@exercise.mutant(
    "over the tokens",
    "The mean was taken over the tokens; it belongs to each vector, the last dimension.",
)
def rms(x, weight, eps):
    return x / (x.square().mean(dim=1, keepdim=True) + eps).sqrt() * weight


@exercise.mutant(
    "without ε",
    "ε is missing: a vector of zeros would be divided by zero.",
)
def rms(x, weight, eps):
    return x / x.square().mean(dim=-1, keepdim=True).sqrt() * weight


@exercise.mutant(
    "ε outside",
    "ε was added to the root; it belongs under it.",
)
def rms(x, weight, eps):
    return x / (x.square().mean(dim=-1, keepdim=True).sqrt() + eps) * weight


@exercise.mutant(
    "not scaled",
    "The learned scale is missing: each of the $d$ numbers is multiplied by its weight at the end.",
)
def rms(x, weight, eps):
    return x / (x.square().mean(dim=-1, keepdim=True) + eps).sqrt()


@exercise.mutant(
    "scaled first",
    "The weight came first, and the norm took part of it away again; normalise first, then scale.",
)
def rms(x, weight, eps):
    x = x * weight
    return x / (x.square().mean(dim=-1, keepdim=True) + eps).sqrt()


@exercise.mutant("ready-made", exercise.forbidden["rms_norm"])
def rms(x, weight, eps):
    return F.rms_norm(x, weight.shape, weight, eps)


def test_one_vector_by_hand(answer):
    x = torch.tensor([[[2.0, -2.0, 1.0, 4.0]]], dtype=torch.float64)  # mean square 6.25
    weight = torch.tensor([1.0, 1.0, 1.0, 10.0], dtype=torch.float64)
    expected = torch.tensor([[[0.8, -0.8, 0.4, 16.0]]], dtype=torch.float64)
    answer(x, weight, 0.0).equals(expected)


@worth(2)
def test_any_vectors(answer, draw):
    x, weight, eps = draw.normal(2, 3, 5), draw.normal(5), 0.3
    x[1, 2] = 0
    norm = RMSNorm(5, eps).double()
    norm.weight.data = weight
    answer(x, weight, eps).equals(norm(x).detach())
