"""Exercise data.decode."""

import torch

from glassformer.data import SPECIALS, Vocabulary, groot_vocabulary

from ...definition import Exercise, worth
from ...draws import WORDS

exercise = Exercise(
    "data.decode",
    title="Decode what a model wrote",
    minutes=8,
    statement="""
A model writes ids. Turn a tensor of them into a text that people read: leave out `<PAD>` and
`<START>`, stop before the first `<END>`, and join the words by single blanks.
""",
    hints=(
        "`ids.tolist()` makes Python numbers of a tensor; `vocabulary[i]` is the token with id i.",
        "Go through the tokens one by one: `break` at `<END>`, `continue` at the two that are left out.",
        '`" ".join(words)` puts a blank between words, and none at the ends.',
    ),
    explanation="""
`<END>` is where the sentence is over. Whatever stands behind it, words too, was written only because
tensors have rows of one length. `<PAD>` and `<START>` are left out wherever they stand. Joining a list
puts blanks between words and nowhere else, so that nothing needs to be cut off afterwards.
""",
    forbidden={
        "decode": "`Vocabulary.decode` does most of what you are asked to build; look the words up in "
        "the list."
    },
)


@exercise.starter
def decode_ids(ids, vocabulary):
    """Return the words before the first <END>, without <PAD> and <START>, joined by blanks.

    ids: [T], token ids; vocabulary: list of texts. Returns a text.
    """
    raise NotImplementedError("not attempted")


@exercise.solution
def decode_ids(ids, vocabulary):
    words = []
    for i in ids.tolist():
        word = vocabulary[i]
        if word == "<END>":
            break
        if word not in ("<PAD>", "<START>"):
            words.append(word)
    return " ".join(words)


@exercise.style("cut first")
def decode_ids(ids, vocabulary):
    words = [vocabulary[i] for i in ids]
    if "<END>" in words:
        words = words[: words.index("<END>")]
    return " ".join(word for word in words if word not in {"<PAD>", "<START>"})


@exercise.style("as one text")
def decode_ids(ids, vocabulary):
    text = " ".join(vocabulary[int(i)] for i in ids) + " "
    text = text.split("<END> ")[0]
    return " ".join(text.replace("<PAD> ", "").replace("<START> ", "").split())


@exercise.mutant(
    "nothing left out",
    "The special tokens are still there; they are for the model, not for a reader.",
)
def decode_ids(ids, vocabulary):
    return " ".join(vocabulary[i] for i in ids.tolist())


@exercise.mutant(
    "reads on",
    "What stands behind `<END>` was read on: the sentence is over there, whatever follows.",
)
def decode_ids(ids, vocabulary):
    words = [vocabulary[i] for i in ids.tolist()]
    return " ".join(word for word in words if word not in ("<PAD>", "<START>", "<END>"))


@exercise.mutant(
    "stops at padding",
    "It stops at the first `<PAD>`; only `<END>` ends a sentence, `<PAD>` is merely left out.",
)
def decode_ids(ids, vocabulary):
    words = []
    for i in ids.tolist():
        if vocabulary[i] in ("<END>", "<PAD>"):
            break
        if vocabulary[i] != "<START>":
            words.append(vocabulary[i])
    return " ".join(words)


@exercise.mutant(
    "no blanks",
    'The words run into each other; `" ".join(words)` puts a blank between them.',
)
def decode_ids(ids, vocabulary):
    words = []
    for i in ids.tolist():
        if vocabulary[i] == "<END>":
            break
        if vocabulary[i] not in ("<PAD>", "<START>"):
            words.append(vocabulary[i])
    return "".join(words)


@exercise.mutant(
    "blank at the end",
    "There is a blank too many: adding a blank after each word leaves one at the end; "
    '`" ".join(words)` does not.',
)
def decode_ids(ids, vocabulary):
    text = ""
    for i in ids.tolist():
        if vocabulary[i] == "<END>":
            break
        if vocabulary[i] not in ("<PAD>", "<START>"):
            text += vocabulary[i] + " "
    return text


@exercise.mutant(
    "a list",
    "This is a list of words; join it to one text.",
)
def decode_ids(ids, vocabulary):
    words = [vocabulary[i] for i in ids.tolist()]
    words = words[: words.index("<END>")] if "<END>" in words else words
    return [word for word in words if word not in ("<PAD>", "<START>")]


@exercise.mutant(
    "needs an end",
    "A model that is stopped early has written no `<END>`; then `index` finds none. All words count.",
)
def decode_ids(ids, vocabulary):
    words = [vocabulary[i] for i in ids.tolist()]
    words = words[: words.index("<END>")]
    return " ".join(word for word in words if word not in ("<PAD>", "<START>"))


@exercise.mutant("ready-made", exercise.forbidden["decode"])
def decode_ids(ids, vocabulary):
    words = Vocabulary(tuple(vocabulary)).decode(ids).split()
    words = words[: words.index("<END>")] if "<END>" in words else words
    return " ".join(word for word in words if word not in ("<PAD>", "<START>"))


def text_of(ids, words):
    """Return what the package decodes, cut at <END>."""
    tokens = Vocabulary(tuple(words)).decode(ids).split()
    tokens = tokens[: tokens.index("<END>")] if "<END>" in tokens else tokens
    return " ".join(token for token in tokens if token not in SPECIALS)


def test_our_sentence(answer):
    ids = torch.tensor([1, 11, 3, 8, 2, 0])
    answer(ids, list(groot_vocabulary().words)).equals("i am groot")


@worth(2)
def test_any_ids(answer, draw):
    words = draw.pick([*SPECIALS, *WORDS], 9 + draw.whole(0, 4))
    words = [*SPECIALS, *(word for word in words if word not in SPECIALS)]
    words = draw.pick(words, len(words))
    for length in (7, 11, 40):
        ids = draw.ids(len(words), length)
        answer(ids, words).equals(text_of(ids, words))


def test_padding_inside_and_no_end(answer):
    ids = torch.tensor([1, 0, 11, 0, 3])
    answer(ids, list(groot_vocabulary().words)).equals("i am")
