"""Exercise interludes.whose_number."""

import torch

from ...definition import Exercise, worth

exercise = Exercise(
    "interludes.whose_number",
    title="Whose number is it?",
    minutes=12,
    statement=r"""
Only sums $E[i] + P[t]$ reach the block. So a vector that is taken from all rows of one table and added to all
rows of the other changes nothing, and two models may have different tables and still be one and the same.

To compare such tables, agree on a choice: move a vector from $P$ to $E$ so that **the rows of $P$ sum to
zero**, in every column, and every possible $H_0$ stays what it was. Return the two new tables.
""",
    hints=(
        "If the same vector $c$ is taken from all rows of $P$, by how much does their mean change?",
        "$c$ has to be the mean of the rows of $P$: one number for each column, shape `(d,)`.",
        "What goes out of one table comes into the other: `E + c` and `P - c`.",
    ),
    explanation=r"""
$(E + c) + (P - c) = E + P$, for every token at every place. With $c$ the mean row of $P$, what remains in $P$
is how places differ *from one another*, and what all places had in common is now in the tokens. So "this
much of the number is the word, that much is the place" is a matter of agreement; differences between two
words, or two places, are not.
""",
)


@exercise.starter
def centre_positions(E, P):
    """Return (E', P') with the same sums E[i] + P[t], and rows of P' that sum to zero.

    E: [V, d]; P: [M, d]. Returns a tuple of [V, d] and [M, d].
    """
    raise NotImplementedError("not attempted")


@exercise.solution
def centre_positions(E, P):
    c = P.mean(dim=0)  # [d], what all places have in common
    return E + c, P - c


@exercise.style("loop")
def centre_positions(E, P):
    E, P = E.clone(), P.clone()
    for column in range(P.shape[1]):
        share = sum(P[:, column].tolist()) / len(P)
        P[:, column] -= share
        E[:, column] += share
    return E, P


@exercise.style("from the sums")
def centre_positions(E, P):
    H = E[:, None] + P[None]  # [V, M, d], every token at every place
    E_new = H.mean(dim=1)
    return E_new, H[0] - E_new[0]


@exercise.style("a matrix")
def centre_positions(E, P):
    M = len(P)
    average = torch.full((M, M), 1 / M, dtype=P.dtype)
    return E + torch.einsum("md->d", P) / M, P - average @ P


@exercise.mutant(
    "tokens left alone",
    "The vector was taken from the positions, but the tokens did not get it, so every row of $H_0$ has "
    "changed by it.",
)
def centre_positions(E, P):
    return E.clone(), P - P.mean(dim=0)


@exercise.mutant(
    "taken from both",
    "The vector was taken from both tables. What goes out of one must come into the other, or the sums "
    "change.",
)
def centre_positions(E, P):
    c = P.mean(dim=0)
    return E - c, P - c


@exercise.mutant(
    "each by its own mean",
    "Each table was centred by a mean of its own. Then the sums lose both means; one vector moves, from $P$ "
    "to $E$.",
)
def centre_positions(E, P):
    return E - E.mean(dim=0), P - P.mean(dim=0)


@exercise.mutant(
    "tokens centred",
    "The tokens were centred, and the positions took what they lost: the sums are right, but it is the "
    "rows of $P$ that are to sum to zero.",
)
def centre_positions(E, P):
    c = E.mean(dim=0)
    return E - c, P + c


@exercise.mutant(
    "one number",
    "A single number was moved, the mean of the whole table; each of the $d$ columns has a mean of its own.",
)
def centre_positions(E, P):
    c = P.mean()
    return E + c, P - c


@exercise.mutant(
    "each row by its own mean",
    "Each place lost another number here, the mean along its row. The vector that moves must be the same "
    "for all places, or no token can make up for it: take the mean over the rows, `dim=0`.",
)
def centre_positions(E, P):
    return E + P.mean(), P - P.mean(dim=1, keepdim=True)


@exercise.mutant(
    "the sum moved",
    "The sum of the rows was moved instead of their mean: of $M$ rows each gives away $c$, so $M$ times $c$ "
    "is gone.",
)
def centre_positions(E, P):
    c = P.sum(dim=0)
    return E + c, P - c


@exercise.mutant(
    "place 0 as zero",
    "Position 0 was made the zero vector. A fair choice as well, and the sums are right, but the one asked "
    "for is that all rows of $P$ sum to zero.",
)
def centre_positions(E, P):
    return E + P[0], P - P[0]


def test_two_columns_by_hand(answer):
    E = torch.tensor([[0.0, 1.0], [2.0, 5.0], [4.0, 0.0]], dtype=torch.float64)
    P = torch.tensor([[1.0, 10.0], [3.0, 30.0]], dtype=torch.float64)
    expected = [[2.0, 21.0], [4.0, 25.0], [6.0, 20.0]], [[-1.0, -10.0], [1.0, 10.0]]
    answer(E, P).equals(tuple(torch.tensor(rows, dtype=torch.float64) for rows in expected))


@worth(2)
def test_any_tables(answer, draw):
    E, P = draw.normal(7, 3), 2 + draw.normal(4, 3)
    outcome = answer(E, P)
    outcome.holds(
        lambda y: type(y) is tuple and [x.shape for x in y] == [E.shape, P.shape],
        "It should return two tables with the shapes of E and P, as a tuple.",
    )
    outcome.holds(
        lambda y: torch.allclose(y[0][:, None] + y[1], E[:, None] + P),
        "A sum of a token's and a position's vector is no longer what it was.",
    )
    outcome.holds(
        lambda y: y[1].sum(dim=0).abs().max() < 1e-9, "The rows of the new P do not sum to zero."
    )
