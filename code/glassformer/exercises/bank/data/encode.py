"""Exercise data.encode."""

import bisect
from collections import defaultdict

from glassformer.data import Vocabulary, groot_vocabulary

from ...definition import Exercise, worth
from ...draws import WORDS

exercise = Exercise(
    "data.encode",
    title="Encode a sentence",
    minutes=8,
    statement="""
Turn a sentence into the ids of its tokens, with `<START>` in front and `<END>` behind. The
vocabulary is a list of tokens in the order of their ids. A word that it does not hold has no number:
raise a `ValueError` whose text names the word.
""",
    hints=(
        "The id of a token is its place in the list: `vocabulary.index(word)` finds it.",
        "Write the sentence as a list of words with `<START>` and `<END>` around them, then look up "
        "each of them in the same way.",
        "Before looking a word up, ask `if word not in vocabulary` and raise "
        '`ValueError(f"{word!r} is not in the vocabulary")`.',
    ),
    explanation="""
`<START>` and `<END>` are tokens like any other, so they are looked up and not written as 1 and 2:
another vocabulary may have them elsewhere. `list.index` would refuse an unknown word as well, but
the reader of the message deserves to learn which word it was. For a large vocabulary one makes a
dictionary from token to id once, since `index` looks through the whole list at every word.
""",
    forbidden={
        "encode": "`Vocabulary.encode` is what you are asked to build; `list.index` or a dictionary "
        "is all it takes."
    },
)


@exercise.starter
def encode_sentence(sentence, vocabulary):
    """Return the ids of <START>, the words and <END>.

    sentence: text of T words; vocabulary: list of texts. Returns a list of T + 2 whole numbers.
    """
    raise NotImplementedError("not attempted")


@exercise.solution
def encode_sentence(sentence, vocabulary):
    ids = []
    for word in ["<START>", *sentence.split(), "<END>"]:
        if word not in vocabulary:
            raise ValueError(f"{word!r} is not in the vocabulary.")
        ids.append(vocabulary.index(word))
    return ids


@exercise.style("dictionary")
def encode_sentence(sentence, vocabulary):
    id_of = {word: i for i, word in enumerate(vocabulary)}
    words = f"<START> {sentence} <END>".split()
    unknown = [word for word in words if word not in id_of]
    if unknown:
        raise ValueError(f"unknown: {', '.join(unknown)}")
    return [id_of[word] for word in words]


@exercise.style("error translated")
def encode_sentence(sentence, vocabulary):
    def look_up(word):
        try:
            return vocabulary.index(word)
        except ValueError:
            raise ValueError("no id for " + word) from None

    return [look_up("<START>")] + [look_up(word) for word in sentence.split()] + [look_up("<END>")]


@exercise.mutant(
    "no ends",
    "`<START>` and `<END>` are missing: without them the model can learn neither how sentences begin "
    "nor when to stop.",
)
def encode_sentence(sentence, vocabulary):
    for word in sentence.split():
        if word not in vocabulary:
            raise ValueError(word)
    return [vocabulary.index(word) for word in sentence.split()]


@exercise.mutant(
    "end missing",
    "`<END>` is missing: it is the token that tells the model when to stop.",
)
def encode_sentence(sentence, vocabulary):
    for word in sentence.split():
        if word not in vocabulary:
            raise ValueError(word)
    return [vocabulary.index(word) for word in ["<START>", *sentence.split()]]


@exercise.mutant(
    "ids written down",
    "`<START>` and `<END>` got the ids 1 and 2 whatever the vocabulary says; look them up, "
    "like every token.",
)
def encode_sentence(sentence, vocabulary):
    for word in sentence.split():
        if word not in vocabulary:
            raise ValueError(word)
    return [1, *(vocabulary.index(word) for word in sentence.split()), 2]


@exercise.mutant(
    "counted from one",
    "Every id is one too large: places are counted from 0, so the first token has the id 0.",
)
def encode_sentence(sentence, vocabulary):
    for word in sentence.split():
        if word not in vocabulary:
            raise ValueError(word)
    return [vocabulary.index(word) + 1 for word in ["<START>", *sentence.split(), "<END>"]]


@exercise.mutant(
    "unknown words dropped",
    "An unknown word was left out without a word: the ids now stand for another sentence. Raise a "
    "`ValueError` that names it.",
)
def encode_sentence(sentence, vocabulary):
    words = ["<START>", *sentence.split(), "<END>"]
    return [vocabulary.index(word) for word in words if word in vocabulary]


@exercise.mutant(
    "unknown words as padding",
    "An unknown word was given the id 0, which is `<PAD>`'s: the model would take the word for an "
    "empty place. Raise a `ValueError` that names it.",
)
def encode_sentence(sentence, vocabulary):
    id_of = defaultdict(int, {word: i for i, word in enumerate(vocabulary)})
    return [id_of[word] for word in ["<START>", *sentence.split(), "<END>"]]


@exercise.mutant(
    "dictionary's own error",
    "A dictionary refuses an unknown word with a `KeyError`; raise a `ValueError` whose text names the "
    "word.",
)
def encode_sentence(sentence, vocabulary):
    id_of = {word: i for i, word in enumerate(vocabulary)}
    return [id_of[word] for word in ["<START>", *sentence.split(), "<END>"]]


@exercise.mutant(
    "searched as if sorted",
    "`bisect` finds places in a sorted list, and the vocabulary is not one: its special tokens come "
    "first.",
)
def encode_sentence(sentence, vocabulary):
    for word in sentence.split():
        if word not in vocabulary:
            raise ValueError(word)
    return [bisect.bisect(vocabulary, w) - 1 for w in ["<START>", *sentence.split(), "<END>"]]


@exercise.mutant("ready-made", exercise.forbidden["encode"])
def encode_sentence(sentence, vocabulary):
    return Vocabulary(tuple(vocabulary)).encode(f"<START> {sentence} <END>")


def test_our_sentence(answer):
    answer("i am groot", list(groot_vocabulary().words)).equals([1, 11, 3, 8, 2])


def test_an_unknown_word_is_named(answer):
    answer("i am root", list(groot_vocabulary().words)).refuses(ValueError, "root")


@worth(2)
def test_any_vocabulary(answer, draw):
    words = draw.pick(["<PAD>", "<START>", "<END>", *WORDS], 3 + len(WORDS))
    sentence = " ".join(draw.pick(WORDS, draw.whole(1, 6)))
    expected = Vocabulary(tuple(words)).encode(f"<START> {sentence} <END>")
    answer(sentence, words).equals(expected)
