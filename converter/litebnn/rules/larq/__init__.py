"""The rules of this phase undo forms that Larq Compute Engine cannot read."""
