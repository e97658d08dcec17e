"""Exercise modern.adamw."""

import math

import torch

from ...definition import Exercise, worth

exercise = Exercise(
    "modern.adamw",
    title="Repair an optimiser",
    minutes=20,
    statement=r"""
This is said to be one step of AdamW. It trains, but worse than it should:

```python
def adamw_step(w, g, m, s, t, lr, decay, beta1, beta2, eps):
    g = g + decay * w
    m = beta1 * m + (1 - beta1) * g
    s = beta2 * s + (1 - beta2) * g**2
    m_hat = m / (1 - beta1**t)
    w = w - lr * m_hat / (s.sqrt() + eps)
    return w, m, s
```

Compare it with the chapter's five lines. Two things are wrong; repair both. Steps are counted from $t = 1$.
""",
    hints=(
        "Which line of the chapter makes AdamW out of Adam, and what does it do to the gradient? And how many running means began "
        "at 0?",
        "The decay shrinks the weight and stays out of $g$, $m$ and $s$; both means are divided by the share of them that is "
        "real so far.",
        "`w = w - lr * decay * w` first, with $g$ left alone, and `s_hat = s / (1 - beta2**t)` under the root.",
    ),
    explanation=r"""
Added to the gradient, the decay goes through both means, is divided by its own size, and pulls a weight with small gradients as
hard as any other: that is how the embedding of `mat` was wiped out. Decoupled, each step multiplies the weight by
$1 - \eta\lambda$, whatever its gradients are. And $s$ began at 0 as $m$ did: at step 1 it holds a thousandth of $g^2$, and without the
correction the first steps would be some thirty times too long with $\beta_2 = 0.999$, instead of $\eta$ each.
""",
    forbidden={
        name: "A ready-made optimiser takes the step here; repair the five lines."
        for name in ("step", "_move", "adamw", "adam", "_single_tensor_adamw")
    },
)


@exercise.starter
def adamw_step(w, g, m, s, t, lr, decay, beta1, beta2, eps):
    """Return (w, m, s) after step t: the weight and both running means.

    w, g, m, s: [n], weight, gradient and means before the step; t: 1, 2, …; the rest: numbers.
    """
    raise NotImplementedError("not attempted")


@exercise.solution
def adamw_step(w, g, m, s, t, lr, decay, beta1, beta2, eps):
    w = w - lr * decay * w  # decay, decoupled from the gradient
    m = beta1 * m + (1 - beta1) * g
    s = beta2 * s + (1 - beta2) * g**2
    m_hat, s_hat = m / (1 - beta1**t), s / (1 - beta2**t)
    return w - lr * m_hat / (s_hat.sqrt() + eps), m, s


@exercise.style("lerp")
def adamw_step(w, g, m, s, t, lr, decay, beta1, beta2, eps):
    m, s = torch.lerp(g, m, beta1), torch.lerp(g.square(), s, beta2)
    size = (s / (1 - beta2**t)) ** 0.5 + eps
    return torch.addcdiv(w * (1 - lr * decay), m, size, value=-lr / (1 - beta1**t)), m, s


@exercise.style("weight by weight")
def adamw_step(w, g, m, s, t, lr, decay, beta1, beta2, eps):
    rows = []
    for wi, gi, mi, si in zip(w.tolist(), g.tolist(), m.tolist(), s.tolist()):
        mi += (1 - beta1) * (gi - mi)
        si += (1 - beta2) * (gi * gi - si)
        step = mi / (1 - beta1**t) / (math.sqrt(si / (1 - beta2**t)) + eps)
        rows.append([wi - lr * decay * wi - lr * step, mi, si])
    new = torch.tensor(rows, dtype=w.dtype).T
    return new[0], new[1], new[2]


@exercise.style("both at once")
def adamw_step(w, g, m, s, t, lr, decay, beta1, beta2, eps):
    betas = torch.tensor([[beta1], [beta2]], dtype=w.dtype)
    means = betas * torch.stack((m, s)) + (1 - betas) * torch.stack((g, g * g))
    m_hat, s_hat = means / (1 - betas**t)
    return w - lr * (decay * w + m_hat / (torch.sqrt(s_hat) + eps)), means[0], means[1]


@exercise.mutant(
    "as it was",
    "Both faults are still there: the decay is part of the gradient, and the second mean, too small at first, is not "
    "corrected.",
)
def adamw_step(w, g, m, s, t, lr, decay, beta1, beta2, eps):
    g = g + decay * w
    m = beta1 * m + (1 - beta1) * g
    s = beta2 * s + (1 - beta2) * g**2
    return w - lr * m / (1 - beta1**t) / (s.sqrt() + eps), m, s


@exercise.mutant(
    "decay in the gradient",
    "The decay still goes through the gradient and both means: that is Adam's old form. AdamW shrinks the weight itself, by "
    "$\\eta \\lambda w$.",
)
def adamw_step(w, g, m, s, t, lr, decay, beta1, beta2, eps):
    g = g + decay * w
    m = beta1 * m + (1 - beta1) * g
    s = beta2 * s + (1 - beta2) * g**2
    return w - lr * m / (1 - beta1**t) / ((s / (1 - beta2**t)).sqrt() + eps), m, s


