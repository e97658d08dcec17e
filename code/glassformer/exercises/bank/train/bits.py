"""Exercise train.bits."""

import math

import torch

from ...definition import Exercise, worth

exercise = Exercise(
    "train.bits",
    title="A fair comparison",
    minutes=10,
    statement=r"""
Two models read the same text, cut by two tokenisers. The one with larger pieces has more to guess in each, so nats per token
do not tell which predicts better. Return **bits per letter**, as a Python number, not a tensor: how many bits the whole text costs, for each of its
letters. Blanks and signs are letters, too, and 1 bit is $\ln 2$ nats.
""",
    hints=(
        "How many nats does the whole text cost, and how many letters does it have? Neither depends on how long a single piece is.",
        "A sum of losses over a sum of lengths; and nats become bits when they are divided by $\\ln 2$.",
        "`losses.sum().item() / math.log(2) / sum(len(piece) for piece in pieces)`.",
    ),
    explanation=r"""
The losses of a text's tokens add up to $-\ln$ of the probability of the whole text, since the probabilities multiply. That is a number which does not
know where the text was cut, and neither does the count of letters: so their ratio compares any two vocabularies. A mean of each token's own
ratio would weigh a comma like a *harpooneer*.
""",
)


@exercise.starter
def bits_per_letter(losses, pieces):
    """Return the bits that a letter costs, a Python number.

    losses: [T], of each token in nats; pieces: list of the T texts that these tokens stand for.
    """
    raise NotImplementedError("not attempted")


@exercise.solution
def bits_per_letter(losses, pieces):
    letters = len("".join(pieces))
    return losses.sum().item() / math.log(2) / letters


@exercise.style("token by token")
def bits_per_letter(losses, pieces):
    bits = letters = 0
    for nats, piece in zip(losses.tolist(), pieces):
        bits += nats * math.log2(math.e)
        letters += len(piece)
    return bits / letters


@exercise.style("mean loss")
def bits_per_letter(losses, pieces):
    letters_per_token = torch.tensor([len(piece) for piece in pieces]).double().mean()
    return (losses.mean() / math.log(2) / letters_per_token).item()


@exercise.style("probability of the text")
def bits_per_letter(losses, pieces):
    return -torch.exp(-losses).log2().sum().item() / sum(map(len, pieces))


@exercise.mutant(
    "nats per letter",
    "These are nats per letter; a bit is $\\ln 2$ nats, so there are more bits than nats.",
)
def bits_per_letter(losses, pieces):
    return losses.sum().item() / len("".join(pieces))


@exercise.mutant(
    "bits per token",
    "These are bits per token, and depend on how the text was cut; divide by its letters.",
)
def bits_per_letter(losses, pieces):
    return losses.mean().item() / math.log(2)


@exercise.mutant(
    "multiplied by ln 2",
    "The nats were multiplied by $\\ln 2$; a bit is the smaller unit, so divide.",
)
def bits_per_letter(losses, pieces):
    return losses.sum().item() * math.log(2) / len("".join(pieces))


@exercise.mutant(
    "mean of ratios",
    "Each token's ratio was taken, and the mean of these: so a comma weighs as much as a long piece. Add up both first, then divide.",
)
def bits_per_letter(losses, pieces):
    ratios = [nats / len(piece) for nats, piece in zip(losses.tolist(), pieces)]
    return sum(ratios) / len(ratios) / math.log(2)


@exercise.mutant(
    "mean loss over all letters",
    "The mean loss was divided by all letters; it is that of a single token. Divide the sum, or multiply by the number of tokens.",
)
def bits_per_letter(losses, pieces):
    return losses.mean().item() / math.log(2) / len("".join(pieces))


@exercise.mutant(
    "blanks left out",
    "The blanks were not counted; a model has to predict them like any other letter.",
)
def bits_per_letter(losses, pieces):
    letters = len("".join(pieces).replace(" ", ""))
    return losses.sum().item() / math.log(2) / letters


@exercise.mutant(
    "letters of the alphabet alone",
    "Only letters of the alphabet were counted; signs and blanks are predicted, too.",
)
def bits_per_letter(losses, pieces):
    letters = sum(letter.isalpha() for letter in "".join(pieces))
    return losses.sum().item() / math.log(2) / letters


@exercise.mutant(
    "bytes",
    "Bytes were counted; a dash takes three of them, and is one letter of the text.",
)
def bits_per_letter(losses, pieces):
    return losses.sum().item() / math.log(2) / len("".join(pieces).encode())


@exercise.mutant(
    "each piece once",
    "A piece that occurs twice in the text was counted once; the letters are those of the whole text.",
)
def bits_per_letter(losses, pieces):
    return losses.sum().item() / math.log(2) / len("".join(set(pieces)))


@exercise.mutant(
    "upside down",
    "These are letters per bit; bits per letter are bits divided by letters.",
)
def bits_per_letter(losses, pieces):
    return len("".join(pieces)) * math.log(2) / losses.sum().item()


def test_one_text_in_two_cuts(answer):
    ln2 = math.log(2)
    for costs, pieces in (
        ([4.0, 6.0, 2.0], ["The", " sea—", "sea"]),  # 12 bits for 11 letters
        ([3.0, 1.0, 1.0, 1.0, 4.0, 2.0], ["T", "he", " ", "sea", "—", "sea"]),
    ):
        answer(ln2 * torch.tensor(costs, dtype=torch.float64), pieces).equals(12 / 11)


@worth(2)
def test_any_text(answer, draw):
    pieces = draw.pick([" the", " whale", ",", " a", "—", "ing", "’s", " sea", "e"], 6)
    text = [*pieces, *pieces[: draw.whole(2, 4)]]
    bits = draw.normal(len(text)).abs() + 0.5
    expected = sum(bits.tolist()) / sum(len(piece) for piece in text)
    answer(bits * math.log(2), text).equals(expected)
