// The file has the inner loops for cores with a fast TBL instruction. They compute sums of table
// lookups (shared/lookup_tables.h). A TBL looks up 4 bits of 2 pixels for 16 channels, which is 128 binary
// multiply-adds. A byte of the table has four bits for each of the two pixels. A tile is the set of pixels and channels
// whose sums stay in registers. Two registers hold the sums of two pixels (a pixel pair) in 16 channels, and a tile has
// eight such pairs of registers.
//
// Each function sums the lookups of one tile: N pixel pairs by 8 / N vectors of 16 channels. The name of the function
// ends in N. Only sum_lookups.h calls the functions, with the arguments:
//   x0   [pairs], start of each pair's offsets
//   x1   weights: [nibbles][vectors] of 16 channels
//   x2   pieces of the offsets
//   x3   number of pieces
//   x4   the tables
//   x5   destination of the sums, [pairs][vectors]
//   x20  one of the endings below, which store the sums
// The functions that sum lookups overwrite x1 to x17, x19 and all vector registers.

#if defined(__aarch64__)

#include "kernels/isa/shared/function.S"

// The directive .altmacro allows macro arguments that are computed, such as register numbers. Registers v0 to v15 hold
// the sums. Registers v16 to v23 hold the sums of a group of at most seven nibbles. Each of their bytes has a sum of
// four bits for each of two pixels. The registers from v24 on hold one table for each pixel pair, and then the weights
// of up to four vectors of channels. Registers v30 and v31 hold looked-up values.
.altmacro

// The macro loads the offsets of the tables for the next two nibbles of each pixel pair.
.macro offsets pairs
  ldp w8, w9, [x6], #8
  .if \pairs > 1
  ldp w10, w11, [x7], #8
  .endif
  .if \pairs > 2
  ldp w12, w13, [x16], #8
  ldp w14, w15, [x17], #8
  .endif
.endm

.macro table to, offset
  ldr q\to, [x4, w\offset, uxtw]
.endm

.macro tables pairs, nibble
  table 24, %(8 + \nibble)
  .if \pairs > 1
  table 25, %(10 + \nibble)
  .endif
  .if \pairs > 2
  table 26, %(12 + \nibble)
  table 27, %(14 + \nibble)
  .endif
.endm

.macro start sum, table, weights, spare
  tbl v\sum\().16b, {v\table\().16b}, v\weights\().16b
.endm

.macro grow sum, table, weights, spare
  tbl v\spare\().16b, {v\table\().16b}, v\weights\().16b
  add v\sum\().16b, v\sum\().16b, v\spare\().16b
.endm

.macro four op, sums, table, weights
  .irpc i, 0123
  \op %(\sums + \i), \table, %(\weights + \i), %(30 + \i % 2)
  .endr
.endm

.macro two op, sums, table
  \op \sums, \table, 28, 30
  \op %(\sums + 1), \table, 29, 31
.endm

.macro nibble op, pairs, i
  tables \pairs, \i
  .if \pairs == 1
  ld1 {v25.16b, v26.16b, v27.16b, v28.16b}, [x1], #64
  four \op, 16, 24, 25
  ld1 {v25.16b, v26.16b, v27.16b, v28.16b}, [x1], #64
  four \op, 20, 24, 25
  .elseif \pairs == 2
  ld1 {v26.16b, v27.16b, v28.16b, v29.16b}, [x1], #64
  four \op, 16, 24, 26
  four \op, 20, 25, 26
  .else
  ldp q28, q29, [x1], #32
  two \op, 16, 24
  two \op, 18, 25
  two \op, 20, 26
  two \op, 22, 27
  .endif
.endm

.macro two_nibbles op, pairs
  offsets \pairs
  nibble \op, \pairs, 0
  nibble grow, \pairs, 1
.endm

// The macros begin_with and add_up add the sums of a group of nibbles to the sums of the window. The macro begin_with
// is for the first group: it sets the sums of the window instead.
.macro begin_with low, high, sum
  ushr v\high\().16b, v\sum\().16b, #4
  mov v\low\().16b, v\sum\().16b
.endm

.macro add_up low, high, sum
  usra v\high\().16b, v\sum\().16b, #4
  add v\low\().16b, v\low\().16b, v\sum\().16b
.endm

.macro fold op
  .irpc i, 01234567
  \op \i, %(8 + \i), %(16 + \i)
  .endr
.endm

.macro two_groups op, pairs
  two_nibbles start, \pairs
  two_nibbles grow, \pairs
  two_nibbles grow, \pairs
  offsets \pairs
  nibble grow, \pairs, 0
  fold \op
  nibble start, \pairs, 1
  two_nibbles grow, \pairs
  two_nibbles grow, \pairs
  two_nibbles grow, \pairs
  fold add_up
.endm

.macro clear i, j
  movi v\i\().2d, #0
  movi v\j\().2d, #0
.endm

