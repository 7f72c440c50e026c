// The file has the int8 convolutions for 64-bit Arm CPUs with dot product instructions (SDOT).
#if defined(__aarch64__)

#include "kernels/isa/shared/int8/neon_conv.h"

namespace litebnn {
namespace {

struct Dots : FourDots {
  template <int kPixels, int kVectors>
  __attribute__((always_inline)) static void AddWindows(const Int8ConvTask& task, const uint8_t* window,
                                                        const uint8_t* weights, Ints (&sums)[kPixels][kVectors]) {
    AddStepsByFours<Dots>(task, window, weights, sums);
  }

  template <int kStep, int kVectors>
  __attribute__((always_inline)) static void AddStep(int8x16_t x, const int8x16_t (&w)[kVectors],
                                                     Ints (&sums)[kVectors]) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sums[v] = vdotq_laneq_s32(sums[v], w[v], x, kStep);
  }
};

}  // namespace

const Int8ConvKernel kNeon64DotInt8Conv = {
    .vector_channels = Dots::kLanes,
    .lane_taps = 4,
    .tap_bytes = 1,
    .offset = 0,
    .macs_per_cycle = 28,
    .rows = Int8ConvRows<Dots, 4, 4>,
};

}  // namespace litebnn

#endif  // __aarch64__
