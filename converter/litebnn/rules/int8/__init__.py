"""Ops between a DEQUANTIZE and a QUANTIZE become int8; weights, inputs and outputs get the requested types."""
