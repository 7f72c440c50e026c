// AVX-512 with VPOPCNTDQ. Weights and input stay as they are but for the order of the weights, and sums in registers
// from a window's first word to its last.
#include "kernels/platform/x86_cpu.h"

#if LITEBNN_X86

#include "kernels/isa/avx2/lanes.h"
#include "kernels/isa/avx512/inner_loop.h"
#include "kernels/isa/avx512/lanes.h"
#include "kernels/isa/isa.h"
#include "kernels/isa/shared/float_pixels.h"
#include "kernels/isa/shared/output.h"
#include "kernels/isa/shared/pack_signs.h"
#include "kernels/isa/shared/pixel_walk.h"
#include "kernels/isa/shared/tiled_weights.h"

namespace litebnn {
namespace {

constexpr int kTilePixels = 6;
constexpr int32_t kTileVectors = 4;
constexpr int32_t kTileChannels = kTileVectors * kVectorChannels;
// Pixels whose windows stay in the L1 cache while all channels pass over them.
constexpr int64_t kBlockPixels = 10 * kTilePixels;

// Floats hold every whole number up to it.
constexpr int32_t kMaxFloatDepth = 1 << 24;

int32_t Vectors(int32_t channels) { return (channels + kVectorChannels - 1) / kVectorChannels; }

using Weights = TiledWeights<uint32_t, kTileChannels, kVectorChannels>;

// Inlined, so that the sums are never anywhere but in registers.
template <int kPixels, int kVectors>
__attribute__((always_inline)) inline TileSums<kPixels, kVectors> SumsOf(const BconvTask& task,
                                                                         const uint8_t* const* windows,
                                                                         const uint32_t* weights) {
  TileSums<kPixels, kVectors> tile;
  for (int32_t run = 0; run < task.runs; ++run) {
    const uint32_t* input[kPixels];
#pragma GCC unroll 8
    for (int p = 0; p < kPixels; ++p) {
      input[p] = reinterpret_cast<const uint32_t*>(windows[p] + task.run_offsets[run]);
    }
    tile.Add(input, weights, task.run_words);
    weights += task.run_words * kVectors * kVectorChannels;
  }
  return tile;
}

// sums[pixel][kTileChannels] of kPixels pixels.
template <int kPixels, int kVectors>
void SumTile(const BconvTask& task, const uint8_t* const* windows, const uint32_t* weights, int32_t* sums) {
  const TileSums<kPixels, kVectors> tile = SumsOf<kPixels, kVectors>(task, windows, weights);
#pragma GCC unroll 8
  for (int p = 0; p < kPixels; ++p) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      _mm512_store_si512(sums + p * kTileChannels + v * kVectorChannels, tile.sums[p][v]);
    }
  }
}

using SumFunction = void (*)(const BconvTask&, const uint8_t* const*, const uint32_t*, int32_t*);
template <int kPixels>
constexpr SumFunction kSumTile[kTileVectors] = {SumTile<kPixels, 1>, SumTile<kPixels, 2>, SumTile<kPixels, 3>,
                                                SumTile<kPixels, 4>};

// Float outputs of whole tiles, made in the registers that the sums are in. kPlain: there are no corrections and no
// upper clamp.
template <bool kPlain, typename Finish>
void FloatTile(const BconvTask& task, const uint8_t* const* windows, const uint32_t* weights, int64_t pixel,
               int32_t channel) {
  const TileSums<kTilePixels, kTileVectors> tile = SumsOf<kTilePixels, kTileVectors>(task, windows, weights);
  const Finish finish(task);
  // All of these are whole numbers that floats hold, so that no operation but the scaling rounds.
  const __m512 depth = _mm512_set1_ps(static_cast<float>(task.depth)), minus_two = _mm512_set1_ps(-2.0f);
  const __m512 clamp_min = _mm512_set1_ps(static_cast<float>(task.clamp_min));
  const __m512 clamp_max = _mm512_set1_ps(static_cast<float>(task.clamp_max));
  const float* const multipliers = task.multiplier + channel;
  const float* const biases = task.bias + channel;
  float* const outputs = static_cast<float*>(task.output);
  const bool corrects = !kPlain && task.corrections != nullptr;
  int64_t index = OutputIndex(task, pixel, channel);
  const int64_t stride = task.output_channels;
#pragma GCC unroll 8
  for (int p = 0; p < kTilePixels; ++p, index += stride) {
    const int32_t* const corrections = corrects ? CorrectionsOf(task, pixel + p) + channel : nullptr;
#pragma GCC unroll 4
    for (int v = 0; v < kTileVectors; ++v) {
      const int first = v * kVectorChannels;
      __m512 dot = _mm512_fmadd_ps(_mm512_cvtepi32_ps(tile.sums[p][v]), minus_two, depth);
      if (corrects) dot = _mm512_add_ps(dot, _mm512_cvtepi32_ps(_mm512_loadu_si512(corrections + first)));
      const __m512 above = _mm512_max_ps(dot, clamp_min);
      const __m512 clamped = kPlain ? above : _mm512_min_ps(above, clamp_max);
      const __m512 product = _mm512_mul_ps(clamped, _mm512_loadu_ps(multipliers + first));
      const __m512 value = _mm512_add_ps(product, _mm512_loadu_ps(biases + first));
      _mm512_storeu_ps(outputs + index + first, finish(channel + first)(value, index + first));
    }
  }
}

