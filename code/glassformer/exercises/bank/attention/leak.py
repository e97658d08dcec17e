"""Exercise attention.leak."""

import torch

from ...definition import Exercise, worth

exercise = Exercise(
    "attention.leak",
    title="Repair a mask that leaks",
    minutes=15,
    statement=r"""
This function turned the scores of one sentence into attention weights, and was then given batches. It runs, and
the upper triangle is empty, as it should be:

```python
def attention_weights(scores):
    shares = scores.softmax(dim=1)
    return shares * torch.ones(scores.shape[-2:]).tril()
```

But its rows do not sum to 1, and a change of the last token changes the weights of tokens before it. Find both
faults and repair them.
""",
    hints=(
        "In `[T, S]`, which axis is number 1? And in `[B, T, S]`?",
        "At the moment when the shares are computed, what do they know of the mask? Whose score is part of the "
        "sum that they are divided by?",
        "Hide the future first, `scores.masked_fill(future, -1e9)`, then take the softmax over the keys, "
        "`dim=-1`.",
    ),
    explanation=r"""
Axis 1 of one sentence is the keys; of a batch it is the queries. Counted from the end, `dim=-1`, it is the keys
in both. And a share that is struck out after softmax has already been given away: the rest sums to less than
1, by an amount that depends on the future. Hidden *before*, it takes no part in the sum.
""",
)


@exercise.starter
def attention_weights(scores):
    """Return the attention weights [B, T, T]: causal, and every row sums to 1.

    scores: [B, T, T].
    """
    raise NotImplementedError("not attempted")


@exercise.solution
def attention_weights(scores):
    future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(diagonal=1)  # [T, T]
    return scores.masked_fill(future, -1e9).softmax(dim=-1)


@exercise.style("minus infinity")
def attention_weights(scores):
    T = scores.shape[-1]
    mask = torch.full((T, T), float("-inf"), dtype=scores.dtype).triu(diagonal=1)
    return torch.nn.Softmax(dim=-1)(scores + mask)


@exercise.style("powers struck out, then divided")
def attention_weights(scores):
    powers = (scores - scores.amax(dim=-1, keepdim=True)).exp().tril()
    return powers / powers.sum(dim=-1, keepdim=True)


@exercise.style("row by row")
def attention_weights(scores):
    weights = torch.zeros_like(scores)
    for t in range(scores.shape[1]):
        weights[:, t, : t + 1] = scores[:, t, : t + 1].softmax(dim=-1)
    return weights


@exercise.mutant(
    "as it was",
    "Both faults are still there: the softmax runs over the queries, and the mask comes after it.",
)
def attention_weights(scores):
    shares = scores.softmax(dim=1)
    return shares * torch.ones(scores.shape[-2:]).tril()


@exercise.mutant(
    "mask still after",
    "The softmax runs over the keys now, but the mask still comes after it: shares struck out are missing, and "
    "the future still has a part in the sum that divides the rest.",
)
def attention_weights(scores):
    shares = scores.softmax(dim=-1)
    return shares * torch.ones(scores.shape[-2:]).tril()


@exercise.mutant(
    "still over the queries",
    "The mask comes first now, but the softmax still runs over the queries: it is the columns that sum to 1, "
    "and a later row is part of what divides an earlier one.",
)
def attention_weights(scores):
    future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(diagonal=1)
    return scores.masked_fill(future, -1e9).softmax(dim=1)


@exercise.mutant(
    "over the batch",
    "The softmax runs over the batch: sentences side by side share their attention, though they never see each "
    "other.",
)
def attention_weights(scores):
    future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(diagonal=1)
    return scores.masked_fill(future, -1e9).softmax(dim=0)


@exercise.mutant(
    "zeros before",
    "The mask comes before softmax, but as zeros: a score of 0 gets a share like any other. It has to be so low "
    "that softmax makes nothing of it.",
)
def attention_weights(scores):
    return scores.tril().softmax(dim=-1)


@exercise.mutant(
    "columns made whole",
    "The shares were divided once more so that the *columns* sum to 1; a row is a token's attention, and the row "
    "is what must sum to 1.",
)
def attention_weights(scores):
    shares = scores.softmax(dim=-1).tril()
    return shares / shares.sum(dim=-2, keepdim=True)


@exercise.mutant(
    "the future open",
    "The rows sum to 1, but nothing hides the future any more.",
)
def attention_weights(scores):
    return scores.softmax(dim=-1)


@exercise.mutant(
    "itself hidden",
    "No token sees itself: the diagonal is hidden, too, and the first token, with nothing left to look at, spreads "
    "its attention over the future. Hide only what comes later, `diagonal=1`.",
)
def attention_weights(scores):
    future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu()
    return scores.masked_fill(future, -1e9).softmax(dim=-1)


def row_by_row(scores):
    """Return the weights of each query over the keys that it may see, and zeros beyond."""
    weights = torch.zeros_like(scores)
    for t in range(scores.shape[1]):
        powers = scores[:, t, : t + 1].exp()
        weights[:, t, : t + 1] = powers / powers.sum(dim=-1, keepdim=True)
    return weights


def test_three_tokens_by_hand(answer):
    powers = torch.tensor(
        [[[5.0, 1.0, 2.0], [1.0, 3.0, 6.0], [1.0, 2.0, 5.0]]], dtype=torch.float64
    )
    expected = [[[1.0, 0.0, 0.0], [0.25, 0.75, 0.0], [0.125, 0.25, 0.625]]]
    answer(powers.log()).equals(torch.tensor(expected, dtype=torch.float64))


@worth(3)
def test_any_batch(answer, draw):
    scores = draw.normal(3, 5, 5)
    changed = scores.clone()
    changed[:, -1], changed[:, :, -1] = draw.normal(3, 5), draw.normal(3, 5)  # another last token
    outcomes = answer(scores), answer(changed)
    for outcome, given in zip(outcomes, (scores, changed), strict=True):
        outcome.equals(row_by_row(given))
    before = outcomes[0].value[:, :-1]
    outcomes[1].holds(
        lambda y: torch.allclose(y[:, :-1], before),
        "Another last token changes the weights of tokens before it.",
    )
