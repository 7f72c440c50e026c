"""Layers of signs, of two values and of few levels become LceBconv2d."""
