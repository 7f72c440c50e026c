// The file has the SME2 instructions of bconv.S, encoded as words for assemblers that do not know them, such as
// binutils 2.40. If LITEBNN_SME2_MNEMONICS is defined, the instructions are written as mnemonics, so that a test can
// check the words with a newer assembler.
//
// The registers za0 to za3 are tiles of 32-bit elements. An argument that stands for four consecutive vectors is the
// number of the first one.

#if defined(LITEBNN_SME2_MNEMONICS)
#define SME2(word, ...) __VA_ARGS__
#else
#define SME2(word, ...) .inst word
#endif

// The macro enables both ZA storage and streaming mode.
.macro start_streaming
  SME2(0xd503477f, smstart)
.endm

.macro stop_streaming
  SME2(0xd503467f, smstop)
.endm

.macro clear_tiles
  SME2(0xc00800ff, zero {za})
.endm

.macro streaming_bytes to
  SME2(0x04bf5820 | \to, rdsvl x\to\(), #1)
.endm

// The macro stores row w12 of ZA at the address in a register.
.macro save_row to
  SME2(0xe1200000 | \to << 5, str za[w12, 0], [x\to\()])
.endm

// The macro loads row w12 + `i` of za0.
.macro load_tile_row i, from, index
  SME2(0xe0801800 | \index << 16 | \from << 5 | \i, ld1w {za0h.s[w12, \i\()]}, p6/z, [x\from\(), x\index\(), lsl #2])
.endm

// The macro copies columns w12 to w12 + 3 of za0 to z0 to z3.
.macro read_tile_columns
  SME2(0xc0868400, mova {z0.s-z3.s}, za0v.s[w12, 0:3])
.endm

// The macro copies rows w12 to w12 + 3 of ZA to z0 to z3. These rows are row w12 / 4 of each of the tiles za0 to za3.
.macro read_row_of_tiles
  SME2(0xc0060400, mova {z0.b-z3.b}, za0h.b[w12, 0:3])
.endm

.macro count_agreeing tile, columns, a, b
  SME2(0x80801408 | \b << 16 | \columns << 13 | \a << 5 | \tile, bmopa za\tile\().s, p5/m, p\columns\()/m, z\a\().s, z\b\().s)
.endm

// The macros set a predicate, pn8 or pn9, that selects elements of four vectors.
.macro all_of_four
  SME2(0x25a07810, ptrue pn8.s)
.endm

.macro first_of_four count
  SME2(0x25a067f1 | \count << 16, whilelt pn9.s, xzr, x\count\(), vlx4)
.endm

.macro load_four to, last, elements, from
  SME2(0xa040c000 | (\elements - 8) << 10 | \from << 5 | \to, ld1w {z\to\().s-z\last\().s}, pn\elements\()/z, [x\from\()])
.endm

.macro load_four_at to, last, elements, from, index
  SME2(0xa000c000 | \index << 16 | (\elements - 8) << 10 | \from << 5 | \to, ld1w {z\to\().s-z\last\().s}, pn\elements\()/z, [x\from\(), x\index\(), lsl #2])
.endm

// The macro stores z0 to z3.
.macro store_four elements, to
  SME2(0xa060c000 | (\elements - 8) << 10 | \to << 5, st1w {z0.s-z3.s}, pn\elements\(), [x\to\()])
.endm

.macro clamp_integers low, high
  SME2(0xc1a0cc00 | \high << 16 | \low << 5, sclamp {z0.s-z3.s}, z\low\().s, z\high\().s)
.endm

.macro clamp_floats low, high
  SME2(0xc1a0c800 | \high << 16 | \low << 5, fclamp {z0.s-z3.s}, z\low\().s, z\high\().s)
.endm

.macro integers_to_floats
  SME2(0xc132e000, scvtf {z0.s-z3.s}, {z0.s-z3.s})
.endm

// The macro rounds floats to integers, halves away from zero.
.macro round_floats
  SME2(0xc1bce000, frinta {z0.s-z3.s}, {z0.s-z3.s})
.endm

.macro floats_to_integers
  SME2(0xc131e000, fcvtzs {z0.s-z3.s}, {z0.s-z3.s})
.endm

.macro add_to_four value
  SME2(0xc1a0ab00 | \value << 16, add {z0.s-z3.s}, {z0.s-z3.s}, z\value\().s)
.endm

// The macro narrows the elements of z0 to z3 to bytes in z0.
.macro narrow_to_bytes
  SME2(0xc133e000, sqcvt z0.b, {z0.s-z3.s})
.endm
