"""Forms that Larq Compute Engine cannot read are undone."""
