// The file has the int8 convolutions for 64-bit Arm CPUs without dot product instructions.
#if defined(__aarch64__)

#include "kernels/isa/shared/int8/neon_conv.h"
#include "kernels/platform/arm_cpu.h"

namespace litebnn {

const Int8ConvKernel kNeon64Int8Conv = {
    .vector_channels = LongDots::kLanes,
    .lane_taps = 2,
    .tap_bytes = 1,
    .offset = 0,
    .macs_per_cycle = 8,
    .rows = Int8ConvRows<LongDots, 4, 4>,
};

const Int8ConvKernel& Neon64Int8Conv() { return CpuHasDotProducts() ? kNeon64DotInt8Conv : kNeon64Int8Conv; }

}  // namespace litebnn

#endif  // __aarch64__
