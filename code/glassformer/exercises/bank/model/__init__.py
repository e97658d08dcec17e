"""Exercises of chapter 2: BabyGroot's size, its loss, and how it learns."""

from ...definition import Chapter

chapter = Chapter(
    number=2,
    name="model",
    notebook="02_model",
    title="The model and its training",
    opening=(
        "BabyGroot counted, its loss read where it counts, and one step of learning. In all shapes, "
        "$B$ is the number of examples, $T$ that of positions, $V$ that of tokens."
    ),
    setup="import math\n\nimport torch\nimport torch.nn.functional as F\n\n"
    "from glassformer.training import last_token_logits",
    order=("parameters", "last_token_loss", "training_step", "epoch_figures"),
)
