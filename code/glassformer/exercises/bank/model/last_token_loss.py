"""Exercise model.last_token_loss."""

import torch
import torch.nn.functional as F

from glassformer.training import last_real

from ...definition import Exercise, worth

exercise = Exercise(
    "model.last_token_loss",
    title="The loss at the last real token",
    minutes=12,
    statement=r"""
The model gives scores (*logits*) at every position, but the loss reads one position in each row: that
of the last token that is not `<PAD>` (id 0). There the loss of an example is $-\ln p$, with $p$ the
probability that softmax makes of the target's score. Return the mean over the $B$ examples.
""",
    hints=(
        "`(X != 0).sum(dim=1)` counts the real tokens in each row; the last of them stands one place "
        "earlier, since places are counted from 0.",
        "`logits[torch.arange(B), last]` takes one position from each row: shape `(B, V)`.",
        "`F.cross_entropy(logits, Y)` does the rest: it takes scores, not probabilities, and returns "
        "the mean.",
    ),
    explanation=r"""
With padding on the right, the number of real tokens less one is the place of the last. Indexing with
two tensors of length $B$ pairs them up, row with place. `F.cross_entropy` takes the scores as they are:
it subtracts $\ln \sum_i e^{z_i}$ from the target's score, which is softmax and logarithm in one, and safer
than one after the other.
""",
    forbidden={
        name: f"`{name}` of the package does what you are asked to write."
        for name in ("last_token_logits", "last_real")
    },
)


@exercise.starter
def last_token_loss(logits, X, Y):
    """Return the mean cross-entropy at the last real token, a tensor of shape ().

    logits: [B, T, V]; X: [B, T], ids padded on the right with 0; Y: [B], targets.
    """
    raise NotImplementedError("not attempted")


@exercise.solution
def last_token_loss(logits, X, Y):
    last = (X != 0).sum(dim=1) - 1  # [B]
    at_last = logits[torch.arange(len(X)), last]  # [B, V]
    return F.cross_entropy(at_last, Y)


@exercise.style("loop")
def last_token_loss(logits, X, Y):
    losses = []
    for scores, row, target in zip(logits, X.tolist(), Y.tolist()):
        z = scores[len(row) - row.count(0) - 1]
        losses.append(z.exp().sum().log() - z[target])
    return sum(losses) / len(losses)


@exercise.style("gather")
def last_token_loss(logits, X, Y):
    last = (X > 0).sum(1) - 1
    index = last.view(-1, 1, 1).expand(-1, 1, logits.shape[-1])
    log_p = logits.gather(1, index).squeeze(1).log_softmax(-1)
    return -log_p.gather(1, Y[:, None]).mean()


@exercise.style("mask and einsum")
def last_token_loss(logits, X, Y):
    one_hot = F.one_hot((X != 0).sum(dim=1) - 1, X.shape[1]).to(logits)
    at_last = torch.einsum("bt,btv->bv", one_hot, logits)
    return torch.nn.CrossEntropyLoss()(at_last, Y)


@exercise.mutant(
    "read at the pad",
    "The loss was read at the last place, where in shorter rows a `<PAD>` stands; read it at the last "
    "real token. (Training on this teaches: a real token where I am read means that the sentence is over.)",
)
def last_token_loss(logits, X, Y):
    return F.cross_entropy(logits[:, -1], Y)


@exercise.mutant(
    "one too late",
    "One place too late: a row of three real tokens has its last at place 2, since places are "
    "counted from 0.",
)
def last_token_loss(logits, X, Y):
    after = ((X != 0).sum(dim=1)).clamp(max=X.shape[1] - 1)
    return F.cross_entropy(logits[torch.arange(len(X)), after], Y)


@exercise.mutant(
    "read at the start",
    "The loss was read at the first place, where the model has seen nothing but `<START>`.",
)
def last_token_loss(logits, X, Y):
    return F.cross_entropy(logits[:, 0], Y)


@exercise.mutant(
    "mean over places",
    "The scores of all real places were averaged first. Only the last real token has seen the whole "
    "context; read its scores alone.",
)
def last_token_loss(logits, X, Y):
    real = (X != 0).to(logits)
    return F.cross_entropy((logits * real[..., None]).sum(1) / real.sum(1, keepdim=True), Y)


@exercise.mutant(
    "softmax twice",
    "Softmax was taken twice: `F.cross_entropy` does it itself, so give it the scores, not "
    "probabilities.",
)
def last_token_loss(logits, X, Y):
    last = (X != 0).sum(dim=1) - 1
    return F.cross_entropy(logits[torch.arange(len(X)), last].softmax(dim=-1), Y)


@exercise.mutant(
    "sum",
    "This is the sum over the examples; the mean does not grow with the size of the batch.",
)
def last_token_loss(logits, X, Y):
    last = (X != 0).sum(dim=1) - 1
    return F.cross_entropy(logits[torch.arange(len(X)), last], Y, reduction="sum")


@exercise.mutant(
    "no logarithm",
    "This is minus the mean probability of the targets; the loss is the mean of $-\\ln p$.",
)
def last_token_loss(logits, X, Y):
    last = (X != 0).sum(dim=1) - 1
    p = logits[torch.arange(len(X)), last].softmax(dim=-1)
    return -p[torch.arange(len(X)), Y].mean()


@exercise.mutant(
    "one loss for each example",
    "There is one loss for each example here; return their mean.",
)
def last_token_loss(logits, X, Y):
    last = (X != 0).sum(dim=1) - 1
    return F.cross_entropy(logits[torch.arange(len(X)), last], Y, reduction="none")


def expected_loss(logits, X, Y):
    """Return the loss as the training loop has it."""
    return F.cross_entropy(logits[torch.arange(len(X)), last_real(X)], Y)


def test_two_rows_by_hand(answer):
    logits = torch.zeros(2, 3, 4, dtype=torch.float64)
    logits[0, 1, 3] = torch.tensor(3.0).log()  # at the last real token: p = 3/6
    logits[0, 2, 3] = 2.0
    logits[1, 2, 1] = torch.tensor(13.0).log()  # p = 1/16 for token 0
    X, Y = torch.tensor([[1, 2, 0], [1, 3, 2]]), torch.tensor([3, 0])
    answer(logits, X, Y).equals(torch.tensor([2.0, 16.0], dtype=torch.float64).log().mean())


@worth(3)
def test_any_batch(answer, draw):
    B, T, V = 7, 5, 11
    lengths = [1, T, *(draw.whole(1, T) for _ in range(B - 2))]
    X = (1 + draw.ids(V - 1, B, T)) * (torch.arange(T) < torch.tensor(lengths)[:, None])
    logits, Y = 2 * draw.normal(B, T, V), draw.ids(V, B)
    answer(logits, X, Y).equals(expected_loss(logits, X, Y))
