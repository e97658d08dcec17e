"""Exercise modern.angles."""

import math

import torch

from glassformer.models import rotary_table

from ...definition import Exercise, worth

exercise = Exercise(
    "modern.angles",
    title="The hands of the clocks",
    minutes=10,
    statement=r"""
Rotary positions read a head's $D$ numbers as $D/2$ pairs. At position $t$ pair $i$ is turned by the angle

$$
a = t \cdot \theta^{-2i / D}, \qquad i = 0, 1, \dots, D/2 - 1
$$

Return the table of all angles, in radians and float64: a row for each of the positions 0 … `length` − 1, a column for each
pair.
""",
    hints=(
        "How fast does pair 0 turn, in radians a position? And the last one: a little faster or slower than $1/\\theta$?",
        "The speeds are `theta ** (-2 * i / head_dim)`, with `i = torch.arange(head_dim // 2, dtype=torch.float64)`.",
        "`torch.outer(positions, speeds)` is a table of all products, positions down, pairs across.",
    ),
    explanation=r"""
Pair 0 has the speed $\theta^0 = 1$, whatever $\theta$ is; each further pair is slower by the same factor, down to almost
$1/\theta$. Fast hands tell neighbours apart, slow ones tell far from near. At position 0 nothing is turned. The table is
worth making in float64: rounded to 32 bits, a large angle has lost the digits that matter to a sine.
""",
    forbidden={
        "rotary_table": "`rotary_table` of the package holds these angles; compute them yourself."
    },
)


@exercise.starter
def angles(head_dim, length, theta):
    """Return the angle of each pair at each position, [length, D/2], float64.

    head_dim: D, even; length: number of positions; theta: a number.
    """
    raise NotImplementedError("not attempted")


@exercise.solution
def angles(head_dim, length, theta):
    pairs = torch.arange(head_dim // 2, dtype=torch.float64)  # [D/2]
    speeds = theta ** (-2 * pairs / head_dim)  # [D/2], radians per position
    return torch.outer(torch.arange(length, dtype=torch.float64), speeds)


@exercise.style("loops")
def angles(head_dim, length, theta):
    rows = [[t / theta ** (2 * i / head_dim) for i in range(head_dim // 2)] for t in range(length)]
    return torch.tensor(rows, dtype=torch.float64)


@exercise.style("as the models' code has it")
def angles(head_dim, length, theta):
    speeds = 1.0 / (theta ** (torch.arange(0, head_dim, 2).double() / head_dim))
    return torch.einsum("t,i->ti", torch.arange(length).double(), speeds)


@exercise.style("logarithms")
def angles(head_dim, length, theta):
    pairs = torch.arange(0, head_dim, 2, dtype=torch.float64)
    positions = torch.arange(length, dtype=torch.float64)[:, None]
    return positions * torch.exp(-pairs * math.log(theta) / head_dim)


@exercise.mutant(
    "2 forgotten",
    "The 2 in the exponent is missing, so every pair but the first turns too fast: it is $-2i/D$.",
)
def angles(head_dim, length, theta):
    pairs = torch.arange(head_dim // 2).double()
    return torch.outer(torch.arange(length).double(), theta ** (-pairs / head_dim))


@exercise.mutant(
    "divided by the pairs",
    "The exponent was divided by the number of pairs; $-2i$ is divided by the size of the head, $D$.",
)
def angles(head_dim, length, theta):
    pairs = torch.arange(head_dim // 2).double()
    return torch.outer(torch.arange(length).double(), theta ** (-4 * pairs / head_dim))


@exercise.mutant(
    "exponent without minus",
    "The pairs turn faster and faster; with the minus in the exponent they slow down, from 1 to almost $1/\\theta$.",
)
def angles(head_dim, length, theta):
    pairs = torch.arange(head_dim // 2).double()
    return torch.outer(torch.arange(length).double(), theta ** (2 * pairs / head_dim))


@exercise.mutant(
    "pairs from 1",
    "The pairs were counted from 1; pair 0 has the speed 1.",
)
def angles(head_dim, length, theta):
    pairs = 1 + torch.arange(head_dim // 2).double()
    return torch.outer(torch.arange(length).double(), theta ** (-2 * pairs / head_dim))


@exercise.mutant(
    "positions from 1",
    "The positions were counted from 1; the first token stands at 0 and is not turned.",
)
def angles(head_dim, length, theta):
    pairs = torch.arange(head_dim // 2).double()
    return torch.outer(1 + torch.arange(length).double(), theta ** (-2 * pairs / head_dim))


@exercise.mutant(
    "one column for each number",
    "There is a column for each of the $D$ numbers; two numbers make a pair and share one angle: $D/2$ columns.",
)
def angles(head_dim, length, theta):
    numbers = torch.arange(head_dim).double()
    return torch.outer(torch.arange(length).double(), theta ** (-2 * numbers / head_dim))


@exercise.mutant(
    "lying on its side",
    "Rows and columns are exchanged: positions go down, pairs across.",
)
def angles(head_dim, length, theta):
    pairs = torch.arange(head_dim // 2).double()
    return torch.outer(theta ** (-2 * pairs / head_dim), torch.arange(length).double())


@exercise.mutant(
    "full turns",
    "These angles count full turns as 1 radian: there is no $2\\pi$ in the formula.",
)
def angles(head_dim, length, theta):
    pairs = torch.arange(head_dim // 2).double()
    table = torch.outer(torch.arange(length).double(), theta ** (-2 * pairs / head_dim))
    return 2 * math.pi * table


@exercise.mutant(
    "single precision",
    "Right, but in 32 bits, where a large angle has few digits left for its sine; ask for `dtype=torch.float64`.",
)
def angles(head_dim, length, theta):
    pairs = torch.arange(head_dim // 2).float()
    return torch.outer(torch.arange(length).float(), theta ** (-2 * pairs / head_dim))


@exercise.mutant("ready-made", exercise.forbidden["rotary_table"])
def angles(head_dim, length, theta):
    from glassformer.models import rotary_table

    return rotary_table(head_dim, length, theta).angle()


def test_two_pairs_by_hand(answer):
    rows = [[0.0, 0.0], [1.0, 0.01], [2.0, 0.02]]
    answer(4, 3, 10_000.0).equals(torch.tensor(rows, dtype=torch.float64))


@worth(2)
def test_any_table(answer, draw):
    D, length, theta = 2 * draw.whole(3, 6), draw.whole(14, 20), draw.pick([100.0, 500.0], 1)[0]
    answer(D, length, theta).holds(
        lambda a: (
            torch.allclose(torch.polar(torch.ones_like(a), a), rotary_table(D, length, theta))
            and a.shape == (length, D // 2)
            and torch.equal(a, a.sort(dim=0).values)
        ),
        "The cosines and sines of these angles should be those of the rotary table, growing downwards.",
    )
