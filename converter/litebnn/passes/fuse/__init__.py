"""Phase 4: what stands around binary layers goes into them, and bits pass from layer to layer."""
