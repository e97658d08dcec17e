"""Exercises of chapter 9: a design reckoned out, mended, and made to fit, before anything is built."""

from ...definition import Chapter

chapter = Chapter(
    number=9,
    name="m1",
    notebook="09_m1_config",
    title="Design your own model",
    opening=(
        "From the rules that a config must keep to a design of your own. $d$ is the width, $L$ the number of blocks, "
        "$n_h$ and $n_{kv}$ are the query heads and the key/value heads, $d_h = d / n_h$ is the size of a head, $h$ that of "
        "the feed-forward network, and `config` is a `TransformerConfig`, with all that it knows of itself."
    ),
    setup="import math\nfrom dataclasses import replace\n\n"
    "from glassformer.models import Transformer, TransformerConfig",
    order=("rules", "shares", "vocabulary", "widest", "window", "look_back", "draft"),
    closing=r"""
## The milestone

A design that `m1.draft` takes keeps every rule of the milestone, too. Write it, or another one, where the milestone looks for it,
`checkpoints/myllm/config.json` in the course's folder (this notebook runs in `exercises`, so `..` is that folder):

```python
TransformerConfig(**design()).to_json("../checkpoints/myllm/config.json")
```

Then, in a terminal in the course's folder:

```bash
.venv/bin/pytest tests/milestones/test_m01_config.py
```

It passes, or says which field to change and by how much.""",
)
