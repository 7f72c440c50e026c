"""Phase 5: the float ops that stay work on fewer values."""
