// The file is the reference implementation of an ISA in plain C++, for any CPU. Every other ISA must compute the same
// bits.
#include <cstring>

#include "kernels/isa/isa.h"
#include "kernels/isa/shared/arithmetic.h"
#include "kernels/isa/shared/float_pixels.h"
#include "kernels/isa/shared/output.h"
#include "kernels/isa/shared/pack_signs.h"
#include "kernels/isa/shared/pixel_walk.h"
#include "kernels/isa/shared/tiled_weights.h"

namespace litebnn {
namespace {

constexpr int32_t kTileChannels = kBitsPerWord;

// Counts bits with arithmetic. On a CPU without a popcount instruction, the compiler's builtin would be a function call
// per word.
int32_t Popcount(uint32_t bits) {
  bits -= bits >> 1 & 0x55555555u;
  bits = (bits & 0x33333333u) + (bits >> 2 & 0x33333333u);
  bits = (bits + (bits >> 4)) & 0x0F0F0F0Fu;
  return static_cast<int32_t>(bits * 0x01010101u >> 24);
}

// A tile of channels is one channel, so the weights of each channel are contiguous.
using Weights = TiledWeights<uint32_t, 1, 1>;

void SumTile(const BconvTask& task, const uint8_t* window, int32_t channel, int32_t channels, int32_t* sums) {
  const int64_t words = int64_t{task.runs} * task.run_words;
  const uint32_t* weight = reinterpret_cast<const uint32_t*>(task.weights) + channel * words;
  for (int32_t i = 0; i < channels; ++i) {
    sums[i] = 0;
    for (int32_t run = 0; run < task.runs; ++run) {
      const auto* input = reinterpret_cast<const uint32_t*>(window + task.run_offsets[run]);
      for (int32_t word = 0; word < task.run_words; ++word) sums[i] += Popcount(input[word] ^ *weight++);
    }
  }
}

// The vectors of MaxInt8Window in shared/int8 take twice as long on a CPU whose registers do not hold 16 bytes.
void MaxInt8Window(const Int8Window& window, int8_t* output) {
  std::memset(output, window.least, static_cast<size_t>(window.channels));
  for (int64_t y = 0; y < window.rows; ++y) {
    const int8_t* tap = window.first + y * window.row_stride;
    for (int64_t x = 0; x < window.columns; ++x, tap += window.channels) {
      for (int32_t c = 0; c < window.channels; ++c) output[c] = Max(output[c], tap[c]);
    }
  }
  for (int32_t c = 0; c < window.channels; ++c) output[c] = Min(output[c], window.most);
}

void Bconv(const BconvTask& task, int64_t pixel_begin, int64_t pixel_end, int32_t channel_begin, int32_t channel_end) {
  WindowWalk walk{task, pixel_begin};
  for (int64_t pixel = pixel_begin; pixel < pixel_end; ++pixel) {
    const uint8_t* window = walk.Next();
    for (int32_t channel = channel_begin; channel < channel_end; channel += kTileChannels) {
      const int32_t channels = Min(kTileChannels, channel_end - channel);
      int32_t sums[kTileChannels];
      SumTile(task, window, channel, channels, sums);
      WriteOutputs<OneLane>(task, pixel, channel, channels, sums);
    }
  }
}

void Int8ConvRows(const Int8ConvTask& task, int64_t begin, int64_t end) {
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

bool Available() { return true; }

}  // namespace

const Int8ConvKernel kPortableInt8Conv = {
    .vector_channels = 1,
    .lane_taps = 4,
    .tap_bytes = 1,
    .offset = 0,
    .macs_per_cycle = 1,
    .rows = Int8ConvRows,
};

const Int8ConvKernel& PortableInt8Conv() { return kPortableInt8Conv; }

const Isa kPortableIsa = {
    .name = "portable",
    .available = Available,
    .pack_float32_signs = PackFloat32Signs<OneLane>,
    .pack_int8_signs = PackInt8Signs<OneLane>,
    .pack_int8_comparisons = PackInt8Comparisons<OneLane>,
    .pack_affine_signs = PackAffineSigns<OneLane>,
    .max_window = MaxWindow<OneLane>,
    .max_int8_window = MaxInt8Window,
    .gate_pixels = GatePixels<OneLane>,
    .tile_pixels = 1,
    .tile_channels = kTileChannels,
    .macs_per_cycle = 16,
    .packed_weights_bytes = Weights::PackedBytes,
    .pack_weights = Weights::Pack,
    .bconv = Bconv,
    .int8_conv = PortableInt8Conv,
};

}  // namespace litebnn
