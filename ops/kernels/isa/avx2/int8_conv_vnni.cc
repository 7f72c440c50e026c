// Int8 convolutions with AVX-VNNI, which multiplies unsigned by signed bytes.
#include "kernels/platform/x86_cpu.h"

#if LITEBNN_X86

#include "kernels/isa/avx2/int8_dots.h"

namespace litebnn {
namespace {

struct Dots : EightDots {
  // The function is one instruction, written as inline assembly. With the intrinsic for this instruction, GCC would
  // copy the sums before and after each use.
  static void Add(Ints& sums, Ints step, Weights weights) {
    __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sums) : "x"(step), "x"(weights));
  }

  template <int kPixels, int kVectors>
  __attribute__((always_inline)) static void AddWindows(const Int8ConvTask& task, const uint8_t* window,
                                                        const uint8_t* weights, Ints (&sums)[kPixels][kVectors]) {
    AddSteps<Dots>(task, window, weights, sums);
  }
};

}  // namespace

const Int8ConvKernel kAvxVnniInt8Conv = {
    .vector_channels = Dots::kLanes,
    .lane_taps = 4,
    .tap_bytes = 1,
    .offset = 128,
    .macs_per_cycle = 50,
    .rows = Int8ConvRows<Dots, 6, 2>,
};

}  // namespace litebnn

#endif  // LITEBNN_X86
