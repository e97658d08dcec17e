"""Exercise block.post_norm."""

import torch

from glassformer.models.baby_groot import Block

from ...definition import Exercise, worth

exercise = Exercise(
    "block.post_norm",
    title="The whole block",
    minutes=12,
    statement=r"""
Put BabyGroot's block together. Its four parts are given as functions that each take rows `[B, T, d]` and return
as many: `attention`, `ffn`, and the norms `norm1` and `norm2`. The block is post-norm:

$$
N_1 = \text{LN}_1(H + \text{attention}(H)), \qquad H_{out} = \text{LN}_2(N_1 + \text{FFN}(N_1))
$$

Leave the tensor `h` that was handed over as it is.
""",
    hints=(
        "Where does the thick line of the residual stream run, and what stands on it?",
        "A part reads the stream, its result is added to what it read, and the *sum* goes through the norm. Twice.",
        "`n1 = norm1(h + attention(h))`, and the same again with `n1`, `ffn` and `norm2`.",
    ),
    explanation=r"""
Two times the same figure: read, add, normalise. The second half starts from $N_1$, not from $H$: what attention
brought is in it. `h + …` makes a new tensor; `h += …` would write into the one that the caller still holds, and
for training into numbers that the backward pass needs.
""",
)


@exercise.starter
def block(h, attention, ffn, norm1, norm2):
    """Return the output of a post-norm block, [B, T, d].

    h: [B, T, d]; attention, ffn, norm1, norm2: functions from [B, T, d] to [B, T, d].
    """
    raise NotImplementedError("not attempted")


@exercise.harness
def prepare(block, state, h):
    """Make the parts of a block with these weights, call the function, and see what became of h."""
    import torch

    from glassformer.models.baby_groot import Block

    parts = Block(h.shape[-1]).double()
    parts.load_state_dict(state)
    with torch.no_grad():
        out = block(h, lambda x: parts.attn(x)[0], parts.ffn, parts.norm1, parts.norm2)
    return {"out": out, "h": h}


@exercise.solution
def block(h, attention, ffn, norm1, norm2):
    n1 = norm1(h + attention(h))  # what the token was, and what it heard
    return norm2(n1 + ffn(n1))


@exercise.style("step by step")
def block(h, attention, ffn, norm1, norm2):
    context = attention(h)
    r1 = h + context
    n1 = norm1(r1)
    ffn_out = ffn(n1)
    r2 = n1 + ffn_out
    return norm2(r2)


@exercise.style("loop")
def block(h, attention, ffn, norm1, norm2):
    for part, norm in ((attention, norm1), (ffn, norm2)):
        h = norm(torch.add(h, part(h)))
    return h


@exercise.style("own copy")
def block(h, attention, ffn, norm1, norm2):
    stream = h.clone()
    stream += attention(stream)
    stream = norm1(stream)
    return norm2(ffn(stream) + stream)


@exercise.mutant(
    "no residual",
    "Nothing is added: each part's result takes the place of the stream. The context alone has forgotten who asked; "
    "add it to what the token was.",
)
def block(h, attention, ffn, norm1, norm2):
    return norm2(ffn(norm1(attention(h))))


@exercise.mutant(
    "second residual missing",
    "The second addition is missing: what the feed-forward network puts out has to be added to $N_1$.",
)
def block(h, attention, ffn, norm1, norm2):
    return norm2(ffn(norm1(h + attention(h))))


@exercise.mutant(
    "part normalised",
    "The part's result was normalised and then added. In post-norm it is the *sum* that goes through the norm, which "
    "sits on the stream.",
)
def block(h, attention, ffn, norm1, norm2):
    r1 = h + norm1(attention(h))
    return r1 + norm2(ffn(r1))


@exercise.mutant(
    "pre-norm",
    "This is a pre-norm block: the parts read normalised copies, and the stream itself is left alone. Here the norm "
    "comes after each addition.",
)
def block(h, attention, ffn, norm1, norm2):
    r1 = h + attention(norm1(h))
    return r1 + ffn(norm2(r1))


@exercise.mutant(
    "back to the beginning",
    "The second half starts from $H$ again, in what it adds to: what attention brought reaches the output only "
    "through the network. Add to $N_1$.",
)
def block(h, attention, ffn, norm1, norm2):
    return norm2(h + ffn(norm1(h + attention(h))))


@exercise.mutant(
    "side by side",
    "Attention and the feed-forward network both read $H$, side by side. The network is to digest what the token "
    "has heard, so it reads $N_1$.",
)
def block(h, attention, ffn, norm1, norm2):
    return norm2(norm1(h + attention(h)) + ffn(h))


@exercise.mutant(
    "first norm left out",
    "There is no norm after the first addition, so the network meets sums of any size.",
)
def block(h, attention, ffn, norm1, norm2):
    r1 = h + attention(h)
    return norm2(r1 + ffn(r1))


@exercise.mutant(
    "second norm left out",
    "There is no norm after the second addition; in a post-norm block what comes out is normalised, too.",
)
def block(h, attention, ffn, norm1, norm2):
    n1 = norm1(h + attention(h))
    return n1 + ffn(n1)


@exercise.mutant(
    "one norm twice",
    "The first norm was used twice. Each has learned a scale and a shift of its own.",
)
def block(h, attention, ffn, norm1, norm2):
    n1 = norm1(h + attention(h))
    return norm1(n1 + ffn(n1))


@exercise.mutant(
    "in place",
    "The result is right, but `+=` wrote it into the tensor that was handed over, which the caller still holds. "
    "`h + …` makes a new one.",
)
def block(h, attention, ffn, norm1, norm2):
    h += attention(h)
    n1 = norm1(h)
    return norm2(n1 + ffn(n1))


@worth(3)
def test_any_block(answer, draw):
    d = 4
    whole = Block(d).double()
    state = {name: draw.normal(*w.shape) for name, w in whole.state_dict().items()}
    whole.load_state_dict(state)
    h = 2 * draw.normal(2, 5, d)
    with torch.no_grad():
        expected = whole(h)[0]
    outcome = answer(state, h)
    outcome.part("out").equals(expected)
    outcome.part("h").equals(h)
