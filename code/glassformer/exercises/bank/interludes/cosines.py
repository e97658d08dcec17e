"""Exercise interludes.cosines."""

import torch
import torch.nn.functional as F

from ...definition import Exercise, worth

exercise = Exercise(
    "interludes.cosines",
    title="Which way they point",
    minutes=10,
    statement=r"""
Two vectors point the same way when their cosine is near 1: the dot product divided by both lengths,

$$
\cos(a, b) = \frac{a \cdot b}{\lvert a \rvert \, \lvert b \rvert} .
$$

Return the cosines of all pairs of rows of a table, as a matrix whose entry `[i, j]` is that of rows $i$
and $j$.
""",
    hints=(
        "First make all rows equally long. What is left of a dot product's size then?",
        "`E.norm(dim=1, keepdim=True)` is the length of each row, shape `(V, 1)`, so that a division goes "
        "row by row.",
        "With `unit = E / E.norm(dim=1, keepdim=True)` all dot products are `unit @ unit.T`.",
    ),
    explanation=r"""
A row divided by its own length has length 1, and of two such rows the dot product *is* the cosine. The matrix
product of the table with its own transpose takes all pairs at once: $[V, d] \cdot [d, V] \to [V, V]$. Its
diagonal is 1, as each row points where it points. `keepdim=True` keeps the lengths as a column; without it,
a square table would be divided column by column, and nothing would complain.
""",
    forbidden={
        name: f"`{name}` has the formula inside; here, write it with a product and two lengths."
        for name in ("cosine_similarity", "corrcoef")
    },
)


@exercise.starter
def cosines(E):
    """Return the cosine of each pair of rows, [V, V].

    E: [V, d], no row of zeros.
    """
    raise NotImplementedError("not attempted")


@exercise.solution
def cosines(E):
    unit = E / E.norm(dim=1, keepdim=True)  # [V, d] / [V, 1] -> [V, d]
    return unit @ unit.T  # [V, d] @ [d, V] -> [V, V]


@exercise.style("loop")
def cosines(E):
    table = torch.zeros(len(E), len(E), dtype=E.dtype)
    for i, a in enumerate(E):
        for j, b in enumerate(E):
            table[i, j] = (a * b).sum() / ((a * a).sum() * (b * b).sum()) ** 0.5
    return table


@exercise.style("einsum")
def cosines(E):
    lengths = (E**2).sum(dim=-1).sqrt()
    return torch.einsum("id,jd->ij", E, E) / torch.outer(lengths, lengths)


@exercise.style("F.normalize")
def cosines(E):
    unit = F.normalize(E, dim=-1)
    return torch.nn.functional.linear(unit, unit)


@exercise.mutant(
    "dot products",
    "These are plain dot products: long vectors win, whichever way they point. Divide by both lengths.",
)
def cosines(E):
    return E @ E.T


@exercise.mutant(
    "one length",
    "Each product is divided by one of the two lengths only, so `[i, j]` and `[j, i]` differ; a cosine does "
    "not ask which comes first.",
)
def cosines(E):
    return E @ E.T / E.norm(dim=1, keepdim=True)


@exercise.mutant(
    "columns made equal",
    "The columns were made equally long. A token's vector is a *row*: take the lengths along the row, "
    "`dim=1`.",
)
def cosines(E):
    unit = E / E.norm(dim=0, keepdim=True)
    return unit @ unit.T


@exercise.mutant(
    "one length for the table",
    "All rows were divided by one and the same number, the size of the whole table; each row has a length "
    "of its own.",
)
def cosines(E):
    return E @ E.T / E.norm() ** 2


@exercise.mutant(
    "means taken away",
    "The mean of each row was taken away first: that is a correlation. A cosine measures directions "
    "from zero, mean and all.",
)
def cosines(E):
    E = E - E.mean(dim=1, keepdim=True)
    unit = E / E.norm(dim=1, keepdim=True).clamp(min=1e-12)
    return unit @ unit.T


@exercise.mutant(
    "without sign",
    "The sign is lost: opposite vectors have the cosine −1, and are as unlike as can be.",
)
def cosines(E):
    unit = E / E.norm(dim=1, keepdim=True)
    return (unit @ unit.T).abs()


@exercise.mutant(
    "the other product",
    "The table was multiplied the other way round, `E.T @ E`: that compares the columns with each other, "
    "`[d, d]`, and no one assigned meanings to columns.",
)
def cosines(E):
    unit = E / E.norm(dim=1, keepdim=True)
    return unit.T @ unit


@exercise.mutant("ready-made", exercise.forbidden["cosine_similarity"])
def cosines(E):
    return F.cosine_similarity(E[:, None], E[None], dim=-1)


def test_four_rows_by_hand(answer):
    E = torch.tensor([[3.0, 4.0], [8.0, 6.0], [-4.0, 3.0], [-6.0, -8.0]], dtype=torch.float64)
    rows = [[1, 0.96, 0, -1], [0.96, 1, -0.28, -0.96], [0, -0.28, 1, 0], [-1, -0.96, 0, 1]]
    answer(E).equals(torch.tensor(rows, dtype=torch.float64))


@worth(2)
def test_any_table(answer, draw):
    for V, d in ((7, 3), (5, 5)):  # a square one, too: nothing there complains of a wrong side
        E = draw.normal(V, d) * (1 + draw.ids(9, V, 1))
        answer(E).equals(F.cosine_similarity(E[:, None], E[None], dim=-1))
