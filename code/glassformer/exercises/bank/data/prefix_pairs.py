"""Exercise data.prefix_pairs."""

import torch

from glassformer.data import GROOT_SENTENCES, Vocabulary, groot_vocabulary, prefix_pairs

from ...definition import Exercise, worth

exercise = Exercise(
    "data.prefix_pairs",
    title="From sentences to examples",
    minutes=15,
    statement=r"""
Each sentence comes as a list of ids, `<START>` and `<END>` included. It gives one example for every
token after the first: the context, which is all tokens before it, and the target, the token itself.
Return the contexts as a tensor `X` of shape `(N, max_len)`, filled up **on the right** with 0, the id
of `<PAD>`, and the targets as a tensor `Y` of shape `(N,)`. Examples stand in the order of the
sentences, short contexts before long ones.
""",
    hints=(
        "A sentence of five tokens gives four examples; write down the four contexts of "
        "`[1, 11, 3, 8, 2]` first.",
        "For `end` from 1 to the last place: `ids[:end]` is a context, `ids[end]` its target.",
        "`ids[:end] + [0] * (max_len - end)` fills a context up; "
        "collect all in two lists and make tensors of these at the end.",
    ),
    explanation=r"""
`ids[:end]` leaves `ids[end]` out, which is what makes this a prediction: the answer is never among
what is given. The first example has only `<START>` to go by, the last one asks for `<END>`. Padding
stands on the right, so that every token keeps its position, and the causal mask hides it from all
real ones.
""",
    forbidden={
        "prefix_pairs": "`glassformer.data.prefix_pairs` is what you are asked to build: two loops "
        "and a slice."
    },
)


@exercise.starter
def make_pairs(sentences, max_len):
    """Return contexts X [N, max_len], padded on the right with 0, and targets Y [N].

    sentences: list of lists of ids, each of 2 … max_len + 1 tokens.
    """
    raise NotImplementedError("not attempted")


@exercise.solution
def make_pairs(sentences, max_len):
    contexts, targets = [], []
    for ids in sentences:
        for end in range(1, len(ids)):
            contexts.append(ids[:end] + [0] * (max_len - end))
            targets.append(ids[end])
    return torch.tensor(contexts), torch.tensor(targets)


@exercise.style("filled in place")
def make_pairs(sentences, max_len):
    Y = torch.tensor([token for ids in sentences for token in ids[1:]])
    X = torch.zeros(len(Y), max_len, dtype=torch.long)
    row = 0
    for ids in sentences:
        for end in range(1, len(ids)):
            X[row, :end] = torch.tensor(ids[:end])
            row += 1
    return X, Y


@exercise.style("triangle")
def make_pairs(sentences, max_len):
    blocks = []
    for ids in sentences:
        row = torch.tensor(ids[:-1] + [0] * (max_len - len(ids) + 1))
        blocks.append(row.expand(len(ids) - 1, max_len).tril())
    return torch.cat(blocks), torch.cat([torch.tensor(ids[1:]) for ids in sentences])


@exercise.style("pad_sequence")
def make_pairs(sentences, max_len):
    prefixes = [torch.tensor(ids[:end]) for ids in sentences for end in range(1, len(ids))]
    X = torch.nn.utils.rnn.pad_sequence([torch.zeros(max_len).long(), *prefixes], batch_first=True)
    return X[1:], torch.tensor([ids[end] for ids in sentences for end in range(1, len(ids))])


@exercise.mutant(
    "padded on the left",
    "The padding stands on the left: every real token sees it and stands at another position. Fill up "
    "on the right, where the causal mask hides it.",
)
def make_pairs(sentences, max_len):
    contexts, targets = [], []
    for ids in sentences:
        for end in range(1, len(ids)):
            contexts.append([0] * (max_len - end) + ids[:end])
            targets.append(ids[end])
    return torch.tensor(contexts), torch.tensor(targets)


@exercise.mutant(
    "target in the context",
    "The context holds the target as its last token: the model would only have to copy it. "
    "`ids[:end]` stops before `ids[end]`.",
)
def make_pairs(sentences, max_len):
    contexts, targets = [], []
    for ids in sentences:
        for end in range(1, len(ids)):
            contexts.append((ids[: end + 1] + [0] * max_len)[:max_len])
            targets.append(ids[end])
    return torch.tensor(contexts), torch.tensor(targets)


