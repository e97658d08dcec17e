"""Exercise kv_cache.append."""

import torch

from ...definition import Exercise, worth

exercise = Exercise(
    "kv_cache.append",
    title="Append and read",
    minutes=12,
    statement=r"""
A cache's memory is taken once, for the whole window: `keys` and `values`, both `(B, K, window, D)`, of which the first
`length` places are filled. Write the keys and values of $T$ new tokens behind them, **into that memory**, and return
what attention is to read: keys and values of all tokens so far, `(B, K, S, D)` with $S$ = `length` + $T$. If they do
not fit into the window, raise a `ValueError` that names the size of the window, and write nothing.
""",
    hints=(
        "Tokens are in dimension 2. From which place to which do the new ones go?",
        "`keys[:, :, length:end] = k` writes into memory that is there; a slice of the memory is a view of "
        "it, nothing is copied.",
        "`end = length + k.shape[2]`, checked against `keys.shape[2]` first; then two assignments to "
        "`length:end`; then `return keys[:, :, :end], values[:, :, :end]`.",
    ),
    explanation=r"""
`torch.cat((old, k), dim=2)` would give the same tensors, but it copies everything kept so far at every step: the
square that a cache is to save comes back by another door. Here a step writes one row. What is returned ends at
`end`: behind it lie zeros or a former text, and attention would listen to them, since a key of zeros has
score 0, not −∞.
""",
)


@exercise.starter
def append(keys, values, length, k, v):
    """Write new keys and values behind `length` tokens; return all so far, [B, K, S, D] each.

    keys, values: [B, K, window, D], written to; length: number of tokens held; k, v: [B, K, T, D].
    """
    raise NotImplementedError("not attempted")


@exercise.harness
def prepare(append, window, ks, vs):
    """Take memory full of an old text, append piece by piece, and tell what was read and written."""
    import torch

    B, K, _, D = ks[0].shape
    keys = torch.full((B, K, window, D), 7.0, dtype=torch.float64)
    values = torch.full((B, K, window, D), 9.0, dtype=torch.float64)
    read, length, refused = [], 0, ""
    for k, v in zip(ks, vs, strict=True):
        before = keys.clone(), values.clone()
        try:
            got = append(keys, values, length, k, v)
        except ValueError as error:
            refused = str(error)
            if not all(map(torch.equal, before, (keys, values))):
                raise RuntimeError("something was written before the error") from None
            break
        got = [x.clone() if isinstance(x, torch.Tensor) else x for x in got or ()]
        read.append(got)
        length += k.shape[2]
    return {"read": read, "memory": [keys, values], "refused": str(window) in refused}


@exercise.solution
def append(keys, values, length, k, v):
    window, end = keys.shape[2], length + k.shape[2]
    if end > window:
        raise ValueError(f"{end} tokens do not fit: the window has {window} places.")
    keys[:, :, length:end] = k
    values[:, :, length:end] = v
    return keys[:, :, :end], values[:, :, :end]


@exercise.style("copy_ and narrow")
def append(keys, values, length, k, v):
    T, window = k.size(2), keys.size(2)
    if length > window - T:
        raise ValueError(f"window of {window} is full")
    result = []
    for memory, new in ((keys, k), (values, v)):
        memory.narrow(2, length, T).copy_(new)
        result.append(memory.narrow(2, 0, length + T))
    return tuple(result)


@exercise.style("token by token")
def append(keys, values, length, k, v):
    if length + k.shape[2] > keys.shape[2]:
        raise ValueError(f"no room in {keys.shape[2]} places")
    for t in range(k.shape[2]):
        keys[:, :, length] = k[:, :, t]
        values[:, :, length] = v[:, :, t]
        length += 1
    return keys[..., :length, :], values[..., :length, :]


@exercise.mutant(
    "from place 0",
    "Each piece was written from place 0 on, over the tokens that were there; it belongs behind them, from "
    "`length` on.",
)
def append(keys, values, length, k, v):
    end = length + k.shape[2]
    if end > keys.shape[2]:
        raise ValueError(f"{keys.shape[2]} places are not enough")
    keys[:, :, : k.shape[2]] = k
    values[:, :, : k.shape[2]] = v
    return keys[:, :, :end], values[:, :, :end]


@exercise.mutant(
    "whole window",
    "The whole window was returned, with places that no token of this text has filled; attention would give "
    "them weight. Return the first S places.",
)
def append(keys, values, length, k, v):
    end = length + k.shape[2]
    if end > keys.shape[2]:
        raise ValueError(f"{keys.shape[2]} places are not enough")
    keys[:, :, length:end] = k
    values[:, :, length:end] = v
    return keys, values


