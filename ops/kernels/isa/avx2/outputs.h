// The functions write the outputs of a batch of pixel pairs.
#pragma once

#include <cstdint>

#include "kernels/isa/avx2/lanes.h"
#include "kernels/isa/avx2/pair_sums.h"
#include "kernels/isa/avx2/weights.h"
#include "kernels/isa/isa.h"
#include "kernels/isa/shared/int8/levels.h"
#include "kernels/isa/shared/output.h"

namespace litebnn {
// Functions have internal linkage here, so that the linker does not merge copies that are compiled for different CPUs.
namespace {

// AVX2's versions of the vector operations that shared/int8/levels.h requires.
struct EightLaneLevels : EightLanes {
  static Floats Truncate(Floats values) { return _mm256_round_ps(values, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC); }
  static Floats Nearest(Floats values) {
    return _mm256_round_ps(values, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  static Ints ToNearest(Floats values) { return _mm256_cvtps_epi32(values); }
  static Floats MultiplyAdd(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }

  struct LevelBytes {
    const Ints zero_point, least, most;

    LevelBytes(int32_t zero, int32_t low, int32_t high)
        : zero_point(_mm256_set1_epi16(static_cast<int16_t>(zero))),
          least(_mm256_set1_epi8(static_cast<char>(low))),
          most(_mm256_set1_epi8(static_cast<char>(high))) {}

    __attribute__((always_inline)) void Store(const Ints (&levels)[4], int8_t* output) const {
      const Ints first = _mm256_adds_epi16(_mm256_packs_epi32(levels[0], levels[1]), zero_point);
      const Ints last = _mm256_adds_epi16(_mm256_packs_epi32(levels[2], levels[3]), zero_point);
      const Ints clamped = _mm256_min_epi8(_mm256_max_epi8(_mm256_packs_epi16(first, last), least), most);
      // Restores the order of 4-byte groups, which packing within 128-bit lanes changed.
      const Ints order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(output), _mm256_permutevar8x32_epi32(clamped, order));
    }
  };
};

// Converts 16-bit integers, which are dot products plus kBias, to the dot products as floats.
template <int32_t kBias>
struct DotFloats {
  __m256i two_to_23 = _mm256_set1_epi16(0x4B00);
  __m256 base = _mm256_set1_ps(8388608.0f + static_cast<float>(kBias));

  // This empty assembly hides the value of the constant from Clang. If Clang knew the value, it would choose code with
  // one more shuffle for each output vector.
  DotFloats() { __asm__("" : "+x"(two_to_23)); }

