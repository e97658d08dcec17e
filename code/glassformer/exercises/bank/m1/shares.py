"""Exercise m1.shares."""

import torch

from glassformer.models import Transformer, TransformerConfig

from ...definition import Exercise, worth

exercise = Exercise(
    "m1.shares",
    title="Where the parameters go",
    minutes=15,
    statement=r"""
Which part of a design's parameters is in which of the four places? Return a dictionary with the shares, numbers that add up to 1, of

- `"tables"`: $2\, \lvert V \rvert\, d$, and half of that if they are tied;
- `"attention"`: $L\,(2 d^2 + 2 d\, n_{kv} d_h)$;
- `"feed-forward"`: $L \cdot 3 d\, h$;
- `"norms"`: $(2 L + 1)\, d$.

`config` knows its fields, and also `config.head_dim`, `config.kv_heads`, `config.ffn_hidden_dim` and `config.num_params()`.
""",
    hints=(
        "Count the four first. What must you divide by for the shares to add up to 1?",
        "`config.tie_word_embeddings` is true or false: one table or two. Attention, network and two of the norms are in each block.",
        '`counts = {"tables": (1 if config.tie_word_embeddings else 2) * …, …}`, and then `{name: n / config.num_params() for name, '
        "n in counts.items()}`.",
    ),
    explanation=r"""
In the plain design of the chapter the tables have 40 %, before a single block exists. That is the price of a vocabulary at this
size: at ten times the width the same tables would have a few per cent. A share says where it is worth saving: halving
what has 2 % gives nothing.
""",
)


@exercise.harness
def prepare(function, config):
    from glassformer.models import TransformerConfig

    return function(TransformerConfig(**config))


@exercise.starter
def shares(config):
    """Return the shares of "tables", "attention", "feed-forward" and "norms", a dictionary.

    config: a TransformerConfig.
    """
    raise NotImplementedError("not attempted")


@exercise.solution
def shares(config):
    d, L = config.dim, config.n_layers
    counts = {
        "tables": (1 if config.tie_word_embeddings else 2) * config.vocab_size * d,
        "attention": L * (2 * d * d + 2 * d * config.kv_heads * config.head_dim),
        "feed-forward": L * 3 * d * config.ffn_hidden_dim,
        "norms": (2 * L + 1) * d,
    }
    return {name: count / config.num_params() for name, count in counts.items()}


@exercise.style("build it and count")
def shares(config):
    model = Transformer(config)
    found = dict.fromkeys(("tables", "attention", "feed-forward", "norms"), 0)
    for name, p in model.named_parameters():
        if "norm" in name:
            found["norms"] += p.numel()
        elif "attention" in name:
            found["attention"] += p.numel()
        else:
            found["feed-forward" if "feed_forward" in name else "tables"] += p.numel()
    return {place: count / sum(found.values()) for place, count in found.items()}


@exercise.style("each number of the width")
def shares(config):
    c = config
    tables = c.vocab_size * (2 - c.tie_word_embeddings)
    attention = 2 * c.n_layers * (c.n_heads + c.kv_heads) * c.head_dim
    network, norms = 3 * c.n_layers * c.ffn_hidden_dim, 2 * c.n_layers + 1
    whole = tables + attention + network + norms
    return {
        "tables": tables / whole,
        "attention": attention / whole,
        "feed-forward": network / whole,
        "norms": norms / whole,
    }


@exercise.mutant(
    "two tables",
    "Two tables were counted where there is one: with `tie_word_embeddings` the head reads the embedding's own table.",
)
def shares(config):
    d, L = config.dim, config.n_layers
    counts = {
        "tables": 2 * config.vocab_size * d,
        "attention": L * (2 * d * d + 2 * d * config.kv_heads * config.head_dim),
        "feed-forward": L * 3 * d * config.ffn_hidden_dim,
        "norms": (2 * L + 1) * d,
    }
    return {name: count / sum(counts.values()) for name, count in counts.items()}


@exercise.mutant(
    "one table",
    "One table was counted where there are two: embedding and head, unless they are tied.",
)
def shares(config):
    d, L = config.dim, config.n_layers
    counts = {
        "tables": config.vocab_size * d,
        "attention": L * (2 * d * d + 2 * d * config.kv_heads * config.head_dim),
        "feed-forward": L * 3 * d * config.ffn_hidden_dim,
        "norms": (2 * L + 1) * d,
    }
    return {name: count / sum(counts.values()) for name, count in counts.items()}


