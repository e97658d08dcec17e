"""Exercise m1.draft."""

from glassformer.models import TransformerConfig

from ...definition import Exercise, worth

exercise = Exercise(
    "m1.draft",
    title="A design to hand in",
    minutes=20,
    statement=r"""
Now design. Return the fields of a config, a dictionary such as `{"vocab_size": …, "dim": …, …}`, of a model

- that has at most 2,000,000 parameters, and at least 1,500,000: a budget is there to be spent;
- whose window is 256 tokens or more;
- whose cache for a full window takes at most 1,024 KiB, at 4 bytes a number;
- whose tables take at most a third of the parameters.

Many designs do. None of the chapter's is among them.
""",
    hints=(
        "Which of the four does each of the chapter's designs miss, the plain one, *many words*, *many layers*, *long memory*? One of "
        "them needs a single change.",
        "`TransformerConfig(**fields)` knows `num_params()` and `kv_cache_bytes()`; change one field at a time. Tied tables cost half, "
        "fewer key/value heads and a shorter window make a smaller cache.",
        "*Long memory* with half of its window has a cache of 1,024 KiB, and its tables are below a third.",
    ),
    explanation=r"""
*Long memory* with a window of 1,024: 1,918,656 parameters, 1,024 KiB, and a fifth of them in the tables. Each condition pulls at
another field. The budget holds vocabulary, width and depth together; the cache looks at depth, window and key/value heads; and
the third condition keeps the vocabulary from eating what the blocks need.
""",
)


@exercise.starter
def design():
    """Return the fields of a TransformerConfig, a dictionary."""
    raise NotImplementedError("not attempted")


@exercise.solution
def design():
    return {
        "vocab_size": 2048,
        "dim": 192,
        "n_layers": 4,
        "n_heads": 6,
        "n_kv_heads": 1,
        "max_seq_len": 1024,
        "tie_word_embeddings": True,
    }


@exercise.style("a config's own dictionary")
def design():
    config = TransformerConfig(256, 96, 20, 6, 1, max_seq_len=400, tie_word_embeddings=True)
    return config.to_dict()


@exercise.style("two tables")
def design():
    return dict(vocab_size=1024, dim=128, n_layers=7, n_heads=4, n_kv_heads=2, max_seq_len=256)


@exercise.mutant(
    "plain",
    "This is the chapter's plain design: its tables take 40 % of too few parameters. Tie them, and spend what is left on blocks.",
)
def design():
    return dict(vocab_size=2048, dim=128, n_layers=4, n_heads=4, n_kv_heads=2, max_seq_len=256)


@exercise.mutant(
    "many words",
    "This is *many words*: more than half of it is a table. Fewer tokens leave room for blocks.",
)
def design():
    sizes = dict(vocab_size=8192, dim=128, n_layers=4, n_heads=4, n_kv_heads=2, max_seq_len=256)
    return sizes | {"tie_word_embeddings": True}


@exercise.mutant(
    "many layers",
    "This is *many layers*: twenty blocks each keep keys and values of their own, 2,560 KiB in all. One key/value head and a shorter "
    "window keep less.",
)
def design():
    sizes = dict(vocab_size=256, dim=96, n_layers=20, n_heads=6, n_kv_heads=2, max_seq_len=512)
    return sizes | {"tie_word_embeddings": True}


@exercise.mutant(
    "long memory",
    "This is *long memory*: only its cache is too large, 2,048 KiB for a full window. The window is what it can give up.",
)
def design():
    sizes = dict(vocab_size=2048, dim=192, n_layers=4, n_heads=6, n_kv_heads=1, max_seq_len=2048)
    return sizes | {"tie_word_embeddings": True}


@exercise.mutant(
    "the config itself",
    "This is a `TransformerConfig`; return its fields as a dictionary, `config.to_dict()`.",
)
def design():
    return TransformerConfig(2048, 192, 4, 6, 1, max_seq_len=1024, tie_word_embeddings=True)


@exercise.mutant(
    "as text",
    "This is the text of a `config.json`; return the fields as a dictionary, `config.to_dict()`.",
)
def design():
    import json

    return json.dumps({"vocab_size": 2048, "dim": 192, "n_layers": 4, "n_heads": 6})


def read(outcome):
    """Return the config of an answer; what is no config is wrong, in the package's own words."""
    try:
        return TransformerConfig.from_dict(outcome.value)
    except ValueError as error:
        raise outcome.wrong(str(error)) from None


def test_the_budget_is_kept_and_spent(answer):
    outcome = answer()
    count = read(outcome).num_params()
    if not 1_500_000 <= count <= 2_000_000:
        bounds = "1,500,000 to 2,000,000"
        raise outcome.wrong("The parameters are not within the bounds.", f"{count:,}", bounds)


def test_window_and_cache(answer):
    outcome = answer()
    config = read(outcome)
    if config.max_seq_len < 256:
        raise outcome.wrong(
            "The window is too short.", f"{config.max_seq_len} tokens", "256 or more"
        )
    kib = config.kv_cache_bytes() / 1024
    if kib > 1024:
        raise outcome.wrong("The cache is too large.", f"{kib:,.0f} KiB", "1,024 KiB at most")


@worth(2)
def test_all_conditions_at_once(answer):
    outcome = answer()
    config = read(outcome)
    tables = config.vocab_size * config.dim * (1 if config.tie_word_embeddings else 2)
    if 3 * tables > config.num_params():
        share = f"{tables / config.num_params():.1%} of the parameters"
        raise outcome.wrong("The tables take more than a third.", share, "33.3% at most")
    test_the_budget_is_kept_and_spent(answer)
    test_window_and_cache(answer)
