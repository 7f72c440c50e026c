"""Phase 2: signs are recognized in the ops that exporters write, and ops that only move signs move bits."""