  // Low returns the first eight channels of a vector as floats, and High the last eight.
  __m256 Low(__m256i dots) const {
    return _mm256_sub_ps(_mm256_castsi256_ps(_mm256_unpacklo_epi16(dots, two_to_23)), base);
  }
  __m256 High(__m256i dots) const {
    return _mm256_sub_ps(_mm256_castsi256_ps(_mm256_unpackhi_epi16(dots, two_to_23)), base);
  }
};

// Writes float outputs of whole vectors of channels, in the order of their addresses, which is fastest for the caches.
// The function is not inlined, because the caller would run out of registers.
template <bool kRelu, bool kWhole, typename Epilogue>
__attribute__((noinline)) void WriteFloats(const BconvTask& task, const SummedPairs& pairs, int32_t channel,
                                           int32_t count, Epilogue epilogue) {
  using Dots = PairDots<kRelu, kWhole>;
  const DotFloats<Dots::kBias> floats;
  const float *const multipliers = task.multiplier, *const biases = task.bias;
  const int64_t stride = task.output_channels;
  const auto write = [&](int64_t index, int32_t first, int pixels, auto dots) __attribute__((always_inline)) {
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      const int32_t at = first + half * 16;
      const __m256 multiplier[2] = {_mm256_loadu_ps(multipliers + at), _mm256_loadu_ps(multipliers + at + 8)};
      const __m256 bias[2] = {_mm256_loadu_ps(biases + at), _mm256_loadu_ps(biases + at + 8)};
#pragma GCC unroll 2
      for (int p = 0; p < 2; ++p) {
        if (p == pixels) break;
        const __m256i dot = dots(half, p);
        const int64_t place = index + p * stride + half * 16;
        const __m256 low = _mm256_add_ps(_mm256_mul_ps(floats.Low(dot), multiplier[0]), bias[0]);
        const __m256 high = _mm256_add_ps(_mm256_mul_ps(floats.High(dot), multiplier[1]), bias[1]);
        epilogue(at).Store(low, place);
        epilogue(at + 8).Store(high, place + 8);
      }
    }
  };
  Dots::ForEach(task, pairs, channel, count, write);
}

// Writes int8 outputs of whole vectors of channels.
template <bool kRelu, typename Levels>
__attribute__((noinline)) void WriteLevels(const BconvTask& task, const SummedPairs& pairs, int32_t channel,
                                           int32_t count) {
  using Dots = PairDots<kRelu, false>;
  const DotFloats<Dots::kBias> floats;
  const Levels levels(task);
  const float *const multipliers = task.multiplier, *const biases = task.bias;
  const int64_t stride = task.output_channels;
  const auto write = [&](int64_t index, int32_t first, int pixels, auto dots) __attribute__((always_inline)) {
#pragma GCC unroll 2
    for (int p = 0; p < 2; ++p) {
      if (p == pixels) break;
      const __m256i dot[2] = {dots(0, p), dots(1, p)};
      __m256 values[4] = {floats.Low(dot[0]), floats.High(dot[0]), floats.Low(dot[1]), floats.High(dot[1])};
      Levels::template ForEach<4>(
          [&](int i) { values[i] = _mm256_mul_ps(values[i], _mm256_loadu_ps(multipliers + first + 8 * i)); });
      Levels::template ForEach<4>(
          [&](int i) { values[i] = _mm256_add_ps(values[i], _mm256_loadu_ps(biases + first + 8 * i)); });
      const int64_t place = index + p * stride;
      levels.Write(values, levels.AddendOf(place), levels.output + place);
    }
  };
  Dots::ForEach(task, pairs, channel, count, write);
}

template <bool kRelu>
void WriteInt8(const BconvTask& task, const SummedPairs& pairs, int32_t channel, int32_t count) {
  WithLevels<EightLaneLevels>(task,
                              [&](auto levels) { WriteLevels<kRelu, decltype(levels)>(task, pairs, channel, count); });
}

// Writes outputs of any type in any number of channels.
void WriteAny(const BconvTask& task, const SummedPairs& pairs, int32_t channel, int32_t count) {
  const __m256i depth = _mm256_set1_epi16(static_cast<int16_t>(task.depth));
  for (int64_t pixel = pairs.pixel_begin; pixel < pairs.pixel_end; ++pixel) {
    const __m256i parity_and_depth = _mm256_sub_epi16(pairs.Parity(pixel), depth);
    // The array has the sums of popcounts for one pixel, in the order of the output channels.
    alignas(32) uint16_t sums[kTileChannels];
    for (int32_t vector = 0; vector < pairs.vectors; ++vector) {
      __m256i wide[2];
      pairs.Sums(pixel, vector, wide);
      for (int half = 0; half < 2; ++half) {
        const __m256i sum = _mm256_add_epi16(wide[half], parity_and_depth);
        const __m256i popcounts = _mm256_srli_epi16(_mm256_sub_epi16(pairs.compensation[2 * vector + half], sum), 1);
        _mm256_store_si256(reinterpret_cast<__m256i*>(sums + vector * kVectorChannels + half * 16),
                           _mm256_permute4x64_epi64(popcounts, _MM_SHUFFLE(3, 1, 2, 0)));
      }
    }
    WriteOutputs<EightLanes>(task, pixel, channel, count, sums);
  }
}

void WritePairs(const BconvTask& task, const SummedPairs& pairs, int32_t channel, int32_t count) {
  if (task.epilogue_kind == EpilogueKind::kBits || HasExceptions(task) || count % kVectorChannels != 0) {
    return WriteAny(task, pairs, channel, count);
  }
  const bool relu = task.clamp_min == 0 && task.clamp_max == INT32_MAX && task.corrections == nullptr;
  if (task.output_type == Bconv2dOutputType::kInt8) {
    return relu ? WriteInt8<true>(task, pairs, channel, count) : WriteInt8<false>(task, pairs, channel, count);
  }
  const bool whole = pairs.sums == nullptr && (pairs.pixel_end - pairs.pixel_begin) % 2 == 0;
  if (relu && whole && task.epilogue_kind == EpilogueKind::kNone) {
    return WriteFloats<true, true>(task, pairs, channel, count, Epilogue<EightLanes, EpilogueKind::kNone>(task));
  }
  WithFloatEpilogue<EightLanes>(task, [&](auto epilogue) {
    relu ? WriteFloats<decltype(epilogue)::kIsCommon, false>(task, pairs, channel, count, epilogue)
         : WriteFloats<false, false>(task, pairs, channel, count, epilogue);
  });
}

}  // namespace
}  // namespace litebnn
