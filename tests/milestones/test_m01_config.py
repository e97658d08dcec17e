"""Milestone M1: a model design of your own, within the budget.

Accepted when `checkpoints/myllm/config.json` describes a Transformer of at most 2,000,000
parameters that turns a batch (4, 32) of token ids into logits (4, 32, vocab_size).
"""

from glassformer.milestones import judge_m1

SHOWN = "chapter 9 shows how"


def test_the_design_is_accepted(own_config, accept):
    accept(judge_m1(own_config))
