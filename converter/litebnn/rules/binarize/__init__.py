"""Layers whose input is a sign, or takes two values or a few evenly spaced levels, become LceBconv2d."""
