"""Exercises of chapter 8: what is kept while a model writes, and how to keep it right."""

from ...definition import Chapter

chapter = Chapter(
    number=8,
    name="kv_cache",
    notebook="08_kv_cache",
    title="Training, inference and the KV cache",
    opening=(
        "The cache from its weight in bytes to the loop that writes with it, and the fault that nobody sees in "
        "the text. In all shapes, $B$ is the number of sequences, $K$ that of key heads, $T$ that of new tokens, "
        "$S$ that of all tokens so far, $D$ the size of a head."
    ),
    setup="import math\n\nimport torch\nimport torch.nn.functional as F\n\n"
    "from glassformer.models import KVCache, rotate",
    order=("cache_bytes", "mask", "append", "position", "write", "multiplications"),
)
