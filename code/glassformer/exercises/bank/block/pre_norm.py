"""Exercise block.pre_norm."""

import torch

from glassformer.models.baby_groot import Block

from ...definition import Exercise, worth

exercise = Exercise(
    "block.pre_norm",
    title="Repair a pre-norm block",
    minutes=12,
    statement=r"""
In a pre-norm block each part reads a normalised *copy*, and the stream itself is left alone:

$$
h + \text{part}(\text{LN}(h))
$$

first with attention, then, starting from that sum, with the feed-forward network. Somebody wrote it so:

```python
def pre_norm(h, attention, ffn, norm1, norm2):
    h = norm1(h)
    h = h + attention(h)
    h = norm2(h)
    return h + ffn(h)
```

It trains, but a block whose parts are silent should hand on what comes in, to the last digit, and this one does not.
Repair it.
""",
    hints=(
        "Follow the stream from top to bottom in the broken code. What stands on it besides additions?",
        "`h = norm1(h)` throws the stream away: from then on there is only the copy. The copy needs no name but "
        "inside the part's brackets.",
        "`h = h + attention(norm1(h))`; the second half has the same form and starts from the new `h`.",
    ),
    explanation=r"""
The broken code adds to the normalised copy, so a row's mean and size are lost at every norm: it is a post-norm
block with its norms moved. Repaired, the stream is literally a running sum, $h_0$ plus the contributions of all
parts, and a signal can pass a hundred blocks untouched. The price: nothing keeps the sum in bounds, so a model
needs one last norm before its head. A block does not.
""",
)


@exercise.starter
def pre_norm(h, attention, ffn, norm1, norm2):
    """Return the output of a pre-norm block, [B, T, d].

    h: [B, T, d]; attention, ffn, norm1, norm2: functions from [B, T, d] to [B, T, d].
    """
    raise NotImplementedError("not attempted")


@exercise.harness
def prepare(pre_norm, state, h):
    """Make the parts of a block with these weights and call the function."""
    import torch

    from glassformer.models.baby_groot import Block

    parts = Block(h.shape[-1]).double()
    parts.load_state_dict(state)
    with torch.no_grad():
        return pre_norm(h, lambda x: parts.attn(x)[0], parts.ffn, parts.norm1, parts.norm2)


@exercise.solution
def pre_norm(h, attention, ffn, norm1, norm2):
    h = h + attention(norm1(h))  # attention reads a copy; the stream is only added to
    return h + ffn(norm2(h))


@exercise.style("names for the copies")
def pre_norm(h, attention, ffn, norm1, norm2):
    attention_norm = norm1(h)
    r1 = h + attention(attention_norm)
    ffn_norm = norm2(r1)
    return r1 + ffn(ffn_norm)


@exercise.style("loop")
def pre_norm(h, attention, ffn, norm1, norm2):
    for part, norm in ((attention, norm1), (ffn, norm2)):
        h = torch.add(h, part(norm(h)))
    return h


@exercise.style("sum of contributions")
def pre_norm(h, attention, ffn, norm1, norm2):
    heard = attention(norm1(h))
    digested = ffn(norm2(h + heard))
    return torch.stack([h, heard, digested]).sum(dim=0)


@exercise.mutant(
    "as it was",
    "Both norms still sit on the stream: what is added to is the normalised copy, and the row's own mean and size are "
    "gone.",
)
def pre_norm(h, attention, ffn, norm1, norm2):
    h = norm1(h)
    h = h + attention(h)
    h = norm2(h)
    return h + ffn(h)


@exercise.mutant(
    "second half as it was",
    "The first half is repaired; in the second the network's result is still added to the copy that `norm2` made.",
)
def pre_norm(h, attention, ffn, norm1, norm2):
    h = h + attention(norm1(h))
    h = norm2(h)
    return h + ffn(h)


@exercise.mutant(
    "first half as it was",
    "The second half is repaired; in the first the context is still added to the copy that `norm1` made.",
)
def pre_norm(h, attention, ffn, norm1, norm2):
    h = norm1(h)
    h = h + attention(h)
    return h + ffn(norm2(h))


@exercise.mutant(
    "post-norm",
    "This is post-norm: the sums are normalised. In pre-norm nothing but additions sits on the stream.",
)
def pre_norm(h, attention, ffn, norm1, norm2):
    h = norm1(h + attention(h))
    return norm2(h + ffn(h))


@exercise.mutant(
    "results normalised",
    "The parts read the stream as it is, and their *results* are normalised. It is what a part reads that goes "
    "through the norm: `part(norm(h))`.",
)
def pre_norm(h, attention, ffn, norm1, norm2):
    h = h + norm1(attention(h))
    return h + norm2(ffn(h))


@exercise.mutant(
    "no norms",
    "The norms are gone altogether: a silent block is the identity now, but the parts meet rows of any size.",
)
def pre_norm(h, attention, ffn, norm1, norm2):
    h = h + attention(h)
    return h + ffn(h)


@exercise.mutant(
    "network deaf to attention",
    "The feed-forward network reads the stream as it was before attention. It is to digest what the token has "
    "heard: normalise the new sum.",
)
def pre_norm(h, attention, ffn, norm1, norm2):
    return h + attention(norm1(h)) + ffn(norm2(h))


@exercise.mutant(
    "context dropped",
    "The context is lost from the stream: the last sum starts from the old `h`, so what attention heard reaches the "
    "output only through the network.",
)
def pre_norm(h, attention, ffn, norm1, norm2):
    r1 = h + attention(norm1(h))
    return h + ffn(norm2(r1))


@exercise.mutant(
    "a norm at the end",
    "There is one more norm at the end. A whole model needs a last norm before its head; on the way from block to "
    "block the stream is left alone.",
)
def pre_norm(h, attention, ffn, norm1, norm2):
    h = h + attention(norm1(h))
    return norm2(h + ffn(norm2(h)))


@exercise.mutant(
    "one norm twice",
    "The first norm was used for both parts. Each part has a norm of its own, with a scale and a shift that it "
    "learned for itself.",
)
def pre_norm(h, attention, ffn, norm1, norm2):
    h = h + attention(norm1(h))
    return h + ffn(norm1(h))


def drawn(d, draw):
    """Return a block with drawn weights, float64."""
    parts = Block(d).double()
    for weight in parts.parameters():
        weight.data = draw.normal(*weight.shape)
    return parts


def test_a_silent_block_hands_on_what_comes_in(answer, draw):
    parts = drawn(2, draw)
    for part in (parts.attn.v, parts.ffn[2]):
        part.weight.data.zero_()
        part.bias.data.zero_()
    h = torch.tensor([[[3.0, 5.0], [-1.0, 4.0], [2.0, 2.5]]], dtype=torch.float64)
    answer(dict(parts.state_dict()), h).equals(h)


@worth(2)
def test_any_block(answer, draw):
    d = 4
    parts, h = drawn(d, draw), 2 * draw.normal(2, 5, d)
    with torch.no_grad():
        r1 = (
            h
            + parts.attn(
                torch.nn.functional.layer_norm(h, (d,), parts.norm1.weight, parts.norm1.bias)
            )[0]
        )
        n2 = torch.nn.functional.layer_norm(r1, (d,), parts.norm2.weight, parts.norm2.bias)
        expected = r1 + parts.ffn(n2)
    answer(dict(parts.state_dict()), h).equals(expected)
