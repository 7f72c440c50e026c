// The AVX-512 instruction set with VPOPCNTDQ: weights are reordered in tiles of channels, and sums stay in registers
// over the whole window.
#include "kernels/isa/shared/int8/max_window.h"
#include "kernels/platform/x86_cpu.h"

#if LITEBNN_X86

#include "kernels/isa/avx2/lanes.h"
#include "kernels/isa/avx512/inner_loop.h"
#include "kernels/isa/avx512/lanes.h"
#include "kernels/isa/avx512/levels.h"
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
// The number of output pixels in a block. All channels of a block are computed before the next block, so that the
// windows of its pixels stay in the L1 cache.
constexpr int64_t kBlockPixels = 40 * kTilePixels;

int32_t Vectors(int32_t channels) { return (channels + kVectorChannels - 1) / kVectorChannels; }

using Weights = TiledWeights<uint32_t, kTileChannels, kVectorChannels>;

// Computes the popcount sums of a tile of pixels and channels. The function is inlined, so that the sums stay in
// registers.
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

// Stores the popcount sums of kPixels pixels in sums[pixel][kTileChannels].
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

// Converts popcounts to dot products. The result is exact, because floats represent integers of this size exactly.
__m512 ToDots(__m512i popcounts, __m512 depth) {
  return _mm512_fmadd_ps(_mm512_cvtepi32_ps(popcounts), _mm512_set1_ps(-2.0f), depth);
}

// Computes a whole tile of float outputs from sums in registers. If kPlain is true, there are no padding
// corrections and no upper clamp.
template <bool kPlain, typename Epilogue>
void FloatTile(const BconvTask& task, const uint8_t* const* windows, const uint32_t* weights, int64_t pixel,
               int32_t channel) {
  const TileSums<kTilePixels, kTileVectors> tile = SumsOf<kTilePixels, kTileVectors>(task, windows, weights);
  const Epilogue epilogue(task);
  const __m512 depth = _mm512_set1_ps(static_cast<float>(task.depth));
  const __m512 clamp_min = _mm512_set1_ps(static_cast<float>(task.clamp_min));
  const __m512 clamp_max = _mm512_set1_ps(static_cast<float>(task.clamp_max));
  const float* const multipliers = task.multiplier + channel;
  const float* const biases = task.bias + channel;
  __m512 dots[kTilePixels][kTileVectors];
#pragma GCC unroll 8
  for (int p = 0; p < kTilePixels; ++p) {
#pragma GCC unroll 4
    for (int v = 0; v < kTileVectors; ++v) dots[p][v] = ToDots(tile.sums[p][v], depth);
  }
  if (!kPlain && task.corrections != nullptr) {
#pragma GCC unroll 8
    for (int p = 0; p < kTilePixels; ++p) {
      const int32_t* const corrections = CorrectionsOf(task, pixel + p) + channel;
#pragma GCC unroll 4
      for (int v = 0; v < kTileVectors; ++v) {
        const __m512i correction = _mm512_loadu_si512(corrections + v * kVectorChannels);
        dots[p][v] = _mm512_add_ps(dots[p][v], _mm512_cvtepi32_ps(correction));
      }
    }
  }
  int64_t index = OutputIndex(task, pixel, channel);
  const int64_t stride = task.output_channels;
#pragma GCC unroll 8
  for (int p = 0; p < kTilePixels; ++p, index += stride) {
    const auto value = [&](int v) __attribute__((always_inline)) {
      const int first = v * kVectorChannels;
      const __m512 above = _mm512_max_ps(dots[p][v], clamp_min);
      const __m512 clamped = kPlain ? above : _mm512_min_ps(above, clamp_max);
      const __m512 product = _mm512_mul_ps(clamped, _mm512_loadu_ps(multipliers + first));
      return _mm512_add_ps(product, _mm512_loadu_ps(biases + first));
    };
#pragma GCC unroll 4
    for (int v = 0; v < kTileVectors; ++v) {
      const int first = v * kVectorChannels;
      epilogue(channel + first).Store(value(v), index + first);
    }
  }
}

using TileFunction = void (*)(const BconvTask&, const uint8_t* const*, const uint32_t*, int64_t, int32_t);

// Returns the instance of the template FloatTile for the task, or null if FloatTile does not support the task.
TileFunction FloatTileOf(const BconvTask& task) {
  if (task.output_type != Bconv2dOutputType::kFloat32 || task.depth > kMaxFloatDepth) return nullptr;
  return WithFloatEpilogue<SixteenLanes>(task, [&task](auto epilogue) -> TileFunction {
    using Epilogue = decltype(epilogue);
    return IsPlain(task) ? FloatTile<Epilogue::kIsCommon, Epilogue> : FloatTile<false, Epilogue>;
  });
}

