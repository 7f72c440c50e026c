// The inner loops of 64-bit NEON do 128 binary multiply-adds by three instructions: EOR, CNT and UADALP. Each 16-bit
// lane of a vector belongs to one of 8 output channels. Each half-word of the staged input is broadcast to all lanes,
// so that no sum crosses lanes. The sums of four pixels by 32 channels fill 16 registers.
//
// There are two versions of each inner loop. Out-of-order cores reorder instructions themselves. The version for these
// cores has the fewest instructions: loads of two and four registers that advance the pointer. In-order cores do
// nothing in parallel with such a load, so the version for in-order cores loads single registers at fixed offsets.
// In-order cores also stall if a result is needed soon, or if an instruction would complete before an older one. Equal
// instructions are therefore grouped by eight.
//
// Each function computes the sums of windows that are cut into chunks. The number in its name is the number of words in
// a chunk. Only sum_windows.h calls the functions. They take their arguments in these registers:
//   x0 to x3   windows of four pixels: two half-words of 16 bytes per word
//   x4         weights: two half-words of four vectors per word
//   x5         pointer increments from each chunk to the next, 0 after the last
//   v0 to v15  sums: four vectors per pixel
// All functions of this file overwrite x6 and v16 to v31. Their caller saves v8 to v15.

#if defined(__aarch64__)

#include "kernels/isa/shared/function.S"

// Register numbers are macro arguments, so that one macro can expand to four instructions on consecutive registers.
.altmacro

.macro xor to, x, w
  eor v\to\().16b, v\x\().16b, v\w\().16b
.endm

.macro count i
  cnt v\i\().16b, v\i\().16b
.endm

// A window's first half-word starts the sums with uaddlp. All further half-words add to the sums with uadalp.
.macro add_up op, sum, counts
  \op v\sum\().8h, v\counts\().16b
.endm

.macro xor_four to, x, w
  .irpc i, 0123
  xor %(\to + \i), \x, %(\w + \i)
  .endr
.endm

.macro add_up_four op, sums, counts
  .irpc i, 0123
  add_up \op, %(\sums + \i), %(\counts + \i)
  .endr
.endm

// The following macros are the version for out-of-order cores. Registers v16 to v19 are the weights of a word's first
// half-word, v20 to v23 those of its second half-word. Registers v24 to v27 are popcounts. Registers v28 and v29, or
// v30 and v31, are the two half-words of a pixel's input.
.macro quad op, x, w, sums
  xor_four 24, \x, \w
  .irpc i, 4567
  count 2\i
  .endr
  add_up_four \op, \sums, 24
.endm

// Loads one word of a pixel's window. For each channel, adds the number of bits in which the word differs from the
// channel's weights to the channel's sum. After the last word of a chunk, the pointer advances to the next chunk.
.macro pixel op, is_last, pointer, a, b, sums
  .if \is_last
  ld1 {v\a\().16b, v\b\().16b}, [\pointer], x6
  .else
  ldp q\a, q\b, [\pointer], #32
  .endif
  quad \op, \a, 16, \sums
  quad uadalp, \b, 20, \sums
.endm

.macro word op, is_last
  ld1 {v16.16b, v17.16b, v18.16b, v19.16b}, [x4], #64
  ld1 {v20.16b, v21.16b, v22.16b, v23.16b}, [x4], #64
  pixel \op, \is_last, x0, 28, 29, 0
  pixel \op, \is_last, x1, 30, 31, 4
  pixel \op, \is_last, x2, 28, 29, 8
  pixel \op, \is_last, x3, 30, 31, 12
.endm

.macro out_of_order words
begin litebnn_sum_windows_\words
  ldr x6, [x5], #8
  word uaddlp, (\words==1)
  b 2f
  .p2align 4
1:
  ldr x6, [x5], #8
  word uadalp, (\words==1)
2:
  .if \words > 1
  .rept \words - 2
  word uadalp, 0
  .endr
  word uadalp, 1
  .endif
  cbnz x6, 1b
  ret
end litebnn_sum_windows_\words
.endm

// The following macros are the version for in-order cores. Registers v16 to v19 are the weights of a half-word, v20 to
// v23 the input of four pixels, v24 to v31 popcounts. Window pointers stay at a chunk's first word until the chunk
// ends. The symbol `offset` is the input's offset in bytes from the window pointers. The weights are at four
// times `offset`.
.set offset, 0

.macro input to, pixel
  ldr q\to, [\pixel, #(offset)]
.endm

.macro weights to, at
  ldr q\to, [x4, #(offset * 4 + \at)]
.endm

// The macro adds the popcounts of a half-word to the sums of two pixels. The arguments do0 to do5 are other
// instructions, which the macro inserts at positions where they take the least time.
.macro pair op, x, y, sums, do0, do1, do2, do3, do4, do5
  xor_four 24, \x, 16
  xor_four 28, \y, 16
  \do0
  count 24
  \do1
  count 25
  \do2
  count 26
  \do3
  count 27
  \do4
  .irp i, 28, 29, 30, 31
  count \i
  .endr
  add_up_four \op, \sums, 24
  add_up_four \op, %(\sums + 4), 28
  \do5
.endm

.macro move_on
  .irpc i, 0123
  add x\i, x\i, x6
  .endr
  add x4, x4, #(offset * 4)
  add x5, x5, #8
.endm

// The macro adds the popcounts of a half-word to the sums of four pixels. It also loads the operands of the next
// half-word. After the last half-word of a chunk (a fixed number of words of a window), it advances to the next chunk.
.macro half op, is_last
  pair \op, 20, 21, 0, <input 22, x2>, , , , , <input 23, x3>
  .set offset, offset + 16
  .if \is_last
  pair \op, 22, 23, 8, move_on
  .else
  pair \op, 22, 23, 8, <input 20, x0>, <weights 16, 0>, <weights 17, 16>, <weights 18, 32>, <weights 19, 48>, <input 21, x1>
  .endif
.endm

.macro first_half op
  .set offset, 0
  ldr x6, [x5]
  input 20, x0
  weights 16, 0
  weights 17, 16
  weights 18, 32
  weights 19, 48
  input 21, x1
  half \op, 0
.endm

.macro in_order words
begin litebnn_sum_windows_in_order_\words
  first_half uaddlp
  b 2f
  .p2align 4
1:
  first_half uadalp
2:
  .rept \words * 2 - 2
  half uadalp, 0
  .endr
  half uadalp, 1
  cbnz x6, 1b
  ret
end litebnn_sum_windows_in_order_\words
.endm

.text
.irp words, 1, 2, 3, 6
out_of_order \words
in_order \words
.endr

#endif

#if defined(__linux__) && defined(__ELF__)
.section .note.GNU-stack, "", %progbits
#endif
