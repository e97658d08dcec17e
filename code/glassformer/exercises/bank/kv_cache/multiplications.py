"""Exercise kv_cache.multiplications."""

import math

from glassformer.models import TransformerConfig

from ...definition import Exercise, worth

exercise = Exercise(
    "kv_cache.multiplications",
    title="What a step costs",
    minutes=15,
    statement=r"""
Count the multiplications in all matrix products of one decode step: one new token, which sees $S$ tokens, itself
included.

- In each block: queries and output projection, $d \times d$ each; keys and values, $d \times n_{kv} d_h$ each; SwiGLU's
  three matrices, $d \times h$ each.
- In each block: the scores of the new query with $S$ keys, and the weighted sum of $S$ values, in all $n_h$ heads.
- The head: $d \times |V|$.

Return a whole number. ($d_h = d / n_h$; norms and rotary turns are no matrix products.)
""",
    hints=(
        "One vector times an $a \\times b$ matrix costs $ab$ multiplications. Which matrices does the new token meet, and how "
        "often?",
        "A score is a dot product of $d_h$ numbers; there are $S$ of them in each of $n_h$ heads, so $S d$ in a block. The "
        "weighted sum costs as much again.",
        "`n_layers * (2 * dim * dim + 2 * dim * kv_dim + 3 * dim * hidden + 2 * dim * S) + vocab_size * dim`, with "
        "`kv_dim = n_kv_heads * (dim // n_heads)`.",
    ),
    explanation=r"""
The weights are met once, whatever came before; only the last term grows with the text, by $2 L d$ for each token seen.
Sharing key/value heads makes the cache smaller and saves work in two of the matrices, but none in the scores: every
*query* head still meets $S$ keys, whether they are its own or shared. For the chapter's model the sum is
18,688 + 128 $S$.
""",
    forbidden={
        name: f"`{name}` of the config counts this; write the formula down yourself."
        for name in ("multiplications", "flops_per_token", "num_params")
    },
)


@exercise.starter
def step_cost(vocab_size, dim, n_layers, n_heads, n_kv_heads, hidden, S):
    """Return the multiplications of one decode step, a whole number."""
    raise NotImplementedError("not attempted")


