// The file is the reference implementation of int8 convolutions, in plain C++ with exact integers.
#include "kernels/isa/isa.h"
#include "kernels/isa/shared/arithmetic.h"

namespace litebnn {
namespace {

void Rows(const Int8ConvTask& task, int64_t begin, int64_t end) {
  const int32_t row_bytes = task.steps * kInt8StepBytes;
  for (int64_t y = begin; y < end; ++y) {
    for (int64_t x = 0; x < task.output_width; ++x) {
      const uint8_t* const window = task.frame + y * task.row_stride + x * task.pixel_stride;
      int8_t* const output = task.output + (y * task.output_width + x) * task.output_channels;
      for (int32_t channel = 0; channel < task.channels; ++channel) {
        const uint8_t* weights = task.weights + channel * task.vector_bytes;
        int64_t sum = task.bias[channel];
        for (int32_t row = 0; row < task.filter_height; ++row, weights += row_bytes) {
          const uint8_t* const bytes = window + row * task.frame_row;
          for (int32_t i = 0; i < row_bytes; ++i)
            sum += static_cast<int8_t>(bytes[i]) * static_cast<int8_t>(weights[i]);
        }
        const int32_t level = Requantize(sum, task.scales[channel]) + task.zero_point;
        output[channel] = static_cast<int8_t>(Min(Max(level, task.output_min), task.output_max));
      }
    }
  }
}

}  // namespace

const Int8ConvKernel kPortableInt8Conv = {
    .vector_channels = 1,
    .lane_taps = 4,
    .tap_bytes = 1,
    .offset = 0,
    .macs_per_cycle = 1,
    .rows = Rows,
};

const Int8ConvKernel& PortableInt8Conv() { return kPortableInt8Conv; }

}  // namespace litebnn
