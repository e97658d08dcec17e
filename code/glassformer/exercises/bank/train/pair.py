"""Exercise train.pair."""

from collections import Counter
from itertools import pairwise

from glassformer.bpe import learn, merge

from ...definition import Exercise, worth

exercise = Exercise(
    "train.pair",
    title="Which two become one?",
    minutes=15,
    statement=r"""
One round of byte-pair encoding. `words` says how often each word of a text occurs, and what pieces it is made of by now:
`{("Ġ", "s", "e", "a"): 3, …}`. Return the pair of neighbours that occurs most often in the text. Pieces do not cross
words: the last of one and the first of the next are no neighbours.

Of pairs that occur equally often, take the one whose first piece is older, and if they share it, the one whose second piece
is. `vocabulary` has all pieces, the oldest first. In `e e e` the pair `e e` stands twice.
""",
    hints=(
        "A word that occurs 300 times brings each of its pairs 300 times. What could you add up in a `Counter`?",
        "`pairwise(word)` goes through the neighbours of a word; add the word's count to each. For the ties you need to know at which "
        "place of `vocabulary` a piece stands.",
        "`max` compares tuples entry by entry: `key=lambda pair: (pairs[pair], -age[pair[0]], -age[pair[1]])`, where `age` is a piece's place.",
    ),
    explanation=r"""
The text itself is never walked through: a novel of 200,000 words has only some 19,000 different ones, and a word's pairs are
counted once, with its weight. Without the rule for ties the pair would depend on the order in which a dictionary keeps its words,
and two machines could learn two vocabularies of one text. `glassformer.bpe.learn` does this, makes the pair a piece, and begins again.
""",
    forbidden={
        "learn": "`learn` of the package finds the pair for you; count the neighbours yourself."
    },
)


@exercise.starter
def next_pair(words, vocabulary):
    """Return the two neighbours that occur most often, a tuple of two pieces.

    words: a dictionary, word → count, a word being a tuple of pieces; vocabulary: list of all pieces, oldest first.
    """
    raise NotImplementedError("not attempted")


@exercise.solution
def next_pair(words, vocabulary):
    pairs = Counter()
    for word, count in words.items():
        for pair in pairwise(word):
            pairs[pair] += count
    age = {piece: i for i, piece in enumerate(vocabulary)}
    return max(pairs, key=lambda pair: (pairs[pair], -age[pair[0]], -age[pair[1]]))


@exercise.style("sorted")
def next_pair(words, vocabulary):
    counts = {}
    for word in words:
        for i in range(len(word) - 1):
            counts[word[i], word[i + 1]] = counts.get((word[i], word[i + 1]), 0) + words[word]
    most = max(counts.values())
    best = [pair for pair, count in counts.items() if count == most]
    return sorted(best, key=lambda pair: [vocabulary.index(piece) for piece in pair])[0]


@exercise.style("every pair there could be")
def next_pair(words, vocabulary):
    best, most = None, 0
    for a in vocabulary:
        for b in vocabulary:
            count = sum(n * list(zip(word, word[1:])).count((a, b)) for word, n in words.items())
            if count > most:
                best, most = (a, b), count
    return best


@exercise.mutant(
    "each word once",
    "Each word was counted once; a word that occurs three times brings its pairs three times.",
)
def next_pair(words, vocabulary):
    pairs = Counter(pair for word in words for pair in pairwise(word))
    age = {piece: i for i, piece in enumerate(vocabulary)}
    return max(pairs, key=lambda pair: (pairs[pair], -age[pair[0]], -age[pair[1]]))


@exercise.mutant(
    "across words",
    "The end of one word and the beginning of the next were counted as neighbours; pieces do not cross words.",
)
def next_pair(words, vocabulary):
    text = [piece for word, count in words.items() for _ in range(count) for piece in word]
    pairs = Counter(pairwise(text))
    age = {piece: i for i, piece in enumerate(vocabulary)}
    return max(pairs, key=lambda pair: (pairs[pair], -age[pair[0]], -age[pair[1]]))


@exercise.mutant(
    "once in a word",
    "A pair that stands twice in a word was counted once there; count every place.",
)
def next_pair(words, vocabulary):
    pairs = Counter()
    for word, count in words.items():
        for pair in set(pairwise(word)):
            pairs[pair] += count
    age = {piece: i for i, piece in enumerate(vocabulary)}
    return max(pairs, key=lambda pair: (pairs[pair], -age[pair[0]], -age[pair[1]]))


@exercise.mutant(
    "letters",
    "The single letters were counted again; the neighbours of a word are its pieces, and some have been merged already.",
)
def next_pair(words, vocabulary):
    pairs = Counter()
    for word, count in words.items():
        for pair in pairwise("".join(word)):
            pairs[pair] += count
    age = {piece: i for i, piece in enumerate(vocabulary)}
    return max(pairs, key=lambda pair: (pairs[pair], -age[pair[0]], -age[pair[1]]))


