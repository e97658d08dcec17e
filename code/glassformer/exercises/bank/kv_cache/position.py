"""Exercise kv_cache.position."""

import math

import torch
import torch.nn.functional as F

from glassformer.models import rotary_table, rotate

from ...definition import Exercise, worth

exercise = Exercise(
    "kv_cache.position",
    title="Repair a cached decode",
    minutes=20,
    statement=r"""
One decode step of one head: the new token's query, key and value come in, keys and values of the $P$ earlier tokens
are cached. Row $t$ of `turns` is the rotary turn of position $t$. The text that this writes looks right, and so do
all shapes:

```python
def decode_step(q, k, v, keys, values, turns):
    q = rotate(q[None], turns[:1])  # [1, D]
    k = rotate(k[None], turns[:1])  # [1, D]
    keys = torch.cat((keys, k))  # [P + 1, D]
    values = torch.cat((values, v[None]))
    attention = (q @ keys.T / math.sqrt(len(v))).softmax(dim=-1)  # [1, P + 1]
    return (attention @ values)[0], keys, values
```

But a text read token by token gives another context than the same text read at once. Repair it. The keys in the
cache were turned when their tokens were new.
""",
    hints=(
        "The new token is the first of its pass. Is it the first of the text?",
        "Its position is the number of tokens before it, and the cache knows that number: `len(keys)`.",
        "`turns[P : P + 1]` with `P = len(keys)`, taken before the new key is appended, for the query *and* the key.",
    ),
    explanation=r"""
`turns[:1]` numbers positions within the pass, and in a decode step every token is the first of its pass. Then all
distances are wrong: to every key the new token seems to be at position 0. The query must turn as well as the key,
for the score depends on the difference of their angles. What is stored is the turned key; turned again at each
step, it would wander off. Only a comparison of numbers with a full pass shows such a fault: the chapter measured
0.10 in a logit, and not one word changed.
""",
)


@exercise.starter
def decode_step(q, k, v, keys, values, turns):
    """Return the new token's context [D], and all keys and values so far [P + 1, D].

    q, k, v: [D]; keys (turned), values: [P, D]; turns: [window, D/2], complex numbers.
    """
    raise NotImplementedError("not attempted")


@exercise.solution
def decode_step(q, k, v, keys, values, turns):
    P = len(keys)  # tokens so far: the new one's position
    here = turns[P : P + 1]  # [1, D/2]
    q, k = rotate(q[None], here), rotate(k[None], here)  # [1, D] each
    keys = torch.cat((keys, k))  # [P + 1, D]
    values = torch.cat((values, v[None]))
    attention = (q @ keys.T / math.sqrt(len(v))).softmax(dim=-1)  # [1, P + 1]
    return (attention @ values)[0], keys, values


@exercise.style("cosine and sine")
def decode_step(q, k, v, keys, values, turns):
    cos, sin = turns[keys.shape[0]].real, turns[keys.shape[0]].imag
    turned = []
    for x in (q, k):
        x0, x1 = x[0::2], x[1::2]
        turned.append(torch.stack((x0 * cos - x1 * sin, x0 * sin + x1 * cos), dim=-1).flatten())
    keys, values = torch.vstack((keys, turned[1])), torch.vstack((values, v))
    shares = torch.softmax(keys @ turned[0] / q.numel() ** 0.5, dim=0)
    return shares @ values, keys, values


@exercise.style("both at once")
def decode_step(q, k, v, keys, values, turns):
    position = len(values)
    pairs = torch.view_as_complex(torch.stack((q, k)).view(2, -1, 2))
    q, k = torch.view_as_real(pairs * turns[position]).flatten(-2)
    keys, values = torch.cat((keys, k[None])), torch.cat((values, v[None]))
    scores = torch.einsum("d,sd->s", q, keys) / math.sqrt(len(q))
    weights = (scores - scores.max()).exp()
    return torch.einsum("s,sd->d", weights / weights.sum(), values), keys, values


@exercise.style("ready-made attention")
def decode_step(q, k, v, keys, values, turns):
    q, k = rotate(torch.stack((q, k))[:, None], turns[len(keys), None])  # [1, D] each
    keys, values = torch.cat((keys, k)), torch.cat((values, v[None]))
    return F.scaled_dot_product_attention(q, keys, values)[0], keys, values


@exercise.mutant(
    "as it was",
    "Every new token is still turned as if it stood at position 0, which is no turn at all: it is the first of its pass, not "
    "of the text.",
)
def decode_step(q, k, v, keys, values, turns):
    q, k = rotate(q[None], turns[:1]), rotate(k[None], turns[:1])
    keys, values = torch.cat((keys, k)), torch.cat((values, v[None]))
    attention = (q @ keys.T / math.sqrt(len(v))).softmax(dim=-1)
    return (attention @ values)[0], keys, values


