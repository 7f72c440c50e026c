"""The rules of this folder turn layers into LceBconv2d.

Layers of two values, or of a few evenly spaced levels, first become layers of signs.
"""
