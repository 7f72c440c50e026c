"""Phase 7: what is double or dead goes."""
