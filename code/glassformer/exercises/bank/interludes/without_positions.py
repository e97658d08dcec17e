"""Exercise interludes.without_positions."""

import copy

import torch

from glassformer.checkpoints import load_baby_groot
from glassformer.data import groot_vocabulary
from glassformer.trace import trace

from ...definition import Exercise, worth

exercise = Exercise(
    "interludes.without_positions",
    title="A finding: one word without its place",
    minutes=15,
    statement=r"""
Order cannot matter for a single word behind `<START>`. Does the trained model need its positions even there?

Let it read `<START> w` for each of the 21 **words** $w$ of its vocabulary (all tokens but the three marks
`<PAD>`, `<START>`, `<END>`), and take the likeliest next token. Then let a copy whose position vectors are
all zero do the same. For how many of the 21 words is the likeliest next token another one? Write the
experiment; the function returns its number.
""",
    hints=(
        "You need two models that differ in one table. `copy.deepcopy(model)` makes the second; `E[ids]` and all the "
        "rest stay as they are.",
        "`trace(model, vocabulary.encode(f'<START> {word}'))['logits']` has one row for each of the two "
        "tokens. Which of them predicts what follows the word?",
        "`with torch.no_grad(): other.position_embedding.weight.zero_()`, then compare "
        '`["logits"][-1].argmax()` of both models for each word in `vocabulary.words[3:]`.',
    ),
    explanation=r"""
18 of 21. Not because there is any order to be told in a row of one word: the weights behind the tables were
trained on *sums*, and position 1 is part of every row that they ever met there. Zeroing breaks that habit. It
shows that the model leans on its positions, not what they are needed for; a model trained without
them does nearly as well on this corpus.
""",
)


@exercise.starter
def changed_predictions():
    """Return for how many of the 21 words the likeliest next token changes, a whole number."""
    raise NotImplementedError("not attempted")


@exercise.solution
def changed_predictions():
    vocabulary, model = groot_vocabulary(), load_baby_groot()
    without = copy.deepcopy(model)
    with torch.no_grad():
        without.position_embedding.weight.zero_()
    changed = 0
    for word in vocabulary.words[3:]:
        ids = vocabulary.encode(f"<START> {word}")
        a, b = (trace(m, ids)["logits"][-1].argmax() for m in (model, without))
        changed += int(a != b)
    return changed


@exercise.style("all words at once")
def changed_predictions():
    model = load_baby_groot()
    ids = torch.tensor([[1, w] for w in range(3, model.vocab_size)])
    with torch.no_grad():
        before = model(ids)[0][:, 1].argmax(dim=-1)
        model.position_embedding.weight.mul_(0)
        after = model(ids)[0][:, 1].argmax(dim=-1)
    return (before != after).sum().item()


@exercise.style("probabilities, two loads")
def changed_predictions():
    vocabulary = groot_vocabulary()
    model, without = load_baby_groot(), load_baby_groot()
    without.position_embedding.weight.data = torch.zeros(4, 8, dtype=torch.float64)

    def next_id(m, word):
        return int(trace(m, vocabulary.encode("<START> " + word))["probabilities"][1].argmax())

    words = [w for w in vocabulary.words if not w.startswith("<")]
    return len([w for w in words if next_id(model, w) != next_id(without, w)])


@exercise.mutant(
    "the unchanged",
    "These are the words whose next token stays the same; count those where it becomes another.",
)
def changed_predictions():
    model = load_baby_groot()
    ids = torch.tensor([[1, w] for w in range(3, 24)])
    with torch.no_grad():
        before = model(ids)[0][:, 1].argmax(dim=-1)
        model.position_embedding.weight.zero_()
        after = model(ids)[0][:, 1].argmax(dim=-1)
    return (before == after).sum().item()


@exercise.mutant(
    "marks too",
    "The three marks were counted among the words; `<PAD>`, `<START>` and `<END>` are tokens, but no words.",
)
def changed_predictions():
    model = load_baby_groot()
    ids = torch.tensor([[1, w] for w in range(24)])
    with torch.no_grad():
        before = model(ids)[0][:, 1].argmax(dim=-1)
        model.position_embedding.weight.zero_()
        after = model(ids)[0][:, 1].argmax(dim=-1)
    return (before != after).sum().item()


@exercise.mutant(
    "compared with itself",
    "Nothing changes, because the same model was asked twice: `other = model` is a second name, not a copy; "
    "or the predictions were read in the row of `<START>`, which sees no word.",
)
def changed_predictions():
    vocabulary, model = groot_vocabulary(), load_baby_groot()
    without = model
    with torch.no_grad():
        without.position_embedding.weight.zero_()
    changed = 0
    for word in vocabulary.words[3:]:
        ids = vocabulary.encode(f"<START> {word}")
        a, b = (trace(m, ids)["logits"][-1].argmax() for m in (model, without))
        changed += int(a != b)
    return changed


@exercise.mutant(
    "one position zeroed",
    "Only the word's own position was zeroed; `<START>` still brings its place along, and the word's row "
    "attends to it. Zero the whole table.",
)
def changed_predictions():
    model = load_baby_groot()
    ids = torch.tensor([[1, w] for w in range(3, 24)])
    with torch.no_grad():
        before = model(ids)[0][:, 1].argmax(dim=-1)
        model.position_embedding.weight[1].zero_()
        after = model(ids)[0][:, 1].argmax(dim=-1)
    return (before != after).sum().item()


@exercise.mutant(
    "no start",
    "`<START>` is missing in front of the words: every prompt of this model begins with it, and without it "
    "the word stands at position 0.",
)
def changed_predictions():
    model = load_baby_groot()
    ids = torch.tensor([[w] for w in range(3, 24)])
    with torch.no_grad():
        before = model(ids)[0][:, 0].argmax(dim=-1)
        model.position_embedding.weight.zero_()
        after = model(ids)[0][:, 0].argmax(dim=-1)
    return (before != after).sum().item()


@worth(3)
def test_the_experiment(answer):
    vocabulary, model, without = groot_vocabulary(), load_baby_groot(), load_baby_groot()
    without.position_embedding.weight.data.zero_()
    changed = 0
    for word in vocabulary.words[3:]:
        ids = vocabulary.encode(f"<START> {word}")
        seen = [trace(m, ids)["probabilities"][1] for m in (model, without)]
        changed += seen[0].argmax().item() != seen[1].argmax().item()
    answer().equals(changed)
