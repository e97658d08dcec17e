"""Exercise train.back_off."""

import math
from collections import Counter, defaultdict
from itertools import pairwise

import torch

from glassformer.ngrams import NGrams

from ...definition import Exercise, worth

exercise = Exercise(
    "train.back_off",
    title="What counting has to say",
    minutes=25,
    statement=r"""
A model has to beat a table of counts. Make the table from `text`, and return its loss on `held_out`, which it has not seen.

$c(h\,w)$ is how often token $w$ follows token $h$ in the text, $c(h)$ how often anything follows $h$, and $t(h)$ how many *different*
tokens do. Witten and Bell leave $t(h)$ shares of $c(h) + t(h)$ to the prediction without context, and that leaves some to chance:

$$
p(w \mid h) = \frac{c(h\,w) + t(h)\, p(w)}{c(h) + t(h)}, \qquad p(w) = \frac{c(w) + t \cdot \frac{1}{V}}{N + t},
$$

where $c(w)$ of the text's $N$ tokens are $w$, and $t$ different ones occur in it. After a token that nothing ever followed, $p(w)$ is all there is. The loss is
the mean of $-\ln p$ over the tokens held out, each after the one before it; the first has none before it, and is left out.
""",
    hints=(
        "What has to be counted before anything can be predicted? $c(w)$ is one `Counter`; $c(h\\,w)$ is one for each $h$: `defaultdict(Counter)`.",
        "`for h, w in pairwise(text): after[h][w] += 1`. Then $c(h)$ is `after[h].total()`, and $t(h)$ is `len(after[h])`.",
        "Begin with `p = (single[w] + len(single) / V) / (len(text) + len(single))`; if `h in after`, make "
        "`p = (after[h][w] + t * p) / (c + t)` of it. Append `-math.log(p)` for each pair of `pairwise(held_out)`.",
    ),
    explanation=r"""
Nothing gets probability 0, since one zero would make the loss infinite; and the probabilities after each $h$ still sum to 1. The more different
tokens have followed $h$, the more likely is yet another: so the share that is handed on grows with $t(h)$. For a longer context the first formula
is used again, with the shorter context's prediction in the place of $p(w)$: that is `glassformer.ngrams.NGrams`.

Note that $c(h)$ counts what *follows*: the last token of the text has nothing after it there, so it counts in $c(w)$ but not in $c(h)$.
""",
    forbidden={
        "probability": "`NGrams` of the package counts for you; build the two tables yourself."
    },
)


@exercise.starter
def held_out_loss(text, held_out, V):
    """Return the mean loss on the tokens held out, in nats, a number.

    text: list of N token ids, which is counted; held_out: list of ids; V: size of the vocabulary.
    """
    raise NotImplementedError("not attempted")


@exercise.solution
def held_out_loss(text, held_out, V):
    single, after = Counter(text), defaultdict(Counter)
    for h, w in pairwise(text):
        after[h][w] += 1
    losses = []
    for h, w in pairwise(held_out):
        p = (single[w] + len(single) / V) / (len(text) + len(single))
        if h in after:
            c, t = after[h].total(), len(after[h])
            p = (after[h][w] + t * p) / (c + t)
        losses.append(-math.log(p))
    return sum(losses) / len(losses)


@exercise.style("tables")
def held_out_loss(text, held_out, V):
    ids, out = torch.tensor(text), torch.tensor(held_out)
    pairs = torch.zeros(V, V, dtype=torch.float64)
    pairs.index_put_((ids[:-1], ids[1:]), torch.ones(len(ids) - 1).double(), accumulate=True)
    single = torch.bincount(ids, minlength=V).double()
    kinds = (single > 0).sum()
    p = (single + kinds / V) / (len(ids) + kinds)  # [V]
    c, t = pairs.sum(1, keepdim=True), (pairs > 0).sum(1, keepdim=True)  # [V, 1]
    table = torch.where(c > 0, (pairs + t * p) / (c + t).clamp(min=1), p)
    return torch.nn.functional.nll_loss(table.log()[out[:-1]], out[1:]).item()