@exercise.mutant(
    "keys for every head",
    "Keys and values were counted as wide as the queries; shared heads make their matrices $d \\times n_{kv} d_h$.",
)
def shares(config):
    d, L = config.dim, config.n_layers
    counts = {
        "tables": (1 if config.tie_word_embeddings else 2) * config.vocab_size * d,
        "attention": L * 4 * d * d,
        "feed-forward": L * 3 * d * config.ffn_hidden_dim,
        "norms": (2 * L + 1) * d,
    }
    return {name: count / sum(counts.values()) for name, count in counts.items()}


@exercise.mutant(
    "two matrices of SwiGLU",
    "SwiGLU was counted with two matrices; it has three: gate, up and down.",
)
def shares(config):
    d, L = config.dim, config.n_layers
    counts = {
        "tables": (1 if config.tie_word_embeddings else 2) * config.vocab_size * d,
        "attention": L * (2 * d * d + 2 * d * config.kv_heads * config.head_dim),
        "feed-forward": L * 2 * d * config.ffn_hidden_dim,
        "norms": (2 * L + 1) * d,
    }
    return {name: count / sum(counts.values()) for name, count in counts.items()}


@exercise.mutant(
    "counts",
    "These are counts; a share is a count divided by the whole, `config.num_params()`.",
)
def shares(config):
    d, L = config.dim, config.n_layers
    return {
        "tables": (1 if config.tie_word_embeddings else 2) * config.vocab_size * d,
        "attention": L * (2 * d * d + 2 * d * config.kv_heads * config.head_dim),
        "feed-forward": L * 3 * d * config.ffn_hidden_dim,
        "norms": (2 * L + 1) * d,
    }


@exercise.mutant(
    "one block",
    "A single block was counted; attention, network and their two norms are there $L$ times.",
)
def shares(config):
    d = config.dim
    counts = {
        "tables": (1 if config.tie_word_embeddings else 2) * config.vocab_size * d,
        "attention": 2 * d * d + 2 * d * config.kv_heads * config.head_dim,
        "feed-forward": 3 * d * config.ffn_hidden_dim,
        "norms": 3 * d,
    }
    return {name: count / sum(counts.values()) for name, count in counts.items()}


@exercise.mutant(
    "per cent",
    "These are per cent; as shares they add up to 1, not to 100.",
)
def shares(config):
    d, L = config.dim, config.n_layers
    counts = {
        "tables": (1 if config.tie_word_embeddings else 2) * config.vocab_size * d,
        "attention": L * (2 * d * d + 2 * d * config.kv_heads * config.head_dim),
        "feed-forward": L * 3 * d * config.ffn_hidden_dim,
        "norms": (2 * L + 1) * d,
    }
    return {name: 100 * count / config.num_params() for name, count in counts.items()}


def counted(config):
    """Return the shares of a design as its model's own weights give them."""
    with torch.random.fork_rng(devices=[]):
        model = Transformer(config)
    found = dict.fromkeys(("tables", "attention", "feed-forward", "norms"), 0)
    for name, weights in model.named_parameters():
        kinds = {"norm": "norms", "attention": "attention", "feed_forward": "feed-forward"}
        place = next((place for kind, place in kinds.items() if kind in name), "tables")
        found[place] += weights.numel()
    return {place: count / sum(found.values()) for place, count in found.items()}


def test_the_exercise_that_was_counted_by_hand(answer):
    design = dict(vocab_size=100, dim=16, n_layers=1, n_heads=2, n_kv_heads=1)
    by_hand = {"tables": 1600, "attention": 768, "feed-forward": 3072, "norms": 48}
    expected = {place: count / 5488 for place, count in by_hand.items()}
    answer(design | {"tie_word_embeddings": True}).equals(expected)


@worth(2)
def test_any_design(answer, draw):
    shared, kv, half = draw.whole(2, 4), draw.whole(2, 3), draw.whole(1, 4)
    heads, layers, tokens = shared * kv, draw.whole(2, 3), draw.whole(50, 90)
    design = dict(vocab_size=tokens, dim=2 * half * heads, n_layers=layers, n_heads=heads)
    for tied in (False, True):
        given = design | {"n_kv_heads": kv, "tie_word_embeddings": tied}
        answer(given).equals(counted(TransformerConfig(**given)))
