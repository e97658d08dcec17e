"""The two models of the course, each one file to read from top to bottom."""

from ..config import TransformerConfig
from .baby_groot import BabyGrootGPT
from .transformer import KVCache, RMSNorm, SwiGLU, Transformer, rotary_table, rotate

__all__ = [
    "BabyGrootGPT",
    "KVCache",
    "RMSNorm",
    "SwiGLU",
    "Transformer",
    "TransformerConfig",
    "rotary_table",
    "rotate",
]