@exercise.style("counted where needed")
def held_out_loss(text, held_out, V):
    bigrams, kinds, nats = list(zip(text, text[1:])), len(set(text)), 0.0
    for i in range(1, len(held_out)):
        h, w = held_out[i - 1], held_out[i]
        followers = [b for a, b in bigrams if a == h]
        c, t = len(followers), len(set(followers))
        p = (text.count(w) * V + kinds) / (len(text) + kinds) / V
        share = t / (c + t) if c else 1
        nats -= math.log(followers.count(w) / (c + t) + share * p if c else p)
    return nats / (len(held_out) - 1)


@exercise.mutant(
    "add one",
    "One was added to every count; Witten and Bell add $t(h)\\, p(w)$, the more, the likelier the token is without context.",
)
def held_out_loss(text, held_out, V):
    after = defaultdict(Counter)
    for h, w in zip(text, text[1:]):
        after[h][w] += 1
    pairs = list(zip(held_out, held_out[1:]))
    nats = [-math.log((after[h][w] + 1) / (sum(after[h].values()) + V)) for h, w in pairs]
    return sum(nats) / len(nats)


@exercise.mutant(
    "chance at once",
    "What is left over was given to all tokens alike, $1/V$; it goes to $p(w)$ first, which knows the frequent ones.",
)
def held_out_loss(text, held_out, V):
    after = defaultdict(Counter)
    for h, w in zip(text, text[1:]):
        after[h][w] += 1
    nats = []
    for h, w in zip(held_out, held_out[1:]):
        c, t = sum(after[h].values()), len(after[h])
        nats.append(-math.log((after[h][w] + t / V) / (c + t) if c else 1 / V))
    return sum(nats) / len(nats)


@exercise.mutant(
    "no chance",
    "$p(w)$ is $c(w)/N$ here, and 0 for a token that the text does not have; $t$ shares of $N + t$ are left to chance, $1/V$ each.",
)
def held_out_loss(text, held_out, V):
    single, after = Counter(text), defaultdict(Counter)
    for h, w in zip(text, text[1:]):
        after[h][w] += 1
    nats = []
    for h, w in zip(held_out, held_out[1:]):
        p, c, t = single[w] / len(text), sum(after[h].values()), len(after[h])
        p = (after[h][w] + t * p) / (c + t) if c else p
        nats.append(-math.log(p) if p else math.inf)
    return sum(nats) / len(nats)


@exercise.mutant(
    "zero for what never followed",
    "By its counts alone a pair that the text does not have gets probability 0, and its loss is infinite; leave a share to the prediction without context.",
)
def held_out_loss(text, held_out, V):
    after = defaultdict(Counter)
    for h, w in zip(text, text[1:]):
        after[h][w] += 1
    nats = []
    for h, w in zip(held_out, held_out[1:]):
        seen = after[h][w]
        nats.append(-math.log(seen / sum(after[h].values())) if seen else math.inf)
    return sum(nats) / len(nats)


@exercise.mutant(
    "back off only where nothing was seen",
    "The count alone decides wherever the pair was seen, and the other formula where it was not: so the probabilities sum to more than 1. Both "
    "terms are added, always.",
)
def held_out_loss(text, held_out, V):
    single, after = Counter(text), defaultdict(Counter)
    for h, w in zip(text, text[1:]):
        after[h][w] += 1
    nats = []
    for h, w in zip(held_out, held_out[1:]):
        p = (single[w] + len(single) / V) / (len(text) + len(single))
        c, t = sum(after[h].values()), len(after[h])
        if c:
            p = after[h][w] / c if after[h][w] else t * p / (c + t)
        nats.append(-math.log(p))
    return sum(nats) / len(nats)


@exercise.mutant(
    "all followers counted",
    "$t(h)$ is how many *different* tokens followed $h$; how many followed in all is $c(h)$.",
)
def held_out_loss(text, held_out, V):
    single, after = Counter(text), defaultdict(Counter)
    for h, w in zip(text, text[1:]):
        after[h][w] += 1
    nats = []
    for h, w in zip(held_out, held_out[1:]):
        p = (single[w] + len(single) / V) / (len(text) + len(single))
        c = sum(after[h].values())
        nats.append(-math.log((after[h][w] + c * p) / (2 * c) if c else p))
    return sum(nats) / len(nats)


