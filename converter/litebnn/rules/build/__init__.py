"""The functions with which rules make new tensors, ops, packed signs, padding, and notes for the report."""
