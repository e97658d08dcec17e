"""Exercise interludes.h0."""

import torch
import torch.nn.functional as F

from glassformer.models import BabyGrootGPT
from glassformer.trace import trace

from ...definition import Exercise, worth

exercise = Exercise(
    "interludes.h0",
    title="What enters the block",
    minutes=10,
    statement=r"""
Give each token of a batch its row of the token embedding $E$, and add the row of the position embedding $P$
that belongs to its place:

$$
H_0[b, t] = E[\text{id}_{b,t}] + P[t]
$$

The table of positions ends. If a sequence has more tokens than `P` has rows, raise a `ValueError` whose text
names the number of tokens.
""",
    hints=(
        "Which of the two tables is asked by the token, which by the place alone?",
        "`E[ids]` looks up all tokens at once: ids `(B, T)`, rows `(B, T, d)`. The places of T tokens "
        "are 0, 1, …, T − 1.",
        "`P[:T]` has the shape `(T, d)`; added to `(B, T, d)` it goes to every sequence.",
    ),
    explanation=r"""
Indexing a table with a tensor of ids puts a row in the place of each id. The positions depend on nothing in
the sentence, so one slice serves all sequences. Beyond the table's end a slice is merely shorter, without
complaint, and the sum then fails for another reason, or worse, does not; hence the check.
""",
)


@exercise.starter
def embed(ids, E, P):
    """Return H0 [B, T, d], token vectors plus position vectors.

    ids: [B, T], token ids; E: [V, d]; P: [M, d], a row for each of M places.
    """
    raise NotImplementedError("not attempted")


@exercise.solution
def embed(ids, E, P):
    T = ids.shape[1]
    if T > len(P):
        raise ValueError(f"{T} tokens, but there are only {len(P)} positions.")
    return E[ids] + P[:T]  # [B, T, d] + [T, d] -> [B, T, d]


@exercise.style("row by row")
def embed(ids, E, P):
    T = ids.shape[1]
    if T > len(P):
        raise ValueError(f"no position for the last of {T} tokens")
    rows = [torch.stack([E[i] + P[t] for t, i in enumerate(row)]) for row in ids.tolist()]
    return torch.stack(rows)


@exercise.style("F.embedding")
def embed(ids, E, P):
    B, T = ids.shape
    if T > P.shape[0]:
        raise ValueError(f"T = {T}")
    places = torch.arange(T).expand(B, T)
    return F.embedding(ids, E) + F.embedding(places, P)


@exercise.style("one-hot")
def embed(ids, E, P):
    T = ids.shape[1]
    if T > len(P):
        raise ValueError(f"{T} is too long")
    return F.one_hot(ids, len(E)).to(E) @ E + torch.eye(T, len(P)).to(P) @ P


@exercise.mutant(
    "no positions",
    "The positions are missing: a row says what stands there, and not yet where.",
)
def embed(ids, E, P):
    if ids.shape[1] > len(P):
        raise ValueError(f"{ids.shape[1]} tokens")
    return E[ids]


@exercise.mutant(
    "positions by token",
    "The position table was asked by the token's id. A position depends on the place alone: every "
    "sequence gets the same rows of $P$, the first to its first place.",
)
def embed(ids, E, P):
    if ids.shape[1] > len(P):
        raise ValueError(f"{ids.shape[1]} tokens")
    return E[ids] + P[ids]


@exercise.mutant(
    "positions by sequence",
    "Each sequence of the batch got one position for all its tokens. Places are counted within a "
    "sequence, along $T$; sequences side by side never see each other.",
)
def embed(ids, E, P):
    if ids.shape[1] > len(P):
        raise ValueError(f"{ids.shape[1]} tokens")
    return E[ids] + P[: len(ids), None]


@exercise.mutant(
    "counted from one",
    "Every position is one too large: the first token stands at position 0.",
)
def embed(ids, E, P):
    if ids.shape[1] > len(P):
        raise ValueError(f"{ids.shape[1]} tokens")
    return E[ids] + P[torch.arange(1, ids.shape[1] + 1) % len(P)]


@exercise.mutant(
    "last rows",
    "The last rows of the position table were taken. Whatever the length, the first token gets the "
    "table's first row.",
)
def embed(ids, E, P):
    if ids.shape[1] > len(P):
        raise ValueError(f"{ids.shape[1]} tokens")
    return E[ids] + P[len(P) - ids.shape[1] :]


@exercise.mutant(
    "side by side",
    "Token and position stand side by side, so the rows are twice as wide. They are added, number by "
    "number: the width stays $d$.",
)
def embed(ids, E, P):
    if ids.shape[1] > len(P):
        raise ValueError(f"{ids.shape[1]} tokens")
    return torch.cat([E[ids], P[: ids.shape[1]].expand(len(ids), -1, -1)], dim=-1)


@exercise.mutant(
    "multiplied",
    "Token and position were multiplied; $H_0$ is their sum.",
)
def embed(ids, E, P):
    if ids.shape[1] > len(P):
        raise ValueError(f"{ids.shape[1]} tokens")
    return E[ids] * P[: ids.shape[1]]


@exercise.mutant(
    "places come again",
    "Beyond the end of the table the positions begin again: the model would take the last token for one "
    "at the start. There is no such row; raise a `ValueError` that names the number of tokens.",
)
def embed(ids, E, P):
    return E[ids] + P[torch.arange(ids.shape[1]) % len(P)]


@exercise.mutant(
    "torch's own error",
    "`P[:T]` is silently shorter where the table ends, and what PyTorch then complains about is the sum "
    "of two shapes. Say what is wrong: a `ValueError` that names the number of tokens.",
)
def embed(ids, E, P):
    return E[ids] + P[: ids.shape[1]]


def test_two_sentences_by_hand(answer):
    E = torch.tensor([[0.0, 0.0], [10.0, 20.0], [30.0, 40.0]], dtype=torch.float64)
    P = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]], dtype=torch.float64)
    expected = [
        [[31.0, 42.0], [13.0, 24.0], [35.0, 46.0]],
        [[1.0, 2.0], [33.0, 44.0], [35.0, 46.0]],
    ]
    expected = torch.tensor(expected, dtype=torch.float64)
    answer(torch.tensor([[2, 1, 2], [0, 2, 2]]), E, P).equals(expected)


@worth(2)
def test_any_batch(answer, draw):
    V, M, d, B = 11, 7, 3, 4
    model = BabyGrootGPT(V, M, d).double()
    E, P = draw.normal(V, d), draw.normal(M, d)
    model.token_embedding.weight.data, model.position_embedding.weight.data = E, P
    for T in (5, M, 1):
        ids = draw.ids(V, B, T)
        answer(ids, E, P).equals(trace(model, ids)["h0"])


def test_the_table_ends(answer, draw):
    E, P = draw.normal(9, 2), draw.normal(4, 2)
    answer(draw.ids(9, 2, 13), E, P).refuses(ValueError, "13")
