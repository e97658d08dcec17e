"""Exercise kv_cache.mask."""

import torch

from glassformer.models import Transformer

from ...definition import Exercise, worth

exercise = Exercise(
    "kv_cache.mask",
    title="The mask of a piece",
    minutes=10,
    statement=r"""
Behind `start` cached tokens come $T$ new ones in one piece. Make its causal mask, `(T, start + T)`, a row for each new
token and a column for each token that is there: True where the column's token stands *later* than the row's, and
so must be hidden.
""",
    hints=(
        "At which position stands the first new token? Which columns lie after it?",
        "Row $t$ is the token at position `start + t`: hide the columns $s$ > `start + t`.",
        "`torch.ones(T, start + T).triu(diagonal=start + 1).bool()`, or compare two `arange`, one of them as a "
        "column: `[:, None]`.",
    ),
    explanation=r"""
These are the *last* $T$ rows of the square mask of `start + T` tokens. For a piece at the beginning it is the
square itself; for a single new token it hides nothing, which is why a test that feeds tokens one by one never
meets a wrong mask. `triu(diagonal=n)` keeps what lies $n$ or more to the right of the main diagonal.
""",
    forbidden={
        "future": "`Transformer.future` makes this mask; make it yourself, with `triu` or `arange`."
    },
)


@exercise.starter
def piece_mask(T, start):
    """Return a bool tensor [T, start + T], True where a later token is to be hidden.

    T: number of new tokens; start: number of cached tokens.
    """
    raise NotImplementedError("not attempted")


@exercise.solution
def piece_mask(T, start):
    return torch.ones(T, start + T).triu(diagonal=start + 1).bool()


@exercise.style("positions compared")
def piece_mask(T, start):
    everything = torch.arange(start + T)  # [S]
    new = everything[start:]  # [T]
    return everything > new[:, None]


@exercise.style("loop")
def piece_mask(T, start):
    return torch.tensor([[s > start + t for s in range(start + T)] for t in range(T)])


@exercise.style("last rows of the square")
def piece_mask(T, start):
    S = start + T
    return ~torch.tril(torch.ones(S, S, dtype=torch.bool))[-T:]


@exercise.mutant(
    "first rows",
    "These are the first T rows of the square mask: each new token would see what the first tokens of the text were "
    "allowed to see, and not even itself. The last T rows belong here.",
)
def piece_mask(T, start):
    S = start + T
    return torch.ones(S, S).triu(diagonal=1).bool()[:T]


@exercise.mutant(
    "no mask",
    "Nothing is hidden: the new tokens of a piece see those that follow them in the same piece.",
)
def piece_mask(T, start):
    return torch.zeros(T, start + T, dtype=torch.bool)


@exercise.mutant(
    "hides itself",
    "Each new token is hidden from itself. It sees what came before *and* itself: begin one place further to the "
    "right.",
)
def piece_mask(T, start):
    return torch.ones(T, start + T).triu(diagonal=start).bool()


@exercise.mutant(
    "one too late",
    "Each new token sees the one after it: begin one place further to the left.",
)
def piece_mask(T, start):
    return torch.ones(T, start + T).triu(diagonal=start + 2).bool()


@exercise.mutant(
    "inverted",
    "True and False are exchanged: this says what may be seen; asked is what must be hidden.",
)
def piece_mask(T, start):
    return torch.ones(T, start + T).tril(diagonal=start).bool()


@exercise.mutant(
    "square",
    "This is the square mask of the new tokens alone; the cached ones need columns, too, and are seen by all.",
)
def piece_mask(T, start):
    return torch.ones(T, T).triu(diagonal=1).bool()


@exercise.mutant(
    "cached ones on the right",
    "The columns of the cached tokens stand on the right; they come first, as in the cache.",
)
def piece_mask(T, start):
    square = torch.ones(T, T).triu(diagonal=1).bool()
    return torch.cat((square, torch.zeros(T, start, dtype=torch.bool)), dim=1)


@exercise.mutant(
    "cached ones hidden",
    "The cached tokens are hidden: they came before all new ones and are what the cache is kept for.",
)
def piece_mask(T, start):
    square = torch.ones(T, T).triu(diagonal=1).bool()
    return torch.cat((torch.ones(T, start, dtype=torch.bool), square), dim=1)


@exercise.mutant(
    "numbers",
    "Right, but as numbers; a mask is True or False: `.bool()`.",
)
def piece_mask(T, start):
    return torch.ones(T, start + T).triu(diagonal=start + 1)


@exercise.mutant("ready-made", exercise.forbidden["future"])
def piece_mask(T, start):
    from glassformer.models import Transformer

    return Transformer.future(T, start)


def test_two_behind_three(answer):
    answer(2, 3).equals(torch.tensor([[False, False, False, False, True], [False] * 5]))


@worth(2)
def test_any_piece(answer, draw):
    T, start = draw.whole(3, 6), draw.whole(2, 7)
    answer(T, start).equals(Transformer.future(T, start))
    answer(T, 0).equals(Transformer.future(T, 0))
