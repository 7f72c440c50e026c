"""Phase 6: the float ops that stay work on fewer values."""
