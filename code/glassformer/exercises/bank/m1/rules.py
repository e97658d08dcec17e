"""Exercise m1.rules."""

from glassformer.models import TransformerConfig

from ...definition import Exercise, worth

exercise = Exercise(
    "m1.rules",
    title="Which rule does it break?",
    minutes=8,
    statement=r"""
A config's sizes must fit together. Say which fields of a design break a rule:

- `"n_heads"` if the query heads do not divide the width;
- `"dim"` if they do, but the size of a head is odd: RoPE turns pairs;
- `"n_kv_heads"` if the key/value heads do not divide the query heads.

Return a list of names in this order; for a design that is a model the list is empty.
""",
    hints=(
        "When does one whole number divide another? And which two of the three rules can be broken by the same design?",
        "`a % b` is what remains of `a` when it is cut into pieces of `b`. Ask for the head's size only where it is whole.",
        "`if dim % n_heads: … elif dim // n_heads % 2: …`, and then, whatever came out, `if n_heads % n_kv_heads: …`.",
    ),
    explanation=r"""
The first two rules are about one quantity, $d_h = d / n_h$: it must be whole, and then even. The third is about sharing, and
has nothing to do with the width: each key/value head serves the same number of query heads. More key/value heads than
query heads break it as well, for the remainder is then all of $n_h$. The package stops at the first rule that is broken; a
list tells all at once.
""",
)


@exercise.starter
def broken(dim, n_heads, n_kv_heads):
    """Return the names of the fields that break a rule, a list of texts.

    All three are whole numbers, 1 or more.
    """
    raise NotImplementedError("not attempted")


@exercise.solution
def broken(dim, n_heads, n_kv_heads):
    fields = []
    if dim % n_heads:
        fields.append("n_heads")
    elif dim // n_heads % 2:  # the head's size, now known to be whole
        fields.append("dim")
    if n_heads % n_kv_heads:
        fields.append("n_kv_heads")
    return fields


@exercise.style("a table of rules")
def broken(dim, n_heads, n_kv_heads):
    whole = dim % n_heads == 0
    rules = {
        "n_heads": whole,
        "dim": not whole or (dim / n_heads) % 2 == 0,
        "n_kv_heads": n_heads % n_kv_heads == 0,
    }
    return [field for field, kept in rules.items() if not kept]


@exercise.style("ask the package")
def broken(dim, n_heads, n_kv_heads):
    fields = []
    for sizes in ((dim, n_heads, n_heads), (2 * n_heads, n_heads, n_kv_heads)):
        try:
            TransformerConfig(1, sizes[0], 1, *sizes[1:])
        except ValueError as error:
            fields += str(error).split()[:1]
    return fields


@exercise.mutant(
    "the first alone",
    "Only the first broken rule is named. Sharing key/value heads is a rule of its own: ask for it whatever came before.",
)
def broken(dim, n_heads, n_kv_heads):
    if dim % n_heads:
        return ["n_heads"]
    if dim // n_heads % 2:
        return ["dim"]
    return ["n_kv_heads"] if n_heads % n_kv_heads else []


@exercise.mutant(
    "an even width",
    "The width was asked to be even; it is the *head's* size that RoPE cuts into pairs. A width of 132 in 4 heads gives 33.",
)
def broken(dim, n_heads, n_kv_heads):
    fields = []
    if dim % n_heads:
        fields.append("n_heads")
    elif dim % 2:
        fields.append("dim")
    if n_heads % n_kv_heads:
        fields.append("n_kv_heads")
    return fields


@exercise.mutant(
    "half a head",
    "The size of a head was asked for where it is not whole. Then it is the heads that do not fit, and nothing more is to be "
    "said of the width.",
)
def broken(dim, n_heads, n_kv_heads):
    fields = []
    if dim % n_heads:
        fields.append("n_heads")
    if dim / n_heads % 2:
        fields.append("dim")
    if n_heads % n_kv_heads:
        fields.append("n_kv_heads")
    return fields


@exercise.mutant(
    "key heads of the width",
    "The key/value heads were asked to divide the width. They are shared among query heads, so it is $n_h$ that they must divide.",
)
def broken(dim, n_heads, n_kv_heads):
    fields = []
    if dim % n_heads:
        fields.append("n_heads")
    elif dim // n_heads % 2:
        fields.append("dim")
    if dim % n_kv_heads:
        fields.append("n_kv_heads")
    return fields


@exercise.mutant(
    "the other way round",
    "The query heads were asked to divide the key/value heads; it is the other way round: several queries share one key/value "
    "head.",
)
def broken(dim, n_heads, n_kv_heads):
    fields = []
    if dim % n_heads:
        fields.append("n_heads")
    elif dim // n_heads % 2:
        fields.append("dim")
    if n_kv_heads % n_heads:
        fields.append("n_kv_heads")
    return fields


@exercise.mutant(
    "not more than",
    "The key/value heads were only asked not to be more than the query heads. Three of them cannot be shared evenly by four.",
)
def broken(dim, n_heads, n_kv_heads):
    fields = []
    if dim % n_heads:
        fields.append("n_heads")
    elif dim // n_heads % 2:
        fields.append("dim")
    if n_kv_heads > n_heads:
        fields.append("n_kv_heads")
    return fields


def refused(dim, n_heads, n_kv_heads):
    """Return the name of the field that the package refuses, in a list; empty if it takes all."""
    try:
        TransformerConfig(1, dim, 1, n_heads, n_kv_heads)
    except ValueError as error:
        return [str(error).partition(" = ")[0]]
    return []


def test_the_chapters_four_changes(answer):
    answer(132, 4, 2).equals(["dim"])
    answer(128, 6, 2).equals(["n_heads"])
    answer(128, 4, 3).equals(["n_kv_heads"])
    answer(136, 4, 2).equals([])


@worth(2)
def test_any_sizes(answer, draw):
    shared, kv, half = draw.whole(2, 5), draw.whole(2, 5), draw.whole(2, 9)
    heads = shared * kv
    designs = [
        (2 * half * heads, heads, kv),
        (2 * half * heads, heads, 2 * heads),
        ((2 * half + 1) * heads, heads, heads + 1),
        (2 * half * heads + draw.whole(1, heads - 1), heads, heads - 1),
    ]
    for dim, n_heads, n_kv_heads in designs:
        expected = refused(dim, n_heads, n_heads) + refused(2 * n_heads, n_heads, n_kv_heads)
        answer(dim, n_heads, n_kv_heads).equals(expected)
