"""Exercise modern.rotate."""

import math

import torch

from glassformer.models import rotary_table, rotate

from ...definition import Exercise, worth

exercise = Exercise(
    "modern.rotate",
    title="Turn the pairs, wherever the text begins",
    minutes=15,
    statement=r"""
Turn each pair of neighbours $(x_0, x_1), (x_2, x_3), \dots$ of every head's vectors by the angle of its position:

$$
\begin{aligned}
x_0' &= x_0 \cos a - x_1 \sin a \\
x_1' &= x_0 \sin a + x_1 \cos a
\end{aligned}
$$

Row $t$ of `angles` belongs to position $t$ of the text. The $T$ tokens of `x` are a piece of it: the first of them stands at
position `start`.
""",
    hints=(
        "Which $T$ rows of `angles` belong to the piece? What shape do they have, and along which of `x`'s dimensions do they "
        "go?",
        "`x[..., 0::2]` has the first number of every pair, `x[..., 1::2]` the second, both `(B, H, T, D/2)`. The rows "
        "`angles[start : start + T]` fit these as they are.",
        "`torch.stack((y0, y1), dim=-1).flatten(-2)` puts the pairs back, side by side.",
    ),
    explanation=r"""
The heads share the table: `(T, D/2)` is spread over `(B, H, T, D/2)` from the right. A turn changes no length. Because a score
depends on the difference of two angles alone, a whole text may begin at any `start`; but a *piece* must go on where the piece
before it ended, or the distances between the two are wrong.
""",
    forbidden={"rotate": "`rotate` of the package turns the pairs; write out cosine and sine."},
)


@exercise.starter
def turn_pairs(x, angles, start):
    """Return x with every pair turned, [B, H, T, D].

    x: [B, H, T, D]; angles: [length, D/2], radians; start: position of the first token of x.
    """
    raise NotImplementedError("not attempted")


@exercise.solution
def turn_pairs(x, angles, start):
    a = angles[start : start + x.shape[2]]  # [T, D/2]
    x0, x1 = x[..., 0::2], x[..., 1::2]  # [B, H, T, D/2] each
    y0 = x0 * a.cos() - x1 * a.sin()
    y1 = x0 * a.sin() + x1 * a.cos()
    return torch.stack((y0, y1), dim=-1).flatten(-2)  # [B, H, T, D/2, 2] -> [B, H, T, D]


@exercise.style("complex numbers")
def turn_pairs(x, angles, start):
    a = angles.narrow(0, start, x.shape[2])
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(a), a)).flatten(-2)


@exercise.style("einsum")
def turn_pairs(x, angles, start):
    a = angles[start:][: x.shape[2]]
    turns = torch.stack((a.cos(), -a.sin(), a.sin(), a.cos()), dim=-1).unflatten(-1, (2, 2))
    return torch.einsum("tpij,bhtpj->bhtpi", turns, x.unflatten(-1, (-1, 2))).reshape(x.shape)


@exercise.style("token by token")
def turn_pairs(x, angles, start):
    y = torch.empty_like(x)
    for t in range(x.shape[2]):
        for i, a in enumerate(angles[start + t].tolist()):
            x0, x1 = x[:, :, t, 2 * i], x[:, :, t, 2 * i + 1]
            y[:, :, t, 2 * i] = x0 * math.cos(a) - x1 * math.sin(a)
            y[:, :, t, 2 * i + 1] = x0 * math.sin(a) + x1 * math.cos(a)
    return y


@exercise.mutant(
    "from position 0",
    "The piece was turned as if it stood at the beginning of the text; its first token stands at position `start`.",
)
def turn_pairs(x, angles, start):
    a = angles[: x.shape[2]]
    x0, x1 = x[..., 0::2], x[..., 1::2]
    y = (x0 * a.cos() - x1 * a.sin(), x0 * a.sin() + x1 * a.cos())
    return torch.stack(y, dim=-1).flatten(-2)


