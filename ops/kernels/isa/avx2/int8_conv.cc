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
    AddSteps<Dots>(task, window, weights, sums);
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
