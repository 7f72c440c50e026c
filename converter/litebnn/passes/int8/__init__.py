"""Phase 6: what is between QUANTIZE and DEQUANTIZE is computed in int8."""
