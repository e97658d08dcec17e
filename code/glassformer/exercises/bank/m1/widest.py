"""Exercise m1.widest."""

from dataclasses import replace

from glassformer.milestones import largest_within
from glassformer.models import TransformerConfig

from ...definition import Exercise, worth

exercise = Exercise(
    "m1.widest",
    title="Repair a search for the width",
    minutes=15,
    statement=r"""
A design may be over its budget. How wide can it be at most, with all else as it is? This search begins at the width that the
design has, which keeps all rules, and takes the next smaller one until it fits:

```python
def widest(config, budget):
    dim = config.dim
    while replace(config, dim=dim).num_params() > budget:
        dim -= 1
    return dim
```

But for nearly every design that is over its budget it ends in an error. Repair it. It should give a width at which the
config is a model, at most that of `config`; and 0 if there is none within the budget.
""",
    hints=(
        "Which rule of `m1.rules` does the next smaller number break? Read the error's text.",
        "The size of a head must be whole and even. By how much does the width change when each head loses two numbers?",
        "`dim -= 2 * config.n_heads`, and the loop goes on only `while dim > 0 and …`.",
    ),
    explanation=r"""
The valid widths for $n_h$ heads are the multiples of $2 n_h$: each head loses a pair or keeps it. From a valid width on, steps of
$2 n_h$ meet all of them and nothing else. After the smallest, $2 n_h$, comes 0, at which there is no model to be counted: the
loop must end before it asks.
""",
    forbidden={
        "largest_within": "`largest_within` is the milestone's own search; repair this one instead."
    },
)


@exercise.harness
def prepare(function, config, budget):
    from glassformer.models import TransformerConfig

    return function(TransformerConfig(**config), budget)


@exercise.starter
def widest(config, budget):
    """Return the largest dim, at most config.dim, that is valid and within the budget, or 0.

    config: a TransformerConfig; budget: a number of parameters.
    """
    raise NotImplementedError("not attempted")


@exercise.solution
def widest(config, budget):
    dim = config.dim
    while dim > 0 and replace(config, dim=dim).num_params() > budget:
        dim -= 2 * config.n_heads  # each head loses a pair
    return dim


@exercise.style("from the smallest")
def widest(config, budget):
    found = 0
    for dim in range(2 * config.n_heads, config.dim + 1, 2 * config.n_heads):
        if replace(config, dim=dim).num_params() <= budget:
            found = dim
    return found


@exercise.style("what cannot be is left out")
def widest(config, budget):
    for dim in range(config.dim, 0, -1):
        try:
            if replace(config, dim=dim).num_params() <= budget:
                return dim
        except ValueError:
            pass
    return 0


@exercise.mutant(
    "as it was",
    "The next smaller width is still no model: 127 does not divide by 4 heads. The width moves by a pair for each head.",
)
def widest(config, budget):
    dim = config.dim
    while replace(config, dim=dim).num_params() > budget:
        dim -= 1
    return dim


@exercise.mutant(
    "two less",
    "The width shrinks by 2, which is right for a single head. Each head must lose a pair.",
)
def widest(config, budget):
    dim = config.dim
    while dim > 0 and replace(config, dim=dim).num_params() > budget:
        dim -= 2
    return dim


@exercise.mutant(
    "halved",
    "The width was halved until it fits. That leaves out most widths, and after a few halves it is odd.",
)
def widest(config, budget):
    dim = config.dim
    while dim > 0 and replace(config, dim=dim).num_params() > budget:
        dim //= 2
    return dim


@exercise.mutant(
    "the budget itself",
    "A design with exactly `budget` parameters was refused; it is within the budget.",
)
def widest(config, budget):
    dim = config.dim
    while dim > 0 and replace(config, dim=dim).num_params() >= budget:
        dim -= 2 * config.n_heads
    return dim


@exercise.mutant(
    "heads dropped",
    "The heads were changed along with the width. All else stays as it is, so the width must suit the heads that there are.",
)
def widest(config, budget):
    dim = config.dim
    while dim > 0 and replace(config, dim=dim, n_heads=1).num_params() > budget:
        dim -= 2
    return dim


@exercise.mutant(
    "nothing fits",
    "Where no width fits, this asks for a model of width 0, and the package refuses. Return 0 then.",
)
def widest(config, budget):
    dim = config.dim
    while replace(config, dim=dim).num_params() > budget:
        dim -= 2 * config.n_heads
    return dim


def test_one_head_by_hand(answer):
    # A table of 8 d, four matrices of d², three of 64 d, three norms of d: 3,012 at 12, 3,626 at 14.
    design = dict(vocab_size=8, dim=16, n_layers=1, n_heads=1, tie_word_embeddings=True)
    answer(design, 3_100).equals(12)


@worth(2)
def test_any_design(answer, draw):
    heads, layers, tokens = draw.whole(2, 6), draw.whole(1, 3), draw.whole(9, 99)
    step = 2 * heads
    design = dict(vocab_size=tokens, dim=step * draw.whole(6, 9), n_layers=layers, n_heads=heads)
    config, wanted = TransformerConfig(**design), step * draw.whole(2, 4)
    for budget in (
        replace(config, dim=wanted).num_params(),
        replace(config, dim=wanted + step).num_params() - 1,
    ):
        answer(design, budget).equals(largest_within(config, "dim", budget))


def test_a_design_that_fits_stays(answer, draw):
    heads = draw.whole(2, 6)
    design = dict(vocab_size=9, dim=8 * heads, n_layers=2, n_heads=heads)
    answer(design, TransformerConfig(**design).num_params() + draw.whole(1, 99)).equals(8 * heads)


def test_the_smallest_width_fits_or_none(answer, draw):
    heads = draw.whole(2, 6)
    design = dict(vocab_size=9, dim=4 * heads, n_layers=2, n_heads=heads)
    smallest = replace(TransformerConfig(**design), dim=2 * heads).num_params()
    answer(design, smallest).equals(2 * heads)
    answer(design, smallest - 1).equals(0)