@exercise.mutant(
    "new ones only",
    "Only the new keys and values were returned; the new token's query meets those of all earlier tokens, too.",
)
def append(keys, values, length, k, v):
    end = length + k.shape[2]
    if end > keys.shape[2]:
        raise ValueError(f"{keys.shape[2]} places are not enough")
    keys[:, :, length:end] = k
    values[:, :, length:end] = v
    return keys[:, :, length:end], values[:, :, length:end]


@exercise.mutant(
    "nothing written",
    "What was returned holds the new ones, but the memory does not: `torch.cat` makes a copy, and at the next step "
    "they are gone. Write into `keys` and `values`.",
)
def append(keys, values, length, k, v):
    if length + k.shape[2] > keys.shape[2]:
        raise ValueError(f"{keys.shape[2]} places are not enough")
    old_keys, old_values = keys[:, :, :length], values[:, :, :length]
    return torch.cat((old_keys, k), dim=2), torch.cat((old_values, v), dim=2)


@exercise.mutant(
    "keys as values",
    "The keys were stored as values, too: a key tells where to look, the value what is found there.",
)
def append(keys, values, length, k, v):
    end = length + k.shape[2]
    if end > keys.shape[2]:
        raise ValueError(f"{keys.shape[2]} places are not enough")
    keys[:, :, length:end] = k
    values[:, :, length:end] = k
    return keys[:, :, :end], values[:, :, :end]


@exercise.mutant(
    "one token counted",
    "Only the last token of a piece was kept. A decode step brings one token, but a prefill brings many: count "
    "`k.shape[2]`.",
)
def append(keys, values, length, k, v):
    end = length + 1
    if end > keys.shape[2]:
        raise ValueError(f"{keys.shape[2]} places are not enough")
    keys[:, :, length:end] = k[:, :, -1:]
    values[:, :, length:end] = v[:, :, -1:]
    return keys[:, :, :end], values[:, :, :end]


@exercise.mutant(
    "last place unused",
    "It refuses the token that would fill the last place: S tokens fit where S is at most the window.",
)
def append(keys, values, length, k, v):
    end = length + k.shape[2]
    if end >= keys.shape[2]:
        raise ValueError(f"{keys.shape[2]} places are not enough")
    keys[:, :, length:end] = k
    values[:, :, length:end] = v
    return keys[:, :, :end], values[:, :, :end]


@exercise.mutant(
    "begins anew when full",
    "When the window is full it begins anew at place 0, and the beginning of the text is lost without a word; "
    "raise a `ValueError`.",
)
def append(keys, values, length, k, v):
    end = length + k.shape[2]
    if end > keys.shape[2]:
        length, end = 0, k.shape[2]
    keys[:, :, length:end] = k
    values[:, :, length:end] = v
    return keys[:, :, :end], values[:, :, :end]


def all_so_far(pieces):
    """Return the pieces joined, as they stand after each of them."""
    return [torch.cat(pieces[: n + 1], dim=2) for n in range(len(pieces))]


def test_two_tokens_by_hand(answer):
    ks = [torch.tensor([[[[x]]]], dtype=torch.float64) for x in (1.0, 2.0)]
    vs = [torch.tensor([[[[x]]]], dtype=torch.float64) for x in (3.0, 4.0)]
    outcome = answer(3, ks, vs)
    outcome.part("read").equals([list(pair) for pair in zip(all_so_far(ks), all_so_far(vs))])
    empty = torch.tensor([[[[7.0]]], [[[9.0]]]], dtype=torch.float64)
    memory = [torch.cat((*new, old[None]), dim=2) for new, old in zip((ks, vs), empty)]
    outcome.part("memory").equals(memory)


@worth(2)
def test_pieces_fill_the_window(answer, draw):
    sizes = [draw.whole(2, 4), 1, draw.whole(2, 4), 1]
    ks, vs = ([draw.normal(2, 3, T, 5) for T in sizes] for _ in range(2))
    outcome = answer(sum(sizes), ks, vs)
    outcome.part("read").equals([list(pair) for pair in zip(all_so_far(ks), all_so_far(vs))])
    outcome.part("memory").equals([torch.cat(ks, dim=2), torch.cat(vs, dim=2)])


def test_a_full_window(answer, draw):
    window, sizes = 37, [35, 3]
    ks, vs = ([draw.normal(1, 2, T, 2) for T in sizes] for _ in range(2))
    outcome = answer(window, ks, vs)
    outcome.part("read").equals([[ks[0], vs[0]]])
    outcome.part("refused").holds(
        bool, "Tokens that do not fit should raise a ValueError that names the window's size."
    )
