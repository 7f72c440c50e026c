"""Phase 7: float ops between DEQUANTIZE and QUANTIZE become int8 ops."""
