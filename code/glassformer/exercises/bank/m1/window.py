"""Exercise m1.window."""

from glassformer.models import TransformerConfig

from ...definition import Exercise, worth

exercise = Exercise(
    "m1.window",
    title="A window for the memory there is",
    minutes=10,
    statement=r"""
The window costs no parameter, it costs cache. `kib` KiB of memory are set aside for the caches of `conversations` that go on side by
side, 4 bytes a number. How long a window can each of them have? Return a whole number of tokens.
""",
    hints=(
        "How many numbers does one more token add to one conversation's cache, and how many bytes is that?",
        "`config.kv_cache_values()` is the count for one token: $2 \\cdot L \\cdot n_{kv} \\cdot d_h$. A KiB has 1,024 bytes.",
        "`kib * 1024 // (4 * conversations * config.kv_cache_values())`.",
    ),
    explanation=r"""
Every token takes the same room, in every conversation, whatever the window is called in `config`; so the window is a division, rounded
down. For *many layers* of the chapter 1,024 KiB are 204 tokens, for *long memory* 1,024: fewer blocks and one key/value head
are what its memory is made of.
""",
)


@exercise.harness
def prepare(function, config, kib, conversations):
    from glassformer.models import TransformerConfig

    return function(TransformerConfig(**config), kib, conversations)


@exercise.starter
def longest_window(config, kib, conversations):
    """Return the longest window, in tokens, whose caches fit into the memory.

    config: a TransformerConfig; kib, conversations: whole numbers.
    """
    raise NotImplementedError("not attempted")


@exercise.solution
def longest_window(config, kib, conversations):
    token = 4 * config.kv_cache_values()  # bytes, in one conversation
    return kib * 1024 // (conversations * token)


@exercise.style("by formula")
def longest_window(config, kib, conversations):
    numbers = 2 * config.n_layers * config.kv_heads * config.dim // config.n_heads
    return 256 * kib // (numbers * conversations)  # a KiB holds 256 numbers


@exercise.style("token by token")
def longest_window(config, kib, conversations):
    tokens = 0
    while config.kv_cache_bytes(tokens + 1, conversations) <= kib * 1024:
        tokens += 1
    return tokens


@exercise.mutant(
    "bytes for KiB",
    "The memory was taken for bytes; a KiB has 1,024 of them.",
)
def longest_window(config, kib, conversations):
    return kib // (4 * conversations * config.kv_cache_values())


@exercise.mutant(
    "a thousand",
    "A KiB has 1,024 bytes, not 1,000: what is named after powers of two is measured by them.",
)
def longest_window(config, kib, conversations):
    return kib * 1000 // (4 * conversations * config.kv_cache_values())


@exercise.mutant(
    "one byte a number",
    "The cache's numbers were counted as bytes; each takes 4 here.",
)
def longest_window(config, kib, conversations):
    return kib * 1024 // (conversations * config.kv_cache_values())


@exercise.mutant(
    "one conversation",
    "The whole memory was given to one conversation; all of them share it.",
)
def longest_window(config, kib, conversations):
    return kib * 1024 // (4 * config.kv_cache_values())


@exercise.mutant(
    "query heads",
    "The query heads were counted. What is kept are keys and values, and query heads share those.",
)
def longest_window(config, kib, conversations):
    return kib * 1024 // (4 * conversations * 2 * config.n_layers * config.dim)


@exercise.mutant(
    "keys alone",
    "Only one of the two was counted: each token keeps a key *and* a value.",
)
def longest_window(config, kib, conversations):
    return kib * 1024 // (2 * conversations * config.kv_cache_values())


@exercise.mutant(
    "rounded up",
    "One token too many: the last does not fit whole, so round down.",
)
def longest_window(config, kib, conversations):
    return -(-kib * 1024 // (4 * conversations * config.kv_cache_values()))


@exercise.mutant(
    "whole windows",
    "This is how many full windows of `config.max_seq_len` fit, not how many tokens: `kv_cache_bytes()` without a number of "
    "tokens is a whole window's.",
)
def longest_window(config, kib, conversations):
    return kib * 1024 // config.kv_cache_bytes(batch_size=conversations)


LONG_MEMORY = dict(vocab_size=2048, dim=192, n_layers=4, n_heads=6, n_kv_heads=1, max_seq_len=2048)


def test_long_memory_by_hand(answer):
    # 2 · 4 · 1 · 32 = 256 numbers a token, 1 KiB; three conversations.
    answer(LONG_MEMORY, 100, 3).equals(33)


@worth(2)
def test_any_design(answer, draw):
    shared, kv, half, layers = (draw.whole(2, 4) for _ in range(4))
    heads, conversations = shared * kv, draw.whole(2, 5)
    design = dict(vocab_size=9, dim=2 * half * heads, n_layers=layers, n_heads=heads)
    design |= {"n_kv_heads": kv, "max_seq_len": draw.whole(8, 16)}
    config, tokens = TransformerConfig(**design), draw.whole(60, 90)
    kib = 1 + config.kv_cache_bytes(tokens, conversations) // 1024

    def longest(window):
        fits, over = (config.kv_cache_bytes(n, conversations) for n in (window, window + 1))
        return fits <= kib * 1024 < over

    expected = next(n for n in range(tokens, 10 * tokens) if longest(n))
    answer(design, kib, conversations).equals(expected)
