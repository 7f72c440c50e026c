"""The rules of this phase turn layers into LceBconv2d, if their input is a sign, or takes two values or a few evenly
spaced levels."""
