"""The rules of this folder turn layers into LceBconv2d.

Layers whose inputs take two values, or a few evenly spaced levels, are first changed to read signs.
"""
