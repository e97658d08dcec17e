"""Exercise logits.temperature."""

import torch

from ...definition import Exercise, worth

exercise = Exercise(
    "logits.temperature",
    title="Probabilities at a temperature",
    minutes=12,
    statement=r"""
Turn each row of logits $z$ into probabilities at temperature $\tau > 0$:

$$
p_i(\tau) = \frac{e^{z_i / \tau}}{\sum_j e^{z_j / \tau}}
$$

Build it with `exp` and sums, without a ready softmax. Logits may be as large as 1,000 and $\tau$ as small as
0.5; $e^{2000}$ is more than any number that a computer holds, so make sure that it is never asked for.
""",
    hints=(
        "Only differences between logits count. What can you take away from a whole row, so that its "
        "largest exponent is 0?",
        "Each row has a maximum of its own: `amax(dim=-1, keepdim=True)`, shape `(B, 1)`.",
        "`e = ((z - z.amax(dim=-1, keepdim=True)) / temperature).exp()`, then divide `e` by its sum over "
        "`dim=-1`, again with `keepdim=True`.",
    ),
    explanation=r"""
Taking a row's maximum away multiplies numerator and denominator by the same factor, so the shares stay as
they are, and the largest exponent is 0: nothing overflows, and the sum is at least 1. The temperature divides
the *logits*. Divided afterwards, the probabilities would keep their ratios; here a ratio becomes its power
$1/\tau$.
""",
    forbidden={
        name: f"`{name}` does the work here; write it with `exp` and sums."
        for name in ("softmax", "log_softmax", "softmin", "next_token_probabilities")
    },
)


@exercise.starter
def probabilities(logits, temperature):
    """Return probabilities [B, V]; each row sums to 1.

    logits: [B, V]; temperature: a number above 0.
    """
    raise NotImplementedError("not attempted")


@exercise.solution
def probabilities(logits, temperature):
    highest = logits.amax(dim=-1, keepdim=True)  # [B, 1]
    e = ((logits - highest) / temperature).exp()  # [B, V]
    return e / e.sum(dim=-1, keepdim=True)


@exercise.style("logsumexp")
def probabilities(logits, temperature):
    z = logits / temperature
    return (z - z.logsumexp(dim=-1, keepdim=True)).exp()


@exercise.style("row by row")
def probabilities(logits, temperature):
    rows = []
    for z in logits:
        e = torch.exp(z / temperature - max(z / temperature))
        rows.append(e / sum(e))
    return torch.stack(rows)


@exercise.style("differences")
def probabilities(logits, temperature):
    differences = logits[:, None, :] - logits[:, :, None]  # [B, V, V]: z_j − z_i
    return 1 / (differences / temperature).exp().sum(dim=-1)


@exercise.mutant(
    "temperature ignored",
    "The temperature changes nothing here: divide the logits by it before `exp`. (Probabilities that are "
    "divided by it and scaled to 1 again are the old ones.)",
)
def probabilities(logits, temperature):
    e = (logits - logits.amax(dim=-1, keepdim=True)).exp()
    return e / e.sum(dim=-1, keepdim=True)


@exercise.mutant(
    "multiplied",
    "The logits were multiplied by the temperature; they are divided by it, so that a small temperature "
    "sharpens and a large one flattens.",
)
def probabilities(logits, temperature):
    e = ((logits - logits.amax(dim=-1, keepdim=True)) * temperature).exp()
    return e / e.sum(dim=-1, keepdim=True)


@exercise.mutant(
    "probabilities divided",
    "The probabilities were divided by the temperature, so they no longer sum to 1; divide the logits, before "
    "`exp`.",
)
def probabilities(logits, temperature):
    e = (logits - logits.amax(dim=-1, keepdim=True)).exp()
    return e / e.sum(dim=-1, keepdim=True) / temperature


@exercise.mutant(
    "not scaled to 1",
    "The rows do not sum to 1: divide each by its own sum.",
)
def probabilities(logits, temperature):
    return ((logits - logits.amax(dim=-1, keepdim=True)) / temperature).exp()


@exercise.mutant(
    "columns",
    "Each column sums to 1; each row should. The tokens are in the last dimension, `dim=-1`; the rows of a "
    "batch never see each other.",
)
def probabilities(logits, temperature):
    e = ((logits - logits.amax(dim=0, keepdim=True)) / temperature).exp()
    return e / e.sum(dim=0, keepdim=True)


@exercise.mutant(
    "overflow",
    "Right for small logits, but `exp` of a large one is infinite, and infinity divided by infinity is NaN: "
    "take the row's largest logit away first.",
)
def probabilities(logits, temperature):
    e = (logits / temperature).exp()
    return e / e.sum(dim=-1, keepdim=True)


@exercise.mutant(
    "one maximum for all rows",
    "The largest logit of the whole batch was taken away from every row: in a row far below it all "
    "exponentials round to 0, and 0 divided by 0 is NaN. Each row has its own maximum.",
)
def probabilities(logits, temperature):
    e = ((logits - logits.max()) / temperature).exp()
    return e / e.sum(dim=-1, keepdim=True)


@exercise.mutant("ready-made", exercise.forbidden["softmax"])
def probabilities(logits, temperature):
    return (logits / temperature).softmax(dim=-1)


def test_by_hand(answer):
    shares = torch.tensor([[1.0, 3.0, 4.0]], dtype=torch.float64)  # the roots of 1, 9 and 16
    answer(2 * shares.log(), 2.0).equals(shares / 8)


@worth(2)
def test_any_logits(answer, draw):
    logits, temperature = 3 * draw.normal(2, 5), draw.pick([0.5, 0.7, 1.5, 3.0], 1)[0]
    answer(logits, temperature).equals((logits / temperature).softmax(dim=-1))


def test_large_logits(answer):
    rows = [[1000.0, 999.0, 0.0], [-2000.0, -2001.0, -2003.0]]
    logits = torch.tensor(rows, dtype=torch.float64)
    answer(logits, 0.5).equals((logits / 0.5).softmax(dim=-1))