@exercise.solution
def step_cost(vocab_size, dim, n_layers, n_heads, n_kv_heads, hidden, S):
    kv_dim = n_kv_heads * (dim // n_heads)
    matrices = 2 * dim * dim + 2 * dim * kv_dim + 3 * dim * hidden
    scores_and_sums = 2 * dim * S
    return n_layers * (matrices + scores_and_sums) + vocab_size * dim


@exercise.style("head by head")
def step_cost(vocab_size, dim, n_layers, n_heads, n_kv_heads, hidden, S):
    size = dim // n_heads
    total = dim * vocab_size
    for _ in range(n_layers):
        for _ in range(n_heads):
            total += dim * size + S * size + S * size + size * dim  # query, scores, sum, output
        for _ in range(n_kv_heads):
            total += dim * size + dim * size
        total += dim * hidden + dim * hidden + hidden * dim
    return total


@exercise.style("by shapes")
def step_cost(vocab_size, dim, n_layers, n_heads, n_kv_heads, hidden, S):
    kv = dim * n_kv_heads // n_heads
    shapes = [(dim, dim), (dim, dim), (dim, kv), (dim, kv)]
    shapes += 3 * [(dim, hidden)] + 2 * [(dim, S)]
    return n_layers * sum(math.prod(shape) for shape in shapes) + dim * vocab_size


@exercise.mutant(
    "as without a cache",
    "Every token seen was multiplied through the whole model, as without a cache; in a decode step only the new one is.",
)
def step_cost(vocab_size, dim, n_layers, n_heads, n_kv_heads, hidden, S):
    kv_dim = n_kv_heads * (dim // n_heads)
    matrices = 2 * dim * dim + 2 * dim * kv_dim + 3 * dim * hidden
    return S * (n_layers * (matrices + 2 * dim * S) + vocab_size * dim)


@exercise.mutant(
    "scores by key heads",
    "The scores were counted for key heads only. Shared or not, each *query* head meets S keys: $n_h d_h = d$ "
    "multiplications for each.",
)
def step_cost(vocab_size, dim, n_layers, n_heads, n_kv_heads, hidden, S):
    kv_dim = n_kv_heads * (dim // n_heads)
    matrices = 2 * dim * dim + 2 * dim * kv_dim + 3 * dim * hidden
    return n_layers * (matrices + 2 * kv_dim * S) + vocab_size * dim


@exercise.mutant(
    "sum forgotten",
    "The scores are there, the weighted sum of the values is not; it costs as much again.",
)
def step_cost(vocab_size, dim, n_layers, n_heads, n_kv_heads, hidden, S):
    kv_dim = n_kv_heads * (dim // n_heads)
    matrices = 2 * dim * dim + 2 * dim * kv_dim + 3 * dim * hidden
    return n_layers * (matrices + dim * S) + vocab_size * dim


@exercise.mutant(
    "square of the length",
    "The table of scores was counted whole, $S$ rows of $S$; a decode step makes its last row alone.",
)
def step_cost(vocab_size, dim, n_layers, n_heads, n_kv_heads, hidden, S):
    kv_dim = n_kv_heads * (dim // n_heads)
    matrices = 2 * dim * dim + 2 * dim * kv_dim + 3 * dim * hidden
    return n_layers * (matrices + 2 * dim * S * S) + vocab_size * dim


@exercise.mutant(
    "nothing seen",
    "Scores and weighted sums are missing: the new query meets S keys, and the shares S values.",
)
def step_cost(vocab_size, dim, n_layers, n_heads, n_kv_heads, hidden, S):
    kv_dim = n_kv_heads * (dim // n_heads)
    matrices = 2 * dim * dim + 2 * dim * kv_dim + 3 * dim * hidden
    return n_layers * matrices + vocab_size * dim


@exercise.mutant(
    "itself left out",
    "One token too few is seen: S counts the new one, too, which meets its own key.",
)
def step_cost(vocab_size, dim, n_layers, n_heads, n_kv_heads, hidden, S):
    kv_dim = n_kv_heads * (dim // n_heads)
    matrices = 2 * dim * dim + 2 * dim * kv_dim + 3 * dim * hidden
    return n_layers * (matrices + 2 * dim * (S - 1)) + vocab_size * dim


@exercise.mutant(
    "full keys and values",
    "Keys and values were counted as wide as the queries; with shared heads they are $n_{kv} d_h$ wide.",
)
def step_cost(vocab_size, dim, n_layers, n_heads, n_kv_heads, hidden, S):
    return n_layers * (4 * dim * dim + 3 * dim * hidden + 2 * dim * S) + vocab_size * dim


@exercise.mutant(
    "two matrices of SwiGLU",
    "SwiGLU has three matrices: one for the gate, one for what may pass, one back.",
)
def step_cost(vocab_size, dim, n_layers, n_heads, n_kv_heads, hidden, S):
    kv_dim = n_kv_heads * (dim // n_heads)
    matrices = 2 * dim * dim + 2 * dim * kv_dim + 2 * dim * hidden
    return n_layers * (matrices + 2 * dim * S) + vocab_size * dim


@exercise.mutant(
    "head missing",
    "The output head is missing: $|V|$ logits of $d$ multiplications each, once, not in each block.",
)
def step_cost(vocab_size, dim, n_layers, n_heads, n_kv_heads, hidden, S):
    kv_dim = n_kv_heads * (dim // n_heads)
    matrices = 2 * dim * dim + 2 * dim * kv_dim + 3 * dim * hidden
    return n_layers * (matrices + 2 * dim * S)


def test_the_model_of_the_chapter(answer):
    answer(8, 32, 2, 4, 2, 64, 10).equals(18_688 + 128 * 10)


@worth(2)
def test_any_model(answer, draw):
    shared, kv, size, layers = (draw.whole(2, 6) for _ in range(4))
    V, S, multiplier = draw.whole(5, 99), draw.whole(5, 99), draw.pick([2.0, 3.0, 4.0], 1)[0]
    c = TransformerConfig(V, 2 * size * shared * kv, layers, shared * kv, kv, 99, multiplier)
    cost = answer(V, c.dim, layers, shared * kv, kv, c.ffn_hidden_dim, S)
    cost.equals(c.multiplications(1, past=S - 1))
