// Popcount sums of the windows of four pixels and 32 channels, by the loops of sum_windows.S.
#pragma once

#include <arm_neon.h>

#include <cstdint>

namespace litebnn {

extern "C" {
// By the number of words in a chunk. To be called by SumWindows only.
void litebnn_sum_windows_1();
void litebnn_sum_windows_2();
void litebnn_sum_windows_3();
void litebnn_sum_windows_6();
void litebnn_sum_windows_in_order_1();
void litebnn_sum_windows_in_order_2();
void litebnn_sum_windows_in_order_3();
void litebnn_sum_windows_in_order_6();
}

using SumWindowsFunction = void (*)();

namespace {

constexpr int32_t kTilePixels = 4;
constexpr int32_t kTileVectors = 4;
constexpr int32_t kVectorChannels = 8;
constexpr int32_t kTileChannels = kTileVectors * kVectorChannels;
// A word is two steps of 16 bits.
constexpr int32_t kStagedWordBytes = 32;
constexpr int32_t kWeightsWordBytes = 2 * kTileVectors * 16;

// `steps` lead from a chunk's pointer to the next chunk. For each vector of channels it calls writer.Begin<vector>(),
// then writer.Write<vector, pixel>(sums) for the four pixels.
template <typename Writer>
inline __attribute__((always_inline)) void SumWindows(SumWindowsFunction function, const uint8_t* const* windows,
                                                      const uint8_t* weights, const int64_t* steps, Writer& writer) {
  register uint16x8_t v0 __asm__("v0"), v1 __asm__("v1"), v2 __asm__("v2"), v3 __asm__("v3");
  register uint16x8_t v4 __asm__("v4"), v5 __asm__("v5"), v6 __asm__("v6"), v7 __asm__("v7");
  register uint16x8_t v8 __asm__("v8"), v9 __asm__("v9"), v10 __asm__("v10"), v11 __asm__("v11");
  register uint16x8_t v12 __asm__("v12"), v13 __asm__("v13"), v14 __asm__("v14"), v15 __asm__("v15");
  register const uint8_t* x0 __asm__("x0") = windows[0];
  register const uint8_t* x1 __asm__("x1") = windows[1];
  register const uint8_t* x2 __asm__("x2") = windows[2];
  register const uint8_t* x3 __asm__("x3") = windows[3];
  register const uint8_t* x4 __asm__("x4") = weights;
  register const int64_t* x5 __asm__("x5") = steps;
  __asm__ volatile("blr %[function]"
                   : "=w"(v0), "=w"(v1), "=w"(v2), "=w"(v3), "=w"(v4), "=w"(v5), "=w"(v6), "=w"(v7), "=w"(v8), "=w"(v9),
                     "=w"(v10), "=w"(v11), "=w"(v12), "=w"(v13), "=w"(v14), "=w"(v15), "+r"(x0), "+r"(x1), "+r"(x2),
                     "+r"(x3), "+r"(x4), "+r"(x5)
                   : [function] "r"(function)
                   : "x6", "x30", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27",
                     "v28", "v29", "v30", "v31", "cc", "memory");
  // At once, as a register holds what the loops left in it only until something else is called.
  const uint16x8_t s0 = v0, s1 = v1, s2 = v2, s3 = v3, s4 = v4, s5 = v5, s6 = v6, s7 = v7;
  const uint16x8_t s8 = v8, s9 = v9, s10 = v10, s11 = v11, s12 = v12, s13 = v13, s14 = v14, s15 = v15;
  writer.template Begin<0>();
  writer.template Write<0, 0>(s0);
  writer.template Write<0, 1>(s4);
  writer.template Write<0, 2>(s8);
  writer.template Write<0, 3>(s12);
  writer.template Begin<1>();
  writer.template Write<1, 0>(s1);
  writer.template Write<1, 1>(s5);
  writer.template Write<1, 2>(s9);
  writer.template Write<1, 3>(s13);
  writer.template Begin<2>();
  writer.template Write<2, 0>(s2);
  writer.template Write<2, 1>(s6);
  writer.template Write<2, 2>(s10);
  writer.template Write<2, 3>(s14);
  writer.template Begin<3>();
  writer.template Write<3, 0>(s3);
  writer.template Write<3, 1>(s7);
  writer.template Write<3, 2>(s11);
  writer.template Write<3, 3>(s15);
}

}  // namespace
}  // namespace litebnn
