"""Exercise train.rate."""

import math

import torch

from glassformer.pretraining import Recipe

from ...definition import Exercise, worth

exercise = Exercise(
    "train.rate",
    title="Up a line, down a cosine",
    minutes=15,
    statement=r"""
The learning rate of the recipe, for step $s = 0, 1, …, S - 1$:

- In the first $R$ steps it rises on a straight line: step 0 has $\eta / R$ already, each step adds as much, and step $R - 1$ has the peak $\eta$.
- From step $R$ on it falls along half a cosine, from $\eta$ at step $R$ to a *share* $f$ of $\eta$, which step $S$ would have: flat at both ends,
  steepest halfway.
""",
    hints=(
        "Two cases, and two lines. What share of the fall is done at step $s$? It is 0 at $R$, and would be 1 at $S$.",
        "$\\cos$ goes from 1 to −1 while its angle goes from 0 to $\\pi$; $(1 + \\cos \\pi x)/2$ goes from 1 to 0.",
        "`done = (s - R) / (S - R)`, and the rate is `peak * (floor + (1 - floor) * (1 + math.cos(math.pi * done)) / 2)`.",
    ),
    explanation=r"""
Adam's running means are made of few gradients at first, and point nowhere in particular: short steps until they do. If step 0 had rate 0, it
would be thrown away; so the line begins one step above 0. The fall lets the last steps settle, where long ones would jump across. What is scaled is the
part *above* the floor, $(1 - f)$ of the peak: at step $R$ floor and rest add up to the peak, and nothing jumps.
""",
    forbidden={
        name: "A ready-made schedule gives the rate here; write the two cases yourself."
        for name in ("learning_rate", "get_lr", "_get_closed_form_lr")
    },
)


@exercise.starter
def rate(s, S, R, peak, floor):
    """Return the learning rate of step s, a number.

    s: 0, 1, …, S − 1; S: steps in all; R: steps in which it rises; peak: a rate; floor: share of the peak.
    """
    raise NotImplementedError("not attempted")


@exercise.solution
def rate(s, S, R, peak, floor):
    if s < R:
        return peak * (s + 1) / R
    done = (s - R) / (S - R)
    return peak * (floor + (1 - floor) * (1 + math.cos(math.pi * done)) / 2)


@exercise.style("both at once")
def rate(s, S, R, peak, floor):
    rest = math.cos(math.pi / 2 * max(0, s - R) / (S - R)) ** 2  # half an angle, squared
    return min(1, (s + 1) / R) * (peak * floor + (peak - peak * floor) * rest)


@exercise.style("around the middle")
def rate(s, S, R, peak, floor):
    rates = torch.linspace(0, peak, R + 1, dtype=torch.float64)[1:].tolist()
    middle, reach = (peak + floor * peak) / 2, (peak - floor * peak) / 2
    rates += [middle + reach * math.cos(math.pi * i / (S - R)) for i in range(S - R)]
    return rates[s]


@exercise.mutant(
    "from zero",
    "The line begins at 0: step 0 would change nothing. It has $\\eta / R$ already.",
)
def rate(s, S, R, peak, floor):
    if s < R:
        return peak * s / R
    done = (s - R) / (S - R)
    return peak * (floor + (1 - floor) * (1 + math.cos(math.pi * done)) / 2)


@exercise.mutant(
    "no warm-up",
    "It falls from the first step on; in the first $R$ it rises.",
)
def rate(s, S, R, peak, floor):
    return peak * (floor + (1 - floor) * (1 + math.cos(math.pi * s / S)) / 2)


@exercise.mutant(
    "a cosine since step 0",
    "The fall is counted from step 0, so at step $R$ the rate jumps down: none of the fall is done there yet.",
)
def rate(s, S, R, peak, floor):
    if s < R:
        return peak * (s + 1) / R
    return peak * (floor + (1 - floor) * (1 + math.cos(math.pi * s / S)) / 2)


@exercise.mutant(
    "to zero",
    "It falls to 0; it ends at the share $f$ of the peak.",
)
def rate(s, S, R, peak, floor):
    if s < R:
        return peak * (s + 1) / R
    return peak * (1 + math.cos(math.pi * (s - R) / (S - R))) / 2


