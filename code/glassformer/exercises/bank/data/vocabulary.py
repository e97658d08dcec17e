"""Exercise data.vocabulary."""

from glassformer.data import GROOT_SENTENCES, SPECIALS, Vocabulary

from ...definition import Exercise, worth

exercise = Exercise(
    "data.vocabulary",
    title="Build the vocabulary",
    minutes=8,
    statement="""
The vocabulary is the list of all tokens; a token's id is its place in that list. Return it for a
list of sentences: first the special tokens, in the order given, then every word of the sentences,
once, in alphabetical order. Words are separated by blanks.
""",
    hints=(
        "`sentence.split()` cuts a sentence into its words.",
        "A `set` keeps each word once, but in no order that you can rely on: `sorted` gives one.",
        "The special tokens are not sorted: put them, as a list, in front of the sorted words. A word "
        "of the corpus that is itself a special token must not stand there twice.",
    ),
    explanation="""
A set collects the words once, however often they occur. Sorting is more than neatness: sets of
texts come in another order at every start of Python, and with them every id would change, so
that weights trained yesterday would belong to other words today. Specials come first so that
`<PAD>` has the id 0.
""",
    forbidden={
        "from_sentences": "`Vocabulary.from_sentences` is what you are asked to build: write it "
        "with Python's own `split`, `set` and `sorted`."
    },
)


@exercise.starter
def build_vocabulary(sentences, specials):
    """Return the tokens in the order of their ids: specials, then sorted words.

    sentences: list of texts; specials: list of texts. Returns a list of texts.
    """
    raise NotImplementedError("not attempted")


@exercise.solution
def build_vocabulary(sentences, specials):
    words = {word for sentence in sentences for word in sentence.split()}
    return [*specials, *sorted(words - set(specials))]


@exercise.style("loop")
def build_vocabulary(sentences, specials):
    found = []
    for sentence in sentences:
        for word in sentence.split():
            if word not in found and word not in specials:
                found.append(word)
    found.sort()
    return list(specials) + found


@exercise.style("dictionary")
def build_vocabulary(sentences, specials):
    words = sorted(" ".join(sentences).split())
    return list(dict.fromkeys([*specials, *words]))


@exercise.mutant(
    "order of appearance",
    "The words stand in the order in which the corpus first uses them; sort them, so that the ids "
    "do not depend on the order of the sentences.",
)
def build_vocabulary(sentences, specials):
    words = [word for sentence in sentences for word in sentence.split()]
    return list(dict.fromkeys([*specials, *words]))


@exercise.mutant(
    "words repeated",
    "A word that occurs twice stands there twice, so it would have two ids; collect the words in a "
    "set first.",
)
def build_vocabulary(sentences, specials):
    words = [word for sentence in sentences for word in sentence.split()]
    return [*specials, *sorted(word for word in words if word not in specials)]


@exercise.mutant(
    "specials sorted too",
    "The special tokens were sorted among the rest. They come first, in their own order: "
    "`<PAD>` must have the id 0, because that is what fills empty places.",
)
def build_vocabulary(sentences, specials):
    return sorted({word for sentence in sentences for word in sentence.split()} | set(specials))


@exercise.mutant(
    "specials last",
    "The special tokens stand at the end; they come first, so that their ids stay the same "
    "when the corpus grows.",
)
def build_vocabulary(sentences, specials):
    words = {word for sentence in sentences for word in sentence.split()}
    return [*sorted(words - set(specials)), *specials]


@exercise.mutant(
    "specials missing",
    "Only words are in it; the special tokens need ids as well, the first ones.",
)
def build_vocabulary(sentences, specials):
    return sorted({word for sentence in sentences for word in sentence.split()} - set(specials))


@exercise.mutant(
    "special token twice",
    "A special token that also occurs in a sentence stands there twice; take the specials out of "
    "the set of words.",
)
def build_vocabulary(sentences, specials):
    return [*specials, *sorted({word for sentence in sentences for word in sentence.split()})]


@exercise.mutant(
    "letters",
    "These are letters, not words: going through a text gives its letters; `sentence.split()` gives "
    "its words.",
)
def build_vocabulary(sentences, specials):
    letters = {letter for sentence in sentences for letter in sentence}
    return [*specials, *sorted(letters - set(specials))]


@exercise.mutant("ready-made", exercise.forbidden["from_sentences"])
def build_vocabulary(sentences, specials):
    return list(Vocabulary.from_sentences(sentences, specials).words)


def test_two_sentences(answer):
    answer(["we are groot", "groot is happy"], ["<PAD>", "<END>"]).equals(
        ["<PAD>", "<END>", "are", "groot", "happy", "is", "we"]
    )


def test_the_corpus(answer):
    expected = Vocabulary.from_sentences(GROOT_SENTENCES, SPECIALS).words
    answer(list(GROOT_SENTENCES), list(SPECIALS)).equals(list(expected))


def test_a_special_token_in_a_sentence(answer):
    answer(["<START> we are"], ["<PAD>", "<START>"]).equals(["<PAD>", "<START>", "are", "we"])


@worth(2)
def test_any_corpus(answer, draw):
    specials = draw.pick(["<PAD>", "<START>", "<END>", "zero"], 3)
    sentences = draw.sentences(draw.whole(3, 9))
    expected = Vocabulary.from_sentences(sentences, specials).words
    answer(sentences, specials).equals(list(expected))
