"""Is a file safe to run: properties that rewrites and runtimes rely on without checking them."""

from litebnn.safety.custom_ops import check_custom_ops, mistakes
from litebnn.safety.hazards import check_loads, check_model
from litebnn.safety.references import check_subgraphs, graphs_of_loops
from litebnn.safety.shapes import check_outputs
from litebnn.safety.validate import check_graph, check_read

__all__ = [
    "check_custom_ops",
    "check_graph",
    "check_loads",
    "check_model",
    "check_outputs",
    "check_read",
    "check_subgraphs",
    "graphs_of_loops",
    "mistakes",
]
