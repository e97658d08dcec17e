"""Figures: each function takes plain numbers and returns a Matplotlib figure for `show`."""

from glassformer.figures.corpus import bars, examples, prefix_tree
from glassformer.figures.curves import (
    accuracy_curve,
    distribution,
    dot_product_spread,
    embedding_map,
    learned_distributions,
    learning_curves,
    lines,
    loss_by_size,
    parameter_ledger,
    predictions_over_training,
    softmax_by_temperature,
    time_per_token,
    training_curve,
)
from glassformer.figures.deep_dives import attention_deep_dive, block_and_head_deep_dive
from glassformer.figures.designs import designs_to_scale
from glassformer.figures.diagrams import (
    block_diagram,
    flow_of_shapes,
    recurrent_vs_decoder,
)
from glassformer.figures.ffn import ffn_graph
from glassformer.figures.floor import near_the_floor
from glassformer.figures.inference import cache_steps, continuation_tree, training_vs_inference
from glassformer.figures.llama import (
    llama_architecture,
    rotary_clocks,
    shared_heads,
)
from glassformer.figures.matrices import Matrix, equation, heatmap, product_cell
from glassformer.figures.paging import paged_cache
from glassformer.figures.routing import attention_flow, attention_wiring, visible_sets
from glassformer.figures.style import show
from glassformer.figures.tables import Table, table
from glassformer.figures.weights import weights_to_scale

__all__ = [
    "Matrix",
    "Table",
    "accuracy_curve",
    "attention_deep_dive",
    "attention_flow",
    "attention_wiring",
    "bars",
    "block_and_head_deep_dive",
    "block_diagram",
    "cache_steps",
    "continuation_tree",
    "designs_to_scale",
    "distribution",
    "dot_product_spread",
    "embedding_map",
    "equation",
    "examples",
    "ffn_graph",
    "flow_of_shapes",
    "heatmap",
    "learned_distributions",
    "learning_curves",
    "lines",
    "llama_architecture",
    "loss_by_size",
    "near_the_floor",
    "paged_cache",
    "parameter_ledger",
    "predictions_over_training",
    "prefix_tree",
    "product_cell",
    "recurrent_vs_decoder",
    "rotary_clocks",
    "shared_heads",
    "show",
    "softmax_by_temperature",
    "table",
    "time_per_token",
    "training_curve",
    "training_vs_inference",
    "visible_sets",
    "weights_to_scale",
]
