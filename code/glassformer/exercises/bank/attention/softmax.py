"""Exercise attention.softmax."""

import math

import torch

from ...definition import Exercise, worth

exercise = Exercise(
    "attention.softmax",
    title="Softmax that does not overflow",
    minutes=12,
    statement=r"""
Turn scores into shares, each row by itself:

$$
A_{tj} = \frac{e^{s_{tj}}}{\sum_i e^{s_{ti}}}
$$

$e^{1000}$ is more than a computer can hold. Yet the shares of `[1000, 1001]` are those of `[0, 1]`: your function
must give finite shares for scores of any size, in each row, and take any number of axes in front.
""",
    hints=(
        "Adding the same number to all scores of a row changes no share. Which number makes the largest score "
        "harmless?",
        "Take each row's largest score away: `scores - scores.max(dim=-1, keepdim=True).values`. Then no power is "
        "larger than 1, and the sum is at least 1.",
        "With `powers` the exponentials of that: `powers / powers.sum(dim=-1, keepdim=True)`.",
    ),
    explanation=r"""
A factor $e^{-m}$ above and below the line cancels, so any $m$ may be taken away; with the row's own maximum the
largest power is $e^0 = 1$. What lies far below it becomes 0, which is right, and never 0 divided by 0. One $m$
for the whole tensor would not do: a row of scores far below the largest would have only zeros to divide.
""",
    forbidden={
        name: f"`{name}` is what you are asked to build; `exp`, `max` and `sum` are all it takes."
        for name in ("softmax", "log_softmax", "softmin")
    },
)


@exercise.starter
def softmax(scores):
    """Return the shares, same shape; each row, along the last axis, sums to 1.

    scores: […, T, S].
    """
    raise NotImplementedError("not attempted")


@exercise.solution
def softmax(scores):
    largest = scores.max(dim=-1, keepdim=True).values  # […, T, 1]
    powers = (scores - largest).exp()  # at most 1
    return powers / powers.sum(dim=-1, keepdim=True)


@exercise.style("logsumexp")
def softmax(scores):
    return torch.exp(scores - torch.logsumexp(scores, dim=-1, keepdim=True))


@exercise.style("row by row")
def softmax(scores):
    rows = []
    for row in scores.reshape(-1, scores.shape[-1]).tolist():
        powers = [math.exp(s - max(row)) for s in row]
        rows.append([p / sum(powers) for p in powers])
    return torch.tensor(rows, dtype=scores.dtype).reshape(scores.shape)


@exercise.style("differences")
def softmax(scores):
    gaps = scores[..., None, :] - scores[..., :, None]  # […, j, i]: s_i - s_j
    return 1 / gaps.exp().sum(dim=-1)


@exercise.mutant(
    "overflows",
    "$e$ was raised to the scores as they are: large ones overflow, and rows of very negative ones are 0 "
    "divided by 0. Take each row's largest score away first; the shares stay the same.",
)
def softmax(scores):
    powers = scores.exp()
    return powers / powers.sum(dim=-1, keepdim=True)


@exercise.mutant(
    "one maximum for all",
    "The largest score of the *whole* tensor was taken away. In rows far below it all powers are 0; each row "
    "needs its own maximum.",
)
def softmax(scores):
    powers = (scores - scores.max()).exp()
    return powers / powers.sum(dim=-1, keepdim=True)


@exercise.mutant(
    "over the queries",
    "Each column sums to 1: the softmax ran over the queries. It should run over the keys, `dim=-1`; this way "
    "a later row is part of what divides an earlier one, and the future leaks.",
)
def softmax(scores):
    powers = (scores - scores.max(dim=-2, keepdim=True).values).exp()
    return powers / powers.sum(dim=-2, keepdim=True)


@exercise.mutant(
    "one sum for all",
    "All shares together sum to 1. Each row is a query of its own and has a whole attention to give away: sum "
    "along `dim=-1`.",
)
def softmax(scores):
    powers = (scores - scores.max(dim=-1, keepdim=True).values).exp()
    return powers / powers.sum()


@exercise.mutant(
    "one sum for all, and overflows",
    "All shares together sum to 1. Each row is a query of its own and has a whole attention to give away: sum "
    "along `dim=-1`. And large scores overflow: take each row's largest away before.",
)
def softmax(scores):
    powers = scores.exp()
    return powers / powers.sum()


@exercise.mutant(
    "smallest taken away",
    "The smallest score was taken away, so the largest power may still overflow; take the largest away.",
)
def softmax(scores):
    powers = (scores - scores.min(dim=-1, keepdim=True).values).exp()
    return powers / powers.sum(dim=-1, keepdim=True)


@exercise.mutant(
    "no exponential",
    "The scores were divided by their sum, without $e$: negative scores give negative shares, and a share is "
    "to depend on differences.",
)
def softmax(scores):
    return scores / scores.sum(dim=-1, keepdim=True)


@exercise.mutant(
    "not divided",
    "The powers are not divided by their sum: rows of shares sum to 1.",
)
def softmax(scores):
    return (scores - scores.max(dim=-1, keepdim=True).values).exp()


@exercise.mutant(
    "base 2",
    "Powers of 2 were taken instead of powers of $e$; the shares come out too even.",
)
def softmax(scores):
    powers = 2 ** (scores - scores.max(dim=-1, keepdim=True).values)
    return powers / powers.sum(dim=-1, keepdim=True)


@exercise.mutant("ready-made", exercise.forbidden["softmax"])
def softmax(scores):
    return scores.softmax(dim=-1)


def test_two_rows_by_hand(answer):
    scores = torch.tensor([[1.0, 2.0, 5.0], [3.0, 9.0, 4.0]], dtype=torch.float64).log()
    expected = [[1 / 8, 2 / 8, 5 / 8], [3 / 16, 9 / 16, 4 / 16]]
    answer(scores).equals(torch.tensor(expected, dtype=torch.float64))


@worth(2)
def test_scores_of_any_size(answer, draw):
    scores = draw.normal(4, 3)
    scores[0] += 1000 + draw.whole(0, 90)
    scores[1] -= 1000 + draw.whole(0, 90)
    scores[2, draw.whole(0, 2)] += 900
    scores[3, draw.whole(1, 2) :] = -1e9
    answer(scores).equals(torch.softmax(scores, dim=-1))


def test_any_axes_in_front(answer, draw):
    scores = 3 * draw.normal(2, 3, 4, 5)
    answer(scores).equals(torch.softmax(scores, dim=-1))
