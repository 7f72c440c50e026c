"""Rules build with the helpers of this package: tensors, ops, packed signs, padding, and notes for the report."""
