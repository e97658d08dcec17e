"""Exercise interludes.same_last_row."""

from collections import Counter

import torch

from glassformer.models import BabyGrootGPT

from ...definition import Exercise, worth

exercise = Exercise(
    "interludes.same_last_row",
    title="What a decoder without positions cannot tell",
    minutes=20,
    statement=r"""
Take a model with one causal block and **no positions**. The next token is read from the last row. Are there
contexts that it takes for one and the same, whatever its weights are?

Given two contexts, lists of token ids, return `True` if the last rows of the block's output are bound to be
equal, `False` if some weights tell them apart. No model is needed: think about what enters the last row.
""",
    hints=(
        "The last row is made of two things: the last token's own vector, and a weighted mean of the values "
        "of all tokens, itself included. Which of these know an order?",
        "A weighted mean depends on *proportions*. What does it make of `a b` and of `a b a b`? And of "
        "`a a b`?",
        "Same last token, and for every token the same share of the whole: `n / len(context)`. "
        "`Counter(context)` counts; compare `n_a * len(b)` with `n_b * len(a)`.",
    ),
    explanation=r"""
Each token's weight depends on its vector and on the last token's query, not on its place. Equal tokens get
equal weights, and softmax divides by the sum, so only the share of each token in the context is left. Hence
order is lost, and so is how often, if everything is repeated alike. What is not lost: the last token, whose
own vector is added to the mean and whose query asks. "A bag of words" thus says too much and too little.
""",
)


@exercise.starter
def same_last_row(a, b):
    """Return whether one causal block without positions must give both the same last row.

    a, b: lists of token ids, each with one token or more. Returns True or False.
    """
    raise NotImplementedError("not attempted")


@exercise.solution
def same_last_row(a, b):
    if a[-1] != b[-1]:
        return False
    n_a, n_b = Counter(a), Counter(b)
    return all(n_a[i] * len(b) == n_b[i] * len(a) for i in {*a, *b})


@exercise.style("repeated to one length")
def same_last_row(a, b):
    return a[-1] == b[-1] and sorted(a * len(b)) == sorted(b * len(a))


@exercise.style("shares")
def same_last_row(a, b):
    size = max(a + b) + 1
    shares = [torch.bincount(torch.tensor(x), minlength=size) / len(x) for x in (a, b)]
    return bool(a[-1] == b[-1] and torch.allclose(*shares))


@exercise.style("asked of a model")
def same_last_row(a, b):
    generator = torch.Generator().manual_seed(0)
    E = torch.rand(max(a + b) + 1, 5, generator=generator, dtype=torch.float64)

    def last_row(ids):
        h = E[ids]
        return h[-1] + (h @ h[-1]).softmax(dim=0) @ h

    return torch.allclose(last_row(a), last_row(b), rtol=1e-9)


@exercise.mutant(
    "order kept",
    "Only equal lists pass for the same here. Without positions nothing in the last row says in which order "
    "the tokens before it came.",
)
def same_last_row(a, b):
    return a == b


@exercise.mutant(
    "a bag of words",
    "The contexts are compared as bags. A decoder does know its *last* token: the last row starts from "
    "that token's own vector, and its query asks.",
)
def same_last_row(a, b):
    return sorted(a) == sorted(b)


@exercise.mutant(
    "shares without the last",
    "The shares are compared, the last tokens are not: the last row starts from its own token's vector, so "
    "`tree helps groot` and `groot helps tree` remain different.",
)
def same_last_row(a, b):
    return sorted(a * len(b)) == sorted(b * len(a))


@exercise.mutant(
    "the last alone",
    "Only the last tokens are compared; the last row also gathers the values of all that came before.",
)
def same_last_row(a, b):
    return a[-1] == b[-1]


@exercise.mutant(
    "counted",
    "Tokens are counted here. Attention takes a weighted *mean*: if everything is repeated alike, the mean "
    "stays the same.",
)
def same_last_row(a, b):
    return a[-1] == b[-1] and Counter(a) == Counter(b)


@exercise.mutant(
    "which, not how much",
    "It is only compared *which* tokens occur. In what proportions they occur does show: two thirds of a "
    "token weigh more than one half.",
)
def same_last_row(a, b):
    return a[-1] == b[-1] and set(a) == set(b)


@exercise.mutant(
    "an encoder's first row",
    "The first tokens are compared instead of the last: in a causal model it is the last row that has seen "
    "the whole context.",
)
def same_last_row(a, b):
    return a[0] == b[0] and sorted(a * len(b)) == sorted(b * len(a))


@exercise.mutant(
    "the last counted out",
    "The last token was left out of the shares; the last row attends to itself as well.",
)
def same_last_row(a, b):
    x, y = a[:-1], b[:-1]
    return a[-1] == b[-1] and sorted(x * max(len(y), 1)) == sorted(y * max(len(x), 1))


def judge_all(answer, pairs, draw=None):
    """Compare answers with what blocks with random weights make of the pairs, or with the truth given."""
    outcomes = [answer(a, b) for a, b, *_ in pairs]
    for outcome, (a, b, *same) in zip(outcomes, pairs, strict=True):
        outcome.equals(same[0] if same else rows_agree(a, b, draw))


def rows_agree(a, b, draw):
    """Return whether a block with drawn weights, without positions, gives both the same last row."""
    model = BabyGrootGPT(12, 1, 3).double()
    for weight in model.parameters():
        weight.data = 0.7 * draw.normal(*weight.shape)
    rows = []
    with torch.no_grad():
        for ids in (a, b):
            h = model.token_embedding(torch.tensor([ids]))  # [1, T, d], no positions
            rows.append(model.transformer(h)[0][0, -1])
    return torch.allclose(*rows, rtol=1e-9, atol=1e-9)


def test_our_sentence_in_two_orders(answer):
    pairs = [([1, 11, 3, 8], [1, 3, 11, 8], True), ([1, 11, 3, 8], [1, 11, 8, 3], False)]
    judge_all(answer, pairs)


@worth(3)
def test_against_random_blocks(answer, draw):
    x, y, z, w = draw.pick(range(12), 4)
    pairs = [
        ([x, y, z], [y, x, z]),  # another order
        ([x, y, z], [x, z, y]),  # another last token
        ([x, y, z], [x, w, z]),  # another bag
        ([x, y], [x, y, x, y]),  # all twice
        ([x, y], [y, x, x, y]),  # all twice, in another order
        ([x, y], [x, x, y]),  # other shares
        ([x, x, y, z], [x, y, y, z]),  # the same tokens, other shares
        ([x, z, y], [y, x, z]),
        ([w], [w, w, w]),
        ([x, y, x, y, y], [x, y, y]),  # equal shares before the last
    ]
    judge_all(answer, pairs, draw)
