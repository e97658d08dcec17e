"""Exercise logits.even_odds."""

import math

import torch

from glassformer.checkpoints import load_baby_groot
from glassformer.data import groot_vocabulary
from glassformer.generation import next_token_probabilities
from glassformer.trace import trace

from ...definition import Exercise, worth

exercise = Exercise(
    "logits.even_odds",
    title="Find the temperature of even odds",
    minutes=15,
    statement=r"""
After `<START> i am groot` the trained BabyGroot gives `<END>` 93.8 % at temperature 1, and 71.3 % at 2. At which
temperature does it stop with a probability of exactly one half? Find it with the model, to two decimals.

`trace(load_baby_groot(), groot_vocabulary().encode("<START> i am groot"))` has the logits of every row under the
name `logits`.
""",
    hints=(
        "The probability of `<END>` falls as the temperature rises, from 71.3 % at 2. So there is one answer, "
        "above 2. Where is it below one half?",
        "Halve the interval: look at the middle, and keep the half in which the probability crosses 0.5. Or "
        "try all temperatures in steps of 0.01.",
        "`(z / temperature).softmax(dim=-1)[2]`, with `z` the last row of the logits and 2 the id of `<END>`; "
        "at the end `round(temperature, 2)`.",
    ),
    explanation=r"""
There is no formula for it: 23 other tokens share the other half, each growing at a speed of its own. But the
probability of the best token falls steadily with the temperature, so halving the interval finds the place, one
more binary digit in each turn. At that temperature the model goes on after `i am groot` in every other
sentence, which it has learned not to: heat does not make a model more creative where there is one right answer.
""",
)


@exercise.starter
def half_temperature():
    """Return the temperature, a number with two decimals."""
    raise NotImplementedError("not attempted")


@exercise.solution
def half_temperature():
    z = trace(load_baby_groot(), groot_vocabulary().encode("<START> i am groot"))["logits"][-1]
    low, high = 1.0, 100.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        if (z / middle).softmax(dim=-1)[2] > 0.5:
            low = middle
        else:
            high = middle
    return round(low, 2)


@exercise.style("all temperatures")
def half_temperature():
    z = trace(load_baby_groot(), groot_vocabulary().encode("<START> i am groot"))["logits"][-1]
    temperatures = torch.arange(1, 1000, dtype=torch.float64) / 100  # [999]
    p = (z / temperatures[:, None]).softmax(dim=-1)[:, 2]  # [999]
    return round(temperatures[(p - 0.5).abs().argmin()].item(), 2)


@exercise.style("odds")
def half_temperature():
    z = trace(load_baby_groot(), groot_vocabulary().encode("<START> i am groot"))["logits"][-1]
    temperature = 1.0
    while sum(math.exp((other - z[2]) / temperature) for other in z) < 2:  # itself counts 1
        temperature += 0.001
    return round(temperature - 0.0005, 2)


@exercise.mutant(
    "one over it",
    "This is 1 over the temperature: the logits were multiplied; they are divided by it.",
)
def half_temperature():
    z = trace(load_baby_groot(), groot_vocabulary().encode("<START> i am groot"))["logits"][-1]
    factors = torch.arange(1, 1000, dtype=torch.float64) / 1000
    p = (z * factors[:, None]).softmax(dim=-1)[:, 2]
    return round(factors[(p - 0.5).abs().argmin()].item(), 2)


@exercise.mutant(
    "halved",
    "Here `<END>` has half of what it had at temperature 1; it should have one half, 0.5.",
)
def half_temperature():
    z = trace(load_baby_groot(), groot_vocabulary().encode("<START> i am groot"))["logits"][-1]
    temperatures = torch.arange(100, 2000, dtype=torch.float64) / 100
    p = (z / temperatures[:, None]).softmax(dim=-1)[:, 2]
    return round(temperatures[(p - p[0] / 2).abs().argmin()].item(), 2)


@exercise.mutant(
    "most likely other token",
    "Here `<END>` has half the probability of all others together, one third; it should have as much as they.",
)
def half_temperature():
    z = trace(load_baby_groot(), groot_vocabulary().encode("<START> i am groot"))["logits"][-1]
    temperatures = torch.arange(100, 2000, dtype=torch.float64) / 100
    p = (z / temperatures[:, None]).softmax(dim=-1)[:, 2]
    return round(temperatures[(p - 1 / 3).abs().argmin()].item(), 2)


@exercise.mutant(
    "softmax of probabilities",
    "Probabilities were divided by the temperature and went through softmax again; it is the logits that are "
    "divided.",
)
def half_temperature():
    seen = trace(load_baby_groot(), groot_vocabulary().encode("<START> i am groot"))
    temperatures = torch.arange(1, 1000, dtype=torch.float64) / 100
    p = (seen["probabilities"][-1] / temperatures[:, None]).softmax(dim=-1)[:, 2]
    return round(temperatures[(p - 0.5).abs().argmin()].item(), 2)


@exercise.mutant(
    "row of am",
    "These are the logits of `am`, and how likely it makes `groot`; read the last row, that of `groot`.",
)
def half_temperature():
    z = trace(load_baby_groot(), groot_vocabulary().encode("<START> i am groot"))["logits"][2]
    temperatures = torch.arange(1, 1000, dtype=torch.float64) / 100
    p = (z / temperatures[:, None]).softmax(dim=-1).amax(dim=-1)
    return round(temperatures[(p - 0.5).abs().argmin()].item(), 2)


@exercise.mutant(
    "not rounded",
    "The right temperature, with more decimals than two: `round(temperature, 2)`.",
)
def half_temperature():
    z = trace(load_baby_groot(), groot_vocabulary().encode("<START> i am groot"))["logits"][-1]
    low, high = 1.0, 100.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if (z / middle).softmax(-1)[2] > 0.5 else (low, middle)
    return low


@worth(2)
def test_one_half(answer):
    z = trace(load_baby_groot(), groot_vocabulary().encode("<START> i am groot"))["logits"][-1]
    low, high = 1.0, 100.0
    for _ in range(60):
        middle = (low + high) / 2
        above = next_token_probabilities(z, middle)[groot_vocabulary().encode("<END>")[0]] > 0.5
        low, high = (middle, high) if above else (low, middle)
    answer().equals(round(low, 2))
