"""Exercise train.cut."""

import re
from collections import Counter

from glassformer import bpe

from ...definition import Exercise, worth

exercise = Exercise(
    "train.cut",
    title="A word that was never counted",
    minutes=20,
    statement=r"""
A tokeniser has learnt `merges`, pairs of pieces in the order in which they became one. Cut a word, known or new: begin with
its letters, and apply the merges in that order. Each joins *every* occurrence of its pair in the word, from the left: in `e e e` the
pair `e e` is found once, at the left.
""",
    hints=(
        "Take one merge first: how does a word look in which each occurrence of the pair `a`, `b` is one piece? Then it is a loop over all merges.",
        "Build a new list, piece by piece. When the last piece in it and the one that comes are the pair, the last one grows; else the one "
        "that comes is appended.",
        "`if done and (done[-1], piece) == (a, b): done[-1] += piece`, else `done.append(piece)`; what is done is the word for the next merge.",
    ),
    explanation=r"""
A piece that has grown cannot be the pair's first any more: it is longer than that. So `e e e` becomes `ee e`, and no letter is used twice.
The order of the merges is what makes the cut the same as the one that was counted when they were learnt. The longest piece that fits
would be another cut, and a model trained on one would read the other as words it has hardly met. A letter that no merge knows stays
a letter: no word is unknown.
""",
    forbidden={
        name: f"`{name}` of the package does the part you are asked to build; join the pieces yourself."
        for name in ("cut", "merge")
    },
)


@exercise.starter
def cut(word, merges):
    """Return the pieces of a word, a tuple of texts.

    word: a text; merges: a list of pairs of pieces, (first, second), in the order in which they were learnt.
    """
    raise NotImplementedError("not attempted")


@exercise.solution
def cut(word, merges):
    pieces = list(word)
    for a, b in merges:
        done = []
        for piece in pieces:
            if done and (done[-1], piece) == (a, b):
                done[-1] += piece
            else:
                done.append(piece)
        pieces = done
    return tuple(pieces)


@exercise.style("index by index")
def cut(word, merges):
    pieces = [*word]
    for pair in merges:
        i = 0
        while i < len(pieces) - 1:
            if (pieces[i], pieces[i + 1]) == tuple(pair):
                pieces[i : i + 2] = ["".join(pair)]
            i += 1
    return tuple(pieces)


@exercise.style("whole pieces in a text")
def cut(word, merges):
    line = " ".join(word)
    for a, b in merges:
        line = re.sub(rf"(?<!\S){re.escape(a)} {re.escape(b)}(?!\S)", a + b, line)
    return tuple(line.split())


@exercise.style("always the oldest merge there is")
def cut(word, merges):
    rank = {tuple(pair): i for i, pair in reversed(list(enumerate(merges)))}
    pieces = list(word)
    while True:
        found = [(rank.get(pair, len(rank)), i) for i, pair in enumerate(zip(pieces, pieces[1:]))]
        if not found or min(found)[0] == len(rank):
            return tuple(pieces)
        i = min(found)[1]
        pieces = [*pieces[:i], pieces[i] + pieces[i + 1], *pieces[i + 2 :]]


@exercise.mutant(
    "longest piece first",
    "The longest piece that fits was taken from the left; apply the merges one after the other, in the order in which they were learnt.",
)
def cut(word, merges):
    known = {a + b for a, b in merges}
    pieces = []
    while word:
        n = next((n for n in range(len(word), 1, -1) if word[:n] in known), 1)
        pieces.append(word[:n])
        word = word[n:]
    return tuple(pieces)


@exercise.mutant(
    "first place only",
    "A merge joined the first occurrence of its pair only; it joins every one in the word.",
)
def cut(word, merges):
    pieces = list(word)
    for pair in merges:
        for i in range(len(pieces) - 1):
            if (pieces[i], pieces[i + 1]) == tuple(pair):
                pieces[i : i + 2] = ["".join(pair)]
                break
    return tuple(pieces)


