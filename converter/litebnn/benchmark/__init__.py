"""Measures time and memory of models: side by side on this machine, op by op, or on a board."""

from litebnn.benchmark.side_by_side import LARQ, LARQ_DEFAULT, LITEBNN, XNNPACK, Contender, Measurement, OpTime, measure

__all__ = ["LARQ", "LARQ_DEFAULT", "LITEBNN", "XNNPACK", "Contender", "Measurement", "OpTime", "measure"]
