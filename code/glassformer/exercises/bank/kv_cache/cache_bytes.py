"""Exercise kv_cache.cache_bytes."""

import math

from glassformer.models import TransformerConfig

from ...definition import Exercise, worth

exercise = Exercise(
    "kv_cache.cache_bytes",
    title="What a conversation weighs",
    minutes=8,
    statement=r"""
How many bytes do the keys and values of `tokens` tokens take, for `batch_size` conversations side by side? The
model has $L$ blocks of width $d$, $n_h$ query heads and $n_{kv}$ key/value heads; a head has $d_h = d / n_h$
numbers. Return a whole number.
""",
    hints=(
        "Which of a token's vectors must be kept for later: its queries, its keys, its values?",
        "Each token adds $2 \\cdot L \\cdot n_{kv} \\cdot d_h$ numbers, in every conversation.",
        "`2 * n_layers * n_kv_heads * (dim // n_heads)` numbers for each token; times tokens, conversations "
        "and bytes.",
    ),
    explanation=r"""
Two vectors, a key and a value, for each key/value head of each block. The number of query heads enters only
through the head's size: an earlier query was used when its token was new, and nobody asks for it again. `//`
keeps the count a whole number.
""",
    forbidden={
        name: f"`{name}` of the config has this formula inside; write it down yourself."
        for name in ("kv_cache_bytes", "kv_cache_values", "nbytes")
    },
)


@exercise.starter
def cache_bytes(n_layers, dim, n_heads, n_kv_heads, tokens, batch_size, bytes_per_value):
    """Return the bytes of all keys and values that are kept, a whole number."""
    raise NotImplementedError("not attempted")


@exercise.solution
def cache_bytes(n_layers, dim, n_heads, n_kv_heads, tokens, batch_size, bytes_per_value):
    head_dim = dim // n_heads
    values = 2 * n_layers * n_kv_heads * head_dim  # for each token: a key and a value
    return values * tokens * batch_size * bytes_per_value


@exercise.style("by shape")
def cache_bytes(n_layers, dim, n_heads, n_kv_heads, tokens, batch_size, bytes_per_value):
    keys = math.prod((n_layers, batch_size, n_kv_heads, tokens, dim // n_heads))
    return (keys + keys) * bytes_per_value


@exercise.style("loop")
def cache_bytes(n_layers, dim, n_heads, n_kv_heads, tokens, batch_size, bytes_per_value):
    total = 0
    for _ in range(n_layers):
        for _ in ("key", "value"):
            total += batch_size * n_kv_heads * tokens * dim * bytes_per_value // n_heads
    return total


@exercise.style("of the width")
def cache_bytes(n_layers, dim, n_heads, n_kv_heads, tokens, batch_size, bytes_per_value):
    shared_by = n_heads // n_kv_heads
    return 2 * n_layers * dim // shared_by * tokens * batch_size * bytes_per_value


@exercise.mutant(
    "query heads",
    "The query heads were counted. Only keys and values are kept, and query heads share those: count the "
    "key/value heads.",
)
def cache_bytes(n_layers, dim, n_heads, n_kv_heads, tokens, batch_size, bytes_per_value):
    return 2 * n_layers * dim * tokens * batch_size * bytes_per_value


@exercise.mutant(
    "keys alone",
    "Only one of the two was counted: each token keeps a key *and* a value.",
)
def cache_bytes(n_layers, dim, n_heads, n_kv_heads, tokens, batch_size, bytes_per_value):
    return n_layers * n_kv_heads * (dim // n_heads) * tokens * batch_size * bytes_per_value


@exercise.mutant(
    "queries too",
    "Three vectors were counted for each token. An earlier query is never asked for again: keep two, key and "
    "value.",
)
def cache_bytes(n_layers, dim, n_heads, n_kv_heads, tokens, batch_size, bytes_per_value):
    return 3 * n_layers * n_kv_heads * (dim // n_heads) * tokens * batch_size * bytes_per_value


@exercise.mutant(
    "one block",
    "This is the cache of one block; each block has keys and values of its own.",
)
def cache_bytes(n_layers, dim, n_heads, n_kv_heads, tokens, batch_size, bytes_per_value):
    return 2 * n_kv_heads * (dim // n_heads) * tokens * batch_size * bytes_per_value


@exercise.mutant(
    "head as wide as the model",
    "Each head was counted as wide as the whole vector; a head has $d / n_h$ numbers.",
)
def cache_bytes(n_layers, dim, n_heads, n_kv_heads, tokens, batch_size, bytes_per_value):
    return 2 * n_layers * n_kv_heads * dim * tokens * batch_size * bytes_per_value


@exercise.mutant(
    "width shared by key heads",
    "The width was divided by the key/value heads; a head's size is $d / n_h$, with the query heads below.",
)
def cache_bytes(n_layers, dim, n_heads, n_kv_heads, tokens, batch_size, bytes_per_value):
    return 2 * n_layers * n_heads * dim // n_kv_heads * tokens * batch_size * bytes_per_value


@exercise.mutant(
    "one conversation",
    "This is one conversation's cache; those of a batch have keys and values of their own.",
)
def cache_bytes(n_layers, dim, n_heads, n_kv_heads, tokens, batch_size, bytes_per_value):
    return 2 * n_layers * n_kv_heads * (dim // n_heads) * tokens * bytes_per_value


@exercise.mutant(
    "numbers",
    "These are numbers, not bytes: each takes `bytes_per_value`.",
)
def cache_bytes(n_layers, dim, n_heads, n_kv_heads, tokens, batch_size, bytes_per_value):
    return 2 * n_layers * n_kv_heads * (dim // n_heads) * tokens * batch_size


@exercise.mutant(
    "table of scores",
    "This grows with the square of the length, like a table of scores; the cache gains one key and one value for "
    "each token, a straight line.",
)
def cache_bytes(n_layers, dim, n_heads, n_kv_heads, tokens, batch_size, bytes_per_value):
    values = 2 * n_layers * n_kv_heads * (dim // n_heads)
    return values * tokens**2 * batch_size * bytes_per_value


def test_seven_tokens_by_hand(answer):
    answer(4, 48, 6, 2, 7, 5, 8).equals(2 * 4 * 2 * 8 * 7 * 5 * 8)


@worth(2)
def test_any_model(answer, draw):
    shared, kv, size, layers = (draw.whole(2, 9) for _ in range(4))
    config = TransformerConfig(7, 2 * size * shared * kv, layers, shared * kv, kv)
    tokens, batch, width = draw.whole(2, 99), draw.whole(2, 9), draw.pick([1, 2, 4, 8], 1)[0]
    expected = config.kv_cache_bytes(tokens, batch, width)
    answer(layers, config.dim, shared * kv, kv, tokens, batch, width).equals(expected)