@exercise.mutant(
    "from the right",
    "The occurrences were joined from the right; from the left, `e e e` becomes `ee e`.",
)
def cut(word, merges):
    pieces = list(word)
    for pair in merges:
        i = len(pieces) - 2
        while i >= 0:
            if (pieces[i], *pieces[i + 1 : i + 2]) == tuple(pair):
                pieces[i : i + 2] = ["".join(pair)]
            i -= 1
    return tuple(pieces)


@exercise.mutant(
    "letters twice",
    "The second piece of a pair was used again: it belongs to the piece that it was joined to. Put together, the pieces must be the word.",
)
def cut(word, merges):
    pieces = list(word)
    for pair in merges:
        done = []
        for i, piece in enumerate(pieces):
            if tuple(pieces[i : i + 2]) == tuple(pair):
                done.append("".join(pair))
            elif i == 0 or tuple(pieces[i - 1 : i + 1]) != tuple(pair):
                done.append(piece)
        pieces = done
    return tuple(pieces)


@exercise.mutant(
    "youngest first",
    "The merges were applied from the last to the first; the order in which they were learnt is the order in which they apply.",
)
def cut(word, merges):
    pieces = list(word)
    for a, b in reversed(merges):
        done = []
        for piece in pieces:
            if done and (done[-1], piece) == (a, b):
                done[-1] += piece
            else:
                done.append(piece)
        pieces = done
    return tuple(pieces)


@exercise.mutant(
    "whatever comes first",
    "The word was read from the left and joined wherever some merge fits; an older merge further to the right comes first.",
)
def cut(word, merges):
    pairs = {tuple(pair) for pair in merges}
    pieces, i = list(word), 0
    while i < len(pieces) - 1:
        if (pieces[i], pieces[i + 1]) in pairs:
            pieces[i : i + 2] = [pieces[i] + pieces[i + 1]]
            i = 0
        else:
            i += 1
    return tuple(pieces)


@exercise.mutant(
    "stops at the first that does not fit",
    "It stops at the first merge whose pair is not in the word; the later ones may be there all the same.",
)
def cut(word, merges):
    pieces = list(word)
    for a, b in merges:
        done = []
        for piece in pieces:
            if done and (done[-1], piece) == (a, b):
                done[-1] += piece
            else:
                done.append(piece)
        if len(done) == len(pieces):
            break
        pieces = done
    return tuple(pieces)


@exercise.mutant(
    "ends of pieces",
    "A pair was joined where it is only the end of one piece and the beginning of the next, as text; a pair is two whole pieces.",
)
def cut(word, merges):
    line = " ".join(word)
    for a, b in merges:
        line = line.replace(f"{a} {b}", a + b)
    return tuple(line.split())


@exercise.mutant("ready-made", exercise.forbidden["cut"])
def cut(word, merges):
    from glassformer.bpe import cut

    return cut(word, merges)


def test_every_occurrence_from_the_left(answer):
    answer("eeexee", [("e", "e")]).equals(("ee", "e", "x", "ee"))


def test_the_order_in_which_they_were_learnt(answer):
    merges = [("h", "e"), ("s", "he"), ("a", "she"), ("a", "s")]
    answer("ashe", merges).equals(("ashe",))
    merges = [("h", "e"), ("t", "he"), ("s", "h"), ("a", "sh"), ("he", "s")]
    answer("ashes", merges).equals(("a", "s", "hes"))  # a s he s: no s h is left, and no t is there


def test_pieces_are_joined_whole(answer):
    answer("seat", [("s", "e"), ("a", "t"), ("e", "a")]).equals(("se", "at"))
    answer("sea", [("s", "e"), ("e", "a")]).equals(("se", "a"))


@worth(2)
def test_any_word(answer, draw):
    letters = draw.pick("aeghlnstĠ", 4)
    drawn = [[letters[i] for i in draw.ids(4, draw.whole(2, 7)).tolist()] for _ in range(12)]
    merges = bpe.learn(Counter(tuple(word) for word in drawn for _ in range(2)), 10)[1]
    for word in ("".join(letters[i] for i in draw.ids(4, n).tolist()) for n in (6, 9, 11)):
        answer(word, merges).equals(bpe.cut(word, merges))
