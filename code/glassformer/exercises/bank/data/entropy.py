"""Exercise data.entropy."""

import math
from collections import Counter, defaultdict

import torch

from glassformer.data import GROOT_SENTENCES, entropy_floor, groot_vocabulary, prefix_pairs

from ...definition import Exercise, worth

exercise = Exercise(
    "data.entropy",
    title="The floor of the loss",
    minutes=20,
    statement=r"""
How low can the loss of any model be on these examples? Return the conditional entropy of the next
token given its context, in nats:

$$
\text{floor} = \sum_c \frac{n_c}{N} H_c , \qquad H_c = -\sum_i p_i \ln p_i ,
$$

where $n_c$ of the $N$ rows of `X` are the context $c$, and $p_i$ is the share of these rows whose
target in `Y` is token $i$.
""",
    hints=(
        "First count: for every context, how often does each token follow? "
        "`tuple(row)` of a row of `X.tolist()` can be the key of a dictionary.",
        "`counts = defaultdict(Counter)`, and for each row `counts[tuple(context)][target] += 1`.",
        "A context with counts $n_i$ that sum to $n_c$ adds $-\\sum_i n_i \\ln (n_i / n_c)$; divide the "
        "sum over all contexts by $N$.",
    ),
    explanation=r"""
Since $n_c \, p_i = n_i$, weighing and averaging come down to one sum,
$-\tfrac{1}{N} \sum_c \sum_i n_i \ln (n_i / n_c)$. A context that settles what follows has a single share
of 1, and $\ln 1 = 0$: it adds nothing, but it counts in $N$. For our corpus that gives 0.73611.
""",
    forbidden={
        name: f"`{name}` of the package does the part you are asked to build; count with a `Counter`."
        for name in ("entropy_floor", "next_token_counts")
    },
)


@exercise.starter
def conditional_entropy(X, Y):
    """Return the lowest mean loss, in nats, that any model can reach.

    X: [N, T], contexts; Y: [N], next tokens. Returns a Python number.
    """
    raise NotImplementedError("not attempted")


@exercise.solution
def conditional_entropy(X, Y):
    counts = defaultdict(Counter)
    for context, target in zip(X.tolist(), Y.tolist()):
        counts[tuple(context)][target] += 1
    total = 0.0
    for followers in counts.values():
        n_c = sum(followers.values())
        total -= sum(n * math.log(n / n_c) for n in followers.values())
    return total / len(Y)


@exercise.style("row by row")
def conditional_entropy(X, Y):
    losses = []
    for i in range(len(Y)):
        same = (X == X[i]).all(dim=1)
        share = (Y[same] == Y[i]).double().mean()
        losses.append(-share.log())
    return torch.stack(losses).mean().item()


@exercise.style("unique rows")
def conditional_entropy(X, Y):
    _, context = torch.unique(X, dim=0, return_inverse=True)
    table = torch.zeros(int(context.max()) + 1, int(Y.max()) + 1, dtype=torch.float64)
    table.index_put_((context, Y), torch.ones(len(Y), dtype=torch.float64), accumulate=True)
    p = table / table.sum(dim=1, keepdim=True)
    H = -torch.special.xlogy(p, p).sum(dim=1)
    return float((table.sum(dim=1) / len(Y) * H).sum())


@exercise.style("two entropies")
def conditional_entropy(X, Y):
    def entropy(counter):
        return -sum(n / len(Y) * math.log(n / len(Y)) for n in counter.values())

    contexts = [tuple(row) for row in X.tolist()]
    return entropy(Counter(zip(contexts, Y.tolist()))) - entropy(Counter(contexts))


@exercise.mutant(
    "every context alike",
    "All contexts count alike here, the rare and the frequent; weigh each by how often it occurs, "
    "$n_c / N$.",
)
def conditional_entropy(X, Y):
    counts = defaultdict(Counter)
    for context, target in zip(X.tolist(), Y.tolist()):
        counts[tuple(context)][target] += 1
    H = [
        -sum(n / sum(f.values()) * math.log(n / sum(f.values())) for n in f.values())
        for f in counts.values()
    ]
    return sum(H) / len(H)


