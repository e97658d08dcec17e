"""Exercise model.parameters."""

import math

from glassformer.models import BabyGrootGPT

from ...definition import Exercise, worth

exercise = Exercise(
    "model.parameters",
    title="Count BabyGroot",
    minutes=15,
    statement=r"""
How many parameters has a BabyGroot with $|V|$ tokens, a window of $T$ places and vectors of $d$
numbers? Count by formula, without building it:

- two embeddings: a vector for each token, a vector for each place;
- attention: query, key and value, each a $d \times d$ matrix and a bias; no output projection;
- two layer norms, each with a scale and a shift;
- the feed-forward network: from $d$ to $2d$ and back, both with biases;
- the head: from $d$ to the $|V|$ scores, with a bias.
""",
    hints=(
        "A linear layer from $a$ to $b$ numbers has $ab$ weights and, with a bias, $b$ more.",
        "Attention has $3 (d^2 + d)$, the two norms $2 \\cdot 2d$.",
        "The feed-forward network has $2d^2 + 2d$ on the way up and $2d^2 + d$ on the way down. "
        "For 24 tokens, 4 places and $d = 8$, all must sum to 968.",
    ),
    explanation=r"""
Term by term: $|V| d + T d$ for the embeddings, $3 (d^2 + d)$ for attention, $4d$ for the norms,
$4d^2 + 3d$ for the feed-forward network, $d |V| + |V|$ for the head. The two tables grow with
the vocabulary, the block with the square of the width: in BabyGroot they are of one size, in large models
the blocks win.
""",
    forbidden={
        name: "The model was built and its parameters were counted; count them by the formula, which "
        "also works for models too large to build."
        for name in ("numel", "num_params")
    },
)


@exercise.starter
def count_parameters(vocab_size, max_len, embed_dim):
    """Return the number of parameters of BabyGrootGPT(vocab_size, max_len, embed_dim)."""
    raise NotImplementedError("not attempted")


@exercise.solution
def count_parameters(vocab_size, max_len, embed_dim):
    d = embed_dim
    embeddings = vocab_size * d + max_len * d
    attention = 3 * (d * d + d)
    norms = 2 * (d + d)
    feed_forward = (d * 2 * d + 2 * d) + (2 * d * d + d)
    head = d * vocab_size + vocab_size
    return embeddings + attention + norms + feed_forward + head


@exercise.style("one polynomial")
def count_parameters(vocab_size, max_len, embed_dim):
    return 7 * embed_dim**2 + (10 + 2 * vocab_size + max_len) * embed_dim + vocab_size


@exercise.style("from shapes")
def count_parameters(vocab_size, max_len, embed_dim):
    d = embed_dim
    shapes = [(vocab_size, d), (max_len, d), *3 * [(d, d), (d,)], *4 * [(d,)]]
    shapes += [(2 * d, d), (2 * d,), (d, 2 * d), (d,), (vocab_size, d), (vocab_size,)]
    return sum(math.prod(shape) for shape in shapes)


@exercise.style("layer by layer")
def count_parameters(vocab_size, max_len, embed_dim):
    def linear(a, b):
        return (a + 1) * b

    tables = (vocab_size + max_len) * embed_dim
    block = 3 * linear(embed_dim, embed_dim) + 4 * embed_dim
    block += linear(embed_dim, 2 * embed_dim) + linear(2 * embed_dim, embed_dim)
    return tables + block + linear(embed_dim, vocab_size)


@exercise.mutant(
    "no biases",
    "The biases are missing: every linear layer of BabyGroot adds one to each number that it gives.",
)
def count_parameters(vocab_size, max_len, embed_dim):
    d = embed_dim
    return (2 * vocab_size + max_len) * d + 3 * d * d + 4 * d + 4 * d * d


@exercise.mutant(
    "positions forgotten",
    "The position embedding is missing: each of the `max_len` places has a vector of its own.",
)
def count_parameters(vocab_size, max_len, embed_dim):
    d = embed_dim
    return 7 * d * d + (10 + 2 * vocab_size) * d + vocab_size


@exercise.mutant(
    "norms forgotten",
    "The two layer norms are missing: each has a scale and a shift of $d$ numbers.",
)
def count_parameters(vocab_size, max_len, embed_dim):
    d = embed_dim
    return 7 * d * d + (6 + 2 * vocab_size + max_len) * d + vocab_size


@exercise.mutant(
    "one norm",
    "Only one layer norm is counted; one follows attention, another the feed-forward network.",
)
def count_parameters(vocab_size, max_len, embed_dim):
    d = embed_dim
    return 7 * d * d + (8 + 2 * vocab_size + max_len) * d + vocab_size


@exercise.mutant(
    "head shared",
    "The head is counted as if it shared the token embedding's table; here it has a matrix of its own.",
)
def count_parameters(vocab_size, max_len, embed_dim):
    d = embed_dim
    return 7 * d * d + (10 + vocab_size + max_len) * d + vocab_size


@exercise.mutant(
    "output projection",
    "An output projection is counted after attention, as the original Transformer has it; BabyGroot "
    "adds the context to the stream as it is.",
)
def count_parameters(vocab_size, max_len, embed_dim):
    d = embed_dim
    return 8 * d * d + (11 + 2 * vocab_size + max_len) * d + vocab_size


@exercise.mutant(
    "four times as wide",
    "The feed-forward network is counted four times as wide as the stream, the usual choice; "
    "BabyGroot's is twice as wide.",
)
def count_parameters(vocab_size, max_len, embed_dim):
    d = embed_dim
    return 11 * d * d + (12 + 2 * vocab_size + max_len) * d + vocab_size


@exercise.mutant(
    "a decimal number",
    "The count is a decimal number; a count is whole: use `//`, or no division at all.",
)
def count_parameters(vocab_size, max_len, embed_dim):
    d = embed_dim
    return 14 * d * d / 2 + (10 + 2 * vocab_size + max_len) * d + vocab_size


@exercise.mutant("counted, not computed", exercise.forbidden["numel"])
def count_parameters(vocab_size, max_len, embed_dim):
    model = BabyGrootGPT(vocab_size, max_len, embed_dim)
    return sum(weight.numel() for weight in model.parameters())


def test_baby_groot(answer):
    answer(24, 4, 8).equals(968)


@worth(2)
def test_any_size(answer, draw):
    for _ in range(3):
        sizes = draw.whole(3, 90), draw.whole(3, 20), draw.whole(2, 40)
        answer(*sizes).equals(BabyGrootGPT(*sizes).num_params())