@exercise.mutant(
    "query alone",
    "The query has its true position now, but the key is stored as if it stood at 0: for every later token the distance "
    "to it is wrong.",
)
def decode_step(q, k, v, keys, values, turns):
    q, k = rotate(q[None], turns[len(keys), None]), rotate(k[None], turns[:1])
    keys, values = torch.cat((keys, k)), torch.cat((values, v[None]))
    attention = (q @ keys.T / math.sqrt(len(v))).softmax(dim=-1)
    return (attention @ values)[0], keys, values


@exercise.mutant(
    "key alone",
    "The key has its true position now, but the query asks as if it stood at 0: it is the difference of both "
    "angles that counts.",
)
def decode_step(q, k, v, keys, values, turns):
    q, k = rotate(q[None], turns[:1]), rotate(k[None], turns[len(keys), None])
    keys, values = torch.cat((keys, k)), torch.cat((values, v[None]))
    attention = (q @ keys.T / math.sqrt(len(v))).softmax(dim=-1)
    return (attention @ values)[0], keys, values


@exercise.mutant(
    "one too late",
    "One position too late: the length was taken after the new key had been appended. The first token of a text "
    "stands at position 0.",
)
def decode_step(q, k, v, keys, values, turns):
    here = turns[len(keys) + 1, None]
    q, k = rotate(q[None], here), rotate(k[None], here)
    keys, values = torch.cat((keys, k)), torch.cat((values, v[None]))
    attention = (q @ keys.T / math.sqrt(len(v))).softmax(dim=-1)
    return (attention @ values)[0], keys, values


@exercise.mutant(
    "turned again",
    "The cached keys were turned once more; they were turned when their tokens were new. Turn the new key only.",
)
def decode_step(q, k, v, keys, values, turns):
    q = rotate(q[None], turns[len(keys), None])
    keys, values = torch.cat((keys, k[None])), torch.cat((values, v[None]))
    keys = rotate(keys, turns[: len(keys)])
    attention = (q @ keys.T / math.sqrt(len(v))).softmax(dim=-1)
    return (attention @ values)[0], keys, values


@exercise.mutant(
    "stored without a turn",
    "The context is made with the turned key, but the key was stored as it came in: what is cached must be turned to "
    "its true position.",
)
def decode_step(q, k, v, keys, values, turns):
    here = turns[len(keys), None]
    q, turned = rotate(q[None], here), rotate(k[None], here)
    values = torch.cat((values, v[None]))
    attention = (q @ torch.cat((keys, turned)).T / math.sqrt(len(v))).softmax(dim=-1)
    return (attention @ values)[0], torch.cat((keys, k[None])), values


@exercise.mutant(
    "value turned",
    "The value was turned, too. What a token carries does not depend on where it stands; only queries and keys turn.",
)
def decode_step(q, k, v, keys, values, turns):
    here = turns[len(keys), None]
    q, k, v = rotate(q[None], here), rotate(k[None], here), rotate(v[None], here)
    keys, values = torch.cat((keys, k)), torch.cat((values, v))
    attention = (q @ keys.T / math.sqrt(v.shape[-1])).softmax(dim=-1)
    return (attention @ values)[0], keys, values


def full_pass(q, k, v, turns):
    """Return context, keys and values [T, D] of a text read at once."""
    q, k = rotate(q, turns[: len(q)]), rotate(k, turns[: len(k)])
    scores = q @ k.T / math.sqrt(q.shape[-1])
    hidden = torch.ones_like(scores).triu(diagonal=1).bool()
    return scores.masked_fill(hidden, -math.inf).softmax(dim=-1) @ v, k, v


def test_a_quarter_turn_by_hand(answer):
    turns = torch.tensor([[1], [1j], [-1]], dtype=torch.complex128)  # quarters, to the left
    q, k, v = torch.tensor([[0.0, 0.0], [1.0, 0.0], [2.0, 6.0]], dtype=torch.float64)
    keys, values = torch.tensor([[[3.0, 0.0]], [[4.0, 2.0]]], dtype=torch.float64)
    turned = torch.tensor([[3.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
    context = torch.tensor([3.0, 4.0], dtype=torch.float64)  # a query of zeros listens evenly
    both = torch.stack((values[0], v))
    answer(q, k, v, keys, values, turns).equals((context, turned, both))


@worth(3)
def test_the_same_as_a_full_pass(answer, draw):
    T, D = draw.whole(4, 7), 6
    turns, (q, k, v) = rotary_table(D, T + 1, 50.0), draw.normal(3, T, D)
    context, keys, values = full_pass(q, k, v, turns)
    for P in (0, 1, T - 1):
        expected = (context[P], keys[: P + 1], values[: P + 1])
        answer(q[P], k[P], v[P], keys[:P], values[:P], turns).equals(expected)
