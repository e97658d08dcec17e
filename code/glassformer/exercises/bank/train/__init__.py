"""Exercises of chapter 10: what stands between a design and a model that has read a novel."""

from ...definition import Chapter

chapter = Chapter(
    number=10,
    name="train",
    notebook="10_train",
    title="Train your own design",
    opening=(
        "A novel cut into pieces, the counts that a model has to beat, a fair way to compare, and three parts of the recipe. "
        "Pieces are texts, and `Ġ` stands for the blank before a word; $V$ is the size of the vocabulary."
    ),
    setup="import copy\nimport io\nimport math\nimport re\nfrom collections import Counter, defaultdict\nfrom itertools import pairwise\n\n"
    "import torch",
    order=("pair", "cut", "back_off", "bits", "rate", "clip", "resume"),
    closing=r"""
## The run

A design in `checkpoints/myllm/config.json` is all that is needed now. In a terminal in the course's folder,

```bash
.venv/bin/glassformer train
```

trains it on the novel, with the very pieces, rates and checkpoints of these exercises, and goes on after whatever stopped it.""",
)
