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

// Out of order: v16 to v19 and v20 to v23 are the weights of a word's two steps, v24 to v27 what is counted, v28 and v29
// or v30 and v31 a pixel's two steps. The first step of all starts the sums: `add` is uaddlp there, else uadalp.
.macro quad add, x, w, w1, w2, w3, p, p1, p2, p3
  eor v24.16b, v\x\().16b, v\w\().16b
  eor v25.16b, v\x\().16b, v\w1\().16b
  eor v26.16b, v\x\().16b, v\w2\().16b
  eor v27.16b, v\x\().16b, v\w3\().16b
  cnt v24.16b, v24.16b
  cnt v25.16b, v25.16b
  cnt v26.16b, v26.16b
  cnt v27.16b, v27.16b
  \add v\p\().8h, v24.16b
  \add v\p1\().8h, v25.16b
  \add v\p2\().8h, v26.16b
  \add v\p3\().8h, v27.16b
.endm

// A chunk's last word moves the pixel's pointer on to the next chunk.
.macro pixel add, is_last, pointer, a, b, p, p1, p2, p3
  .if \is_last
  ld1 {v\a\().16b, v\b\().16b}, [\pointer], x6
  .else
  ldp q\a, q\b, [\pointer], #32
  .endif
  quad \add, \a, 16, 17, 18, 19, \p, \p1, \p2, \p3
  quad uadalp, \b, 20, 21, 22, 23, \p, \p1, \p2, \p3
.endm

.macro word add, is_last
  ld1 {v16.16b, v17.16b, v18.16b, v19.16b}, [x4], #64
  ld1 {v20.16b, v21.16b, v22.16b, v23.16b}, [x4], #64
  pixel \add, \is_last, x0, 28, 29, 0, 1, 2, 3
  pixel \add, \is_last, x1, 30, 31, 4, 5, 6, 7
  pixel \add, \is_last, x2, 28, 29, 8, 9, 10, 11
  pixel \add, \is_last, x3, 30, 31, 12, 13, 14, 15
.endm

.macro define name
  .globl \name
  .hidden \name
  .type \name, %function
  .p2align 4
\name\():
.endm

.macro end name
  .size \name, . - \name
.endm

.macro out_of_order words
define litebnn_sum_windows_\words
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
// pointers stay at a chunk's first word until its end; `offset` is that of a step's input, and its weights stand at four times that.
.set offset, 0

// What stands between the instructions of two pixels, where it takes the least time.
.macro load_other_pixels place
  .if \place == 0
  ldr q22, [x2, #(offset)]
  .elseif \place == 5
  ldr q23, [x3, #(offset)]
  .endif
.endm

.macro load_step place
  .if \place == 0
  ldr q20, [x0, #(offset)]
  .elseif \place == 1
  ldr q16, [x4, #(offset * 4)]
  .elseif \place == 2
  ldr q17, [x4, #(offset * 4 + 16)]
  .elseif \place == 3
  ldr q18, [x4, #(offset * 4 + 32)]
  .elseif \place == 4
  ldr q19, [x4, #(offset * 4 + 48)]
  .else
  ldr q21, [x1, #(offset)]
  .endif
.endm

.macro move_on place
  .if \place == 0
  add x0, x0, x6
  add x1, x1, x6
  add x2, x2, x6
  add x3, x3, x6
  add x4, x4, #(offset * 4)
  add x5, x5, #8
  .endif
.endm

.macro pair add, between, x, y, p, p1, p2, p3, p4, p5, p6, p7
  eor v24.16b, v\x\().16b, v16.16b
  eor v25.16b, v\x\().16b, v17.16b
  eor v26.16b, v\x\().16b, v18.16b
  eor v27.16b, v\x\().16b, v19.16b
  eor v28.16b, v\y\().16b, v16.16b
  eor v29.16b, v\y\().16b, v17.16b
  eor v30.16b, v\y\().16b, v18.16b
  eor v31.16b, v\y\().16b, v19.16b
  \between 0
  cnt v24.16b, v24.16b
  \between 1
  cnt v25.16b, v25.16b
  \between 2
  cnt v26.16b, v26.16b
  \between 3
  cnt v27.16b, v27.16b
  \between 4
  cnt v28.16b, v28.16b
  cnt v29.16b, v29.16b
  cnt v30.16b, v30.16b
  cnt v31.16b, v31.16b
  \add v\p\().8h, v24.16b
  \add v\p1\().8h, v25.16b
  \add v\p2\().8h, v26.16b
  \add v\p3\().8h, v27.16b
  \add v\p4\().8h, v28.16b
  \add v\p5\().8h, v29.16b
  \add v\p6\().8h, v30.16b
  \add v\p7\().8h, v31.16b
  \between 5
.endm

// Then comes what the next step needs, or at a chunk's end the move to the next chunk.
.macro step add, then
  pair \add, load_other_pixels, 20, 21, 0, 1, 2, 3, 4, 5, 6, 7
  .set offset, offset + 16
  pair \add, \then, 22, 23, 8, 9, 10, 11, 12, 13, 14, 15
.endm

.macro first_step add
  .set offset, 0
  ldr x6, [x5]
  .irp place, 0, 1, 2, 3, 4, 5
  load_step \place
  .endr
  step \add, load_step
.endm

.macro in_order words
define litebnn_sum_windows_in_order_\words
  first_step uaddlp
  b 2f
  .p2align 4
1:
  first_step uadalp
2:
  .rept \words * 2 - 2
  step uadalp, load_step
  .endr
  step uadalp, move_on
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
