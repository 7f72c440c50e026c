// The loop in which 64-bit NEON spends its time: EOR, CNT and ADD on bytes, 128 binary multiply-adds to three
// instructions. A lane is 16 bits of one of 8 output channels; the input comes staged, each 16 bits copied to all
// lanes, so that nothing has to be summed across lanes until the very end. Four pixels by 32 channels fill 16
// registers.
//
// In assembly, because the order matters to in-order cores: an instruction's operands are made five or more
// instructions before it (five temporaries rotate), and loads come a dozen ahead.
#pragma once

#include <arm_neon.h>

#include <cstdint>

namespace litebnn {
namespace {

constexpr int32_t kTilePixels = 4;
constexpr int32_t kTileVectors = 4;
constexpr int32_t kVectorChannels = 8;
constexpr int32_t kTileChannels = kTileVectors * kVectorChannels;
// A word is two steps of 16 bits.
constexpr int32_t kStagedWordBytes = 32;
constexpr int32_t kWeightsWordBytes = 2 * kTileVectors * 16;
// 8 bits a byte and step: 30 steps sum up to 240.
constexpr int32_t kMaxBlockWords = 15;

// Laid out by hand, an instruction's parts side by side.
// clang-format off
#define LITEBNN_EOR(t, x, w) "eor v" #t ".16b, v" #x ".16b, v" #w ".16b\n"
#define LITEBNN_CNT(t) "cnt v" #t ".16b, v" #t ".16b\n"
#define LITEBNN_CNT_TO(sum, t) "cnt v" #sum ".16b, v" #t ".16b\n"
#define LITEBNN_ADD(sum, t) "add v" #sum ".16b, v" #sum ".16b, v" #t ".16b\n"

// Four channel vectors of one pixel and step: x is its input, w to w3 the weights. Temporaries t to t3 become this
// quad's; t1 to t4 are those of the quad before it, which is counted and added to its sums p to p3. Equal instructions
// stand together where the five temporaries allow it: one that is done before an older one has to wait for that.
#define LITEBNN_QUAD(t, t1, t2, t3, t4, x, w, w1, w2, w3, p, p1, p2, p3) \
  LITEBNN_CNT(t1) LITEBNN_CNT(t2) LITEBNN_CNT(t3) LITEBNN_CNT(t4)        \
  LITEBNN_EOR(t, x, w) LITEBNN_ADD(p, t1)                                \
  LITEBNN_EOR(t1, x, w1) LITEBNN_ADD(p1, t2)                             \
  LITEBNN_EOR(t2, x, w2) LITEBNN_ADD(p2, t3)                             \
  LITEBNN_EOR(t3, x, w3) LITEBNN_ADD(p3, t4)
// The same where the quad before it starts its sums: counted straight into them, never added.
#define LITEBNN_QUAD_AFTER_START(t, t1, t2, t3, t4, x, w, w1, w2, w3, p, p1, p2, p3)         \
  LITEBNN_CNT_TO(p, t1) LITEBNN_CNT_TO(p1, t2) LITEBNN_CNT_TO(p2, t3) LITEBNN_CNT_TO(p3, t4) \
  LITEBNN_QUAD_ENTER(t, t1, t2, t3, x, w, w1, w2, w3)
// The first quad of all.
#define LITEBNN_QUAD_ENTER(t, t1, t2, t3, x, w, w1, w2, w3) \
  LITEBNN_EOR(t, x, w) LITEBNN_EOR(t1, x, w1) LITEBNN_EOR(t2, x, w2) LITEBNN_EOR(t3, x, w3)

// A word of a pixel's input: the only one of a turn, or the first or second of two. Moving the pointer costs in-order
// cores time.
#define LITEBNN_LOAD_ONLY(pixel, a, b) "ldp q" #a ", q" #b ", [%[x" #pixel "]], #32\n"
#define LITEBNN_LOAD_FIRST(pixel, a, b) "ldp q" #a ", q" #b ", [%[x" #pixel "]], #64\n"
#define LITEBNN_LOAD_SECOND(pixel, a, b) "ldp q" #a ", q" #b ", [%[x" #pixel "], #-32]\n"
#define LITEBNN_LOAD_W0 "ld1 {v16.16b, v17.16b, v18.16b, v19.16b}, [%[w]], #64\n"
#define LITEBNN_LOAD_W1 "ld1 {v20.16b, v21.16b, v22.16b, v23.16b}, [%[w]], #64\n"

// One word of four pixels behind its first quad. a to e are the temporaries as the first quad has named them, x to z the
// input registers: x and y hold pixel 0. `next` loads what the word after this one starts with.
#define LITEBNN_WORD(load, a, b, c, d, e, x, y, z, next)       \
  load(1, z, x)                                                \
  LITEBNN_QUAD(e, a, b, c, d, y, 20, 21, 22, 23, 0, 1, 2, 3)   \
  LITEBNN_QUAD(d, e, a, b, c, z, 16, 17, 18, 19, 0, 1, 2, 3)   \
  load(2, y, z)                                                \
  LITEBNN_QUAD(c, d, e, a, b, x, 20, 21, 22, 23, 4, 5, 6, 7)   \
  LITEBNN_QUAD(b, c, d, e, a, y, 16, 17, 18, 19, 4, 5, 6, 7)   \
  load(3, x, y)                                                \
  LITEBNN_QUAD(a, b, c, d, e, z, 20, 21, 22, 23, 8, 9, 10, 11) \
  LITEBNN_QUAD(e, a, b, c, d, x, 16, 17, 18, 19, 8, 9, 10, 11) \
  next                                                         \
  LITEBNN_QUAD(d, e, a, b, c, y, 20, 21, 22, 23, 12, 13, 14, 15)
#define LITEBNN_WORD_START(load, a, b, c, d, e, x, y, z, next)             \
  load(1, z, x)                                                            \
  LITEBNN_QUAD_AFTER_START(e, a, b, c, d, y, 20, 21, 22, 23, 0, 1, 2, 3)   \
  LITEBNN_QUAD(d, e, a, b, c, z, 16, 17, 18, 19, 0, 1, 2, 3)               \
  load(2, y, z)                                                            \
  LITEBNN_QUAD_AFTER_START(c, d, e, a, b, x, 20, 21, 22, 23, 4, 5, 6, 7)   \
  LITEBNN_QUAD(b, c, d, e, a, y, 16, 17, 18, 19, 4, 5, 6, 7)               \
  load(3, x, y)                                                            \
  LITEBNN_QUAD_AFTER_START(a, b, c, d, e, z, 20, 21, 22, 23, 8, 9, 10, 11) \
  LITEBNN_QUAD(e, a, b, c, d, x, 16, 17, 18, 19, 8, 9, 10, 11)             \
  next                                                                     \
  LITEBNN_QUAD_AFTER_START(d, e, a, b, c, y, 20, 21, 22, 23, 12, 13, 14, 15)
// After the last word: d to b are the last quad's temporaries.
#define LITEBNN_LEAVE(d, e, a, b)                             \
  LITEBNN_CNT(d) LITEBNN_CNT(e) LITEBNN_CNT(a) LITEBNN_CNT(b) \
  LITEBNN_ADD(12, d) LITEBNN_ADD(13, e) LITEBNN_ADD(14, a) LITEBNN_ADD(15, b)

#define LITEBNN_LOADS(load) load(0, 29, 30) LITEBNN_LOAD_W0 LITEBNN_LOAD_W1
#define LITEBNN_NEXT_LOADS LITEBNN_LOAD_W0 LITEBNN_LOAD_SECOND(0, 31, 29)
#define LITEBNN_SECOND_WORD                                             \
  LITEBNN_LOAD_W1                                                       \
  LITEBNN_QUAD(26, 27, 28, 24, 25, 31, 16, 17, 18, 19, 12, 13, 14, 15)  \
  LITEBNN_WORD(LITEBNN_LOAD_SECOND, 26, 27, 28, 24, 25, 31, 29, 30, "") \
  LITEBNN_LEAVE(24, 25, 26, 27)
#define LITEBNN_ENTER LITEBNN_QUAD_ENTER(24, 25, 26, 27, 29, 16, 17, 18, 19)

#define LITEBNN_NEXT_PART                \
  "ldp %[n], %[step], [%[parts]], #16\n" \
  "add %[x0], %[x0], %[step]\n"          \
  "add %[x1], %[x1], %[step]\n"          \
  "add %[x2], %[x2], %[step]\n"          \
  "add %[x3], %[x3], %[step]\n"

#define LITEBNN_SUM_BLOCK                                                                    \
  LITEBNN_NEXT_PART                                                                          \
  "tbz %[n], #0, 2f\n"                                                                       \
  LITEBNN_LOADS(LITEBNN_LOAD_ONLY) LITEBNN_ENTER                                             \
  LITEBNN_WORD_START(LITEBNN_LOAD_ONLY, 24, 25, 26, 27, 28, 29, 30, 31, "")                  \
  LITEBNN_LEAVE(27, 28, 24, 25)                                                              \
  "subs %[n], %[n], #1\n"                                                                    \
  "b 3f\n"                                                                                   \
  "2:\n"                                                                                     \
  LITEBNN_LOADS(LITEBNN_LOAD_FIRST) LITEBNN_ENTER                                            \
  LITEBNN_WORD_START(LITEBNN_LOAD_FIRST, 24, 25, 26, 27, 28, 29, 30, 31, LITEBNN_NEXT_LOADS) \
  LITEBNN_SECOND_WORD                                                                        \
  "subs %[n], %[n], #2\n"                                                                    \
  "3:\n"                                                                                     \
  "b.eq 5f\n"                                                                                \
  "4:\n"                                                                                     \
  LITEBNN_LOADS(LITEBNN_LOAD_FIRST) LITEBNN_ENTER                                            \
  LITEBNN_WORD(LITEBNN_LOAD_FIRST, 24, 25, 26, 27, 28, 29, 30, 31, LITEBNN_NEXT_LOADS)       \
  LITEBNN_SECOND_WORD                                                                        \
  "subs %[n], %[n], #2\n"                                                                    \
  "b.ne 4b\n"                                                                                \
  "5:\n"                                                                                     \
  "subs %w[count], %w[count], #1\n"                                                          \
  "b.eq 6f\n"                                                                                \
  LITEBNN_NEXT_PART                                                                          \
  "tbz %[n], #0, 4b\n"                                                                       \
  LITEBNN_LOADS(LITEBNN_LOAD_ONLY) LITEBNN_ENTER                                             \
  LITEBNN_WORD(LITEBNN_LOAD_ONLY, 24, 25, 26, 27, 28, 29, 30, 31, "")                        \
  LITEBNN_LEAVE(27, 28, 24, 25)                                                              \
  "subs %[n], %[n], #1\n"                                                                    \
  "b.ne 4b\n"                                                                                \
  "b 5b\n"                                                                                   \
  "6:\n"

// Two vectors of byte sums become 16 bit sums in memory, or are added to those.
#define LITEBNN_STORE_SUMS(a, b, offset) \
  "uaddlp v" #a ".8h, v" #a ".16b\n"     \
  "uaddlp v" #b ".8h, v" #b ".16b\n"     \
  "stp q" #a ", q" #b ", [%[sums], #" #offset "]\n"
#define LITEBNN_ADD_SUMS(a, b, offset)      \
  "ldp q16, q17, [%[sums], #" #offset "]\n" \
  "uadalp v16.8h, v" #a ".16b\n"            \
  "uadalp v17.8h, v" #b ".16b\n"            \
  "stp q16, q17, [%[sums], #" #offset "]\n"
#define LITEBNN_ALL_SUMS(store)                                  \
  store(0, 1, 0) store(2, 3, 32) store(4, 5, 64) store(6, 7, 96) \
  store(8, 9, 128) store(10, 11, 160) store(12, 13, 192) store(14, 15, 224)

#define LITEBNN_OPERANDS                                                                                               \
  [x0] "+r"(x0), [x1] "+r"(x1), [x2] "+r"(x2), [x3] "+r"(x3), [w] "+r"(weights), [parts] "+r"(parts),                  \
      [count] "+r"(count), [n] "=&r"(n), [step] "=&r"(step)                                                            \
      : [sums] "r"(sums)                                                                                               \
      : "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16",   \
        "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31", "cc", \
        "memory"

// clang-format on

// A stretch of words that lie side by side, `step` bytes behind the end of the one before.
struct RunPart {
  int64_t words;
  int64_t step;
};

// Where four pixels read their input.
struct Windows {
  const uint8_t *x0, *x1, *x2, *x3;
};

// Sums up `count` parts, of at most kMaxBlockWords words together, of four pixels and stores them as
// sums[pixel][vector], or adds them to what is there. Windows and weights move on.
template <bool kFirst>
inline __attribute__((always_inline)) void SumBlock(const RunPart* parts, int32_t count, Windows* windows,
                                                    const uint8_t*& weights, uint16x8_t* sums) {
  const uint8_t *x0 = windows->x0, *x1 = windows->x1, *x2 = windows->x2, *x3 = windows->x3;
  int64_t n, step;
  if (kFirst) {
    __asm__ volatile(LITEBNN_SUM_BLOCK LITEBNN_ALL_SUMS(LITEBNN_STORE_SUMS) : LITEBNN_OPERANDS);
  } else {
    __asm__ volatile(LITEBNN_SUM_BLOCK LITEBNN_ALL_SUMS(LITEBNN_ADD_SUMS) : LITEBNN_OPERANDS);
  }
  *windows = {x0, x1, x2, x3};
}

}  // namespace
}  // namespace litebnn
