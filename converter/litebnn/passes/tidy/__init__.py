"""Phase 5: what is double or dead goes."""