@exercise.mutant(
    "all at the start",
    "All tokens were turned by the angles of `start`; the one after it stands at `start` + 1, and so on. Without that, no "
    "distance is told.",
)
def turn_pairs(x, angles, start):
    a = angles[start]
    x0, x1 = x[..., 0::2], x[..., 1::2]
    y = (x0 * a.cos() - x1 * a.sin(), x0 * a.sin() + x1 * a.cos())
    return torch.stack(y, dim=-1).flatten(-2)


@exercise.mutant(
    "the other way round",
    "The pairs were turned the other way, by −a: the minus belongs to $x_0'$.",
)
def turn_pairs(x, angles, start):
    a = angles[start : start + x.shape[2]]
    x0, x1 = x[..., 0::2], x[..., 1::2]
    y = (x0 * a.cos() + x1 * a.sin(), x1 * a.cos() - x0 * a.sin())
    return torch.stack(y, dim=-1).flatten(-2)


@exercise.mutant(
    "no minus",
    "Both lines have a plus, which is no turn and changes lengths: $x_0'$ is $x_0 \\cos a - x_1 \\sin a$.",
)
def turn_pairs(x, angles, start):
    a = angles[start : start + x.shape[2]]
    x0, x1 = x[..., 0::2], x[..., 1::2]
    y = (x0 * a.cos() + x1 * a.sin(), x0 * a.sin() + x1 * a.cos())
    return torch.stack(y, dim=-1).flatten(-2)


@exercise.mutant(
    "halves paired",
    "Number $i$ was paired with number $i + D/2$, as the Hugging Face port does; this course pairs neighbours, (0, 1), (2, 3) and "
    "so on.",
)
def turn_pairs(x, angles, start):
    a = angles[start : start + x.shape[2]]
    x0, x1 = x.chunk(2, dim=-1)
    return torch.cat((x0 * a.cos() - x1 * a.sin(), x0 * a.sin() + x1 * a.cos()), dim=-1)


@exercise.mutant(
    "left apart",
    "The turns are right, but all first numbers stand on the left and all second ones on the right; put each pair back side by "
    "side: `stack` in a last dimension, then `flatten(-2)`.",
)
def turn_pairs(x, angles, start):
    a = angles[start : start + x.shape[2]]
    x0, x1 = x[..., 0::2], x[..., 1::2]
    return torch.cat((x0 * a.cos() - x1 * a.sin(), x0 * a.sin() + x1 * a.cos()), dim=-1)


@exercise.mutant(
    "in turn",
    "The second number was turned with the *new* first one; both lines use the old $x_0$ and $x_1$.",
)
def turn_pairs(x, angles, start):
    a = angles[start : start + x.shape[2]]
    x0, x1 = x[..., 0::2], x[..., 1::2]
    x0 = x0 * a.cos() - x1 * a.sin()
    x1 = x0 * a.sin() + x1 * a.cos()
    return torch.stack((x0, x1), dim=-1).flatten(-2)


@exercise.mutant("ready-made", exercise.forbidden["rotate"])
def turn_pairs(x, angles, start):
    from glassformer.models import rotate

    a = angles[start : start + x.shape[2]]
    return rotate(x, torch.polar(torch.ones_like(a), a))


def test_a_quarter_and_a_half_turn_by_hand(answer):
    x = torch.tensor([[[[1.0, 2.0, 3.0, 4.0]]]], dtype=torch.float64)
    quarters = torch.tensor([[0.0, 0.0], [1.0, 2.0], [2.0, 4.0]], dtype=torch.float64)
    expected = torch.tensor([[[[-2.0, 1.0, -3.0, -4.0]]]], dtype=torch.float64)
    answer(x, quarters * torch.pi / 2, 1).equals(expected)


@worth(2)
def test_any_piece(answer, draw):
    T, D, start = 3, 6, draw.whole(1, 4)
    x, turns = draw.normal(2, 4, T, D), rotary_table(D, 9, 30.0)
    expected = rotate(x, turns[start : start + T])
    answer(x, turns.angle(), start).equals(expected)
