"""Exercise m1.look_back."""

from glassformer.models import TransformerConfig

from ...definition import Exercise, worth

exercise = Exercise(
    "m1.look_back",
    title="A finding: when looking back costs the most",
    minutes=12,
    statement=r"""
The first token of a text costs what its way through the matrices costs. Each later one costs as much, and besides it looks back at
all that came before it. Here is the plain design of the chapter with a longer window:

```python
TransformerConfig(vocab_size=2048, dim=128, n_layers=4, n_heads=4, n_kv_heads=2, max_seq_len=4096)
```

**Which token of a text is the first whose looking back costs more than all the rest of its work?** Count tokens from 1;
`config.flops_per_token(n)` gives the operations for the $n$-th, which sees $n$ tokens, itself among them. Write the experiment;
the function returns $n$.
""",
    hints=(
        "What does the first token cost, and what part of a later one's operations is looking back?",
        "Looking back is `config.flops_per_token(n) - config.flops_per_token(1)`; the rest of the work is the same for every token.",
        "The smallest `n` with `config.flops_per_token(n) > 2 * config.flops_per_token(1)`: `next(n for n in range(1, 4097) if …)`.",
    ),
    explanation=r"""
The 1,027th. Looking back grows by $4 L d$ operations with each token, here 2,048, and the rest is 2,099,200 for every token: 1,025
tokens to look back at cost just as much, 1,026 outweigh it. With the plain window of 256 it never comes to that, and *twice the parameters* is a fair
estimate; with a window of thousands it no longer is. The width of the heads and the number of key/value heads do not
matter here: every query head looks at every token.
""",
)

DESIGN = TransformerConfig(2048, 128, 4, 4, 2, max_seq_len=4096)


@exercise.starter
def first_of_many():
    """Return the number of the first token that works more on looking back than on the rest."""
    raise NotImplementedError("not attempted")


@exercise.solution
def first_of_many():
    config = TransformerConfig(2048, 128, 4, 4, 2, max_seq_len=4096)
    rest = config.flops_per_token(1)  # what the first token costs, and each of the others too
    return next(n for n in range(1, 4097) if config.flops_per_token(n) - rest > rest)


@exercise.style("loop")
def first_of_many():
    config = TransformerConfig(
        vocab_size=2048, dim=128, n_layers=4, n_heads=4, n_kv_heads=2, max_seq_len=4096
    )
    n = 1
    while config.flops_per_token(n) <= 2 * config.flops_per_token(1):
        n += 1
    return n


@exercise.style("a straight line")
def first_of_many():
    config = TransformerConfig(2048, 128, 4, 4, 2, max_seq_len=4096)
    first, second = config.flops_per_token(1), config.flops_per_token(2)
    return 2 + first // (second - first)


@exercise.mutant(
    "tokens before it",
    "One too few: this is how many tokens it looks back at, or the token for which both cost the same. The first with more is "
    "one further.",
)
def first_of_many():
    config = TransformerConfig(2048, 128, 4, 4, 2, max_seq_len=4096)
    rest = config.flops_per_token(1)
    return next(n for n in range(4096) if config.flops_per_token(n + 1) - rest > rest)


@exercise.mutant(
    "twice the parameters",
    "The rest was taken for twice the parameters. That is too high here: the rows of the embedding are looked up, not multiplied.",
)
def first_of_many():
    config = TransformerConfig(2048, 128, 4, 4, 2, max_seq_len=4096)
    first, rest = config.flops_per_token(1), 2 * config.num_params()
    return next(n for n in range(1, 4097) if config.flops_per_token(n) - first > rest)


@exercise.mutant(
    "more than the first",
    "This is the first token that costs more than the first one at all, by however little. Its looking back must outweigh the rest.",
)
def first_of_many():
    config = TransformerConfig(2048, 128, 4, 4, 2, max_seq_len=4096)
    rest = config.flops_per_token(1)
    return next(n for n in range(1, 4097) if config.flops_per_token(n) > rest)


@exercise.mutant(
    "multiplications and operations",
    "Looking back was measured in operations, the rest in multiplications: an operation is a multiplication *or* its addition, so "
    "there are twice as many.",
)
def first_of_many():
    config = TransformerConfig(2048, 128, 4, 4, 2, max_seq_len=4096)
    first, rest = config.flops_per_token(1), config.multiplications(1)
    return next(n for n in range(1, 4097) if config.flops_per_token(n) - first > rest)


@exercise.mutant(
    "the whole text",
    "All looking back since the start of the text was added up; the question is what one token costs.",
)
def first_of_many():
    config = TransformerConfig(2048, 128, 4, 4, 2, max_seq_len=4096)
    rest, before = config.flops_per_token(1), 0
    for n in range(1, 4097):
        before += config.flops_per_token(n) - rest
        if before > rest:
            return n


@worth(3)
def test_the_experiment(answer):
    matrices = 2 * DESIGN.multiplications(1) - 4 * DESIGN.n_layers * DESIGN.dim  # it sees itself
    seen = [matrices + 4 * DESIGN.n_layers * DESIGN.dim * n for n in range(4097)]
    answer().equals(next(n for n in range(1, 4097) if seen[n] - seen[1] > seen[1]))
