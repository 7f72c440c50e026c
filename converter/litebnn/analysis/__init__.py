"""Facts about tensors and ops, worked out in one place and only read by the rules."""