@exercise.mutant(
    "bits",
    "This is in bits: `log2` was used. The loss is in nats, so take the natural logarithm, `math.log`.",
)
def conditional_entropy(X, Y):
    counts = defaultdict(Counter)
    for context, target in zip(X.tolist(), Y.tolist()):
        counts[tuple(context)][target] += 1
    total = 0.0
    for f in counts.values():
        total -= sum(n * math.log2(n / sum(f.values())) for n in f.values())
    return total / len(Y)


@exercise.mutant(
    "contexts ignored",
    "This is the entropy of the next tokens alone, as if the context told nothing; count them "
    "separately for each context.",
)
def conditional_entropy(X, Y):
    counts = Counter(Y.tolist())
    return -sum(n / len(Y) * math.log(n / len(Y)) for n in counts.values())


@exercise.mutant(
    "only the last token",
    "Contexts were told apart by their last real token alone; the whole row is the context.",
)
def conditional_entropy(X, Y):
    last = X[torch.arange(len(X)), (X != 0).sum(dim=1) - 1]
    counts = defaultdict(Counter)
    for context, target in zip(last.tolist(), Y.tolist()):
        counts[context][target] += 1
    total = 0.0
    for f in counts.values():
        total -= sum(n * math.log(n / sum(f.values())) for n in f.values())
    return total / len(Y)


@exercise.mutant(
    "settled contexts left out",
    "The mean was taken over the open contexts only. Those that settle what follows add nothing to the "
    "sum, but they count in $N$.",
)
def conditional_entropy(X, Y):
    counts = defaultdict(Counter)
    for context, target in zip(X.tolist(), Y.tolist()):
        counts[tuple(context)][target] += 1
    total, N = 0.0, 0
    for f in counts.values():
        if len(f) > 1:
            total -= sum(n * math.log(n / sum(f.values())) for n in f.values())
            N += sum(f.values())
    return total / N if N else 0.0


@exercise.mutant(
    "not divided",
    "This is the sum over all examples; divide it by their number $N$.",
)
def conditional_entropy(X, Y):
    counts = defaultdict(Counter)
    for context, target in zip(X.tolist(), Y.tolist()):
        counts[tuple(context)][target] += 1
    return -sum(n * math.log(n / sum(f.values())) for f in counts.values() for n in f.values())


@exercise.mutant(
    "sign",
    "The sign is missing: logarithms of shares are negative, and the entropy is minus their mean.",
)
def conditional_entropy(X, Y):
    counts = defaultdict(Counter)
    for context, target in zip(X.tolist(), Y.tolist()):
        counts[tuple(context)][target] += 1
    total = sum(n * math.log(n / sum(f.values())) for f in counts.values() for n in f.values())
    return total / len(Y)


@exercise.mutant("ready-made", exercise.forbidden["entropy_floor"])
def conditional_entropy(X, Y):
    return entropy_floor(X, Y)


def test_seven_rows_by_hand(answer):
    X = torch.tensor([[1, 8, 0]] * 3 + [[1, 5, 0]] * 4)
    Y = torch.tensor([2, 2, 4, 6, 6, 6, 6])  # the second context settles what follows
    answer(X, Y).equals(-(2 * math.log(2 / 3) + math.log(1 / 3)) / 7)


@worth(2)
def test_the_corpus(answer):
    X, Y = prefix_pairs(GROOT_SENTENCES, groot_vocabulary(), 4)
    answer(X, Y).equals(entropy_floor(X, Y))


@worth(2)
def test_any_examples(answer, draw):
    X, Y = 1 + draw.ids(3, 40, 3), draw.ids(5, 40)
    answer(X, Y).equals(entropy_floor(X, Y))