@exercise.mutant(
    "the last token of the text",
    "$c(h)$ was taken from $c(w)$, which counts the last token of the text, too; nothing follows that one.",
)
def held_out_loss(text, held_out, V):
    single, after = Counter(text), defaultdict(Counter)
    for h, w in zip(text, text[1:]):
        after[h][w] += 1
    nats = []
    for h, w in zip(held_out, held_out[1:]):
        p = (single[w] + len(single) / V) / (len(text) + len(single))
        c, t = single[h], len(after[h])
        nats.append(-math.log((after[h][w] + t * p) / (c + t) if c else p))
    return sum(nats) / len(nats)


@exercise.mutant(
    "counted on what was held out",
    "The tokens held out were counted, and predicted by their own counts; count `text`, and predict `held_out`.",
)
def held_out_loss(text, held_out, V):
    single, after = Counter(held_out), defaultdict(Counter)
    for h, w in zip(held_out, held_out[1:]):
        after[h][w] += 1
    nats = []
    for h, w in zip(held_out, held_out[1:]):
        p = (single[w] + len(single) / V) / (len(held_out) + len(single))
        c, t = sum(after[h].values()), len(after[h])
        nats.append(-math.log((after[h][w] + t * p) / (c + t)))
    return sum(nats) / len(nats)


@exercise.mutant(
    "divided by all",
    "The sum was divided by all the tokens held out; the first is not predicted, so there is one loss less.",
)
def held_out_loss(text, held_out, V):
    single, after = Counter(text), defaultdict(Counter)
    for h, w in zip(text, text[1:]):
        after[h][w] += 1
    nats = []
    for h, w in zip(held_out, held_out[1:]):
        p = (single[w] + len(single) / V) / (len(text) + len(single))
        c, t = sum(after[h].values()), len(after[h])
        nats.append(-math.log((after[h][w] + t * p) / (c + t) if c else p))
    return sum(nats) / len(held_out)


@exercise.mutant(
    "bits",
    "This is in bits; nats go with the natural logarithm.",
)
def held_out_loss(text, held_out, V):
    single, after = Counter(text), defaultdict(Counter)
    for h, w in zip(text, text[1:]):
        after[h][w] += 1
    bits = []
    for h, w in zip(held_out, held_out[1:]):
        p = (single[w] + len(single) / V) / (len(text) + len(single))
        c, t = sum(after[h].values()), len(after[h])
        bits.append(-math.log2((after[h][w] + t * p) / (c + t) if c else p))
    return sum(bits) / len(bits)


@exercise.mutant(
    "without context",
    "The token before was not looked at: this is the loss of $p(w)$ alone.",
)
def held_out_loss(text, held_out, V):
    single = Counter(text)
    total = len(text) + len(single)
    nats = [-math.log((single[w] + len(single) / V) / total) for w in held_out[1:]]
    return sum(nats) / len(nats)


@exercise.mutant("ready-made", exercise.forbidden["probability"])
def held_out_loss(text, held_out, V):
    from glassformer.ngrams import NGrams

    return NGrams(text, V, order=2).loss(held_out)


# In 0 1 0 1 of V = 4: p(0) = p(1) = (2 + 2/4) / (4 + 2) = 5/12, p(2) = p(3) = (2/4) / 6 = 1/12.


def test_what_followed_and_what_did_not(answer):
    followed = (2 + 5 / 12) / 3  # 1 after 0, twice of twice
    answer([0, 1, 0, 1], [0, 1], 4).equals(-math.log(followed))
    never = (0 + 5 / 12) / 2  # 1 after 1, which 0 followed once
    answer([0, 1, 0, 1], [1, 1], 4).equals(-math.log(never))


def test_what_is_not_in_the_text(answer):
    new, before, after_it = (1 / 12) / 3, 5 / 12, 29 / 36  # 2 after 0, 0 after 2, 1 after 0
    answer([0, 1, 0, 1], [0, 2, 0, 1], 4).equals(-math.log(new * before * after_it) / 3)


@worth(2)
def test_any_text(answer, draw):
    V = draw.whole(6, 9)
    text, held_out = draw.ids(V - 1, 23).tolist(), draw.ids(V, 13).tolist()
    answer(text, held_out, V).equals(NGrams(text, V, order=2).loss(held_out))
