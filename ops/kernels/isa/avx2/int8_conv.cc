// Int8 convolutions with AVX2. AVX2's multiplication of bytes saturates, so inputs and weights are widened to 16 bits.
#include "kernels/platform/x86_cpu.h"

#if LITEBNN_X86

#include "kernels/isa/avx2/int8_dots.h"

namespace litebnn {
namespace {

struct Dots : EightDots {
  static void Add(Ints& sums, Ints step, Weights weights) {
    sums = _mm256_add_epi32(sums, _mm256_madd_epi16(step, weights));
  }

  template <int kPixels, int kVectors>
  __attribute__((always_inline)) static void AddWindows(const Int8ConvTask& task, const uint8_t* window,
                                                        const uint8_t* weights, Ints (&sums)[kPixels][kVectors]) {
    if constexpr (kPixels == 4 && kVectors == 2) {
      AddRows(task, window, weights, sums);
    } else {
      AddSteps<Dots>(task, window, weights, sums);
    }
  }

  // Does the same as AddSteps. The loop over the steps of a window's row, of which there is at least one, is inline
  // assembly. If GCC orders the instructions, a layer takes up to 6 % longer.
  __attribute__((always_inline)) static void AddRows(const Int8ConvTask& task, const uint8_t* window,
                                                     const uint8_t* weights, Ints (&sums)[4][2]) {
    const ptrdiff_t one = task.pixel_stride, three = 3 * one, vector_bytes = task.vector_bytes;
    Ints s00 = sums[0][0], s01 = sums[0][1], s10 = sums[1][0], s11 = sums[1][1];
    Ints s20 = sums[2][0], s21 = sums[2][1], s30 = sums[3][0], s31 = sums[3][1];
    for (int32_t y = 0; y < task.filter_height; ++y, window += task.frame_row) {
      const uint8_t* step = window;
      int32_t left = task.steps;
// Adds the products of the pixel at `address` to two sums, which are two vectors of channels.
#define LITEBNN_ADD_PIXEL(address, first, second) \
  "vpbroadcastd " address                         \
  ", %%ymm15\n\t"                                 \
  "vpmaddwd %%ymm12, %%ymm15, %%ymm14\n\t"        \
  "vpmaddwd %%ymm13, %%ymm15, %%ymm15\n\t"        \
  "vpaddd %%ymm14, %[" first "], %[" first        \
  "]\n\t"                                         \
  "vpaddd %%ymm15, %[" second "], %[" second "]\n\t"
      __asm__ volatile(
          "1:\n\t"
          "vmovdqa (%[weights]), %%ymm12\n\t"
          "vmovdqa (%[weights],%[vector]), %%ymm13\n\t"
          // clang-format off
          LITEBNN_ADD_PIXEL("(%[step])", "s00", "s01")
          LITEBNN_ADD_PIXEL("(%[step],%[one])", "s10", "s11")
          LITEBNN_ADD_PIXEL("(%[step],%[one],2)", "s20", "s21")
          LITEBNN_ADD_PIXEL("(%[step],%[three])", "s30", "s31")
          // clang-format on
          "add $4, %[step]\n\t"
          "add $32, %[weights]\n\t"
          "dec %[left]\n\t"
          "jnz 1b"
          : [s00] "+x"(s00), [s01] "+x"(s01), [s10] "+x"(s10), [s11] "+x"(s11), [s20] "+x"(s20), [s21] "+x"(s21),
            [s30] "+x"(s30), [s31] "+x"(s31), [step] "+r"(step), [weights] "+r"(weights), [left] "+r"(left)
          : [one] "r"(one), [three] "r"(three), [vector] "r"(vector_bytes)
          : "ymm12", "ymm13", "ymm14", "ymm15", "memory", "cc");
#undef LITEBNN_ADD_PIXEL
    }
    sums[0][0] = s00, sums[0][1] = s01, sums[1][0] = s10, sums[1][1] = s11;
    sums[2][0] = s20, sums[2][1] = s21, sums[3][0] = s30, sums[3][1] = s31;
  }
};

}  // namespace

const Int8ConvKernel kAvx2Int8Conv = {
    .vector_channels = Dots::kLanes,
    .lane_taps = 2,
    .tap_bytes = 2,
    .offset = 0,
    .macs_per_cycle = 24,
    .rows = Int8ConvRows<Dots, 4, 2>,
};

const Int8ConvKernel& Avx2Int8Conv() { return CpuHasAvxVnni() ? kAvxVnniInt8Conv : kAvx2Int8Conv; }

}  // namespace litebnn

#endif  // LITEBNN_X86
