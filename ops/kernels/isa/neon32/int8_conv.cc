// The file has the int8 convolutions for 32-bit Arm with NEON.
#if defined(__arm__)

#include "kernels/isa/shared/int8/neon_conv.h"

namespace litebnn {

const Int8ConvKernel kNeon32Int8Conv = {
    .vector_channels = LongDots::kLanes,
    .lane_taps = 2,
    .tap_bytes = 1,
    .offset = 0,
    .macs_per_cycle = 6,
    .rows = Int8ConvRows<LongDots, 2, 4>,
};

const Int8ConvKernel& Neon32Int8Conv() { return kNeon32Int8Conv; }

}  // namespace litebnn

#endif  // __arm__
