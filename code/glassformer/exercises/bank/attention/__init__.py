"""Exercises of chapter 4: attention, from queries and keys to several heads."""

from ...definition import Chapter

chapter = Chapter(
    number=4,
    name="attention",
    notebook="04_attention",
    title="Self-attention",
    opening=(
        "One head of attention, step by step, and then several. In all shapes, $B$ is the number of "
        "sequences, $T$ that of tokens that ask, $S$ that of tokens that are asked, $d$ the width of the "
        "stream, $D$ that of a query and a key."
    ),
    setup="import math\n\nimport torch\nimport torch.nn.functional as F\n\n"
    "from glassformer.checkpoints import load_baby_groot\n"
    "from glassformer.data import groot_vocabulary\n"
    "from glassformer.trace import trace",
    order=(
        *("qkv", "scores", "causal_mask", "softmax", "leak", "context"),
        *("who_looks_back", "heads"),
    ),
)
