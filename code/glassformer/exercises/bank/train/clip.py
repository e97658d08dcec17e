"""Exercise train.clip."""

import math

import torch

from ...definition import Exercise, worth

exercise = Exercise(
    "train.clip",
    title="No longer than allowed",
    minutes=15,
    statement=r"""
A freak batch gives gradients many times as large as usual. Before the step they are clipped: all gradients together are seen as *one* vector $g$, and
if its length is above $c$, all of it is scaled to length $c$:

$$
g \leftarrow \min\Big(1, \frac{c}{\lVert g \rVert}\Big)\, g, \qquad \lVert g \rVert = \sqrt{\textstyle\sum_i g_i^2} ,
$$

where $i$ goes through every number of every gradient. Return new tensors, and leave the given ones as they are.
""",
    hints=(
        "One length for all of them. How does the sum of squares of all numbers come from those of the single tensors?",
        "Add up `(g**2).sum()` over the gradients and take the root once; one factor then serves all.",
        "`scale = min(1.0, most / norm)`, and the result is `[g * scale for g in gradients]`.",
    ),
    explanation=r"""
With one factor for all, the gradient keeps its direction, and only its length changes. Clipped tensor by tensor, or number by number, the large parts
would shrink more than the small ones, and the whole would point elsewhere. Where the length is below $c$ already, nothing happens: clipping
is a limit, not a normalisation. `torch.nn.utils.clip_grad_norm_` does the same in place, and returns the length that it found.
""",
    forbidden={
        name: "PyTorch's own clipping does it here; scale the gradients yourself."
        for name in (
            *("clip_grad_norm_", "clip_grads_with_norm_", "_clip_grads_with_norm_"),
            *("get_total_norm", "_get_total_norm"),
        )
    },
)


@exercise.starter
def clip(gradients, most):
    """Return the gradients, a list of tensors, scaled so that all together are no longer than most.

    gradients: list of tensors of any shapes; most: a number, the greatest length.
    """
    raise NotImplementedError("not attempted")


@exercise.solution
def clip(gradients, most):
    norm = math.sqrt(sum((g**2).sum().item() for g in gradients))
    scale = min(1.0, most / norm)
    return [scale * g for g in gradients]


@exercise.style("one vector")
def clip(gradients, most):
    norm = torch.cat([g.flatten() for g in gradients]).norm()
    return [g / norm * most if norm > most else g.clone() for g in gradients]


@exercise.style("norm of norms")
def clip(gradients, most):
    norms = torch.stack([torch.linalg.vector_norm(g) for g in gradients])
    scale = (most / norms.square().sum().sqrt()).clamp(max=1.0)
    return [torch.mul(g, scale) for g in gradients]


@exercise.style("as PyTorch does")
def clip(gradients, most):
    norm = math.hypot(*(x for g in gradients for x in g.reshape(-1).tolist()))
    return [g * min(1.0, most / (norm + 1e-6)) for g in gradients]


@exercise.mutant(
    "each by itself",
    "Each tensor was clipped by its own length, so the whole points elsewhere; one length and one factor for all of them.",
)
def clip(gradients, most):
    return [g * min(1.0, most / g.norm().item()) for g in gradients]


@exercise.mutant(
    "number by number",
    "Each number was cut off at $\\pm c$, so the direction changed; the whole vector is scaled by one factor.",
)
def clip(gradients, most):
    return [g.clamp(-most, most) for g in gradients]


@exercise.mutant(
    "short ones stretched",
    "Gradients that were shorter than $c$ were stretched to it; scale only what is too long.",
)
def clip(gradients, most):
    norm = math.sqrt(sum((g**2).sum().item() for g in gradients))
    return [most / norm * g for g in gradients]


@exercise.mutant(
    "lengths added up",
    "The lengths of the tensors were added; lengths add up as squares: the root of the sum of all squares.",
)
def clip(gradients, most):
    norm = sum(g.norm().item() for g in gradients)
    return [min(1.0, most / norm) * g for g in gradients]


@exercise.mutant(
    "no root",
    "This divides by the sum of squares; the length is its root.",
)
def clip(gradients, most):
    norm = sum((g**2).sum().item() for g in gradients)
    return [min(1.0, most / norm) * g for g in gradients]


@exercise.mutant(
    "largest number",
    "The largest number was brought down to $c$, which leaves the vector longer than that; its length is the root of the sum of squares.",
)
def clip(gradients, most):
    norm = max(g.abs().max().item() for g in gradients)
    return [min(1.0, most / norm) * g for g in gradients]


@exercise.mutant(
    "mean square",
    "The root was taken of the mean of the squares; a length is the root of their sum.",
)
def clip(gradients, most):
    count = sum(g.numel() for g in gradients)
    norm = math.sqrt(sum((g**2).sum().item() for g in gradients) / count)
    return [min(1.0, most / norm) * g for g in gradients]


@exercise.mutant(
    "to length 1",
    "What is too long was scaled to length 1, whatever $c$ is; the factor is $c / \\lVert g \\rVert$.",
)
def clip(gradients, most):
    norm = math.sqrt(sum((g**2).sum().item() for g in gradients))
    return [g / norm if norm > most else 1 * g for g in gradients]


@exercise.mutant(
    "in place",
    "The given tensors were scaled themselves, as `clip_grad_norm_` does; here, return new ones.",
)
def clip(gradients, most):
    norm = math.sqrt(sum((g**2).sum().item() for g in gradients))
    for g in gradients:
        g *= min(1.0, most / norm)
    return gradients


@exercise.mutant(
    "the length",
    "This is the length of all gradients; return the gradients themselves, scaled.",
)
def clip(gradients, most):
    return math.sqrt(sum((g**2).sum().item() for g in gradients))


@exercise.mutant("ready-made", exercise.forbidden["clip_grad_norm_"])
def clip(gradients, most):
    weights = [torch.zeros_like(g).requires_grad_() for g in gradients]
    for weight, g in zip(weights, gradients):
        weight.grad = g.clone()
    torch.nn.utils.clip_grad_norm_(weights, most)
    return [weight.grad for weight in weights]


def by_torch(gradients, most):
    """Return copies of the gradients as PyTorch clips them."""
    weights = [torch.zeros_like(g).requires_grad_() for g in gradients]
    for weight, g in zip(weights, gradients, strict=True):
        weight.grad = g.clone()
    torch.nn.utils.clip_grad_norm_(weights, most)
    return [weight.grad for weight in weights]


def test_too_long_by_hand(answer):
    gradients = [[[2.0, 4.0]], [-5.0, 6.0]]  # 4 + 16 + 25 + 36 = 81: length 9
    given = [torch.tensor(g, dtype=torch.float64) for g in gradients]
    answer(given, 3.0).equals([g / 3 for g in given])


def test_short_enough_by_hand(answer):
    given = [torch.tensor(g, dtype=torch.float64) for g in ([0.3], [[0.4], [1.2]])]  # length 1.3
    answer(given, 2.0).equals(given)


@worth(2)
def test_any_gradients(answer, draw):
    shapes = ((3, 2), (4,), (2, 1, 5))
    given = [scale * draw.normal(*shape) for scale, shape in zip((1.0, 4.0, 9.0), shapes)]
    for most in (1.0, 2.5, 1000.0):
        answer(given, most).equals(by_torch(given, most))
