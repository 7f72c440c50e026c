"""The phase for a model without binary layers, which replaces all other phases."""