@exercise.mutant(
    "last example missing",
    "The last example of each sentence is missing, the one whose target is `<END>`: so the model would "
    "never learn to stop.",
)
def make_pairs(sentences, max_len):
    contexts, targets = [], []
    for ids in sentences:
        for end in range(1, len(ids) - 1):
            contexts.append(ids[:end] + [0] * (max_len - end))
            targets.append(ids[end])
    return torch.tensor(contexts), torch.tensor(targets)


@exercise.mutant(
    "first example missing",
    "The first example of each sentence is missing: with `<START>` alone as its context it teaches how "
    "sentences begin.",
)
def make_pairs(sentences, max_len):
    contexts, targets = [], []
    for ids in sentences:
        for end in range(2, len(ids)):
            contexts.append(ids[:end] + [0] * (max_len - end))
            targets.append(ids[end])
    return torch.tensor(contexts), torch.tensor(targets)


@exercise.mutant(
    "only whole sentences",
    "Each sentence gave one example; it holds one for every place where a next token can be asked for.",
)
def make_pairs(sentences, max_len):
    X = torch.tensor([ids[:-1] + [0] * (max_len + 1 - len(ids)) for ids in sentences])
    return X, torch.tensor([ids[-1] for ids in sentences])


@exercise.mutant(
    "single tokens as contexts",
    "Each context holds only the token before the target; the model is to see everything before it.",
)
def make_pairs(sentences, max_len):
    pairs = [(ids[end - 1], ids[end]) for ids in sentences for end in range(1, len(ids))]
    X = torch.tensor([[last] + [0] * (max_len - 1) for last, _ in pairs])
    return X, torch.tensor([target for _, target in pairs])


@exercise.mutant(
    "targets one too late",
    "The targets are one token too late: what follows `ids[:end]` is `ids[end]`, not `ids[end + 1]`.",
)
def make_pairs(sentences, max_len):
    contexts, targets = [], []
    for ids in sentences:
        for end in range(1, len(ids)):
            contexts.append(ids[:end] + [0] * (max_len - end))
            targets.append((ids + [0])[end + 1])
    return torch.tensor(contexts), torch.tensor(targets)


@exercise.mutant(
    "filled with -1",
    "Empty places hold −1, which is no token's id; they hold 0, the id of `<PAD>`.",
)
def make_pairs(sentences, max_len):
    contexts, targets = [], []
    for ids in sentences:
        for end in range(1, len(ids)):
            contexts.append(ids[:end] + [-1] * (max_len - end))
            targets.append(ids[end])
    return torch.tensor(contexts), torch.tensor(targets)


@exercise.mutant(
    "decimal numbers",
    "The ids are decimal numbers; ids are whole: `torch.zeros` needs `dtype=torch.long`.",
)
def make_pairs(sentences, max_len):
    Y = [ids[end] for ids in sentences for end in range(1, len(ids))]
    X, row = torch.zeros(len(Y), max_len), 0
    for ids in sentences:
        for end in range(1, len(ids)):
            X[row, :end] = torch.tensor(ids[:end]).float()
            row += 1
    return X, torch.tensor(Y)


@exercise.mutant("ready-made", exercise.forbidden["prefix_pairs"])
def make_pairs(sentences, max_len):
    words = [f"w{i}" for i in range(3, 1 + max(max(ids) for ids in sentences))]
    vocabulary = Vocabulary(("<PAD>", "<START>", "<END>", *words))
    return prefix_pairs([vocabulary.decode(ids[1:-1]) for ids in sentences], vocabulary, max_len)


def expected_pairs(sentences, vocabulary, max_len):
    """Return the sentences as ids, and what the package makes of them."""
    ids = [vocabulary.encode(f"<START> {sentence} <END>") for sentence in sentences]
    return ids, prefix_pairs(sentences, vocabulary, max_len)


def test_our_sentence(answer):
    ids, expected = expected_pairs(["i am groot"], groot_vocabulary(), 4)
    answer(ids, 4).equals(expected)


def test_the_corpus(answer):
    ids, expected = expected_pairs(GROOT_SENTENCES, groot_vocabulary(), 4)
    answer(ids, 4).equals(expected)


@worth(2)
def test_sentences_of_any_length(answer, draw):
    sentences = draw.sentences(draw.whole(3, 6), longest=5)
    vocabulary = Vocabulary.from_sentences(sentences)
    max_len = draw.whole(6, 9)
    ids, expected = expected_pairs(sentences, vocabulary, max_len)
    answer(ids, max_len).equals(expected)
