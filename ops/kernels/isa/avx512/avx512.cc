// AVX-512 with VPOPCNTDQ. Weights and input stay as they are but for the order of the weights, and sums in registers
// from a window's first word to its last.
#include "kernels/platform/x86_cpu.h"

#if LITEBNN_X86

// GCC 12 takes its own header's undefined values for mistakes.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#pragma GCC diagnostic pop

#include <cstring>

#include "kernels/isa/avx2/pack_signs.h"
#include "kernels/isa/avx512/inner_loop.h"
#include "kernels/isa/isa.h"
#include "kernels/isa/shared/max_window.h"
#include "kernels/isa/shared/output.h"
#include "kernels/isa/shared/pixel_walk.h"

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

size_t PackedWeightsBytes(int32_t channels, int32_t words) {
  return static_cast<size_t>(Vectors(channels)) * static_cast<size_t>(words) * sizeof(__m512i);
}

// [tiles of kTileChannels][words][vectors of the tile][kVectorChannels].
void PackWeights(const uint32_t* filter, int32_t channels, int32_t runs, int32_t run_words, uint8_t* packed) {
  const int32_t words = runs * run_words;
  std::memset(packed, 0, PackedWeightsBytes(channels, words));
  for (int32_t channel = 0; channel < channels; ++channel) {
    const int32_t first = channel / kTileChannels * kTileChannels, lane = channel - first;
    const int32_t vectors = std::min(kTileVectors, Vectors(channels - first));
    auto* tile = reinterpret_cast<uint32_t*>(packed) + static_cast<ptrdiff_t>(first) * words;
    for (int32_t word = 0; word < words; ++word) {
      tile[static_cast<ptrdiff_t>(word) * vectors * kVectorChannels + lane] =
          filter[static_cast<int64_t>(channel) * words + word];
    }
  }
}

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

// Writes a tile of sums[pixel][kTileChannels]. The vectors do what output.h does, in the same order; `lanes` masks what
// is no channel any more.
class Outputs {
 public:
  explicit Outputs(const BconvTask& task)
      : task_(task),
        depth_(_mm512_set1_epi32(task.depth)),
        clamp_min_(_mm512_set1_epi32(task.clamp_min)),
        clamp_max_(_mm512_set1_epi32(task.clamp_max)) {}

  void Write(int64_t pixel, int32_t pixels, int32_t channel, int32_t channels, const int32_t* sums) const {
    if (task_.output_type == Bconv2dOutputType::kFloat32) return Float32(pixel, pixels, channel, channels, sums);
    for (const int64_t end = pixel + pixels; pixel < end; ++pixel, sums += kTileChannels) {
      const int32_t* corrections = task_.corrections == nullptr ? nullptr : CorrectionsOf(task_, pixel) + channel;
      if (task_.output_type == Bconv2dOutputType::kInt8) {
        const int64_t index = pixel * task_.output_channels + task_.first_channel + channel;
        Int8(channel, channels, sums, corrections, static_cast<int8_t*>(task_.output) + index);
      } else {
        Bits(pixel, channel, channels, sums, corrections);
      }
    }
  }

 private:
  static __mmask16 Lanes(int32_t channels) {
    return static_cast<__mmask16>(channels >= kVectorChannels ? 0xFFFF : (1 << channels) - 1);
  }

  __m512 Values(int32_t channel, const int32_t* sums, const int32_t* corrections) const {
    __m512i dot = _mm512_sub_epi32(depth_, _mm512_slli_epi32(_mm512_load_si512(sums), 1));
    if (corrections != nullptr) dot = _mm512_add_epi32(dot, _mm512_loadu_si512(corrections));
    dot = _mm512_min_epi32(_mm512_max_epi32(dot, clamp_min_), clamp_max_);
    const __m512 product = _mm512_mul_ps(_mm512_cvtepi32_ps(dot), _mm512_loadu_ps(task_.multiplier + channel));
    return _mm512_add_ps(product, _mm512_loadu_ps(task_.bias + channel));
  }

