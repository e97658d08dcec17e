"""Exercise m1.vocabulary."""

from dataclasses import replace

from glassformer.milestones import largest_within
from glassformer.models import TransformerConfig

from ...definition import Exercise, worth

exercise = Exercise(
    "m1.vocabulary",
    title="The largest vocabulary",
    minutes=12,
    statement=r"""
All fields of a design are settled but the vocabulary, which may be larger or smaller than `config` says. How many tokens can the
design know at most, if it may have `budget` parameters? Return 0 if not even one token fits.

`config.num_params()` counts a design's parameters, and `replace(config, vocab_size=…)` is the same design with another
vocabulary.
""",
    hints=(
        "What does one more token cost, and does it depend on whether the tables are tied?",
        "Everything but the tables stays as it is: `config.num_params()` without the rows that the tables have now. The rest of "
        "the budget is for rows.",
        "`row = config.dim * (1 if config.tie_word_embeddings else 2)` and `rest = config.num_params() - config.vocab_size * row`; "
        "then `(budget - rest) // row`, unless that is negative.",
    ),
    explanation=r"""
A token costs a row of $d$ numbers in each table: one if they are tied, two if not. `//` rounds down, which is what a budget
asks for. It also rounds down below zero, where a design's blocks alone are over the budget; `max(0, …)` says that no token
fits. This is where a reader of the milestone's advice *vocab_size at most …* finds out how it is made.
""",
    forbidden={
        "largest_within": "`largest_within` is the milestone's own search; do the arithmetic yourself."
    },
)


@exercise.harness
def prepare(function, config, budget):
    from glassformer.models import TransformerConfig

    return function(TransformerConfig(**config), budget)


@exercise.starter
def largest_vocabulary(config, budget):
    """Return the largest vocab_size with which the design is within the budget, a whole number.

    config: a TransformerConfig; budget: a number of parameters.
    """
    raise NotImplementedError("not attempted")


@exercise.solution
def largest_vocabulary(config, budget):
    row = config.dim * (1 if config.tie_word_embeddings else 2)  # what a token costs
    rest = config.num_params() - config.vocab_size * row  # blocks and norms
    return max(0, (budget - rest) // row)


@exercise.style("one token and two")
def largest_vocabulary(config, budget):
    one, two = (replace(config, vocab_size=tokens).num_params() for tokens in (1, 2))
    return 1 + (budget - one) // (two - one) if one <= budget else 0


@exercise.style("search by halves")
def largest_vocabulary(config, budget):
    low, high = 0, budget + 1
    while high - low > 1:
        middle = (low + high) // 2
        if replace(config, vocab_size=middle).num_params() <= budget:
            low = middle
        else:
            high = middle
    return low


@exercise.mutant(
    "always one table",
    "One row was counted for each token. Only tied tables are one; else a token has a row in the embedding and one in the head.",
)
def largest_vocabulary(config, budget):
    rows = config.vocab_size * (1 if config.tie_word_embeddings else 2)
    return max(0, (budget - config.num_params() + rows * config.dim) // config.dim)


@exercise.mutant(
    "always two tables",
    "Two rows were counted for each token. With tied tables there is one, so the same budget knows more tokens.",
)
def largest_vocabulary(config, budget):
    rows = config.vocab_size * (1 if config.tie_word_embeddings else 2)
    return max(0, (budget - config.num_params() + rows * config.dim) // (2 * config.dim))


@exercise.mutant(
    "rounded up",
    "One token too many where the budget does not come out even: a part of a row is no row, so round down.",
)
def largest_vocabulary(config, budget):
    row = config.dim * (1 if config.tie_word_embeddings else 2)
    rest = config.num_params() - config.vocab_size * row
    return max(0, -((rest - budget) // row))


@exercise.mutant(
    "how many more",
    "This is how many tokens *more* than now would fit. Add those that the design knows already.",
)
def largest_vocabulary(config, budget):
    row = config.dim * (1 if config.tie_word_embeddings else 2)
    return max(0, (budget - config.num_params()) // row)


@exercise.mutant(
    "blocks forgotten",
    "The whole budget was spent on tables. Blocks and norms have their parameters first.",
)
def largest_vocabulary(config, budget):
    return budget // (config.dim * (1 if config.tie_word_embeddings else 2))


@exercise.mutant(
    "below zero",
    "Where the blocks alone are over the budget, this gives a negative number of tokens. None fits: return 0.",
)
def largest_vocabulary(config, budget):
    row = config.dim * (1 if config.tie_word_embeddings else 2)
    rest = config.num_params() - config.vocab_size * row
    return (budget - rest) // row


def test_the_chapters_plain_design(answer):
    plain = dict(vocab_size=2048, dim=128, n_layers=4, n_heads=4, n_kv_heads=2)
    answer(plain, 2_000_000).equals(4736)
    answer(plain | {"tie_word_embeddings": True}, 2_000_000).equals(9472)


@worth(2)
def test_any_design(answer, draw):
    heads, half, layers, tokens = (draw.whole(2, 6) for _ in range(4))
    design = dict(vocab_size=tokens, dim=2 * half * heads, n_layers=layers, n_heads=heads)
    for tied in (False, True):
        given = design | {"tie_word_embeddings": tied}
        config = TransformerConfig(**given)
        budget = config.num_params() + 40 * config.dim + draw.whole(1, config.dim - 1)
        huge = replace(config, vocab_size=10**9)
        answer(given, budget).equals(largest_within(huge, "vocab_size", budget))


def test_one_token_fits_or_none(answer, draw):
    design = dict(vocab_size=draw.whole(2, 99), dim=32, n_layers=draw.whole(2, 9), n_heads=4)
    one = replace(TransformerConfig(**design), vocab_size=1).num_params()
    answer(design, one).equals(1)
    answer(design, one - 32 * draw.whole(2, 40)).equals(0)
