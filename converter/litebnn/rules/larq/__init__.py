"""The rules in this folder undo forms that Larq Compute Engine cannot read."""
