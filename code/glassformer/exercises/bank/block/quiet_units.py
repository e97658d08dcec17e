"""Exercise block.quiet_units."""

import torch
import torch.nn.functional as F

from glassformer.checkpoints import load_baby_groot
from glassformer.data import groot_vocabulary
from glassformer.trace import trace

from ...definition import Exercise, worth

exercise = Exercise(
    "block.quiet_units",
    title="A finding: one token, many networks",
    minutes=15,
    statement=r"""
The feed-forward network treats each token alone. But by then attention has been at work, so the same token at the same
place may pick another network out of the 16 units, depending on the word before it.

Let the trained model read `<START> w groot` for each of the 21 words $w$ of the vocabulary (all tokens but the three
marks). **After which word does the row of `groot` switch on the fewest units?** Write the experiment; the
function returns the word.
""",
    hints=(
        "`trace(model, ids)` keeps `n1`, `ffn_hidden`, `ffn_activation` and `ffn_out`. Which of them has one number for "
        "each unit, and when is a unit on?",
        "`groot` stands at place 2. The row there says what the units make of `groot`, not of the word before it.",
        '`(trace(model, vocabulary.encode(f"<START> {word} groot"))["ffn_hidden"][2] > 0).sum()`, and the word '
        "for which that is smallest: `min(words, key=…)`.",
    ),
    explanation=r"""
`tree`: behind it a single one of the 16 units is on, where behind `leaf`, `needs` and `you` there are six. The FFN
knows nothing of neighbours, and its weights are the same everywhere; it is the row it reads, $N_1$, that has
already heard them. Attention is where tokens talk, and the FFN digests what was said.
""",
)


@exercise.starter
def quietest_before_groot():
    """Return the word w after which `groot` switches on the fewest units, a text."""
    raise NotImplementedError("not attempted")


@exercise.solution
def quietest_before_groot():
    vocabulary, model = groot_vocabulary(), load_baby_groot()

    def units_on(word):
        seen = trace(model, vocabulary.encode(f"<START> {word} groot"))
        return (seen["ffn_hidden"][2] > 0).sum().item()  # the row of groot

    return min(vocabulary.words[3:], key=units_on)


@exercise.style("one batch")
def quietest_before_groot():
    vocabulary, model = groot_vocabulary(), load_baby_groot()
    words = vocabulary.words[3:]
    batch = torch.tensor([vocabulary.encode(f"<START> {word} groot") for word in words])
    on = trace(model, batch)["ffn_activation"][:, -1].count_nonzero(dim=-1)  # [21]
    return words[on.argmin().item()]


@exercise.style("from N₁, most units off")
def quietest_before_groot():
    vocabulary, model = groot_vocabulary(), load_baby_groot()
    widen = model.transformer.ffn[0]
    off = {}
    for word in vocabulary.words:
        if not word.startswith("<"):
            n1 = trace(model, vocabulary.encode("<START> " + word + " groot"))["n1"][2]
            off[word] = sum(x <= 0 for x in F.linear(n1, widen.weight, widen.bias).tolist())
    return max(off, key=off.get)


@exercise.mutant(
    "the most",
    "Here most units are on, six of the 16; the word after which the *fewest* are on is asked for.",
)
def quietest_before_groot():
    vocabulary, model = groot_vocabulary(), load_baby_groot()

    def units_on(word):
        seen = trace(model, vocabulary.encode(f"<START> {word} groot"))
        return (seen["ffn_hidden"][2] > 0).sum().item()

    return max(vocabulary.words[3:], key=units_on)


@exercise.mutant(
    "the word's own row",
    "The row of the word itself was read, place 1. Places are counted from 0: `groot`, which hears the word, stands at "
    "place 2.",
)
def quietest_before_groot():
    vocabulary, model = groot_vocabulary(), load_baby_groot()

    def units_on(word):
        seen = trace(model, vocabulary.encode(f"<START> {word} groot"))
        return (seen["ffn_hidden"][1] > 0).sum().item()

    return min(vocabulary.words[3:], key=units_on)


@exercise.mutant(
    "the inputs",
    "The positive numbers of $N_1$ were counted. These are the eight inputs of the network; its 16 units are in "
    "`ffn_hidden`.",
)
def quietest_before_groot():
    vocabulary, model = groot_vocabulary(), load_baby_groot()

    def units_on(word):
        return (trace(model, vocabulary.encode(f"<START> {word} groot"))["n1"][2] > 0).sum().item()

    return min(vocabulary.words[3:], key=units_on)


@exercise.mutant(
    "all alike",
    "All words came out alike, and the first was taken. After ReLU no number is negative, so `>= 0` counts all 16; a "
    "unit is on where it is `> 0`. Or the row of `<START>` was read, which sees no word.",
)
def quietest_before_groot():
    vocabulary, model = groot_vocabulary(), load_baby_groot()

    def units_on(word):
        seen = trace(model, vocabulary.encode(f"<START> {word} groot"))
        return (seen["ffn_activation"][2] >= 0).sum().item()

    return min(vocabulary.words[3:], key=units_on)


@exercise.mutant(
    "summed",
    "The numbers before ReLU were added up. A sum does not say how many units are on: one very negative unit is "
    "as much off as any other.",
)
def quietest_before_groot():
    vocabulary, model = groot_vocabulary(), load_baby_groot()

    def loudness(word):
        seen = trace(model, vocabulary.encode(f"<START> {word} groot"))
        return seen["ffn_hidden"][2].sum().item()

    return min(vocabulary.words[3:], key=loudness)


@exercise.mutant(
    "the count",
    "This is how many units are on behind that word; return the word.",
)
def quietest_before_groot():
    vocabulary, model = groot_vocabulary(), load_baby_groot()
    counts = []
    for word in vocabulary.words[3:]:
        seen = trace(model, vocabulary.encode(f"<START> {word} groot"))
        counts.append((seen["ffn_hidden"][2] > 0).sum().item())
    return min(counts)


@worth(3)
def test_the_experiment(answer):
    vocabulary, model = groot_vocabulary(), load_baby_groot()
    on = []
    for word in vocabulary.words[3:]:
        seen = trace(model, vocabulary.encode(f"<START> {word} groot"))
        on.append((seen["ffn_activation"][2] != 0).sum().item())
    answer().equals(vocabulary.words[3 + on.index(min(on))])
