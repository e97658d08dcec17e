"""Exercise attention.causal_mask."""

import torch

from ...definition import Exercise, worth

exercise = Exercise(
    "attention.causal_mask",
    title="No looking ahead",
    minutes=8,
    statement=r"""
Hide the future: in the scores of a sequence against itself, replace every score of a query for a **later** key
by $-10^9$, and leave all others as they are. There may be any number of axes in front, for the batch and the
heads.
""",
    hints=(
        "Rows ask, columns are asked. On which side of the diagonal does the future stand? And the token itself?",
        "`torch.ones(T, T).triu(diagonal=1)` has ones above the diagonal; `.bool()` makes a mask of it.",
        "`scores.masked_fill(future, -1e9)` puts −10⁹ where the mask is true, and a mask of `[T, T]` serves all "
        "axes in front.",
    ),
    explanation=r"""
Query $t$ may see the keys $0 \dots t$, itself included: the future is what stands right of the diagonal.
$-10^9$ is not a share of zero yet; softmax makes one of it, and because that comes afterwards, what remains
still sums to 1. A zero would hide nothing: it is a score like any other.
""",
)


@exercise.starter
def hide_future(scores):
    """Return the scores with -1e9 for every later key, same shape.

    scores: […, T, T], rows ask, columns are asked.
    """
    raise NotImplementedError("not attempted")


@exercise.solution
def hide_future(scores):
    T = scores.shape[-1]
    future = torch.ones(T, T, dtype=torch.bool).triu(diagonal=1)  # [T, T], above the diagonal
    return scores.masked_fill(future, -1e9)


@exercise.style("compared places")
def hide_future(scores):
    t = torch.arange(scores.shape[-2])[:, None]
    s = torch.arange(scores.shape[-1])[None, :]
    return torch.where(s <= t, scores, -1e9)


@exercise.style("loop")
def hide_future(scores):
    hidden = scores.clone()
    for t in range(scores.shape[-1]):
        hidden[..., t, t + 1 :] = -1e9
    return hidden


@exercise.style("added")
def hide_future(scores):
    T = scores.shape[-1]
    return scores.tril() + torch.full((T, T), -1e9, dtype=scores.dtype).triu(1)


@exercise.mutant(
    "past hidden",
    "The past is hidden, and the future open: rows ask, so what comes later stands to the right of the "
    "diagonal.",
)
def hide_future(scores):
    T = scores.shape[-1]
    return scores.masked_fill(torch.ones(T, T).tril(diagonal=-1).bool(), -1e9)


@exercise.mutant(
    "itself hidden",
    "The diagonal is hidden as well, so no token sees itself, and the first sees nothing at all; mask from one "
    "place to the right, `diagonal=1`.",
)
def hide_future(scores):
    T = scores.shape[-1]
    return scores.masked_fill(torch.ones(T, T).triu().bool(), -1e9)


@exercise.mutant(
    "one place leaks",
    "Each token still sees one token ahead, which is the very answer it is to predict; the mask begins right "
    "next to the diagonal.",
)
def hide_future(scores):
    T = scores.shape[-1]
    return scores.masked_fill(torch.ones(T, T).triu(diagonal=2).bool(), -1e9)


@exercise.mutant(
    "zeros",
    "The future got the score 0. Softmax sees differences only: 0 is a score like any other, and may well be "
    "the largest in its row.",
)
def hide_future(scores):
    return scores.tril()


@exercise.mutant(
    "multiplied",
    "The scores of the future were multiplied by $-10^9$: a negative score becomes a huge positive one. "
    "Replace them.",
)
def hide_future(scores):
    T = scores.shape[-1]
    future = torch.ones(T, T).triu(diagonal=1).bool()
    return torch.where(future, scores * -1e9, scores)


@exercise.mutant(
    "minus infinity",
    "The future is −∞ here. Softmax makes the same shares of it, but a row in which everything is hidden would "
    "become 0 divided by 0; the model, and this exercise, take $-10^9$.",
)
def hide_future(scores):
    T = scores.shape[-1]
    return scores.masked_fill(torch.ones(T, T).triu(diagonal=1).bool(), float("-inf"))


@exercise.mutant(
    "the mask alone",
    "This is the mask alone; return the scores with the mask applied.",
)
def hide_future(scores):
    T = scores.shape[-1]
    return torch.ones(T, T).triu(diagonal=1).bool()


@exercise.mutant(
    "everything but itself",
    "All that is not on the diagonal is hidden, so each token sees only itself; the past is to stay open.",
)
def hide_future(scores):
    T = scores.shape[-1]
    return scores.masked_fill(~torch.eye(T).bool(), -1e9)


def test_three_tokens_by_hand(answer):
    scores = torch.tensor(
        [[1.0, 2.0, 3.0], [-4.0, 5.0, -6.0], [7.0, 0.5, 9.0]], dtype=torch.float64
    )
    expected = [[1.0, -1e9, -1e9], [-4.0, 5.0, -1e9], [7.0, 0.5, 9.0]]
    answer(scores).equals(torch.tensor(expected, dtype=torch.float64))


@worth(2)
def test_any_axes_in_front(answer, draw):
    for shape in ((3, 5, 5), (2, 3, 6, 6)):
        scores = draw.normal(*shape)
        expected = scores.clone()
        for t in range(shape[-1]):
            for s in range(t + 1, shape[-1]):
                expected[..., t, s] = -1e9
        answer(scores).equals(expected)
