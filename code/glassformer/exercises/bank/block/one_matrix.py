"""Exercise block.one_matrix."""

import torch

from ...definition import Exercise, worth

exercise = Exercise(
    "block.one_matrix",
    title="Two matrices without a bend",
    minutes=10,
    statement=r"""
Take ReLU out of a feed-forward network, and its two layers collapse into one:

$$
W_2 (W_1 n + b_1) + b_2 = W n + b \qquad \text{for every } n .
$$

Return that one matrix and that one bias.
""",
    hints=(
        "Multiply the left side out. Which terms hold $n$, and which do not?",
        "$W_2 W_1 n$ and $W_2 b_1 + b_2$: what does the second layer do to the first one's bias?",
        "`W2 @ W1` is `[d, hidden] @ [hidden, d]`, and `W2 @ b1 + b2` is the bias; return both as a tuple.",
    ),
    explanation=r"""
$W = W_2 W_1$, in the order in which one would apply them from right to left, and $b = W_2 b_1 + b_2$, for the first
bias goes through the second matrix like everything else. However wide the middle, $W$ is `[d, d]`: in
BabyGroot 280 parameters with the powers of 72. It is the bend that makes the width count.
""",
)


@exercise.starter
def one_matrix(W1, b1, W2, b2):
    """Return (W, b), a tuple of [d, d] and [d]: one layer that does the work of both.

    W1: [hidden, d]; b1: [hidden]; W2: [d, hidden]; b2: [d].
    """
    raise NotImplementedError("not attempted")


@exercise.solution
def one_matrix(W1, b1, W2, b2):
    return W2 @ W1, W2 @ b1 + b2  # [d, hidden] @ [hidden, d], [d, hidden] @ [hidden] + [d]


@exercise.style("asked of the network")
def one_matrix(W1, b1, W2, b2):
    def network(n):
        return (n @ W1.T + b1) @ W2.T + b2

    d = W1.shape[1]
    b = network(torch.zeros(d, dtype=W1.dtype))  # what is left where nothing comes in
    return (network(torch.eye(d, dtype=W1.dtype)) - b).T, b


@exercise.style("einsum")
def one_matrix(W1, b1, W2, b2):
    W = torch.einsum("oh,hi->oi", W2, W1)
    return W, torch.einsum("oh,h->o", W2, b1) + b2


@exercise.style("the bias as a column")
def one_matrix(W1, b1, W2, b2):
    both = W2 @ torch.cat([W1, b1[:, None]], dim=1)  # [d, d + 1]
    return both[:, :-1], both[:, -1] + b2


@exercise.mutant(
    "the other order",
    "The matrices are multiplied in the other order. $n$ meets $W_1$ first, so $W_1$ stands next to it: "
    "$W_2 W_1$.",
)
def one_matrix(W1, b1, W2, b2):
    return W1 @ W2, W2 @ b1 + b2


@exercise.mutant(
    "biases added",
    "The biases were merely added. The first goes through the second matrix like everything that the first layer "
    "puts out: $W_2 b_1 + b_2$.",
)
def one_matrix(W1, b1, W2, b2):
    return W2 @ W1, b1 + b2


@exercise.mutant(
    "first bias lost",
    "The first bias is lost: where $n = 0$, the first layer still gives $b_1$, and the second makes $W_2 b_1$ of it.",
)
def one_matrix(W1, b1, W2, b2):
    return W2 @ W1, b2.clone()


@exercise.mutant(
    "second bias lost",
    "The second bias is lost; it is added at the very end, to whatever the second matrix gives.",
)
def one_matrix(W1, b1, W2, b2):
    return W2 @ W1, W2 @ b1


@exercise.mutant(
    "bent bias",
    "ReLU is still at work on the first bias. With the bend taken out, negative biases stay as they are.",
)
def one_matrix(W1, b1, W2, b2):
    return W2 @ W1, W2 @ b1.clamp(min=0) + b2


@exercise.mutant(
    "transposed",
    "The matrix came out as `[in, out]`; store it as the other two are, `[out, in]`, so that row $j$ makes "
    "number $j$.",
)
def one_matrix(W1, b1, W2, b2):
    return W1.T @ W2.T, W2 @ b1 + b2


@exercise.mutant(
    "a sum",
    "The matrices were added. One after the other is a product: what goes into $W_2$ is what comes out of $W_1$.",
)
def one_matrix(W1, b1, W2, b2):
    return W1 + W2, W2 @ b1 + b2


def test_two_by_two_by_hand(answer):
    W1 = torch.tensor([[1.0, 2.0], [0.0, 1.0]], dtype=torch.float64)
    W2 = torch.tensor([[1.0, 0.0], [3.0, 1.0]], dtype=torch.float64)
    b1 = torch.tensor([1.0, -2.0], dtype=torch.float64)
    b2 = torch.tensor([10.0, 20.0], dtype=torch.float64)
    W, b = torch.tensor([[1.0, 2.0], [3.0, 7.0]]).double(), torch.tensor([11.0, 21.0]).double()
    answer(W1, b1, W2, b2).equals((W, b))


@worth(2)
def test_any_network(answer, draw):
    d, hidden = 3, 5
    W1, b1, W2, b2 = (
        draw.normal(hidden, d),
        draw.normal(hidden),
        draw.normal(d, hidden),
        draw.normal(d),
    )
    b1[0] = -1 - b1[0].abs()  # one that a bend would remove
    n = draw.normal(6, d)
    outcome = answer(W1, b1, W2, b2)
    outcome.holds(
        lambda y: type(y) is tuple and [list(x.shape) for x in y] == [[d, d], [d]],
        "It should return a matrix [d, d] and a bias [d], as a tuple.",
    )
    outcome.holds(
        lambda y: torch.allclose(n @ y[0].T + y[1], (n @ W1.T + b1) @ W2.T + b2),
        "For some rows the one layer does not give what the two give.",
    )
