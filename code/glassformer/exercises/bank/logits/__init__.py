"""Exercises of chapter 6: from logits to probabilities, and from probabilities to text."""

from ...definition import Chapter

chapter = Chapter(
    number=6,
    name="logits",
    notebook="06_logits",
    title="Logits, probabilities, generation",
    opening=(
        "From a row of logits to a distribution, what the three knobs do to it, how good it is, and the "
        "loop that writes. In all shapes, $B$ is the number of rows, $T$ that of positions, $V$ that of "
        "tokens."
    ),
    setup="import math\n\nimport torch\nimport torch.nn.functional as F\n\n"
    "from glassformer.checkpoints import load_baby_groot\n"
    "from glassformer.data import groot_vocabulary\n"
    "from glassformer.trace import trace",
    order=("temperature", "top_k", "top_p", "perplexity", "greedy", "even_odds"),
)
