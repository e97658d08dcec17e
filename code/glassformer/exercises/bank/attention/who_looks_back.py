"""Exercise attention.who_looks_back."""

import math

import torch
import torch.nn.functional as F

from glassformer.checkpoints import load_baby_groot
from glassformer.data import groot_vocabulary
from glassformer.trace import trace

from ...definition import Exercise, worth

exercise = Exercise(
    "attention.who_looks_back",
    title="A finding: who looks back?",
    minutes=15,
    statement=r"""
`groot` in `<START> i am groot` pays 39.6 % of its attention to `<START>`. Other words in its place pay more, or
less. Let the trained model read `<START> i am w` for each of the 21 words $w$ of the vocabulary (all tokens but
the three marks). **Which word in the place of `groot` pays the largest share of its attention to `<START>`?**
Write the experiment; the function returns the word.
""",
    hints=(
        "`trace(model, ids)` keeps every step by name. Which of `scores`, `masked_scores`, `attention` and "
        "`context` holds shares?",
        "A row belongs to the token that asks, a column to the one that is asked. Which entry of the `[4, 4]` "
        "matrix is the last word looking at the first token?",
        '`trace(model, vocabulary.encode(f"<START> i am {word}"))["attention"][3, 0]`, and the word for which it '
        "is largest: `max(words, key=…)`.",
    ),
    explanation=r"""
`water`, with 90.1 %. By *score* it would be `is`: its score for `<START>` is higher still, but so are its scores
for the others, and only differences count. Softmax divides by the row's own sum; two scores in different rows
cannot be compared. And an attention weight alone does not say why it is large: that takes an experiment
in which one thing is changed at a time.
""",
)


@exercise.starter
def most_attention_to_start():
    """Return the word w that pays the largest share to <START> in `<START> i am w`, a text."""
    raise NotImplementedError("not attempted")


@exercise.solution
def most_attention_to_start():
    vocabulary, model = groot_vocabulary(), load_baby_groot()

    def share(word):
        ids = vocabulary.encode(f"<START> i am {word}")
        return trace(model, ids)["attention"][3, 0].item()  # the last word asks, <START> is asked

    return max(vocabulary.words[3:], key=share)


@exercise.style("one batch")
def most_attention_to_start():
    vocabulary, model = groot_vocabulary(), load_baby_groot()
    start = vocabulary.encode("<START> i am")
    batch = [[*start, w] for w in range(3, len(vocabulary))]
    weights = model(torch.tensor(batch))[1]  # [21, 4, 4]
    return vocabulary.words[3 + weights[:, -1, 0].argmax().item()]


@exercise.style("from queries and keys")
def most_attention_to_start():
    vocabulary, model = groot_vocabulary(), load_baby_groot()
    best, most = "", 0.0
    for word in vocabulary.words:
        if word.startswith("<"):
            continue
        seen = trace(model, vocabulary.encode("<START> i am " + word))
        shares = F.softmax(seen["k"] @ seen["q"][-1] / math.sqrt(8), dim=0)
        if shares[0] > most:
            best, most = word, shares[0].item()
    return best


@exercise.mutant(
    "scores compared",
    "The *scores* were compared. Each prompt's row has a sum of its own, and a high score among high ones is a "
    "small share; compare after softmax, `attention`. If you did compare shares: is `i am` in the prompt?",
)
def most_attention_to_start():
    vocabulary, model = groot_vocabulary(), load_baby_groot()

    def score(word):
        return trace(model, vocabulary.encode(f"<START> i am {word}"))["scores"][3, 0].item()

    return max(vocabulary.words[3:], key=score)


@exercise.mutant(
    "row and column",
    "All words came out alike and the first was taken, so what was read cannot depend on the word: row 0 is "
    "`<START>` asking, and it sees nothing after itself. The last word's row is `[3]`, `<START>`'s column `0`.",
)
def most_attention_to_start():
    vocabulary, model = groot_vocabulary(), load_baby_groot()

    def share(word):
        return trace(model, vocabulary.encode(f"<START> i am {word}"))["attention"][0, 3].item()

    return max(vocabulary.words[3:], key=share)


@exercise.mutant(
    "the least",
    "This is the word that pays `<START>` the least, or looks at itself the most; the one that pays `<START>` the "
    "most is asked for.",
)
def most_attention_to_start():
    vocabulary, model = groot_vocabulary(), load_baby_groot()

    def share(word):
        return trace(model, vocabulary.encode(f"<START> i am {word}"))["attention"][3, 0].item()

    return min(vocabulary.words[3:], key=share)


@exercise.mutant(
    "at i instead",
    "This word looks hardest at `i`, which stands at place 1; places are counted from 0, and `<START>` stands "
    "there.",
)
def most_attention_to_start():
    vocabulary, model = groot_vocabulary(), load_baby_groot()

    def share(word):
        return trace(model, vocabulary.encode(f"<START> i am {word}"))["attention"][3, 1].item()

    return max(vocabulary.words[3:], key=share)


@exercise.mutant(
    "the id",
    "This is the word's id; return the word, which `vocabulary.words` has at that place.",
)
def most_attention_to_start():
    vocabulary, model = groot_vocabulary(), load_baby_groot()

    def share(i):
        ids = [*vocabulary.encode("<START> i am"), i]
        return trace(model, ids)["attention"][3, 0].item()

    return max(range(3, 24), key=share)


@worth(3)
def test_the_experiment(answer):
    vocabulary, model = groot_vocabulary(), load_baby_groot()
    batch = torch.tensor([vocabulary.encode(f"<START> i am {w}") for w in vocabulary.words[3:]])
    shares = trace(model, batch)["attention"][:, 3, 0]  # [21]
    answer().equals(vocabulary.words[3 + shares.argmax().item()])
