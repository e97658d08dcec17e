"""Exercise modern.parameters."""

import math

from glassformer.models import TransformerConfig

from ...definition import Exercise, worth

exercise = Exercise(
    "modern.parameters",
    title="Count before you build",
    minutes=15,
    statement=r"""
How many parameters has a LLaMA-style model? Count by formula, without building it. No part has a bias.

- Embedding and head, two tables of $|V| \cdot d$.
- In each of $L$ blocks: queries and output matrix, $d \times d$ each; keys and values, $d \times n_{kv} d_h$ each, with
  $d_h = d / n_h$; three matrices of SwiGLU, $d \times h$ each; two RMSNorms.
- One more RMSNorm before the head.

SwiGLU's hidden size $h$ is $\frac{2}{3} \cdot$ `multiplier` $\cdot\, d$, rounded *down* to a whole number and then *up* to a multiple
of 64.
""",
    hints=(
        "Begin with $h$: for $d = 32$ and a multiplier of 2 it is 42.67, so 42, so 64. How does one round up to a multiple?",
        "`64 * math.ceil(int(multiplier * dim * 2 / 3) / 64)`. A norm has $d$ weights, a scale and no shift.",
        "A block has `2 * dim * dim + 2 * dim * kv_dim + 3 * dim * hidden + 2 * dim`, with "
        "`kv_dim = n_kv_heads * (dim // n_heads)`; outside there are `2 * vocab_size * dim + dim`.",
    ),
    explanation=r"""
Shared key/value heads make two of the four attention matrices narrower; the other two keep $d \times d$, since all query heads
ask, and all their answers go back. Positions have no entry: rotary turns have nothing to learn. For the chapter's model
the sum is 19,104.
""",
    forbidden={
        "num_params": "`num_params` does the counting; write the formula down yourself.",
        "_draw": "This builds the model to count it; the point is to know its size before.",
        "ffn_hidden_dim": "`ffn_hidden_dim` of the config knows the hidden size; work it out yourself.",
    },
)


@exercise.starter
def count(vocab_size, dim, n_layers, n_heads, n_kv_heads, multiplier):
    """Return the number of parameters, a whole number.

    All are whole numbers but the multiplier.
    """
    raise NotImplementedError("not attempted")