using TileFunction = void (*)(const BconvTask&, const uint8_t* const*, const uint32_t*, int64_t, int32_t);

// Null where FloatTile does not do.
TileFunction FloatTileOf(const BconvTask& task) {
  if (task.finish_kind == FinishKind::kNotFloat || task.depth > kMaxFloatDepth) return nullptr;
  return WithFinish<SixteenLanes>(task, [&task](auto finish) -> TileFunction {
    using Finish = decltype(finish);
    const bool is_plain = task.corrections == nullptr && task.clamp_max == INT32_MAX;
    return is_plain ? FloatTile<Finish::kIsCommon, Finish> : FloatTile<false, Finish>;
  });
}

// Takes kPixels pixels at a time from `pixel` on and returns the first that is left.
template <int kPixels>
int64_t AnyTiles(const BconvTask& task, WindowWalk& walk, const uint32_t* weights, int64_t pixel, int64_t pixel_end,
                 int32_t channel, int32_t channels) {
  const SumFunction sum_tile = kSumTile<kPixels>[Min(kTileVectors, Vectors(task.channels - channel)) - 1];
  for (; pixel + kPixels <= pixel_end; pixel += kPixels) {
    const uint8_t* windows[kPixels];
    walk.Next<kPixels>(windows);
    alignas(64) int32_t sums[kPixels][kTileChannels];
    sum_tile(task, windows, weights, sums[0]);
    TileOutputs<SixteenLanes, kPixels, int32_t>{task, pixel, channel, channels, sums[0], kTileChannels}.Write();
  }
  return pixel;
}

void Bconv(const BconvTask& task, int64_t pixel_begin, int64_t pixel_end, int32_t channel_begin, int32_t channel_end) {
  const int32_t words = task.runs * task.run_words;
  const TileFunction float_tile = FloatTileOf(task);
  for (int64_t block = pixel_begin; block < pixel_end; block += kBlockPixels) {
    const int64_t block_end = Min(block + kBlockPixels, pixel_end);
    for (int32_t channel = channel_begin; channel < channel_end; channel += kTileChannels) {
      const int32_t channels = Min(kTileChannels, channel_end - channel);
      const auto* weights = reinterpret_cast<const uint32_t*>(task.weights + Weights::Bytes(channel, words));
      WindowWalk walk{task, block};
      int64_t pixel = block;
      if (channels == kTileChannels && float_tile != nullptr) {
        for (; pixel + kTilePixels <= block_end; pixel += kTilePixels) {
          const uint8_t* windows[kTilePixels];
          walk.Next<kTilePixels>(windows);
          float_tile(task, windows, weights, pixel, channel);
        }
      }
      pixel = AnyTiles<kTilePixels>(task, walk, weights, pixel, block_end, channel, channels);
      pixel = AnyTiles<3>(task, walk, weights, pixel, block_end, channel, channels);
      AnyTiles<1>(task, walk, weights, pixel, block_end, channel, channels);
    }
  }
}

}  // namespace

const Isa kAvx512Isa = {
    .name = "avx512",
    .available = CpuHasAvx512Popcount,
    // Packing without arithmetic waits for memory: sixteen lanes would gain next to nothing.
    .pack_float32_signs = PackFloat32Signs<EightLanes>,
    .pack_int8_signs = PackInt8Signs<EightLanes>,
    .pack_affine_signs = PackAffineSigns<SixteenLanes>,
    .max_window = MaxWindow<SixteenLanes>,
    .gate_pixels = GatePixels<SixteenLanes>,
    .tile_pixels = kTilePixels,
    .tile_channels = kTileChannels,
    .macs_per_cycle = 340,
    .packed_weights_bytes = Weights::PackedBytes,
    .pack_weights = Weights::Pack,
    .bconv = Bconv,
};

}  // namespace litebnn

#endif  // LITEBNN_X86
