// The loops in which 64-bit NEON spends its time: EOR, CNT and UADALP, 128 binary multiply-adds to three instructions. A
// lane is 16 bits of one of 8 output channels; the input comes staged, each 16 bits copied to all lanes, so that nothing
// has to be summed across lanes. Four pixels by 32 channels are summed up in 16 registers.
//
// There are two versions. Out-of-order cores find their order by themselves and are given as few instructions as there
// can be: loads of two and four registers that move their pointer on. In-order cores do nothing beside such a load, so
// theirs are single registers at fixed offsets; and as they wait wherever a result is needed soon, or an instruction
// would be done before an older one, equal instructions stand eight together.
//
// A function sums up windows that are cut into chunks of so many words as its name says; sum_windows.h calls it.
//   x0 to x3   the windows of four pixels: a word is two steps of 16 bytes
//   x4         weights: a word is two steps of four vectors
//   x5         the ways from each chunk's pointer to the next chunk, 0 for the last
//   v0 to v15  the sums, four vectors of a pixel after those of another
// x6 and v16 to v31 are overwritten, and the caller saves v8 to v15 too.

#if defined(__aarch64__)

#include "kernels/isa/shared/function.S"

// Registers are told by their numbers, so that four instructions can be written as one and the next three.
.altmacro

.macro xor to, x, w
  eor v\to\().16b, v\x\().16b, v\w\().16b
.endm

.macro count i
  cnt v\i\().16b, v\i\().16b
.endm

// The first step of all starts the sums: `op` is uaddlp there, else uadalp.
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

// Out of order: v16 to v19 and v20 to v23 are the weights of a word's two steps, v24 to v27 what is counted, v28 and v29
// or v30 and v31 a pixel's two steps.
.macro quad op, x, w, sums
  xor_four 24, \x, \w
  .irpc i, 4567
  count 2\i
  .endr
  add_up_four \op, \sums, 24
.endm

// A chunk's last word moves the pixel's pointer on to the next chunk.
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

// In order: v16 to v19 are the weights of a step, v20 to v23 the four pixels' input, v24 to v31 what is counted. The
// pointers stay at a chunk's first word until its end; `offset` is that of a step's input, and its weights stand at four
// times that.
.set offset, 0

.macro input to, pixel
  ldr q\to, [\pixel, #(offset)]
.endm

.macro weights to, at
  ldr q\to, [x4, #(offset * 4 + \at)]
.endm

// Two pixels. What is given to do besides stands where it takes the least time.
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

// Loads what the next step needs, or at a chunk's end moves on to the next chunk.
.macro step op, is_last
  pair \op, 20, 21, 0, <input 22, x2>, , , , , <input 23, x3>
  .set offset, offset + 16
  .if \is_last
  pair \op, 22, 23, 8, move_on
  .else
  pair \op, 22, 23, 8, <input 20, x0>, <weights 16, 0>, <weights 17, 16>, <weights 18, 32>, <weights 19, 48>, <input 21, x1>
  .endif
.endm

.macro first_step op
  .set offset, 0
  ldr x6, [x5]
  input 20, x0
  weights 16, 0
  weights 17, 16
  weights 18, 32
  weights 19, 48
  input 21, x1
  step \op, 0
.endm

.macro in_order words
begin litebnn_sum_windows_in_order_\words
  first_step uaddlp
  b 2f
  .p2align 4
1:
  first_step uadalp
2:
  .rept \words * 2 - 2
  step uadalp, 0
  .endr
  step uadalp, 1
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
