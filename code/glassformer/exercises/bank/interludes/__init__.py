"""Exercises of chapter 3: what enters the block, and what positions are good for."""

from ...definition import Chapter

chapter = Chapter(
    number=3,
    name="interludes",
    notebook="03_interludes",
    title="Tokens and positions",
    opening=(
        "Tokens become vectors, places are added, and then the places are taken away again. In all "
        "shapes, $B$ is the number of sequences, $T$ that of tokens in each, $V$ that of tokens in the "
        "vocabulary, $d$ the width."
    ),
    setup="import copy\nfrom collections import Counter\n\nimport torch\nimport torch.nn.functional as F\n\n"
    "from glassformer.checkpoints import load_baby_groot\n"
    "from glassformer.data import groot_vocabulary\n"
    "from glassformer.trace import trace",
    order=("h0", "cosines", "whose_number", "without_positions", "same_last_row"),
)
