// The file computes a convolution by outer products. BMOPA counts the matching bits of each pixel's word and each
// channel's word, and adds the counts to a tile of 32-bit sums. Streaming mode is entered once for all pixels and
// channels of a thread. In this mode most NEON instructions are illegal, and compiled code may contain them anywhere.
// Everything that runs in streaming mode is therefore assembly, the conversion to outputs included.
//
// N is the number of words in a vector, 4 to 64, which depends on the CPU. The windows of N pixels are transposed
// through the tile za0 to the layout [words][N]. Then 4 N channels are computed at a time: all words are multiplied,
// and the sums in the four tiles are converted to outputs. A row of the tiles has the sums of one pixel. Weights are in
// tiles of 64 channels for every N.

#if defined(__aarch64__)

#if defined(LITEBNN_SME2_MNEMONICS)
.arch armv9-a+sme2
#else
.arch armv8-a+sve
#endif

#include "kernels/isa/shared/function.S"
#include "kernels/isa/sme2/instructions.S"

// The macros define the offsets of the members of Sme2Layer (bconv.h).
.set member, 0
.macro members names:vararg
  .irp name, \names
  .set \name, member
  .set member, member + 8
  .endr
.endm
members base, clamp_min, clamp_max, low, high, zero_point
members output_type, pixels, window, row, row_stride, pixel_stride, left_in_row, output_width
members runs, run_words, words, run_offsets
members weights, channels, channels_left, multiplier, bias, threshold
members output, output_stride, first_bit, addend, rectify_sum
members corrections, row_correction, column_correction, column, panel, tile

.set tile_corrections, 64 * 8
.set tile_channels, 64

// The function bconv uses these registers:
//   x0   the layer
//   x1   N
//   x2   pixels left
//   x3   the next pixel's window, x4 the first one of its row, x5 pixels left in the row
//   x6   outputs of the tile's first pixel, x7 their addends or 0
//   x8   pixels in the tile
//   x19  corrections of the row, x20 of the next pixel's column
//   x22  channels of the four tiles, from x26 on
//   x23  the first of these in the tile of weights
//   x24  channels left, x25 the tile of weights, x27 channels from its first to the group's last, x28 its row in words
// The predicates p0 and pn8 select all elements. The predicates p1 to p4 and pn9 select the elements of existing
// channels, and p5 those of existing pixels. While outputs are written, z24 to z31 and z8 hold constants of the layer,
// and z16 to z23 hold constants of the channels.

