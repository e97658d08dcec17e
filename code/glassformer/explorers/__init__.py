"""The explorers: small instruments that show the numbers of a real model, and let you change them.

Each is one class. Its arguments are its state, and attributes afterwards: set one in Python and the
explorer follows; change it in the explorer and Python reads it. Those that show a model also take
your own, `Attention(model=mine)` or `explorer.model = mine`; a copy of its weights is shown.
"""

from .base import Explorer
from .instruments import (
    Attention,
    Block,
    Designer,
    Embedding,
    Everything,
    KvCache,
    Matmul,
    Modern,
    Reader,
    Rope,
    Sampling,
    Tokens,
    Training,
)

EXPLORERS: dict[str, type[Explorer]] = {
    kind.explorer.default_value: kind
    for kind in (
        Tokens,
        Training,
        Embedding,
        Attention,
        Block,
        Sampling,
        Everything,
        Modern,
        Rope,
        Matmul,
        KvCache,
        Designer,
        Reader,
    )
}

__all__ = ["EXPLORERS", "Explorer", *(kind.__name__ for kind in EXPLORERS.values())]