  // The channels' constants stay in registers for all pixels. `finish` is given lanes, a value and the place of its
  // output.
  template <typename Finish>
  void WriteFloats(int64_t pixel, int32_t pixels, int32_t channel, int32_t channels, const int32_t* sums,
                   Finish finish) const {
    float* const outputs = static_cast<float*>(task_.output);
    const int64_t stride = task_.output_channels;
    const __m512i depth = depth_, clamp_min = clamp_min_, clamp_max = clamp_max_;
    for (int32_t i = 0; i < channels; i += kVectorChannels) {
      const __mmask16 lanes = Lanes(channels - i);
      const __m512 multiplier = _mm512_loadu_ps(task_.multiplier + channel + i);
      const __m512 bias = _mm512_loadu_ps(task_.bias + channel + i);
      const int32_t* pixel_sums = sums + i;
      int64_t index = pixel * stride + task_.first_channel + channel + i;
      for (int32_t p = 0; p < pixels; ++p, pixel_sums += kTileChannels, index += stride) {
        __m512i dot = _mm512_sub_epi32(depth, _mm512_slli_epi32(_mm512_load_si512(pixel_sums), 1));
        if (task_.corrections != nullptr) {
          dot = _mm512_add_epi32(dot, _mm512_loadu_si512(CorrectionsOf(task_, pixel + p) + channel + i));
        }
        dot = _mm512_min_epi32(_mm512_max_epi32(dot, clamp_min), clamp_max);
        const __m512 value = _mm512_add_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(dot), multiplier), bias);
        if (lanes == 0xFFFF) {
          _mm512_storeu_ps(outputs + index, finish(lanes, value, index));
        } else {
          _mm512_mask_storeu_ps(outputs + index, lanes, finish(lanes, value, index));
        }
      }
    }
  }

  void Float32(int64_t pixel, int32_t pixels, int32_t channel, int32_t channels, const int32_t* sums) const {
    const float* const addend = task_.addend;
    const auto add = [addend](__mmask16 lanes, __m512 value, int64_t index) {
      return _mm512_add_ps(value, _mm512_maskz_loadu_ps(lanes, addend + index));
    };
    if (addend == nullptr) {
      WriteFloats(pixel, pixels, channel, channels, sums, [](__mmask16, __m512 value, int64_t) { return value; });
    } else if (!task_.rectify_sum) {
      WriteFloats(pixel, pixels, channel, channels, sums, add);
    } else {
      WriteFloats(pixel, pixels, channel, channels, sums, [add](__mmask16 lanes, __m512 value, int64_t index) {
        return _mm512_max_ps(add(lanes, value, index), _mm512_setzero_ps());
      });
    }
  }

  void Int8(int32_t channel, int32_t channels, const int32_t* sums, const int32_t* corrections, int8_t* output) const {
    const __m512 low = _mm512_set1_ps(static_cast<float>(-128 - task_.zero_point));
    const __m512 high = _mm512_set1_ps(static_cast<float>(127 - task_.zero_point));
    const __m512i half = _mm512_castps_si512(_mm512_set1_ps(0x1.fffffep-2f));
    const __m512i sign = _mm512_castps_si512(_mm512_set1_ps(-0.0f));
    for (int32_t i = 0; i < channels; i += kVectorChannels) {
      const __m512 value = Values(channel + i, sums + i, corrections == nullptr ? nullptr : corrections + i);
      const __m512 bounded = _mm512_min_ps(_mm512_max_ps(value, low), high);
      const __m512i signed_half = _mm512_or_si512(_mm512_and_si512(_mm512_castps_si512(bounded), sign), half);
      const __m512i rounded = _mm512_cvttps_epi32(_mm512_add_ps(bounded, _mm512_castsi512_ps(signed_half)));
      const __m512i result = _mm512_add_epi32(rounded, _mm512_set1_epi32(task_.zero_point));
      _mm512_mask_cvtepi32_storeu_epi8(output + i, Lanes(channels - i), result);
    }
  }

  uint32_t Compare(int32_t channel, const int32_t* sums, const int32_t* corrections) const {
    __m512i sum = _mm512_load_si512(sums);
    // Halves of even numbers, exact in either direction.
    if (corrections != nullptr) sum = _mm512_sub_epi32(sum, _mm512_srai_epi32(_mm512_loadu_si512(corrections), 1));
    return _mm512_cmpgt_epi32_mask(sum, _mm512_loadu_si512(task_.threshold + channel));
  }

  void Bits(int64_t pixel, int32_t channel, int32_t channels, const int32_t* sums, const int32_t* corrections) const {
    uint32_t* words = static_cast<uint32_t*>(task_.output) + pixel * PackedWords(task_.output_channels);
    for (int32_t i = 0; i < channels; i += kBitsPerWord) {
      uint32_t word = 0;
      for (int32_t j = i; j < std::min(channels, i + kBitsPerWord); j += kVectorChannels) {
        const uint32_t bits = Compare(channel + j, sums + j, corrections == nullptr ? nullptr : corrections + j);
        word |= (bits & Lanes(channels - j)) << (j - i);
      }
      StoreBits(words, task_.first_channel + channel + i, std::min(kBitsPerWord, channels - i), word);
    }
  }

  const BconvTask& task_;
  const __m512i depth_, clamp_min_, clamp_max_;
};

