"""Exercise logits.top_k."""

import math

import torch

from glassformer.generation import next_token_probabilities

from ...definition import Exercise, worth

exercise = Exercise(
    "logits.top_k",
    title="Keep the k most likely",
    minutes=12,
    statement=r"""
For each row of logits return the probabilities that are left after top-k: the $k$ most likely tokens $K$
stay, all others have probability 0, and what is left is scaled to sum 1:

$$
p_i' = \frac{p_i}{\sum_{j \in K} p_j} \; \text{ for } i \in K, \text{ else } 0
$$

Where $k$ is larger than the vocabulary, all tokens stay.
""",
    hints=(
        "Softmax scales to sum 1 by itself. Which logit has a token whose probability is 0?",
        "`logits.topk(k, dim=-1)` gives the k largest of each row, in order, and where they stand; the last "
        "of them is the row's border. More than $V$ of them cannot be asked for.",
        "`border = logits.topk(min(k, logits.shape[-1]), dim=-1).values[:, -1:]`, then softmax of "
        "`logits.masked_fill(logits < border, -math.inf)`.",
    ),
    explanation=r"""
$e^{-\infty} = 0$, so softmax of the masked logits gives 0 to what was cut and shares out the rest: no second
scaling is needed. `[:, -1:]` keeps the border as a column `(B, 1)`, one for each row. Note what 0 in place
of $-\infty$ would do: a logit of 0 is an ordinary score, often not even a low one.
""",
    forbidden={
        "next_token_probabilities": "`next_token_probabilities` of the package has top-k built in; "
        "build it yourself."
    },
)


@exercise.starter
def top_k_probabilities(logits, k):
    """Return probabilities [B, V] of which at most k in each row are not 0.

    logits: [B, V]; k: whole number, 1 or more.
    """
    raise NotImplementedError("not attempted")


@exercise.solution
def top_k_probabilities(logits, k):
    k = min(k, logits.shape[-1])
    border = logits.topk(k, dim=-1).values[:, -1:]  # [B, 1], the k-th largest
    return logits.masked_fill(logits < border, -math.inf).softmax(dim=-1)


@exercise.style("scatter")
def top_k_probabilities(logits, k):
    values, places = logits.topk(min(k, logits.shape[-1]), dim=-1)
    return torch.zeros_like(logits).scatter(-1, places, values.softmax(dim=-1))


@exercise.style("row by row")
def top_k_probabilities(logits, k):
    rows = []
    for p in logits.softmax(dim=-1).tolist():
        kept = sorted(range(len(p)), key=lambda i: p[i], reverse=True)[:k]
        rest = sum(p[i] for i in kept)
        rows.append([p[i] / rest if i in kept else 0.0 for i in range(len(p))])
    return torch.tensor(rows, dtype=logits.dtype)


@exercise.style("ranks")
def top_k_probabilities(logits, k):
    rank = logits.argsort(dim=-1, descending=True).argsort(dim=-1)  # 0 for the most likely
    p = logits.softmax(dim=-1) * (rank < k)
    return p / p.sum(dim=-1, keepdim=True)


@exercise.mutant(
    "not scaled",
    "The rest was cut, but what is left does not sum to 1: scale it, or cut the logits before softmax.",
)
def top_k_probabilities(logits, k):
    border = logits.topk(min(k, logits.shape[-1]), dim=-1).values[:, -1:]
    return logits.softmax(dim=-1) * (logits >= border)


@exercise.mutant(
    "logit 0 instead of −∞",
    "The cut tokens got the logit 0, which is a score like any other: $e^0 = 1$. A probability of 0 needs a "
    "logit of −∞.",
)
def top_k_probabilities(logits, k):
    border = logits.topk(min(k, logits.shape[-1]), dim=-1).values[:, -1:]
    return logits.masked_fill(logits < border, 0.0).softmax(dim=-1)


@exercise.mutant(
    "softmax twice",
    "Softmax was taken twice, which flattens everything: cut the logits and take softmax once, or divide "
    "the kept probabilities by their sum.",
)
def top_k_probabilities(logits, k):
    border = logits.topk(min(k, logits.shape[-1]), dim=-1).values[:, -1:]
    p = logits.softmax(dim=-1)
    return p.masked_fill(logits < border, float("-inf")).softmax(dim=-1)


@exercise.mutant(
    "k-th lost",
    "One token too few: the k-th most likely stands on the border, and it stays. Cut what is *below* it.",
)
def top_k_probabilities(logits, k):
    if k >= logits.shape[-1]:
        return logits.softmax(dim=-1)
    border = logits.topk(k, dim=-1).values[:, -1:]
    return logits.masked_fill(logits <= border, float("-inf")).softmax(dim=-1)


@exercise.mutant(
    "one too many",
    "One token too many: places are counted from 0, so the k-th largest stands at place k − 1.",
)
def top_k_probabilities(logits, k):
    border = logits.sort(dim=-1, descending=True).values[:, min(k, logits.shape[-1] - 1), None]
    return logits.masked_fill(logits < border, float("-inf")).softmax(dim=-1)


@exercise.mutant(
    "k in the whole batch",
    "k tokens were kept in the whole batch; each row is a distribution of its own and keeps its k.",
)
def top_k_probabilities(logits, k):
    border = logits.flatten().topk(min(k, logits.numel())).values[-1]
    return logits.masked_fill(logits < border, float("-inf")).softmax(dim=-1)


@exercise.mutant(
    "the least likely",
    "The k least likely tokens were kept: `sort` begins with the smallest unless it is told "
    "`descending=True`.",
)
def top_k_probabilities(logits, k):
    border = logits.sort(dim=-1).values[:, min(k, logits.shape[-1]) - 1, None]
    return logits.masked_fill(logits > border, float("-inf")).softmax(dim=-1)


@exercise.mutant(
    "the first k",
    "The first k tokens of the vocabulary were kept; the k with the largest logits should be, wherever they "
    "stand.",
)
def top_k_probabilities(logits, k):
    cut = torch.arange(logits.shape[-1]) >= k
    return logits.masked_fill(cut, float("-inf")).softmax(dim=-1)


@exercise.mutant(
    "k beyond the vocabulary",
    "Right, as long as there are k tokens: `topk` fails when it is asked for more than the vocabulary has. "
    "Ask for `min(k, V)`.",
)
def top_k_probabilities(logits, k):
    border = logits.topk(k, dim=-1).values[:, -1:]
    return logits.masked_fill(logits < border, float("-inf")).softmax(dim=-1)


@exercise.mutant("ready-made", exercise.forbidden["next_token_probabilities"])
def top_k_probabilities(logits, k):
    from glassformer.generation import next_token_probabilities

    return next_token_probabilities(logits, top_k=k)


def test_four_tokens_by_hand(answer):
    shares = torch.tensor([[5.0, 1.0, 8.0, 2.0]], dtype=torch.float64)
    kept = torch.tensor([[5.0, 0.0, 8.0, 0.0]], dtype=torch.float64)
    answer(shares.log(), 2).equals(kept / 13)


@worth(2)
def test_any_logits(answer, draw):
    logits, k = 2 * draw.normal(3, 8), draw.whole(2, 5)
    answer(logits, k).equals(next_token_probabilities(logits, top_k=k))


def test_more_than_there_are(answer):
    shares = torch.tensor([[5.0, 1.0, 8.0], [1.0, 1.5, 7.5]], dtype=torch.float64)
    answer(shares.log(), 5).equals(shares / shares.sum(dim=-1, keepdim=True))