.macro piece_of_pair to, pair
  ldr \to, [x0, #(8 * \pair)]
  add \to, \to, x8, lsl #2
.endm

// The macro loads the next piece (a range of nibbles), and sets w19 to its number of nibbles minus 14. A pass of the
// main loop sums two groups of 7 nibbles. If the piece is shorter than 14 nibbles, w19 is negative.
.macro next_piece pairs
  ldr x8, [x2], #8
  piece_of_pair x6, 0
  .if \pairs > 1
  piece_of_pair x7, 1
  .endif
  .if \pairs > 2
  piece_of_pair x16, 2
  piece_of_pair x17, 3
  .endif
  ldr w19, [x2], #8
  subs w19, w19, #14
.endm

.macro sum_lookups pairs
begin litebnn_sum_lookups_\pairs
  // The instruction sets x3 to the end of the array of pieces, whose elements have 16 bytes.
  add x3, x2, x3, lsl #4
  next_piece \pairs
  b.lt 0f
  two_groups begin_with, \pairs
  b 3f
0:
  .irpc i, 01234567
  clear \i, %(8 + \i)
  .endr
  b 4f
1:
  next_piece \pairs
  b.lt 4f
  .p2align 4
2:
  two_groups add_up, \pairs
3:
  subs w19, w19, #14
  b.ge 2b
4:
  adds w19, w19, #14
  b.eq 7f
  // The remaining nibbles, an even number below 14, are summed in groups of at most six.
5:
  two_nibbles start, \pairs
  subs w19, w19, #2
  b.eq 6f
  two_nibbles grow, \pairs
  subs w19, w19, #2
  b.eq 6f
  two_nibbles grow, \pairs
  subs w19, w19, #2
6:
  fold add_up
  b.ne 5b
7:
  cmp x2, x3
  b.ne 1b
  br x20
end litebnn_sum_lookups_\pairs
.endm

// The macros below store the sums after the inner loop. Each byte of register `both` has the sum of pixel 0 plus 16
// times the sum of pixel 1, modulo 256. Register `pixel1` has the sums of pixel 1.

// The macro stores the sums of two pixels as they are in the registers `both` and `pixel1`: with 8 bits, as ByteSums.
.macro store both, pixel1
  stp q\both, q\pixel1, [x5, #(32 * \both)]
.endm

// The macro separates the sums of both pixels, multiplies them by 4, and stores them with 16 bits, as WideSums. The
// factor is 4 because a lookup counts four times in the dot product. Each byte of v24 is the number 16, for subtracting
// 16 times the sums of pixel 1 from `both`.
.macro widen both, pixel1
  mls v\both\().16b, v\pixel1\().16b, v24.16b
  ushll v26.8h, v\both\().8b, #2
  ushll2 v27.8h, v\both\().16b, #2
  ushll v28.8h, v\pixel1\().8b, #2
  ushll2 v29.8h, v\pixel1\().16b, #2
  st1 {v26.8h, v27.8h, v28.8h, v29.8h}, [x5], #64
.endm

.macro widen_and_add both, pixel1
  ld1 {v26.8h, v27.8h, v28.8h, v29.8h}, [x5]
  mls v\both\().16b, v\pixel1\().16b, v24.16b
  umlal v26.8h, v\both\().8b, v25.8b
  umlal2 v27.8h, v\both\().16b, v25.16b
  umlal v28.8h, v\pixel1\().8b, v25.8b
  umlal2 v29.8h, v\pixel1\().16b, v25.16b
  st1 {v26.8h, v27.8h, v28.8h, v29.8h}, [x5], #64
.endm

.macro ending name, op
begin \name
  movi v24.16b, #16
  movi v25.16b, #4
  .irpc i, 01234567
  \op \i, %(8 + \i)
  .endr
  ret
end \name
.endm

// Each function unpacks the weights of a tile of channels. The name of the function ends in the number of vectors of 16
// channels. C++ may call these functions with three arguments. Register x0 points to the packed weights, two nibbles a
// byte. Register w1 has the number of nibbles, which is even and above 0. Register x2 points to the destination, which
// gets one nibble a byte.
.macro split i, j
  and v\j\().16b, v\i\().16b, v31.16b
  ushr v\i\().16b, v\i\().16b, #4
.endm

.macro unpack vectors
begin litebnn_unpack_weights_\vectors
  movi v31.16b, #15
1:
  .if \vectors == 2
  ldp q0, q1, [x0], #32
  .irpc i, 01
  split \i, %(16 + \i)
  .endr
  stp q16, q17, [x2], #32
  stp q0, q1, [x2], #32
  .else
  ld1 {v0.16b, v1.16b, v2.16b, v3.16b}, [x0], #64
  .irpc i, 0123
  split \i, %(16 + \i)
  .endr
  st1 {v16.16b, v17.16b, v18.16b, v19.16b}, [x2], #64
  .if \vectors == 8
  ld1 {v4.16b, v5.16b, v6.16b, v7.16b}, [x0], #64
  .irpc i, 4567
  split \i, %(16 + \i)
  .endr
  st1 {v20.16b, v21.16b, v22.16b, v23.16b}, [x2], #64
  .endif
  st1 {v0.16b, v1.16b, v2.16b, v3.16b}, [x2], #64
  .if \vectors == 8
  st1 {v4.16b, v5.16b, v6.16b, v7.16b}, [x2], #64
  .endif
  .endif
  subs w1, w1, #2
  b.gt 1b
  ret
end litebnn_unpack_weights_\vectors
.endm

.text
sum_lookups 1
sum_lookups 2
sum_lookups 4
ending litebnn_store_sums, store
ending litebnn_start_wide_sums, widen
ending litebnn_add_wide_sums, widen_and_add
unpack 2
unpack 4
unpack 8

#endif

#if defined(__linux__) && defined(__ELF__)
.section .note.GNU-stack, "", %progbits
#endif