// Float outputs of whole tiles, made in the registers that the sums are in: what most convolutions need. `finish` is
// given a value and the place of its output.
template <bool kHasUpperClamp, typename Finish>
void FloatTile(const BconvTask& task, const uint8_t* const* windows, const uint32_t* weights, int64_t pixel,
               int32_t channel, Finish finish) {
  const TileSums<kTilePixels, kTileVectors> tile = SumsOf<kTilePixels, kTileVectors>(task, windows, weights);
  // All of these are whole numbers that floats hold, so that no operation but the scaling rounds.
  const __m512 depth = _mm512_set1_ps(static_cast<float>(task.depth)), minus_two = _mm512_set1_ps(-2.0f);
  const __m512 clamp_min = _mm512_set1_ps(static_cast<float>(task.clamp_min));
  const __m512 clamp_max = _mm512_set1_ps(static_cast<float>(task.clamp_max));
  const float* const multipliers = task.multiplier + channel;
  const float* const biases = task.bias + channel;
  float* const outputs = static_cast<float*>(task.output);
  int64_t index = pixel * task.output_channels + task.first_channel + channel;
  const int64_t stride = task.output_channels;
#pragma GCC unroll 8
  for (int p = 0; p < kTilePixels; ++p, index += stride) {
#pragma GCC unroll 4
    for (int v = 0; v < kTileVectors; ++v) {
      const int first = v * kVectorChannels;
      const __m512 dot = _mm512_fmadd_ps(_mm512_cvtepi32_ps(tile.sums[p][v]), minus_two, depth);
      const __m512 above = _mm512_max_ps(dot, clamp_min);
      const __m512 clamped = kHasUpperClamp ? _mm512_min_ps(above, clamp_max) : above;
      const __m512 product = _mm512_mul_ps(clamped, _mm512_loadu_ps(multipliers + first));
      const __m512 value = _mm512_add_ps(product, _mm512_loadu_ps(biases + first));
      _mm512_storeu_ps(outputs + index + first, finish(value, index + first));
    }
  }
}

template <bool kHasUpperClamp>
void PlainTile(const BconvTask& task, const uint8_t* const* windows, const uint32_t* weights, int64_t pixel,
               int32_t channel) {
  FloatTile<kHasUpperClamp>(task, windows, weights, pixel, channel, [](__m512 value, int64_t) { return value; });
}

template <bool kHasUpperClamp>
void AddedTile(const BconvTask& task, const uint8_t* const* windows, const uint32_t* weights, int64_t pixel,
               int32_t channel) {
  FloatTile<kHasUpperClamp>(task, windows, weights, pixel, channel,
                            [addend = task.addend](__m512 value, int64_t index) {
                              return _mm512_add_ps(value, _mm512_loadu_ps(addend + index));
                            });
}

