"""The rules in this folder turn ops between a DEQUANTIZE and a QUANTIZE into int8 ops. They also give weights, inputs
and outputs the requested types."""
