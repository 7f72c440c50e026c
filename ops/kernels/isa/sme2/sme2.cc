// The SME2 instruction set computes popcounts by outer products of words (bconv.S). One call of bconv.S computes a
// thread's whole part of a layer, because entering streaming mode may be slow.
#include "kernels/isa/isa.h"

#if defined(__aarch64__)

#include "kernels/isa/shared/float_pixels.h"
#include "kernels/isa/shared/int8/max_window.h"
#include "kernels/isa/shared/neon64.h"
#include "kernels/isa/shared/output.h"
#include "kernels/isa/shared/tiled_weights.h"
#include "kernels/isa/sme2/bconv.h"
#include "kernels/platform/arm_cpu.h"

namespace litebnn {
namespace {

// The number of pixels in a tile on CPUs whose streaming vectors have 512 bits.
constexpr int32_t kTilePixels = 16;

using Weights = TiledWeights<uint32_t, kTileChannels, 16>;

// Scratch is the memory in which one thread keeps intermediate results. The panel of transposed windows follows Scratch
// in memory.
struct Scratch {
  alignas(64) TilePixels tile;
};

size_t ScratchBytes(int32_t words) {
  constexpr size_t kSpareWords = 3;
  return sizeof(Scratch) + (static_cast<size_t>(words) + kSpareWords) * kMaxLanes * sizeof(uint32_t);
}

void Bconv(const BconvTask& task, int64_t pixel_begin, int64_t pixel_end, int32_t channel_begin, int32_t channel_end) {
  auto* const scratch = static_cast<Scratch*>(task.scratch);
  const int32_t words = task.runs * task.run_words;
  const int64_t row = pixel_begin / task.output_width, column = pixel_begin % task.output_width;
  const bool is_bits = task.output_type == Bconv2dOutputType::kBitpacked;
  const bool is_bytes = task.output_type == Bconv2dOutputType::kInt8;
  const int64_t first =
      is_bits ? pixel_begin * PackedWords(task.output_channels) : OutputIndex(task, pixel_begin, channel_begin);
  const int64_t value_bytes = is_bytes ? sizeof(int8_t) : sizeof(uint32_t);
  Sme2Layer layer = {};
  // For float and int8 outputs, a dot product is `base` plus twice the number of equal bits. For long windows, `base`
  // overflows an int32_t and wraps around. The kernel in bconv.S adds modulo 2^32 too, so the dot product is correct.
  const int64_t all_bits = int64_t{words} * kBitsPerWord;
  layer.base = static_cast<int32_t>(is_bits ? all_bits : task.depth - 2 * all_bits);
  layer.clamp_min = task.clamp_min;
  layer.clamp_max = task.clamp_max;
  layer.low = static_cast<float>(-128 - task.zero_point);
  layer.high = static_cast<float>(127 - task.zero_point);
  layer.zero_point = task.zero_point;
  layer.output_type = static_cast<int64_t>(task.output_type);
  layer.pixels = pixel_end - pixel_begin;
  layer.row = task.input + row * task.row_stride;
  layer.window = layer.row + column * task.pixel_stride;
  layer.row_stride = task.row_stride;
  layer.pixel_stride = task.pixel_stride;
  layer.left_in_row = task.output_width - column;
  layer.output_width = task.output_width;
  layer.runs = task.runs;
  layer.run_words = task.run_words;
  layer.words = words;
  layer.run_offsets = task.run_offsets;
  layer.weights = task.weights + Weights::Bytes(channel_begin, words);
  layer.channels = channel_end - channel_begin;
  layer.channels_left = task.channels - channel_begin;
  layer.multiplier = task.multiplier + channel_begin;
  layer.bias = task.bias + channel_begin;
  layer.threshold = task.threshold + channel_begin;
  layer.output = static_cast<uint8_t*>(task.output) + first * value_bytes;
  layer.output_stride = (is_bits ? PackedWords(task.output_channels) : task.output_channels) * value_bytes;
  layer.first_bit = task.first_channel + channel_begin;
  const float* const addend = task.epilogue.addend;
  layer.addend = addend == nullptr ? nullptr : reinterpret_cast<const uint8_t*>(addend + first);
  layer.rectify_sum = task.epilogue.rectify_sum;
  layer.column = column;
  if (task.corrections != nullptr) {
    layer.corrections = task.corrections + channel_begin;
    layer.row_correction = task.row_correction + row;
    layer.column_correction = task.column_correction;
  }
  layer.panel = reinterpret_cast<uint8_t*>(scratch + 1);
  layer.tile = &scratch->tile;
  litebnn_sme2_bconv(&layer);
}

}  // namespace

const Isa kSme2Isa = {
    .name = "sme2",
    .available = CpuHasSme2,
    .pack_float32_signs = PackFloat32SignsByFours,
    .pack_int8_signs = PackInt8Signs<FourLanes>,
    .pack_int8_comparisons = PackInt8Comparisons<FourLanes>,
    .pack_affine_signs = PackAffineSigns<FourLanes>,
    .max_window = MaxWindow<FourLanes>,
    .max_int8_window = MaxInt8Window,
    .gate_pixels = GatePixels<FourLanes>,
    .tile_pixels = kTilePixels,
    .tile_channels = kTileChannels,
    .macs_per_cycle = 1000,
    .packed_weights_bytes = Weights::PackedBytes,
    .pack_weights = Weights::Pack,
    .scratch_bytes = ScratchBytes,
    .bconv = Bconv,
    .gates = false,
    .adds_int8 = false,
    .int8_conv = Neon64Int8Conv,
};

}  // namespace litebnn

#endif  // __aarch64__