// Writes the int8 outputs of `pixels` pixels in `channels` channels, at most kVectors vectors, from `channel` on.
// `sums` has their popcounts, with the layout [pixels][kTileChannels].
template <int kVectors, bool kPlain, typename Levels>
void WriteLevels(const BconvTask& task, int64_t pixel, int pixels, int32_t channel, int32_t channels,
                 const int32_t* sums) {
  const LevelWriter<kVectors, kPlain, Levels> writer(task);
  const __m512i depth = _mm512_set1_epi32(task.depth);
  int64_t index = OutputIndex(task, pixel, channel);
  for (int p = 0; p < pixels; ++p, index += task.output_channels, sums += kTileChannels) {
    const int32_t* const corrections = kPlain || task.corrections == nullptr ? nullptr : CorrectionsOf(task, pixel + p);
    writer.Write(index, channel, channels, corrections,
                 [&](int i) { return SixteenLanes::Dots(depth, sums + i * kVectorChannels); });
  }
}

using LevelFunction = void (*)(const BconvTask&, int64_t, int, int32_t, int32_t, const int32_t*);

// Returns the instance of the template WriteLevels for the task, or null if WriteLevels does not support the task.
template <int kVectors>
LevelFunction LevelFunctionOf(const BconvTask& task) {
  if (task.output_type != Bconv2dOutputType::kInt8 || HasExceptions(task)) return nullptr;
  return WithLevels<SixteenLaneLevels>(task, [&task](auto levels) -> LevelFunction {
    using Levels = decltype(levels);
    return IsPlain(task) ? WriteLevels<kVectors, true, Levels> : WriteLevels<kVectors, false, Levels>;
  });
}

// Computes the same outputs as FloatTile<true> for windows of kWords words, but pixel by pixel, with weights and
// constants in registers. For so few words, FloatTile would spend up to a third of its time on preparations.
template <int kWords>
void FloatPixels(const BconvTask& task, const uint32_t* weights, int64_t pixel, int64_t pixel_end, int32_t channel) {
  const __m512 depth = _mm512_set1_ps(static_cast<float>(task.depth));
  const __m512 clamp_min = _mm512_set1_ps(static_cast<float>(task.clamp_min));
  __m512i filter[kWords][kTileVectors];
  __m512 multiplier[kTileVectors], bias[kTileVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kTileVectors; ++v) {
    const int first = v * kVectorChannels;
    multiplier[v] = _mm512_loadu_ps(task.multiplier + channel + first);
    bias[v] = _mm512_loadu_ps(task.bias + channel + first);
#pragma GCC unroll 8
    for (int w = 0; w < kWords; ++w) filter[w][v] = _mm512_load_si512(weights + w * kTileChannels + first);
  }
  // The loop tests the kind of epilogue for each pixel, because a copy of the loop for each kind would make the code
  // large.
  const EpilogueKind kind = task.epilogue_kind;
  const ptrdiff_t pixel_stride = task.pixel_stride, stride = task.output_channels;
  const int64_t width = task.output_width;
  for (int64_t row_end; pixel < pixel_end; pixel = row_end) {
    const int64_t row = pixel / width;
    row_end = Min((row + 1) * width, pixel_end);
    const uint8_t* window = task.input + task.run_offsets[0] + row * task.row_stride;
    window += (pixel - row * width) * pixel_stride;
    const ptrdiff_t index = OutputIndex(task, pixel, channel);
    float* output = static_cast<float*>(task.output) + index;
    const float* addend = kind == EpilogueKind::kNone ? output : task.epilogue.addend + index;
    for (int64_t left = row_end - pixel; left > 0; --left) {
      const auto* const input = reinterpret_cast<const int32_t*>(window);
      __m512i x[kWords];
      __m512 values[kTileVectors];
#pragma GCC unroll 8
      for (int w = 0; w < kWords; ++w) x[w] = _mm512_set1_epi32(input[w]);
#pragma GCC unroll 4
      for (int v = 0; v < kTileVectors; ++v) {
        __m512i sum = _mm512_popcnt_epi32(_mm512_xor_si512(x[0], filter[0][v]));
#pragma GCC unroll 8
        for (int w = 1; w < kWords; ++w) {
          sum = _mm512_add_epi32(sum, _mm512_popcnt_epi32(_mm512_xor_si512(x[w], filter[w][v])));
        }
        const __m512 clamped = _mm512_max_ps(ToDots(sum, depth), clamp_min);
        values[v] = _mm512_add_ps(_mm512_mul_ps(clamped, multiplier[v]), bias[v]);
      }
      if (kind != EpilogueKind::kNone) {
#pragma GCC unroll 4
        for (int v = 0; v < kTileVectors; ++v) {
          values[v] = SixteenLanes::Add(values[v], SixteenLanes::Load(addend + v * kVectorChannels));
        }
      }
      if (kind == EpilogueKind::kAddAndRectify) {
#pragma GCC unroll 4
        for (int v = 0; v < kTileVectors; ++v) values[v] = SixteenLanes::Rectify(values[v]);
      }
#pragma GCC unroll 4
      for (int v = 0; v < kTileVectors; ++v) _mm512_storeu_ps(output + v * kVectorChannels, values[v]);
      window += pixel_stride;
      output += stride;
      addend += stride;
    }
  }
}

using PixelsFunction = void (*)(const BconvTask&, const uint32_t*, int64_t, int64_t, int32_t);