.macro member_of to, name
  ldr \to, [x0, #\name]
.endm

.macro fill to, name
  ld1rw {z\to\().s}, p0/z, [x0, #\name]
.endm

// The macros save or restore the caller's registers on the stack. Below these registers is room for a predicate, of at
// most 32 bytes, and for x10.
.set spilled_x10, 32
.set frame_bytes, 48 + 10 * 16
.macro registers op_pair
  \op_pair x19, x20, [sp, #48]
  \op_pair x21, x22, [sp, #64]
  \op_pair x23, x24, [sp, #80]
  \op_pair x25, x26, [sp, #96]
  \op_pair x27, x28, [sp, #112]
  \op_pair x29, x30, [sp, #128]
  \op_pair d8, d9, [sp, #144]
  \op_pair d10, d11, [sp, #160]
  \op_pair d12, d13, [sp, #176]
  \op_pair d14, d15, [sp, #192]
.endm

// The AAPCS64 allows a caller to leave its ZA storage unsaved (lazy saving): the block at TPIDR2_EL0 contains the
// address to save it to. The macro saves the storage itself, because older C libraries lack __arm_tpidr2_save. It then
// sets TPIDR2_EL0 to 0, which tells the caller that the storage was saved. When the function returns, ZA is off, as the
// AAPCS64 requires.
.macro save_storage_of_caller
  mrs x9, s3_3_c13_c0_5
  cbz x9, 3f
  ldr x10, [x9]
  ldrh w11, [x9, #8]
  cbz x10, 2f
  streaming_bytes 13
  mov w12, #0
1:
  cmp w12, w11
  b.hs 2f
  save_row 10
  add x10, x10, x13
  add w12, w12, #1
  b 1b
2:
  msr s3_3_c13_c0_5, xzr
3:
.endm

// The macro stores the addresses of the next x8 windows in `tile`. It advances x3 to x5, x19 and x20, which describe
// the next pixel. The last window is repeated until the number of windows is a multiple of four.
.macro find_windows
  member_of x9, tile
  member_of x10, pixel_stride
  member_of x13, corrections
  mov x11, x8
1:
  str x3, [x9], #8
  cbz x13, 2f
  ldr w14, [x19]
  ldr w15, [x20], #4
  add w14, w14, w15
  add x14, x13, w14, sxtw #2
  str x14, [x9, #(tile_corrections - 8)]
2:
  add x3, x3, x10
  subs x5, x5, #1
  b.ne 3f
  member_of x5, output_width
  member_of x14, row_stride
  add x4, x4, x14
  mov x3, x4
  add x19, x19, #4
  member_of x20, column_correction
3:
  subs x11, x11, #1
  b.ne 1b
  ldr x14, [x9, #-8]
4:
  tst x9, #31
  b.eq 5f
  str x14, [x9], #8
  b 4b
5:
.endm

// The macro transposes the windows of the tile: it loads rows of pixels and stores columns of words.
.macro fill_panel
  member_of x10, panel
  member_of x11, run_offsets
  member_of x13, runs
1:
  ldr x14, [x11], #8
  asr x14, x14, #2
  member_of x15, run_words
2:
  whilelt p6.s, xzr, x15
  member_of x9, tile
  mov w12, #0
3:
  ldp x16, x17, [x9], #16
  ldp x21, x22, [x9], #16
  load_tile_row 0, 16, 14
  load_tile_row 1, 17, 14
  load_tile_row 2, 21, 14
  load_tile_row 3, 22, 14
  add w12, w12, #4
  cmp w12, w8
  b.lt 3b
  cmp x15, x1
  csel x16, x15, x1, lt
  mov x17, x10
  mov w12, #0
4:
  read_tile_columns
  store_four 8, 17
  incb x17, all, mul #4
  add w12, w12, #4
  cmp w12, w16
  b.lt 4b
  mul x16, x16, x1
  add x10, x10, x16, lsl #2
  add x14, x14, x1
  subs x15, x15, x1
  b.gt 2b
  subs x13, x13, #1
  b.ne 1b
.endm

// The macro adds four outer products to the four tiles of sums. The first factor, z`a`, has one word of every pixel.
// The second factors, z`b0` to z`b3`, have the corresponding word of every channel.
.macro add_word a, b0, b1, b2, b3
  count_agreeing 0, 1, \a, \b0
  count_agreeing 1, 2, \a, \b1
  count_agreeing 2, 3, \a, \b2
  count_agreeing 3, 4, \a, \b3
.endm

.macro sum_words
  member_of x9, panel
  add x10, x25, x23, lsl #2
  member_of x11, words
  lsl x14, x28, #1
  add x15, x14, x28
  lsl x16, x28, #4
  clear_tiles
  subs x11, x11, #4
  b.lt 2f
1:
  load_four 0, 3, 8, 9
  load_four 4, 7, 9, 10
  load_four_at 12, 15, 9, 10, 28
  load_four_at 16, 19, 9, 10, 14
  load_four_at 20, 23, 9, 10, 15
  add_word 0, 4, 5, 6, 7
  add_word 1, 12, 13, 14, 15
  add_word 2, 16, 17, 18, 19
  add_word 3, 20, 21, 22, 23
  incb x9, all, mul #4
  add x10, x10, x16
  subs x11, x11, #4
  b.ge 1b
2:
  adds x11, x11, #4
  b.eq 4f
3:
  ld1w {z0.s}, p0/z, [x9]
  load_four 4, 7, 9, 10
  add_word 0, 4, 5, 6, 7
  incb x9
  add x10, x10, x28, lsl #2
  subs x11, x11, #1
  b.ne 3b
4:
.endm

#include "kernels/isa/sme2/outputs.S"

.macro find_channels
  mov x9, #tile_channels
  sub x9, x9, x23
  cmp x24, x9
  csel x22, x24, x9, lt
  lsl x9, x1, #2
  cmp x22, x9
  csel x22, x22, x9, lt
  first_of_four 22
  whilelt p1.s, xzr, x22
  whilelt p2.s, x1, x22
  lsl x9, x1, #1
  whilelt p3.s, x9, x22
  add x9, x9, x1
  whilelt p4.s, x9, x22
.endm

.text
begin litebnn_sme2_bconv
  sub sp, sp, #frame_bytes
  registers stp
  str xzr, [sp]
  save_storage_of_caller
  start_streaming
  ptrue p0.s
  all_of_four
  cntw x1
  mov z31.s, #2
  fill 24, base
  fill 25, clamp_min
  fill 26, clamp_max
  fill 27, low
  fill 28, high
  member_of x2, pixels
  member_of x3, window
  member_of x4, row
  member_of x5, left_in_row
  member_of x6, output
  member_of x7, addend
  member_of x19, row_correction
  member_of x20, column_correction
  member_of x9, column
  add x20, x20, x9, lsl #2
10:
  cmp x2, x1
  csel x8, x2, x1, lt
  find_windows
  fill_panel
  whilelt p5.s, xzr, x8
  member_of x24, channels
  member_of x25, weights
  mov x26, #0
  member_of x27, channels_left
11:
  // The instruction sets x28 to the number of channels in this tile of weights, at most 64. The last tile of weights
  // has a multiple of 16 channels.
  add x28, x27, #15
  and x28, x28, #-16
  mov x9, #tile_channels
  cmp x28, x9
  csel x28, x28, x9, lt
  mov x23, #0
12:
  find_channels
  sum_words
  write_outputs
  add x26, x26, x22
  subs x24, x24, x22
  b.le 13f
  add x23, x23, x22
  cmp x23, #tile_channels
  b.lt 12b
  member_of x9, words
  mul x9, x9, x28
  add x25, x25, x9, lsl #2
  sub x27, x27, #tile_channels
  b 11b
13:
  member_of x9, output_stride
  mul x9, x9, x8
  add x6, x6, x9
  add x10, x7, x9
  cmp x7, #0
  csel x7, x7, x10, eq
  subs x2, x2, x8
  b.ne 10b
  stop_streaming
  registers ldp
  add sp, sp, #frame_bytes
  ret
end litebnn_sme2_bconv

#endif

#if defined(__linux__) && defined(__ELF__)
.section .note.GNU-stack, "", %progbits
#endif
