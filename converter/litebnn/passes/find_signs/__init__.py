"""Phase 2: signs are found in what exporters leave of them, and what only moves them moves bits."""
