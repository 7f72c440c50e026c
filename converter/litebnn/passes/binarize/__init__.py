"""Phase 2: layers of signs become LceBconv2d."""
