"""Exercises of chapter 7: the parts that separate BabyGroot from the LLaMA family."""

from ...definition import Chapter

chapter = Chapter(
    number=7,
    name="modern",
    notebook="07_modern",
    title="From BabyGroot to LLaMA",
    opening=(
        "The parts of today's models, built one at a time. In all shapes, $B$ is the number of sequences, $T$ that of "
        "tokens, $d$ the width, $H$ the number of query heads, $K$ that of key heads, $D$ the size of a head."
    ),
    setup="import math\n\nimport torch\nimport torch.nn.functional as F",
    order=(
        "rms_norm",
        "swiglu",
        "angles",
        "rotate",
        "repeat_heads",
        "grouped_attention",
        "parameters",
        "adamw",
    ),
)