@exercise.mutant(
    "the first that was met",
    "Of pairs that occur equally often, the first that was met was taken; the one of older pieces is asked for.",
)
def next_pair(words, vocabulary):
    pairs = Counter()
    for word, count in words.items():
        for pair in pairwise(word):
            pairs[pair] += count
    return pairs.most_common(1)[0][0]


@exercise.mutant(
    "by the alphabet",
    "Of pairs that occur equally often, the first by the alphabet was taken; age is a piece's place in `vocabulary`, and merged "
    "pieces are younger than every letter.",
)
def next_pair(words, vocabulary):
    pairs = Counter()
    for word, count in words.items():
        for pair in pairwise(word):
            pairs[pair] += count
    return min(pairs, key=lambda pair: (-pairs[pair], pair))


@exercise.mutant(
    "ages added up",
    "Of pairs that occur equally often, the one with the smallest sum of ages was taken; the age of the first piece decides, and "
    "only where that is the same, the age of the second.",
)
def next_pair(words, vocabulary):
    pairs = Counter()
    for word, count in words.items():
        for pair in pairwise(word):
            pairs[pair] += count
    age = {piece: i for i, piece in enumerate(vocabulary)}
    return max(pairs, key=lambda pair: (pairs[pair], -age[pair[0]] - age[pair[1]]))


@exercise.mutant(
    "the younger",
    "Of pairs that occur equally often, the one of younger pieces was taken: the smaller the place in `vocabulary`, the older the piece.",
)
def next_pair(words, vocabulary):
    pairs = Counter()
    for word, count in words.items():
        for pair in pairwise(word):
            pairs[pair] += count
    age = {piece: i for i, piece in enumerate(vocabulary)}
    return max(pairs, key=lambda pair: (pairs[pair], age[pair[0]], age[pair[1]]))


@exercise.mutant(
    "the rarest",
    "This is the pair that occurs least often; what recurs most is worth a piece of its own.",
)
def next_pair(words, vocabulary):
    pairs = Counter()
    for word, count in words.items():
        for pair in pairwise(word):
            pairs[pair] += count
    age = {piece: i for i, piece in enumerate(vocabulary)}
    return min(pairs, key=lambda pair: (pairs[pair], age[pair[0]], age[pair[1]]))


@exercise.mutant(
    "joined",
    "The two are joined already; return the pair, two pieces: a text does not tell where it was joined.",
)
def next_pair(words, vocabulary):
    pairs = Counter()
    for word, count in words.items():
        for pair in pairwise(word):
            pairs[pair] += count
    age = {piece: i for i, piece in enumerate(vocabulary)}
    return "".join(max(pairs, key=lambda pair: (pairs[pair], -age[pair[0]], -age[pair[1]])))


@exercise.mutant(
    "with its count",
    "This is the pair with its count; return the pair alone.",
)
def next_pair(words, vocabulary):
    pairs = Counter()
    for word, count in words.items():
        for pair in pairwise(word):
            pairs[pair] += count
    return pairs.most_common(1)[0]


@exercise.mutant("ready-made", exercise.forbidden["learn"])
def next_pair(words, vocabulary):
    from glassformer.bpe import learn

    return learn(Counter(words), len(vocabulary) + 1)[1][0]


def test_words_weigh_what_they_count(answer):
    words = {tuple("sea"): 1, tuple("set"): 2, tuple("seek"): 1, tuple("to"): 6}  # s e: 4, t o: 6
    answer(words, list("aekost")).equals(("t", "o"))


def test_every_place_within_words_alone(answer):
    words = {("a",): 9, tuple("eee"): 2, tuple("el"): 3}  # e e: 4, e l: 3, and nothing else
    answer(words, list("ael")).equals(("e", "e"))


def test_of_equals_the_older(answer):
    pairs = ["t w", "s he", "he s", "t e", "th e", "th a", "s t", "w he"]  # a rule, another pair
    words = {tuple(pair.split()): 2 for pair in pairs}
    answer(words, [*"aehstw", "he", "th"]).equals(("s", "t"))


@worth(2)
def test_any_round(answer, draw):
    letters = draw.pick("aeghlnst", 4)
    drawn = [draw.ids(4, draw.whole(2, 6)).tolist() for _ in range(7)]
    words = {tuple(letters[i] for i in word): draw.whole(2, 9) for word in drawn}
    vocabulary = sorted(set().union(*words))
    for pair in learn(Counter(words), len(vocabulary) + 4)[1]:
        answer(words, vocabulary).equals(pair)
        words = {merge(word, pair): count for word, count in words.items()}
        vocabulary = list(dict.fromkeys([*vocabulary, "".join(pair)]))
