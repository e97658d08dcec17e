"""Exercise logits.perplexity."""

import math

import torch
import torch.nn.functional as F

from ...definition import Exercise, worth

exercise = Exercise(
    "logits.perplexity",
    title="How many words does it waver between?",
    minutes=12,
    statement=r"""
A model has read the tokens `ids`; row $t$ of its logits answers "what follows token $t$?". Return the
**perplexity** of the text, $e$ to the mean loss:

$$
\exp\Big( \frac{1}{T - 1} \sum_{t=0}^{T-2} -\ln p_t(\text{token}_{t+1}) \Big)
$$

A model that wavers evenly between four words at every place has perplexity 4.
""",
    hints=(
        "How many of the rows can be scored, and which token is asked for in row 0?",
        "Row $t$ is scored with token $t + 1$: the rows without the last, `logits[:-1]`, meet the tokens "
        "without the first, `ids[1:]`.",
        "`F.cross_entropy(logits[:-1], ids[1:])` is the mean loss in nats; `math.exp` of its `.item()` "
        "is the perplexity.",
    ),
    explanation=r"""
The last row has no token to be scored with, since the text ends there; the first token was never predicted.
So $T$ tokens give $T - 1$ losses. The mean is taken of the logarithms and *then* raised: perplexity is the geometric
mean of the $1/p$. The plain mean of $1/p$ would be ruled by the one worst word.
""",
)


@exercise.starter
def perplexity(logits, ids):
    """Return the perplexity of a text, a Python number.

    logits: [T, V], row t predicts token t + 1; ids: [T].
    """
    raise NotImplementedError("not attempted")


@exercise.solution
def perplexity(logits, ids):
    loss = F.cross_entropy(logits[:-1], ids[1:])  # [T − 1, V], [T − 1] → ()
    return math.exp(loss.item())


@exercise.style("loop")
def perplexity(logits, ids):
    product = 1.0
    for t in range(len(ids) - 1):
        product *= logits[t].softmax(dim=-1)[ids[t + 1]].item()
    return product ** (-1 / (len(ids) - 1))


@exercise.style("gather")
def perplexity(logits, ids):
    log_p = logits.log_softmax(dim=-1)[:-1].gather(-1, ids[1:, None])
    return (-log_p).mean().exp().item()


@exercise.style("base 2")
def perplexity(logits, ids):
    bits = torch.nn.CrossEntropyLoss()(logits[:-1], ids[1:]).item() / math.log(2)
    return 2**bits


@exercise.mutant(
    "each token scored with itself",
    "Row $t$ was scored with token $t$, which the model has just read. It answers what comes next: score it "
    "with token $t + 1$.",
)
def perplexity(logits, ids):
    return math.exp(F.cross_entropy(logits, ids).item())


@exercise.mutant(
    "scored with the token before",
    "Shifted the wrong way: row $t$ was scored with token $t - 1$. It is the rows that lose their last, and the "
    "tokens that lose their first.",
)
def perplexity(logits, ids):
    return math.exp(F.cross_entropy(logits[1:], ids[:-1]).item())


@exercise.mutant(
    "loss",
    "This is the mean loss, in nats; the perplexity is $e$ to that.",
)
def perplexity(logits, ids):
    return F.cross_entropy(logits[:-1], ids[1:]).item()


@exercise.mutant(
    "sum",
    "The losses were added up, not averaged: so a longer text would have a higher perplexity.",
)
def perplexity(logits, ids):
    return math.exp(F.cross_entropy(logits[:-1], ids[1:], reduction="sum").item())


@exercise.mutant(
    "divided by T",
    "The sum was divided by $T$, but there are only $T - 1$ predictions: nobody predicts the first token.",
)
def perplexity(logits, ids):
    loss = F.cross_entropy(logits[:-1], ids[1:], reduction="sum").item()
    return math.exp(loss / len(ids))


@exercise.mutant(
    "two to the nats",
    "2 was raised to a loss in nats; nats go with $e$, bits with 2.",
)
def perplexity(logits, ids):
    return 2 ** F.cross_entropy(logits[:-1], ids[1:]).item()


@exercise.mutant(
    "mean of 1/p",
    "This is the mean of $1/p$, which one unlikely word can blow up; take the mean of $-\\ln p$, then raise "
    "$e$ to it.",
)
def perplexity(logits, ids):
    p = logits.softmax(dim=-1)[torch.arange(len(ids) - 1), ids[1:]]
    return (1 / p).mean().item()


@exercise.mutant(
    "one over the mean",
    "This is 1 over the mean probability; the mean is to be taken of $-\\ln p$.",
)
def perplexity(logits, ids):
    p = logits.softmax(dim=-1)[torch.arange(len(ids) - 1), ids[1:]]
    return 1 / p.mean().item()


def test_two_predictions_by_hand(answer):
    shares = [[1.0, 1.0, 3.0, 1.0], [1.0, 5.0, 1.0, 1.0], [2.0, 1.0, 1.0, 9.0]]
    ids = torch.tensor([1, 2, 3])  # p = 3/6 for token 2, then 1/8 for token 3
    answer(torch.tensor(shares, dtype=torch.float64).log(), ids).equals(4.0)


@worth(2)
def test_any_text(answer, draw):
    T, V = draw.whole(5, 9), 11
    logits, ids = 2 * draw.normal(T, V), draw.ids(V, T)
    losses = [-logits[t].log_softmax(dim=-1)[ids[t + 1]].item() for t in range(T - 1)]
    answer(logits, ids).equals(math.exp(sum(losses) / (T - 1)))