template <bool kHasUpperClamp>
void RectifiedTile(const BconvTask& task, const uint8_t* const* windows, const uint32_t* weights, int64_t pixel,
                   int32_t channel) {
  FloatTile<kHasUpperClamp>(
      task, windows, weights, pixel, channel, [addend = task.addend](__m512 value, int64_t index) {
        return _mm512_max_ps(_mm512_add_ps(value, _mm512_loadu_ps(addend + index)), _mm512_setzero_ps());
      });
}

using TileFunction = void (*)(const BconvTask&, const uint8_t* const*, const uint32_t*, int64_t, int32_t);
template <bool kHasUpperClamp>
TileFunction TileWriter(const BconvTask& task) {
  if (task.addend == nullptr) return PlainTile<kHasUpperClamp>;
  return task.rectify_sum ? RectifiedTile<kHasUpperClamp> : AddedTile<kHasUpperClamp>;
}

void Bconv(const BconvTask& task, int64_t pixel_begin, int64_t pixel_end, int32_t channel_begin, int32_t channel_end) {
  const Outputs outputs(task);
  const int32_t words = task.runs * task.run_words;
  const bool writes_tiles =
      task.output_type == Bconv2dOutputType::kFloat32 && task.corrections == nullptr && task.depth <= kMaxFloatDepth;
  const auto write_tile = task.clamp_max == INT32_MAX ? TileWriter<false>(task) : TileWriter<true>(task);
  for (int64_t block = pixel_begin; block < pixel_end; block += kBlockPixels) {
    const int64_t block_end = std::min(block + kBlockPixels, pixel_end);
    for (int32_t channel = channel_begin; channel < channel_end; channel += kTileChannels) {
      const int32_t channels = std::min(kTileChannels, channel_end - channel);
      const int32_t vectors = std::min(kTileVectors, Vectors(task.channels - channel));
      const uint32_t* weights =
          reinterpret_cast<const uint32_t*>(task.weights) + static_cast<ptrdiff_t>(channel) * words;
      alignas(64) int32_t sums[kTilePixels * kTileChannels];
      WindowWalk walk(task, block);
      int64_t pixel = block;
      const auto tiles_of = [&](auto pixels, const SumFunction* sum_tile) {
        const uint8_t* windows[pixels];
        for (; pixel + pixels <= block_end; pixel += pixels) {
          walk.Next<pixels>(windows);
          sum_tile[vectors - 1](task, windows, weights, sums);
          outputs.Write(pixel, pixels, channel, channels, sums);
        }
      };
      if (channels == kTileChannels && writes_tiles) {
        const uint8_t* windows[kTilePixels];
        for (; pixel + kTilePixels <= block_end; pixel += kTilePixels) {
          walk.Next<kTilePixels>(windows);
          write_tile(task, windows, weights, pixel, channel);
        }
      }
      tiles_of(std::integral_constant<int, kTilePixels>(), kSumTile<kTilePixels>);
      tiles_of(std::integral_constant<int, 3>(), kSumTile<3>);
      tiles_of(std::integral_constant<int, 1>(), kSumTile<1>);
    }
  }
}

struct SixteenFloats {
  using Vector = __m512;
  static constexpr int32_t kCount = 16;
  static Vector Set(float value) { return _mm512_set1_ps(value); }
  static Vector Load(const float* values) { return _mm512_loadu_ps(values); }
  static void Store(Vector vector, float* values) { _mm512_storeu_ps(values, vector); }
  static Vector Larger(Vector a, Vector b) { return _mm512_max_ps(a, b); }
};

}  // namespace

const Isa kAvx512Isa = {
    .name = "avx512",
    .available = CpuHasAvx512Popcount,
    .pack_float32_signs = PackFloat32SignsAvx2,
    .pack_int8_signs = PackInt8SignsAvx2,
    .max_window = MaxWindow<SixteenFloats>,
    .tile_pixels = kTilePixels,
    .tile_channels = kTileChannels,
    .packed_weights_bytes = PackedWeightsBytes,
    .pack_weights = PackWeights,
    .bconv = Bconv,
};

}  // namespace litebnn

#endif  // LITEBNN_X86
