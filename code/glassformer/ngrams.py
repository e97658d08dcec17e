"""How well a text is predicted by counting alone: the baselines of a trained model."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence


class NGrams:
    """Probabilities of the next token from the few before it, smoothed by Witten and Bell (1991).

    What followed a context in the text counts as often as it did; the rest of the probability, the
    larger the more different tokens followed, goes to the prediction from one token of context
    less. Below them all every token is equally likely.
    """

    def __init__(self, ids: Sequence[int], vocab_size: int, order: int) -> None:
        self.vocab_size, self.order = vocab_size, order
        self.followers: defaultdict[tuple[int, ...], Counter[int]] = defaultdict(Counter)
        for size in range(order):  # tokens of context
            for i in range(size, len(ids)):
                self.followers[tuple(ids[i - size : i])][ids[i]] += 1
        self.totals = {context: after.total() for context, after in self.followers.items()}

    def probability(self, context: Sequence[int], token: int, order: int | None = None) -> float:
        """Return the probability of a token after a context, whose last order − 1 tokens count."""
        order = self.order if order is None else order
        p = 1 / self.vocab_size
        for size in range(min(order, len(context) + 1)):
            after = self.followers.get(tuple(context[len(context) - size :]))
            if after is None:  # this context never came, nor did any longer one
                break
            total = self.totals[tuple(context[len(context) - size :])]
            p = (after[token] + len(after) * p) / (total + len(after))
        return p

    def loss(self, ids: Sequence[int], order: int | None = None) -> float:
        """Return the cross-entropy of a text's tokens, the first apart, in nats per token."""
        reach = (self.order if order is None else order) - 1
        nats = [
            -math.log(self.probability(ids[max(0, i - reach) : i], ids[i], order))
            for i in range(1, len(ids))
        ]
        return sum(nats) / len(nats)