// Returns the instance of the template FloatPixels for the task, or null if FloatPixels does not support the task.
PixelsFunction FloatPixelsOf(const BconvTask& task) {
  if (task.epilogue_kind > EpilogueKind::kAddAndRectify || !IsPlain(task) || task.runs > 1) return nullptr;
  switch (task.run_words) {
    case 1:
      return FloatPixels<1>;
    case 2:
      return FloatPixels<2>;
    case 4:
      return FloatPixels<4>;
    case 8:
      return FloatPixels<8>;
  }
  return nullptr;
}

// Computes whole tiles of kPixels pixels, from `pixel` on. Returns the first pixel after the last tile, from which on
// fewer than kPixels pixels remain.
template <int kPixels>
int64_t AnyTiles(const BconvTask& task, WindowWalk& walk, const uint32_t* weights, int64_t pixel, int64_t pixel_end,
                 int32_t channel, int32_t channels) {
  const SumFunction sum_tile = kSumTile<kPixels>[Min(kTileVectors, Vectors(task.channels - channel)) - 1];
  const LevelFunction write_levels =
      channels > 2 * kVectorChannels ? LevelFunctionOf<kTileVectors>(task) : LevelFunctionOf<2>(task);
  for (; pixel + kPixels <= pixel_end; pixel += kPixels) {
    const uint8_t* windows[kPixels];
    walk.Next<kPixels>(windows);
    alignas(64) int32_t sums[kPixels][kTileChannels];
    sum_tile(task, windows, weights, sums[0]);
    if (write_levels != nullptr) {
      write_levels(task, pixel, kPixels, channel, channels, sums[0]);
      continue;
    }
    TileOutputs<SixteenLanes, kPixels, int32_t>{task, pixel, channel, channels, sums[0], kTileChannels}.Write();
  }
  return pixel;
}

void Bconv(const BconvTask& task, int64_t pixel_begin, int64_t pixel_end, int32_t channel_begin, int32_t channel_end) {
  const int32_t words = task.runs * task.run_words;
  const TileFunction float_tile = FloatTileOf(task);
  const PixelsFunction float_pixels = FloatPixelsOf(task);
  for (int64_t block = pixel_begin; block < pixel_end; block += kBlockPixels) {
    const int64_t block_end = Min(block + kBlockPixels, pixel_end);
    for (int32_t channel = channel_begin; channel < channel_end; channel += kTileChannels) {
      const int32_t channels = Min(kTileChannels, channel_end - channel);
      const auto* weights = reinterpret_cast<const uint32_t*>(task.weights + Weights::Bytes(channel, words));
      if (channels == kTileChannels && float_pixels != nullptr) {
        float_pixels(task, weights, block, block_end, channel);
        continue;
      }
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

// Floats and int8 values are packed in vectors of eight lanes. The speed of memory limits this packing, so sixteen
// lanes would be hardly faster.
void Avx512PackFloat32Signs(const float* input, int64_t rows, int32_t channels, uint32_t* output) {
  PackFloat32Signs<EightLanes>(input, rows, channels, output);
}

void Avx512PackInt8Signs(const int8_t* input, int64_t rows, int32_t channels, int32_t zero_point, uint32_t* output) {
  PackInt8Signs<EightLanes>(input, rows, channels, zero_point, output);
}

void Avx512PackInt8Comparisons(const int8_t* input, int64_t rows, int32_t channels, const int8_t* thresholds,
                               const uint32_t* inverted, uint32_t* output, int64_t output_words) {
  PackInt8Comparisons<EightLanes>(input, rows, channels, thresholds, inverted, output, output_words);
}

void Avx512PackAffineSigns(const float* input, const float* multiplier, const float* addend, int64_t rows,
                           int32_t channels, uint32_t* output, int64_t output_words) {
  PackAffineSigns<SixteenLanes>(input, multiplier, addend, rows, channels, output, output_words);
}

void Avx512MaxWindow(const FloatWindow& window, float floor, float* output) {
  MaxWindow<SixteenLanes>(window, floor, output);
}

void Avx512MaxInt8Window(const Int8Window& window, int8_t* output) { MaxInt8Window(window, output); }

void Avx512GatePixels(const GatedPixels& pixels, int64_t count) { GatePixels<SixteenLanes>(pixels, count); }

const Isa kAvx512Isa = {
    .name = "avx512",
    .available = CpuHasAvx512Popcount,
    .pack_float32_signs = Avx512PackFloat32Signs,
    .pack_int8_signs = Avx512PackInt8Signs,
    .pack_int8_comparisons = Avx512PackInt8Comparisons,
    .pack_affine_signs = Avx512PackAffineSigns,
    .max_window = Avx512MaxWindow,
    .max_int8_window = Avx512MaxInt8Window,
    .average_int8_window = Avx2AverageInt8Window,
    .gate_pixels = Avx512GatePixels,
    .tile_pixels = kTilePixels,
    .tile_channels = kTileChannels,
    .macs_per_cycle = 340,
    .packed_weights_bytes = Weights::PackedBytes,
    .pack_weights = Weights::Pack,
    .bconv = Bconv,
    .reads_may_tie = true,
    .int8_conv = Avx512Int8Conv,
};

}  // namespace litebnn

#endif  // LITEBNN_X86
