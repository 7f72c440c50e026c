"""Phase 3: layers of signs become LceBconv2d."""
