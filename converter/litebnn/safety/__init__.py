"""Is a file safe to run: properties that rewrites and runtimes rely on without checking them."""

from litebnn.safety.hazards import check_loads, check_model
from litebnn.safety.references import check_subgraphs, graphs_of_loops
from litebnn.safety.shapes import check_outputs
from litebnn.safety.validate import check_graph

__all__ = ["check_graph", "check_loads", "check_model", "check_outputs", "check_subgraphs", "graphs_of_loops"]
