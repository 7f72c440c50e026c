"""Phase 4: ops around binary layers are fused into them, and bits pass from layer to layer."""
