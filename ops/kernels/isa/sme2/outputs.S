// The macros convert the sums in the tiles to outputs; bconv.S describes their registers. The operations and their
// order are the same as in shared/output.h, so that all ISAs compute the same bits.

.set int8_outputs, 1

// The macro applies `operation` to each of z0 to z3.
.macro each operation
  \operation z0.s
  \operation z1.s
  \operation z2.s
  \operation z3.s
.endm

.macro twice_and_base sums
  mad \sums, p0/m, z31.s, z24.s
.endm

.macro disagreeing sums
  sub \sums, z24.s, \sums
.endm

.macro rectify sums
  fmaxnm \sums, p0/m, \sums, #0.0
.endm

.macro four operation, a0, a1, a2, a3
  \operation z0.s, z0.s, z\a0\().s
  \operation z1.s, z1.s, z\a1\().s
  \operation z2.s, z2.s, z\a2\().s
  \operation z3.s, z3.s, z\a3\().s
.endm

// The macro loads the padding corrections of the next pixel into z4 to z7. Register x9 points to the address of these
// corrections, and advances to the next pixel's.
.macro next_corrections
  ldr x17, [x9], #8
  load_four_at 4, 7, 9, 17, 26
.endm

// The macro computes the next pixel's floats in z0 to z3: clamped dot products times multipliers plus biases.
.macro next_floats
  read_row_of_tiles
  each twice_and_base
  cbz x13, 9f
  next_corrections
  four add, 4, 5, 6, 7
9:
  clamp_integers 25, 26
  integers_to_floats
  four fmul, 16, 17, 18, 19
  four fadd, 20, 21, 22, 23
.endm

// The macro advances to the next pixel: w12 to the pixel's row of sums, and x10, by the stride x15, to the pixel's
// outputs. It branches to `label` if pixels are left.
.macro next_pixel label
  add x10, x10, x15
  add w12, w12, #4
  subs x11, x11, #1
  b.ne \label
.endm

.macro write_floats
  add x10, x6, x26, lsl #2
  add x14, x7, x26, lsl #2
  member_of x16, rectify_sum
1:
  next_floats
  cbz x7, 2f
  load_four 4, 7, 9, 14
  add x14, x14, x15
  four fadd, 4, 5, 6, 7
  cbz x16, 2f
  each rectify
2:
  store_four 9, 10
  next_pixel 1b
.endm

.macro write_bytes
  add x10, x6, x26
  whilelt p7.b, xzr, x22
1:
  next_floats
  clamp_floats 27, 28
  round_floats
  floats_to_integers
  add_to_four 8
  narrow_to_bytes
  st1b {z0.b}, p7, [x10]
  next_pixel 1b
.endm

// The macro sets x14 to the next pixel's packed signs. The bit of a channel is set if its popcount is above the
// threshold.
.macro next_bits
  read_row_of_tiles
  each disagreeing
  cbz x13, 9f
  next_corrections
  asr z4.s, z4.s, #1
  asr z5.s, z5.s, #1
  asr z6.s, z6.s, #1
  asr z7.s, z7.s, #1
  four sub, 4, 5, 6, 7
9:
  cmpgt p10.s, p1/z, z0.s, z16.s
  cmpgt p11.s, p2/z, z1.s, z17.s
  cmpgt p12.s, p3/z, z2.s, z18.s
  cmpgt p13.s, p4/z, z3.s, z19.s
  uzp1 p10.h, p10.h, p11.h
  uzp1 p11.h, p12.h, p13.h
  uzp1 p10.b, p10.b, p11.b
  str p10, [sp]
  ldr x14, [sp]
.endm

// The macro writes the packed signs of all pixels of the tile. The first write to a word of the output overwrites it,
// and later writes add bits, as in StoreBits of shared/output.h.
.macro write_bits
  member_of x10, first_bit
  add x10, x10, x26
  and x16, x10, #31
  lsr x10, x10, #5
  add x10, x6, x10, lsl #2
  mov w17, #32
  sub x21, x17, x16
1:
  next_bits
  mov x17, x22
  str x10, [sp, #spilled_x10]
  cbz x16, 2f
  ldr w30, [x10]
  lsl x29, x14, x16
  orr w30, w30, w29
  str w30, [x10], #4
  lsr x14, x14, x21
  subs x17, x17, x21
  b.le 3f
2:
  str w14, [x10], #4
  lsr x14, x14, #32
  subs x17, x17, #32
  b.gt 2b
3:
  ldr x10, [sp, #spilled_x10]
  next_pixel 1b
.endm

// The macro writes the outputs of all pixels of the tile, in the channels from x26 to x26 + x22.
.macro write_outputs
  mov w12, #0
  mov x11, x8
  member_of x13, corrections
  member_of x9, tile
  add x9, x9, #tile_corrections
  member_of x15, output_stride
  member_of x14, output_type
  cmp x14, #int8_outputs
  b.gt 7f
  member_of x10, multiplier
  load_four_at 16, 19, 9, 10, 26
  member_of x10, bias
  load_four_at 20, 23, 9, 10, 26
  b.eq 6f
  write_floats
  b 8f
6:
  fill 8, zero_point
  write_bytes
  b 8f
7:
  member_of x10, threshold
  load_four_at 16, 19, 9, 10, 26
  write_bits
8:
.endm
