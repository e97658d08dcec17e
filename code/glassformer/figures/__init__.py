"""Figures: each function takes plain numbers and returns a Matplotlib figure for `show`."""

from glassformer.figures.curves import (
    accuracy_curve,
    cache_growth,
    distribution,
    dot_product_histogram,
    dot_product_spread,
    embedding_map,
    learned_distributions,
    lines,
    parameter_ledger,
    predictions_over_training,
    softmax_by_temperature,
    time_per_token,
    training_curve,
)
from glassformer.figures.matrices import Matrix, equation, heatmap, product_cell
from glassformer.figures.style import show
from glassformer.figures.weights import weights_to_scale

__all__ = [
    "Matrix",
    "accuracy_curve",
    "cache_growth",
    "distribution",
    "dot_product_histogram",
    "dot_product_spread",
    "embedding_map",
    "equation",
    "heatmap",
    "learned_distributions",
    "lines",
    "parameter_ledger",
    "predictions_over_training",
    "product_cell",
    "show",
    "softmax_by_temperature",
    "time_per_token",
    "training_curve",
    "weights_to_scale",
]
