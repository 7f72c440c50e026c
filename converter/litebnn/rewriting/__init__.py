"""Helpers that passes share: matching, building ops, affine arithmetic, weights, int8, notes."""