@exercise.mutant(
    "floor as a rate",
    "The floor was taken for a rate; it is a share of the peak.",
)
def rate(s, S, R, peak, floor):
    if s < R:
        return peak * (s + 1) / R
    return floor + (peak - floor) * (1 + math.cos(math.pi * (s - R) / (S - R))) / 2


@exercise.mutant(
    "floor on top",
    "The floor was put under a cosine as high as the peak: at step $R$ the rate would be above it. The cosine takes the part from floor to peak.",
)
def rate(s, S, R, peak, floor):
    if s < R:
        return peak * (s + 1) / R
    return peak * (floor + (1 + math.cos(math.pi * (s - R) / (S - R))) / 2)


@exercise.mutant(
    "cut off at the floor",
    "The cosine falls to 0 and is cut off at the floor; it should reach the floor only at the end, and flat.",
)
def rate(s, S, R, peak, floor):
    if s < R:
        return peak * (s + 1) / R
    return peak * max(floor, (1 + math.cos(math.pi * (s - R) / (S - R))) / 2)


@exercise.mutant(
    "straight down",
    "It falls on a straight line; the fall is half a cosine, flat at both ends.",
)
def rate(s, S, R, peak, floor):
    if s < R:
        return peak * (s + 1) / R
    return peak * (floor + (1 - floor) * (1 - (s - R) / (S - R)))


@exercise.mutant(
    "a whole cosine",
    "The angle goes to $2\\pi$, so the rate comes up again; half a cosine goes to $\\pi$.",
)
def rate(s, S, R, peak, floor):
    if s < R:
        return peak * (s + 1) / R
    done = (s - R) / (S - R)
    return peak * (floor + (1 - floor) * (1 + math.cos(2 * math.pi * done)) / 2)


@exercise.mutant(
    "a quarter",
    "The angle goes to $\\pi/2$ only: the end is as steep as it gets. Half a cosine, to $\\pi$, is flat at both ends.",
)
def rate(s, S, R, peak, floor):
    if s < R:
        return peak * (s + 1) / R
    done = (s - R) / (S - R)
    return peak * (floor + (1 - floor) * math.cos(math.pi / 2 * done))


@exercise.mutant(
    "the last step at the floor",
    "The last step has the floor; step $S$ would have it, and $S - 1$ is the last one.",
)
def rate(s, S, R, peak, floor):
    if s < R:
        return peak * (s + 1) / R
    done = (s - R) / (S - R - 1)
    return peak * (floor + (1 - floor) * (1 + math.cos(math.pi * done)) / 2)


@exercise.mutant("ready-made", exercise.forbidden["learning_rate"])
def rate(s, S, R, peak, floor):
    from glassformer.pretraining import Recipe

    return Recipe(steps=S, peak=peak, warmup=R / S, floor=floor).learning_rate(s)


def test_up_by_hand(answer):
    for s, expected in ((0, 0.25), (1, 0.5), (3, 1.0)):  # a quarter of the peak more at each step
        answer(s, 12, 4, 1.0, 0.2).equals(expected)


def test_down_by_hand(answer):
    answer(4, 12, 4, 2.0, 0.2).equals(2.0)  # at step R still the peak
    answer(10, 12, 4, 2.0, 0.2).equals(1.2 - 0.8 * math.sqrt(0.5))  # three quarters of the way
    answer(8, 12, 4, 2.0, 0.2).equals(1.2)  # halfway, where the cosine is 0


@worth(2)
def test_any_step(answer, draw):
    R, more = draw.whole(2, 5), draw.whole(6, 20)
    peak, floor = draw.pick([3e-3, 1e-2, 6e-4], 1)[0], draw.pick([0.1, 0.25, 0.05], 1)[0]
    recipe = Recipe(steps=R + more, peak=peak, warmup=R / (R + more), floor=floor)
    for s in (draw.whole(0, R - 1), R, R + draw.whole(1, more - 2), R + more - 1):
        answer(s, R + more, R, peak, floor).equals(recipe.learning_rate(s))
