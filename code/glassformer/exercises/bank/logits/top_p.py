"""Exercise logits.top_p."""

import torch

from glassformer.generation import next_token_probabilities

from ...definition import Exercise, worth

exercise = Exercise(
    "logits.top_p",
    title="Repair a nucleus",
    minutes=20,
    statement=r"""
Top-p keeps the *smallest* set of most likely tokens whose probabilities reach $p$ together, and scales what
is left to sum 1. This one runs, and most of the time nobody notices what it returns:

```python
def nucleus(probabilities, top_p):
    sorted_p, order = probabilities.sort(dim=-1, descending=True)
    kept = sorted_p * (sorted_p.cumsum(dim=-1) <= top_p)
    return kept / kept.sum(dim=-1, keepdim=True)
```

Two things are wrong with it. Repair both. (Try it on `[[0.125, 0.5, 0.125, 0.25]]` with 0.7 first, and on a
distribution whose first token has more than $p$ alone.)
""",
    hints=(
        "The sum of the kept tokens must *reach* $p$. Does it, with the token that takes it beyond $p$ cut "
        "off?",
        "A token stays if the tokens before it, together, have not reached $p$ yet. And in which order do "
        "the columns of the result stand: by probability, or by token?",
        "`before = sorted_p.cumsum(dim=-1) - sorted_p`; keep where `before < top_p`; "
        "`torch.zeros_like(probabilities).scatter(-1, order, kept)` puts each number back in its place.",
    ),
    explanation=r"""
What decides about a token is the sum of all *before* it, without itself: as long as that is below $p$, the
token is needed. The first token has nothing before it, so it always stays, and there is always something
to divide by. Sorting is a means only: `order[b, n]` tells which token stood at rank $n$, and `scatter`
takes the numbers back there. Else the most likely token's share is drawn as token 0, whatever that is.
""",
    forbidden={
        "next_token_probabilities": "`next_token_probabilities` of the package has top-p built in; "
        "repair the one above."
    },
)


@exercise.starter
def nucleus(probabilities, top_p):
    """Return probabilities [B, V] of the fewest tokens that reach top_p, in their places.

    probabilities: [B, V], rows sum to 1; top_p: a number, 0 < top_p < 1.
    """
    raise NotImplementedError("not attempted")


@exercise.solution
def nucleus(probabilities, top_p):
    sorted_p, order = probabilities.sort(dim=-1, descending=True)
    before = sorted_p.cumsum(dim=-1) - sorted_p  # of all more likely tokens
    kept = sorted_p * (before < top_p)
    kept = kept / kept.sum(dim=-1, keepdim=True)
    return torch.zeros_like(probabilities).scatter(-1, order, kept)


@exercise.style("row by row")
def nucleus(probabilities, top_p):
    result = torch.zeros_like(probabilities)
    for row, p in enumerate(probabilities):
        total = 0.0
        for i in p.argsort(descending=True):
            result[row, i] = p[i]
            total += p[i].item()
            if total >= top_p:
                break
        result[row] /= result[row].sum()
    return result


@exercise.style("all pairs")
def nucleus(probabilities, top_p):
    likelier = probabilities[:, None, :] > probabilities[:, :, None]  # [B, V, V]: is j above i?
    before = torch.einsum("bij,bj->bi", likelier.to(probabilities), probabilities)
    kept = probabilities.masked_fill(before >= top_p, 0.0)
    return kept / kept.sum(-1, keepdim=True)


@exercise.style("border")
def nucleus(probabilities, top_p):
    sorted_p = probabilities.sort(dim=-1, descending=True).values
    n = (sorted_p.cumsum(dim=-1) < top_p).sum(dim=-1, keepdim=True)  # rank of the last that stays
    kept = probabilities * (probabilities >= sorted_p.gather(-1, n))
    return torch.nn.functional.normalize(kept, p=1, dim=-1)


@exercise.mutant(
    "as it was",
    "Both faults are still there: the token that reaches p is cut, and the shares stand in the order of "
    "their size, not at their tokens.",
)
def nucleus(probabilities, top_p):
    sorted_p, order = probabilities.sort(dim=-1, descending=True)
    kept = sorted_p * (sorted_p.cumsum(dim=-1) <= top_p)
    return kept / kept.sum(dim=-1, keepdim=True)


