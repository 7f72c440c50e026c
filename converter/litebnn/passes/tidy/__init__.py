"""Phase 6: what is double or dead goes."""
