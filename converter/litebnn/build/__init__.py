"""Helpers that rules build with: tensors, ops, packed signs, padding, notes for the report."""
