"""Phase 8: duplicate constants and dead ops are removed."""
