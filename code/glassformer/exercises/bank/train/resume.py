"""Exercise train.resume."""

import copy
import io

import torch

from glassformer.pretraining import Recipe

from ...answers import shown
from ...definition import Exercise, worth

exercise = Exercise(
    "train.resume",
    title="Stopped, and gone on",
    minutes=15,
    statement=r"""
A run may be stopped at any time. Return all that a new process needs to go on as if nothing had happened, a dictionary:

- `"weights"`, for `model.load_state_dict`;
- `"optimiser"`, for `optimiser.load_state_dict`;
- `"step"`, the number of the next step: learning rate and batch follow from it.

What is missing begins anew. The run itself goes on after this, and what you returned must stay as it was: the run that is taken up later has to end with
the very weights of the one that was never stopped, bit for bit.
""",
    hints=(
        "What does a step depend on, besides the weights? And whose memory are the tensors of a `state_dict()`?",
        "AdamW keeps two running means for each weight; they are in `optimiser.state_dict()`. Both `state_dict()`s hand out the tensors themselves, and "
        "the next step changes these.",
        "`copy.deepcopy(model.state_dict())`, the same of the optimiser, and `step` as it is.",
    ),
    explanation=r"""
The number of the step stands for everything that follows from it: rate and batch need no memory of their own, since both are computed from $s$. The two
means do: without them AdamW would begin again with the mean of a single gradient, and its steps would be others. And a `state_dict()` is a view, not a
copy: written to a file at once it is safe, kept in memory it goes on changing with the run. `copy.deepcopy` copies nested dictionaries with
all tensors in them, in full precision: a weight rounded once is another run.
""",
)


@exercise.starter
def checkpoint(model, optimiser, step):
    """Return what going on needs, a dictionary with "weights", "optimiser" and "step".

    model: a module; optimiser: a torch.optim.AdamW of its parameters; step: number of steps done, which is that of the next.
    """
    raise NotImplementedError("not attempted")


@exercise.harness
def prepare(checkpoint, start, X, Y, stop):
    """Train, look at a checkpoint on the way, train to the end; then go on from it with a new model."""
    import torch

    from glassformer.pretraining import Recipe

    def fresh(weights):
        model = torch.nn.Linear(X.shape[-1], 1).double()
        model.load_state_dict(weights)
        return model, torch.optim.AdamW(model.parameters(), lr=0.0, betas=(0.9, 0.95))

    def train(model, optimiser, begin, end):
        for step in range(begin, end):
            for group in optimiser.param_groups:
                group["lr"] = Recipe(steps=len(X), peak=0.1, warmup=0.4).learning_rate(step)
            optimiser.zero_grad()
            (model(X[step]) - Y[step]).square().mean().backward()
            optimiser.step()

    model, optimiser = fresh(start)
    train(model, optimiser, 0, stop)
    saved = checkpoint(model, optimiser, stop)
    if not isinstance(saved, dict):
        return saved
    train(model, optimiser, stop, len(X))
    other, its_optimiser = fresh({name: 0 * weight for name, weight in start.items()})
    if "weights" in saved:
        other.load_state_dict(saved["weights"])
    if "optimiser" in saved:
        its_optimiser.load_state_dict(saved["optimiser"])
    train(other, its_optimiser, saved.get("step", 0), len(X))
    weights = dict(other.state_dict())
    same = [torch.equal(w, weights[name]) for name, w in model.state_dict().items()]
    known = {"weights", "optimiser", "step"}
    misnamed = list(map(str, saved)) if known - saved.keys() and saved.keys() - known else []
    return {"misnamed": misnamed, "weights": weights, "bit for bit": all(same)}


@exercise.solution
def checkpoint(model, optimiser, step):
    return {
        "weights": copy.deepcopy(model.state_dict()),
        "optimiser": copy.deepcopy(optimiser.state_dict()),
        "step": step,
    }


@exercise.style("as a file")
def checkpoint(model, optimiser, step):
    file = io.BytesIO()
    whole = {"weights": model.state_dict(), "optimiser": optimiser.state_dict(), "step": step}
    torch.save(whole, file)
    file.seek(0)
    return torch.load(file)


@exercise.style("clone by clone")
def checkpoint(model, optimiser, step):
    memory = optimiser.state_dict()
    state = {
        i: {name: value.clone() for name, value in memory["state"][i].items()}
        for i in memory["state"]
    }
    weights = {name: weight.clone() for name, weight in model.state_dict().items()}
    return dict(weights=weights, optimiser={**memory, "state": state}, step=step)


