"""Exercise model.training_step."""

import torch
import torch.nn.functional as F

from glassformer.models import BabyGrootGPT
from glassformer.training import last_token_logits

from ...definition import Exercise, worth

exercise = Exercise(
    "model.training_step",
    title="One step of training",
    minutes=12,
    statement=r"""
Write the body of the training loop: compute the loss of a batch, its gradient, and let the optimiser
take one step. `last_token_logits(model, X)` gives the scores `(B, V)` at the last real token of each row,
and `F.cross_entropy` the loss. Return the loss that the batch had before the step, as a Python number.
""",
    hints=(
        "Four calls, in this order: loss, `zero_grad`, `backward`, `step`.",
        "`loss.backward()` *adds* to the gradients that are there already; "
        "`optimiser.zero_grad()` clears those of the step before.",
        "`loss.item()` is the loss as a number, without the graph behind it.",
    ),
    explanation=r"""
`backward` adds to what is in `.grad`, so the gradients of the step before must go first; cleared
between `backward` and `step`, there would be nothing left to step along. The loss is that of the weights
that made the prediction; after the step it would be another. `.item()` lets go of the graph, which
otherwise stays in memory as long as the number does.
""",
    forbidden={},
)


@exercise.starter
def training_step(model, optimiser, X, Y):
    """Take one step on a batch and return its loss, a Python number.

    model: BabyGrootGPT; optimiser: a torch optimiser of its parameters; X: [B, T]; Y: [B].
    """
    raise NotImplementedError("not attempted")


@exercise.harness
def prepare(training_step, state, X, Y, lr):
    """Make a model and an optimiser, take two steps, and tell what became of the weights."""
    import torch

    from glassformer.models import BabyGrootGPT

    (V, d), T = state["token_embedding.weight"].shape, len(state["position_embedding.weight"])
    model = BabyGrootGPT(V, T, d).double()
    model.load_state_dict(state)
    optimiser, taken = torch.optim.SGD(model.parameters(), lr), []
    step, weights = optimiser.step, list(model.parameters())
    optimiser.step = lambda: taken.append(any(w.grad is not None for w in weights)) or step()
    losses = [training_step(model, optimiser, X, Y) for _ in range(2)]
    return {"losses": losses, "weights": dict(model.state_dict()), "steps": taken}


@exercise.solution
def training_step(model, optimiser, X, Y):
    loss = F.cross_entropy(last_token_logits(model, X), Y)
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    return loss.item()


@exercise.style("cleared afterwards")
def training_step(model, optimiser, X, Y):
    logits = last_token_logits(model, X)
    loss = -logits.log_softmax(dim=-1)[torch.arange(len(Y)), Y].mean()
    loss.backward()
    optimiser.step()
    optimiser.zero_grad()
    return float(loss)


@exercise.style("autograd.grad")
def training_step(model, optimiser, X, Y):
    weights = list(model.parameters())
    loss = torch.nn.CrossEntropyLoss()(last_token_logits(model, X), Y)
    for weight, slope in zip(weights, torch.autograd.grad(loss, weights)):
        weight.grad = slope
    optimiser.step()
    return loss.detach().numpy().item()


@exercise.mutant(
    "gradients pile up",
    "The gradients of the step before are still there: `backward` adds to them. Clear them with "
    "`optimiser.zero_grad()`.",
)
def training_step(model, optimiser, X, Y):
    loss = F.cross_entropy(last_token_logits(model, X), Y)
    loss.backward()
    optimiser.step()
    return loss.item()


@exercise.mutant(
    "no step",
    "The weights stay as they are: the gradients say where to go, `optimiser.step()` goes there.",
)
def training_step(model, optimiser, X, Y):
    loss = F.cross_entropy(last_token_logits(model, X), Y)
    optimiser.zero_grad()
    loss.backward()
    return loss.item()


@exercise.mutant(
    "cleared too early",
    "There were no gradients when the optimiser took its step, so it could not move: call `zero_grad` "
    "before `backward`, not between `backward` and `step`, and do not leave `backward` out.",
)
def training_step(model, optimiser, X, Y):
    loss = F.cross_entropy(last_token_logits(model, X), Y)
    loss.backward()
    optimiser.zero_grad()
    optimiser.step()
    return loss.item()


@exercise.mutant(
    "uphill",
    "The weights go uphill: the optimiser already walks against the gradient, so the loss needs no "
    "minus.",
)
def training_step(model, optimiser, X, Y):
    loss = F.cross_entropy(last_token_logits(model, X), Y)
    optimiser.zero_grad()
    (-loss).backward()
    optimiser.step()
    return loss.item()


@exercise.mutant(
    "loss after the step",
    "The loss is that of the weights after the step; return the one that the gradient was taken of.",
)
def training_step(model, optimiser, X, Y):
    loss = F.cross_entropy(last_token_logits(model, X), Y)
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    return F.cross_entropy(last_token_logits(model, X), Y).item()


@exercise.mutant(
    "read at the pad",
    "The loss was read at the last place, where in shorter rows a `<PAD>` stands; "
    "`last_token_logits(model, X)` reads it at the last real token.",
)
def training_step(model, optimiser, X, Y):
    loss = F.cross_entropy(model(X)[0][:, -1], Y)
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    return loss.item()


@exercise.mutant(
    "summed",
    "The loss is a sum over the batch, and the step is as many times too long; take the mean.",
)
def training_step(model, optimiser, X, Y):
    loss = F.cross_entropy(last_token_logits(model, X), Y, reduction="sum")
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    return loss.item()


@exercise.mutant(
    "a tensor",
    "The loss is returned as a tensor, and with it the whole graph behind it; `loss.item()` is the number.",
)
def training_step(model, optimiser, X, Y):
    loss = F.cross_entropy(last_token_logits(model, X), Y)
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    return loss


def two_steps(state, X, Y, lr):
    """Return the losses and weights of two plain gradient steps."""
    (V, d), T = state["token_embedding.weight"].shape, len(state["position_embedding.weight"])
    model, losses = BabyGrootGPT(V, T, d).double(), []
    model.load_state_dict(state)
    for _ in range(2):
        loss = F.cross_entropy(last_token_logits(model, X), Y)
        losses.append(loss.item())
        slopes = torch.autograd.grad(loss, list(model.parameters()))
        with torch.no_grad():
            for weight, slope in zip(model.parameters(), slopes, strict=True):
                weight -= lr * slope
    return losses, dict(model.state_dict())


@worth(4)
def test_two_steps(answer, draw):
    V, T, d, B = 9, 5, 4, 6
    shapes = {name: w.shape for name, w in BabyGrootGPT(V, T, d).state_dict().items()}
    state = {name: draw.normal(*shape) for name, shape in shapes.items()}
    lengths = torch.tensor([1, 2, 3, *(draw.whole(1, T) for _ in range(B - 3))])
    X = (1 + draw.ids(V - 1, B, T)) * (torch.arange(T) < lengths[:, None])
    Y = draw.ids(V, B)
    losses, weights = two_steps(state, X, Y, 0.1)
    outcome = answer(state, X, Y, 0.1)
    outcome.part("losses").equals(losses)
    outcome.part("weights").equals(weights)
