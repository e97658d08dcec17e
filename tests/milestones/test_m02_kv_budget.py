"""Milestone M2: the same design, its KV cache within a budget.

Accepted when `checkpoints/myllm/config.json` keeps the keys and values of a batch (8, 512) under
8,000,000 bytes in float32, by a choice of `n_kv_heads`, still within 2,000,000 parameters.
"""

from glassformer.milestones import judge_m2

SHOWN = "chapter 8, under Milestone M2, counts what a cache takes; chapter 9 shows how"


def test_the_cache_is_within_its_budget(own_config, accept):
    accept(judge_m2(own_config))