@exercise.mutant(
    "not copied",
    "`state_dict()` hands out the tensors themselves, which the run goes on changing: copy them, with `copy.deepcopy`.",
)
def checkpoint(model, optimiser, step):
    weights, memory = model.state_dict(), optimiser.state_dict()
    return {"weights": dict(weights), "optimiser": dict(memory), "step": step}


@exercise.mutant(
    "weights copied, means not",
    "The weights are copied, but the optimiser's means are still those of the run, which goes on changing them; copy them, too, down to the tensors.",
)
def checkpoint(model, optimiser, step):
    weights = copy.deepcopy(model.state_dict())
    return {"weights": weights, "optimiser": dict(optimiser.state_dict()), "step": step}


@exercise.mutant(
    "means copied, weights not",
    "The optimiser's means are copied, but the weights are still those of the run, which goes on changing them.",
)
def checkpoint(model, optimiser, step):
    memory = copy.deepcopy(optimiser.state_dict())
    return {"weights": dict(model.state_dict()), "optimiser": memory, "step": step}


@exercise.mutant(
    "weights alone",
    "These are the weights alone: the run begins at step 0 again, with an optimiser that remembers nothing.",
)
def checkpoint(model, optimiser, step):
    return {"weights": copy.deepcopy(model.state_dict())}


@exercise.mutant(
    "without the means",
    "The optimiser's two means are lost, so that its steps are not those of a run that has gone on; keep `optimiser.state_dict()`.",
)
def checkpoint(model, optimiser, step):
    return {"weights": copy.deepcopy(model.state_dict()), "step": step}


@exercise.mutant(
    "without the step",
    "The number of the step is lost: the run begins with the first batch and the rates of the warm-up again.",
)
def checkpoint(model, optimiser, step):
    whole = {"weights": model.state_dict(), "optimiser": optimiser.state_dict()}
    return copy.deepcopy(whole)


@exercise.mutant(
    "one step left out",
    "One step is left out: as many steps are done as the number says, and since the first has number 0, it is that of the next.",
)
def checkpoint(model, optimiser, step):
    whole = {"weights": model.state_dict(), "optimiser": optimiser.state_dict(), "step": step + 1}
    return copy.deepcopy(whole)


@exercise.mutant(
    "one step twice",
    "The last step is taken a second time: the number that is handed over is that of the next one already.",
)
def checkpoint(model, optimiser, step):
    whole = {"weights": model.state_dict(), "optimiser": optimiser.state_dict(), "step": step - 1}
    return copy.deepcopy(whole)


@exercise.mutant(
    "the objects themselves",
    "These are the model and the optimiser themselves; their `state_dict()`s hold what they know as data, and that is what can be loaded.",
)
def checkpoint(model, optimiser, step):
    return {"weights": model, "optimiser": optimiser, "step": step}


@exercise.mutant(
    "rounded",
    "The weights were rounded to fewer digits, which saves space and makes another run of it; keep them as they are.",
)
def checkpoint(model, optimiser, step):
    weights = {name: weight.float() for name, weight in model.state_dict().items()}
    memory = copy.deepcopy(optimiser.state_dict())
    return {"weights": weights, "optimiser": memory, "step": step}


def never_stopped(start, X, Y):
    """Return the weights of a run from beginning to end."""
    weight, bias = (start[name].clone().requires_grad_() for name in ("weight", "bias"))
    optimiser = torch.optim.AdamW([weight, bias], lr=0.0, betas=(0.9, 0.95))
    for step, (x, y) in enumerate(zip(X, Y, strict=True)):
        for group in optimiser.param_groups:
            group["lr"] = Recipe(steps=len(X), peak=0.1, warmup=0.4).learning_rate(step)
        optimiser.zero_grad()
        (x @ weight.T + bias - y).square().mean().backward()
        optimiser.step()
    return {"weight": weight.detach(), "bias": bias.detach()}


def every_key_is_read(outcome):
    """Fail where a part is kept under another name than the one asked for."""
    keys = outcome.part("misnamed").value
    for asked in ("weights", "optimiser", "step") if keys else ():
        if asked not in keys:
            raise outcome.wrong(f"It has no key {asked!r}; its keys are {shown(keys)}.")


@worth(4)
def test_a_run_that_was_stopped(answer, draw):
    S, B, n = 8, 5, 3
    start = {"weight": draw.normal(1, n), "bias": draw.normal(1)}
    X, Y = draw.normal(S, B, n), 9 * draw.normal(S, B, 1)
    outcome = answer(start, X, Y, draw.whole(3, S - 3))
    every_key_is_read(outcome)
    outcome.part("weights").equals(never_stopped(start, X, Y))
    outcome.part("bit for bit").equals(True)