@exercise.mutant(
    "last one lost",
    "Each share is at its token now, but those that are kept do not reach p: the token that takes the sum "
    "over the border is cut. If the first token has more than p alone, nothing is left, and 0 / 0 is NaN.",
)
def nucleus(probabilities, top_p):
    sorted_p, order = probabilities.sort(dim=-1, descending=True)
    kept = sorted_p * (sorted_p.cumsum(dim=-1) <= top_p)
    kept = kept / kept.sum(dim=-1, keepdim=True)
    return torch.zeros_like(probabilities).scatter(-1, order, kept)


@exercise.mutant(
    "left in order of size",
    "The right tokens stay, but their shares stand in the order of their size: the likeliest in column 0, "
    "whichever token it belongs to. Put them back with `scatter` and `order`.",
)
def nucleus(probabilities, top_p):
    sorted_p, order = probabilities.sort(dim=-1, descending=True)
    kept = sorted_p * (sorted_p.cumsum(dim=-1) - sorted_p < top_p)
    return kept / kept.sum(dim=-1, keepdim=True)


@exercise.mutant(
    "put back the wrong way",
    "`gather` with `order` sorts once more; the way back from rank to token is `scatter`.",
)
def nucleus(probabilities, top_p):
    sorted_p, order = probabilities.sort(dim=-1, descending=True)
    kept = sorted_p * (sorted_p.cumsum(dim=-1) - sorted_p < top_p)
    return (kept / kept.sum(dim=-1, keepdim=True)).gather(-1, order)


@exercise.mutant(
    "not scaled",
    "The right tokens stay, but their probabilities do not sum to 1: divide by their sum.",
)
def nucleus(probabilities, top_p):
    sorted_p, order = probabilities.sort(dim=-1, descending=True)
    kept = sorted_p * (sorted_p.cumsum(dim=-1) - sorted_p < top_p)
    return torch.zeros_like(probabilities).scatter(-1, order, kept)


@exercise.mutant(
    "one too many",
    "One token too many: once the kept ones reach p together, the set is complete.",
)
def nucleus(probabilities, top_p):
    sorted_p, order = probabilities.sort(dim=-1, descending=True)
    needed = sorted_p.cumsum(dim=-1) - sorted_p < top_p
    needed = torch.cat([needed[:, :1], needed[:, :-1]], dim=-1)
    kept = sorted_p * needed
    kept = kept / kept.sum(dim=-1, keepdim=True)
    return torch.zeros_like(probabilities).scatter(-1, order, kept)


@exercise.mutant(
    "each token by itself",
    "Each token's own probability was compared with p; it is the sum of the most likely ones that has to "
    "reach p.",
)
def nucleus(probabilities, top_p):
    kept = probabilities * (probabilities >= top_p)
    return kept / kept.sum(dim=-1, keepdim=True)


@exercise.mutant(
    "not sorted",
    "The probabilities were added up in the order of the vocabulary; begin with the most likely token.",
)
def nucleus(probabilities, top_p):
    kept = probabilities * (probabilities.cumsum(dim=-1) - probabilities < top_p)
    return kept / kept.sum(dim=-1, keepdim=True)


@exercise.mutant(
    "from the least likely",
    "The sum began with the least likely tokens; sort with `descending=True`.",
)
def nucleus(probabilities, top_p):
    sorted_p, order = probabilities.sort(dim=-1)
    kept = sorted_p * (sorted_p.cumsum(dim=-1) - sorted_p < top_p)
    kept = kept / kept.sum(dim=-1, keepdim=True)
    return torch.zeros_like(probabilities).scatter(-1, order, kept)


@exercise.mutant("ready-made", exercise.forbidden["next_token_probabilities"])
def nucleus(probabilities, top_p):
    from glassformer.generation import next_token_probabilities

    return next_token_probabilities(probabilities.log(), top_p=top_p)


def test_two_of_four_by_hand(answer):
    p = torch.tensor([[0.125, 0.5, 0.125, 0.25]], dtype=torch.float64)
    answer(p, 0.7).equals(torch.tensor([[0.0, 2.0, 0.0, 1.0]], dtype=torch.float64) / 3)


def test_one_token_is_enough(answer):
    p = torch.tensor([[0.03, 0.95, 0.02]], dtype=torch.float64)
    answer(p, 0.9).equals(torch.tensor([[0.0, 1.0, 0.0]], dtype=torch.float64))


@worth(3)
def test_any_distribution(answer, draw):
    logits, top_p = 1.5 * draw.normal(3, 9), draw.pick([0.4, 0.6, 0.8, 0.9], 1)[0]
    expected = next_token_probabilities(logits, top_p=top_p)
    answer(logits.softmax(dim=-1), top_p).equals(expected)
