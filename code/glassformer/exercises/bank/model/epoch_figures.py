"""Exercise model.epoch_figures."""

import torch
import torch.nn.functional as F

from glassformer.training import last_real

from ...definition import Exercise, worth

exercise = Exercise(
    "model.epoch_figures",
    title="Repair an honest log",
    minutes=15,
    statement=r"""
This is how somebody sums up an epoch, batch by batch. It runs, and its two figures look plausible:

```python
def epoch_figures(batches):
    losses, accuracies = [], []
    for logits, X, Y in batches:
        scores = logits[:, -1]
        losses.append(F.cross_entropy(scores, Y).item())
        accuracies.append((scores.argmax(dim=-1) == Y).double().mean().item())
    return sum(losses) / len(losses), sum(accuracies) / len(accuracies)
```

Two things are wrong with it. Repair both: it is to return the mean loss and the share of right
predictions over **all examples**, each counted alike, read where each row's context ends.
""",
    hints=(
        "At which place of a row has the model seen all of the context, and nothing else? In a row "
        "with padding that is not the last.",
        "The last batch is smaller. In a mean of means, how much does one of its examples count?",
        'Add up losses (`reduction="sum"`) and right predictions over all batches, and divide each by '
        "the number of examples.",
    ),
    explanation=r"""
The first fault reads predictions at pads. The second is the one that made the published log dip below
the floor: with 76 examples in batches of 16, the last has 12 rows, and each of them counts for more than
the others. Sums over examples, divided once at the end, need no thought about batch sizes.
""",
    forbidden={
        "last_real": "`last_real` of the package finds the place for you; here, count the tokens "
        "yourself."
    },
)


@exercise.starter
def epoch_figures(batches):
    """Return (loss, accuracy), two Python numbers, over all examples of an epoch.

    batches: list of (logits [B, T, V], X [B, T] padded on the right with 0, Y [B]); B may differ.
    """
    raise NotImplementedError("not attempted")


@exercise.solution
def epoch_figures(batches):
    loss, right, examples = 0.0, 0, 0
    for logits, X, Y in batches:
        last = (X != 0).sum(dim=1) - 1  # [B]
        scores = logits[torch.arange(len(X)), last]  # [B, V]
        loss += F.cross_entropy(scores, Y, reduction="sum").item()
        right += (scores.argmax(dim=-1) == Y).sum().item()
        examples += len(Y)
    return loss / examples, right / examples


@exercise.style("all at once")
def epoch_figures(batches):
    logits = torch.cat([batch[0] for batch in batches])
    X, Y = torch.cat([batch[1] for batch in batches]), torch.cat([batch[2] for batch in batches])
    scores = logits[torch.arange(len(X)), X.count_nonzero(dim=1) - 1]
    return F.cross_entropy(scores, Y).item(), (scores.argmax(-1) == Y).double().mean().item()


@exercise.style("weighted means")
def epoch_figures(batches):
    total = sum(len(Y) for _, _, Y in batches)
    loss = accuracy = 0
    for logits, X, Y in batches:
        scores = torch.stack([z[int((x != 0).sum()) - 1] for z, x in zip(logits, X)])
        weight = len(Y) / total
        loss += weight * F.cross_entropy(scores, Y).item()
        accuracy += weight * (scores.argmax(1) == Y).double().mean().item()
    return loss, accuracy


@exercise.mutant(
    "as it was",
    "Both faults are still there: it reads at the last place, be it a pad, and it takes a mean of the "
    "batches' means.",
)
def epoch_figures(batches):
    losses, accuracies = [], []
    for logits, _, Y in batches:
        scores = logits[:, -1]
        losses.append(F.cross_entropy(scores, Y).item())
        accuracies.append((scores.argmax(dim=-1) == Y).double().mean().item())
    return sum(losses) / len(losses), sum(accuracies) / len(accuracies)


@exercise.mutant(
    "mean of means",
    "It reads at the right place, but each batch counts alike, and so an example of the small last one "
    "counts for more. Add up over the examples, then divide once.",
)
def epoch_figures(batches):
    losses, accuracies = [], []
    for logits, X, Y in batches:
        scores = logits[torch.arange(len(X)), (X != 0).sum(dim=1) - 1]
        losses.append(F.cross_entropy(scores, Y).item())
        accuracies.append((scores.argmax(dim=-1) == Y).double().mean().item())
    return sum(losses) / len(losses), sum(accuracies) / len(accuracies)


@exercise.mutant(
    "still at the pad",
    "Each example counts alike now, but the scores are read at the last place, where shorter rows have "
    "a `<PAD>`.",
)
def epoch_figures(batches):
    logits = torch.cat([batch[0] for batch in batches])
    Y = torch.cat([batch[2] for batch in batches])
    scores = logits[:, -1]
    return F.cross_entropy(scores, Y).item(), (scores.argmax(-1) == Y).double().mean().item()


@exercise.mutant(
    "loss alone repaired",
    "The loss is right; the accuracy is still read at the last place and averaged batch by batch.",
)
def epoch_figures(batches):
    loss, examples, accuracies = 0.0, 0, []
    for logits, X, Y in batches:
        scores = logits[torch.arange(len(X)), (X != 0).sum(dim=1) - 1]
        loss += F.cross_entropy(scores, Y, reduction="sum").item()
        examples += len(Y)
        accuracies.append((logits[:, -1].argmax(dim=-1) == Y).double().mean().item())
    return loss / examples, sum(accuracies) / len(accuracies)


@exercise.mutant(
    "divided by batches",
    "Sums over examples were divided by the number of batches; divide them by the number of examples.",
)
def epoch_figures(batches):
    loss, right = 0.0, 0
    for logits, X, Y in batches:
        scores = logits[torch.arange(len(X)), (X != 0).sum(dim=1) - 1]
        loss += F.cross_entropy(scores, Y, reduction="sum").item()
        right += (scores.argmax(dim=-1) == Y).sum().item()
    return loss / len(batches), right / len(batches)


@exercise.mutant(
    "last batch dropped",
    "The last, smaller batch was left out; its examples count as well.",
)
def epoch_figures(batches):
    loss, right, examples = 0.0, 0, 0
    for logits, X, Y in batches:
        if len(Y) < len(batches[0][2]):
            continue
        scores = logits[torch.arange(len(X)), (X != 0).sum(dim=1) - 1]
        loss += F.cross_entropy(scores, Y, reduction="sum").item()
        right += (scores.argmax(dim=-1) == Y).sum().item()
        examples += len(Y)
    return loss / examples, right / examples


def figures_of(batches):
    """Return loss and accuracy over all examples of some batches at once."""
    logits, X, Y = (torch.cat(parts) for parts in zip(*batches, strict=True))
    scores = logits[torch.arange(len(X)), last_real(X)]
    right = (scores.argmax(dim=-1) == Y).double().mean()
    return F.cross_entropy(scores, Y).item(), right.item()


@worth(4)
def test_batches_of_unequal_size(answer, draw):
    T, V, batches = 4, 6, []
    for B in (7, 7, draw.whole(1, 3)):
        X = (1 + draw.ids(V - 1, B, T)) * (torch.arange(T) < 1 + draw.ids(T, B, 1))
        X[0, 1:] = 0  # in each batch a row that ends in padding
        logits = 2 * draw.normal(B, T, V)
        Y = logits[torch.arange(B), last_real(X)].argmax(dim=-1)  # right, but for some
        batches.append((logits, X, torch.where(draw.normal(B) > 0, Y, draw.ids(V, B))))
    answer(batches).equals(figures_of(batches))
