// The functions of this file compute the popcount sums of the windows of four pixels and 32 channels, by the loops of
// sum_windows.S.
#pragma once

#include <arm_neon.h>

#include <cstdint>

#include "kernels/isa/shared/neon_tile.h"

namespace litebnn {

using SumWindowsLoop = void();

// These functions are the inner loops. Each name ends in the number of words in a chunk. Only SumWindows may call these
// functions.
extern "C" SumWindowsLoop litebnn_sum_windows_1, litebnn_sum_windows_2, litebnn_sum_windows_3, litebnn_sum_windows_6;
extern "C" SumWindowsLoop litebnn_sum_windows_in_order_1, litebnn_sum_windows_in_order_2,
    litebnn_sum_windows_in_order_3, litebnn_sum_windows_in_order_6;

namespace {

constexpr int32_t kTilePixels = 4;
// A staged word has this many bytes, because each half-word is broadcast to a vector.
constexpr int32_t kStagedWordBytes = kHalvesPerWord * 16;

// Computes the sums of four windows. After each chunk of the windows, the next of the `increments` is added to the
// window pointers.
inline __attribute__((always_inline)) void SumWindows(SumWindowsLoop* loop, const uint8_t* const* windows,
                                                      const uint8_t* weights, const int64_t* increments,
                                                      uint16x8_t (&sums)[kTilePixels][kTileVectors]) {
  register uint16x8_t v0 __asm__("v0"), v1 __asm__("v1"), v2 __asm__("v2"), v3 __asm__("v3");
  register uint16x8_t v4 __asm__("v4"), v5 __asm__("v5"), v6 __asm__("v6"), v7 __asm__("v7");
  register uint16x8_t v8 __asm__("v8"), v9 __asm__("v9"), v10 __asm__("v10"), v11 __asm__("v11");
  register uint16x8_t v12 __asm__("v12"), v13 __asm__("v13"), v14 __asm__("v14"), v15 __asm__("v15");
  register const uint8_t* x0 __asm__("x0") = windows[0];
  register const uint8_t* x1 __asm__("x1") = windows[1];
  register const uint8_t* x2 __asm__("x2") = windows[2];
  register const uint8_t* x3 __asm__("x3") = windows[3];
  register const uint8_t* x4 __asm__("x4") = weights;
  register const int64_t* x5 __asm__("x5") = increments;
  __asm__ volatile("blr %[loop]"
                   : "=w"(v0), "=w"(v1), "=w"(v2), "=w"(v3), "=w"(v4), "=w"(v5), "=w"(v6), "=w"(v7), "=w"(v8), "=w"(v9),
                     "=w"(v10), "=w"(v11), "=w"(v12), "=w"(v13), "=w"(v14), "=w"(v15), "+r"(x0), "+r"(x1), "+r"(x2),
                     "+r"(x3), "+r"(x4), "+r"(x5)
                   : [loop] "r"(loop)
                   : "x6", "x30", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27",
                     "v28", "v29", "v30", "v31", "cc", "memory");
  // All registers with results of the assembly loop are copied at once, because a function call in between might
  // overwrite them.
  sums[0][0] = v0, sums[0][1] = v1, sums[0][2] = v2, sums[0][3] = v3;
  sums[1][0] = v4, sums[1][1] = v5, sums[1][2] = v6, sums[1][3] = v7;
  sums[2][0] = v8, sums[2][1] = v9, sums[2][2] = v10, sums[2][3] = v11;
  sums[3][0] = v12, sums[3][1] = v13, sums[3][2] = v14, sums[3][3] = v15;
}

}  // namespace
}  // namespace litebnn
