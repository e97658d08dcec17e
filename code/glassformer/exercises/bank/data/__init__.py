"""Exercises of chapter 1: how sentences become examples, and what they leave open."""

from ...definition import Chapter

chapter = Chapter(
    number=1,
    name="data",
    notebook="01_data",
    title="Data",
    opening=(
        "From sentences to numbers and back, from numbers to examples, and what no model can know. "
        "Build it all with plain Python; torch comes in where tensors do."
    ),
    setup="import math\nfrom collections import Counter, defaultdict\n\nimport torch",
    order=("vocabulary", "encode", "decode", "prefix_pairs", "entropy"),
)