@exercise.solution
def count(vocab_size, dim, n_layers, n_heads, n_kv_heads, multiplier):
    kv_dim = n_kv_heads * (dim // n_heads)
    hidden = 64 * math.ceil(int(multiplier * dim * 2 / 3) / 64)
    attention = 2 * dim * dim + 2 * dim * kv_dim
    block = attention + 3 * dim * hidden + 2 * dim
    return 2 * vocab_size * dim + n_layers * block + dim


@exercise.style("by shapes")
def count(vocab_size, dim, n_layers, n_heads, n_kv_heads, multiplier):
    hidden = int(2 * dim * multiplier / 3)
    while hidden % 64:
        hidden += 1
    kv = dim * n_kv_heads // n_heads
    shapes = [(vocab_size, dim), (dim,), (vocab_size, dim)]
    block = [(dim,), (dim, dim), (kv, dim), (kv, dim), (dim, dim)]
    block += [(dim,), (hidden, dim), (hidden, dim), (dim, hidden)]
    return sum(math.prod(shape) for shape in shapes + n_layers * block)


@exercise.style("weights for each number of the width")
def count(vocab_size, dim, n_layers, n_heads, n_kv_heads, multiplier):
    hidden = -(-int(multiplier * dim * 2 / 3) // 64) * 64
    each = 2 * dim + 2 * dim // n_heads * n_kv_heads + 3 * hidden + 2
    return dim * (2 * vocab_size + n_layers * each + 1)


@exercise.mutant(
    "keys for every head",
    "Keys and values were counted as wide as the queries; shared heads make their matrices $d \\times n_{kv} d_h$.",
)
def count(vocab_size, dim, n_layers, n_heads, n_kv_heads, multiplier):
    hidden = 64 * math.ceil(int(multiplier * dim * 2 / 3) / 64)
    block = 4 * dim * dim + 3 * dim * hidden + 2 * dim
    return 2 * vocab_size * dim + n_layers * block + dim


@exercise.mutant(
    "not rounded up",
    "The hidden size was not rounded up to a multiple of 64.",
)
def count(vocab_size, dim, n_layers, n_heads, n_kv_heads, multiplier):
    kv_dim = n_kv_heads * (dim // n_heads)
    hidden = int(multiplier * dim * 2 / 3)
    block = 2 * dim * dim + 2 * dim * kv_dim + 3 * dim * hidden + 2 * dim
    return 2 * vocab_size * dim + n_layers * block + dim


@exercise.mutant(
    "rounded to the nearest",
    "The hidden size was rounded to the nearest multiple of 64; it is rounded *up*.",
)
def count(vocab_size, dim, n_layers, n_heads, n_kv_heads, multiplier):
    kv_dim = n_kv_heads * (dim // n_heads)
    hidden = 64 * round(int(multiplier * dim * 2 / 3) / 64)
    block = 2 * dim * dim + 2 * dim * kv_dim + 3 * dim * hidden + 2 * dim
    return 2 * vocab_size * dim + n_layers * block + dim


@exercise.mutant(
    "one block of 64 too many",
    "The hidden size is 64 too large where it was a multiple of 64 before: there is nothing to round up then.",
)
def count(vocab_size, dim, n_layers, n_heads, n_kv_heads, multiplier):
    kv_dim = n_kv_heads * (dim // n_heads)
    hidden = 64 * (int(multiplier * dim * 2 / 3) // 64 + 1)
    block = 2 * dim * dim + 2 * dim * kv_dim + 3 * dim * hidden + 2 * dim
    return 2 * vocab_size * dim + n_layers * block + dim


@exercise.mutant(
    "two thirds forgotten",
    "The hidden size is half as large again: the two thirds are missing, which pay for SwiGLU's third matrix.",
)
def count(vocab_size, dim, n_layers, n_heads, n_kv_heads, multiplier):
    kv_dim = n_kv_heads * (dim // n_heads)
    hidden = 64 * math.ceil(int(multiplier * dim) / 64)
    block = 2 * dim * dim + 2 * dim * kv_dim + 3 * dim * hidden + 2 * dim
    return 2 * vocab_size * dim + n_layers * block + dim


@exercise.mutant(
    "two matrices of SwiGLU",
    "SwiGLU was counted with two matrices; it has three: gate, up and down.",
)
def count(vocab_size, dim, n_layers, n_heads, n_kv_heads, multiplier):
    kv_dim = n_kv_heads * (dim // n_heads)
    hidden = 64 * math.ceil(int(multiplier * dim * 2 / 3) / 64)
    block = 2 * dim * dim + 2 * dim * kv_dim + 2 * dim * hidden + 2 * dim
    return 2 * vocab_size * dim + n_layers * block + dim


@exercise.mutant(
    "no output matrix",
    "The output matrix of attention, which mixes the heads, is missing in each block.",
)
def count(vocab_size, dim, n_layers, n_heads, n_kv_heads, multiplier):
    kv_dim = n_kv_heads * (dim // n_heads)
    hidden = 64 * math.ceil(int(multiplier * dim * 2 / 3) / 64)
    block = dim * dim + 2 * dim * kv_dim + 3 * dim * hidden + 2 * dim
    return 2 * vocab_size * dim + n_layers * block + dim


@exercise.mutant(
    "norms with a shift",
    "The norms were counted with a scale and a shift, like LayerNorm; RMSNorm has a scale alone.",
)
def count(vocab_size, dim, n_layers, n_heads, n_kv_heads, multiplier):
    kv_dim = n_kv_heads * (dim // n_heads)
    hidden = 64 * math.ceil(int(multiplier * dim * 2 / 3) / 64)
    block = 2 * dim * dim + 2 * dim * kv_dim + 3 * dim * hidden + 4 * dim
    return 2 * vocab_size * dim + n_layers * block + 2 * dim


@exercise.mutant(
    "last norm missing",
    "The norm before the head is missing: in a pre-norm model the stream itself may have any size at its end.",
)
def count(vocab_size, dim, n_layers, n_heads, n_kv_heads, multiplier):
    kv_dim = n_kv_heads * (dim // n_heads)
    hidden = 64 * math.ceil(int(multiplier * dim * 2 / 3) / 64)
    block = 2 * dim * dim + 2 * dim * kv_dim + 3 * dim * hidden + 2 * dim
    return 2 * vocab_size * dim + n_layers * block


@exercise.mutant(
    "one table",
    "Embedding and head were counted once, as if they were tied; here they are two tables.",
)
def count(vocab_size, dim, n_layers, n_heads, n_kv_heads, multiplier):
    kv_dim = n_kv_heads * (dim // n_heads)
    hidden = 64 * math.ceil(int(multiplier * dim * 2 / 3) / 64)
    block = 2 * dim * dim + 2 * dim * kv_dim + 3 * dim * hidden + 2 * dim
    return vocab_size * dim + n_layers * block + dim


def test_the_model_of_the_chapter(answer):
    answer(8, 32, 2, 4, 2, 2.0).equals(19_104)


def test_hidden_sizes_that_are_rounded(answer):
    answer(8, 192, 2, 4, 2, 2.0).equals(TransformerConfig(8, 192, 2, 4, 2, 16, 2.0).num_params())
    answer(8, 32, 2, 4, 2, 4.0).equals(TransformerConfig(8, 32, 2, 4, 2, 16, 4.0).num_params())


@worth(2)
def test_any_model(answer, draw):
    shared, kv, layers, V = draw.whole(2, 4), draw.whole(2, 4), draw.whole(2, 9), draw.whole(9, 99)
    dim, multiplier = 4 * shared * kv, draw.pick([2.0, 3.5, 4.0, 6.0], 1)[0]
    c = TransformerConfig(V, dim, layers, shared * kv, kv, 16, multiplier)
    answer(V, dim, layers, shared * kv, kv, multiplier).equals(c.num_params())