@exercise.mutant(
    "second mean not corrected",
    "The decay is decoupled now, but the second mean began at 0 as well and is not corrected: the first steps are too long.",
)
def adamw_step(w, g, m, s, t, lr, decay, beta1, beta2, eps):
    m = beta1 * m + (1 - beta1) * g
    s = beta2 * s + (1 - beta2) * g**2
    return w - lr * decay * w - lr * m / (1 - beta1**t) / (s.sqrt() + eps), m, s


@exercise.mutant(
    "no decay",
    "The decay is gone; it belongs outside the gradient, not out of the step: $w \\leftarrow w - \\eta \\lambda w$.",
)
def adamw_step(w, g, m, s, t, lr, decay, beta1, beta2, eps):
    m = beta1 * m + (1 - beta1) * g
    s = beta2 * s + (1 - beta2) * g**2
    return w - lr * m / (1 - beta1**t) / ((s / (1 - beta2**t)).sqrt() + eps), m, s


@exercise.mutant(
    "decay without the learning rate",
    "The weight was shrunk by $\\lambda w$; the decay goes with the learning rate: $\\eta \\lambda w$.",
)
def adamw_step(w, g, m, s, t, lr, decay, beta1, beta2, eps):
    m = beta1 * m + (1 - beta1) * g
    s = beta2 * s + (1 - beta2) * g**2
    step = m / (1 - beta1**t) / ((s / (1 - beta2**t)).sqrt() + eps)
    return w - decay * w - lr * step, m, s


@exercise.mutant(
    "decay at the end",
    "The decay came last and shrank the step as well; it is the first line, and acts on the weight as it was.",
)
def adamw_step(w, g, m, s, t, lr, decay, beta1, beta2, eps):
    m = beta1 * m + (1 - beta1) * g
    s = beta2 * s + (1 - beta2) * g**2
    w = w - lr * m / (1 - beta1**t) / ((s / (1 - beta2**t)).sqrt() + eps)
    return w * (1 - lr * decay), m, s


@exercise.mutant(
    "corrected means handed on",
    "The corrected means were returned, and the next step would correct them again; hand on $m$ and $s$ as they are.",
)
def adamw_step(w, g, m, s, t, lr, decay, beta1, beta2, eps):
    m = (beta1 * m + (1 - beta1) * g) / (1 - beta1**t)
    s = (beta2 * s + (1 - beta2) * g**2) / (1 - beta2**t)
    return w - lr * decay * w - lr * m / (s.sqrt() + eps), m, s


@exercise.mutant(
    "ε under the root",
    "ε is under the root; in AdamW it is added to the root.",
)
def adamw_step(w, g, m, s, t, lr, decay, beta1, beta2, eps):
    m = beta1 * m + (1 - beta1) * g
    s = beta2 * s + (1 - beta2) * g**2
    step = m / (1 - beta1**t) / (s / (1 - beta2**t) + eps).sqrt()
    return w - lr * decay * w - lr * step, m, s


@exercise.mutant(
    "no root",
    "The step was divided by the mean square itself; its root is what has the size of a gradient.",
)
def adamw_step(w, g, m, s, t, lr, decay, beta1, beta2, eps):
    m = beta1 * m + (1 - beta1) * g
    s = beta2 * s + (1 - beta2) * g**2
    step = m / (1 - beta1**t) / (s / (1 - beta2**t) + eps)
    return w - lr * decay * w - lr * step, m, s


def by_torch(w, gradients, lr, decay, beta1, beta2, eps):
    """Return weight and both means before and after the last of some steps of torch's AdamW."""
    weight = w.clone().requires_grad_()
    optimiser = torch.optim.AdamW([weight], lr, (beta1, beta2), eps, decay)
    now = (w, torch.zeros_like(w), torch.zeros_like(w))
    for gradient in gradients:
        before, weight.grad = now, gradient.clone()
        optimiser.step()
        state = optimiser.state[weight]
        now = (weight.detach().clone(), state["exp_avg"].clone(), state["exp_avg_sq"].clone())
    return before, now


def test_the_first_step_by_hand(answer):
    w, g = torch.tensor([[2.0, -1.0], [0.5, -4.0]], dtype=torch.float64)
    m, s = 0.5 * g, 0.25 * g**2  # means of β₁ = 0.5 and β₂ = 0.75 after their first step
    new = torch.tensor([2.0 - 0.02 - 0.1, -1.0 + 0.01 + 0.1], dtype=torch.float64)
    answer(w, g, 0 * w, 0 * w, 1, 0.1, 0.1, 0.5, 0.75, 0.0).equals((new, m, s))


@worth(3)
def test_any_step(answer, draw):
    t, settings = draw.whole(2, 4), (0.1, 0.5, 0.7, 0.9, 0.3)
    w, gradients = draw.normal(5), draw.normal(t, 5)
    (w, m, s), after = by_torch(w, gradients, *settings)
    answer(w, gradients[-1], m, s, t, *settings).equals(after)
