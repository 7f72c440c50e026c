"""On request, before the last phase: what Larq's own runtime does not read becomes what it does."""
