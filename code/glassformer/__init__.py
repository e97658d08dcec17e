"""The Glass Transformer: two Transformers so small that every number in them can be seen."""

__version__ = "0.2.0"
