"""Exercises of chapter 5: the block, part by part and as a whole."""

from ...definition import Chapter

chapter = Chapter(
    number=5,
    name="block",
    notebook="05_block",
    title="The block",
    opening=(
        "Normalise a row, let a small network work on it, and put the parts together in both orders. In all "
        "shapes, $B$ is the number of sequences, $T$ that of tokens, $d$ the width of the stream."
    ),
    setup="import math\n\nimport torch\nimport torch.nn.functional as F\n\n"
    "from glassformer.checkpoints import load_baby_groot\n"
    "from glassformer.data import groot_vocabulary\n"
    "from glassformer.trace import trace",
    order=("feed_forward", "one_matrix", "layer_norm", "post_norm", "pre_norm", "quiet_units"),
)
