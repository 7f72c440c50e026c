// The file defines sums of table lookups for pairs of pixels, in the format of TileSums (inner_loop.h), and their
// conversion to dot products.
#pragma once

#include <cstdint>

#include "kernels/isa/avx2/inner_loop.h"
#include "kernels/isa/avx2/lanes.h"
#include "kernels/isa/isa.h"
#include "kernels/isa/shared/output.h"

namespace litebnn {
// Functions have internal linkage here, so that the linker does not merge copies that are compiled for different CPUs.
namespace {

// Return the even or the odd bytes of a vector, multiplied by four, as 16-bit numbers.
__m256i FourTimesEven(__m256i bytes) { return _mm256_maddubs_epi16(bytes, _mm256_set1_epi16(4)); }
__m256i FourTimesOdd(__m256i bytes) { return _mm256_maddubs_epi16(bytes, _mm256_set1_epi16(4 << 8)); }

// A ByteSums has the sums of table lookups of a pair of pixels for one vector of channels. The format is that of
// TileSums (inner_loop.h).
struct ByteSums {
  __m256i even, odd;

  // Returns the sums of pixel 1, with one byte per channel. The function's call of FourTimesOdd costs nothing: all
  // callers make the same call for pixel 0, and the compiler computes its result only once.
  __m256i Pixel1() const { return _mm256_sub_epi16(odd, _mm256_slli_epi16(FourTimesOdd(even), 2)); }
};

// SummedPairs has the sums of table lookups for a batch of pixel pairs in one tile of channels.
struct SummedPairs {
  const ByteSums* batch;        // sums over the last block of nibbles, [pairs][vectors]
  const __m256i* sums;          // sums over the earlier blocks; null if there is one block
  const int32_t* parity;        // [pixels], twice the odd-parity nibbles of each window
  const __m256i* compensation;  // [vectors][2], minus the depth
  int32_t vectors;
  int64_t pixel_begin, pixel_end;

  // Multiplies the sums of one pixel in 32 channels by four, and stores them in `wide`, 16 channels in each vector.
  void Sums(int64_t pixel, int32_t vector, __m256i* wide) const {
    const int64_t i = (pixel - pixel_begin) / 2 * vectors + vector, p = (pixel - pixel_begin) % 2;
    const __m256i bytes = p == 0 ? batch[i].even : batch[i].Pixel1();
    wide[0] = FourTimesEven(bytes);
    wide[1] = FourTimesOdd(bytes);
    if (sums != nullptr) {
      wide[0] = _mm256_add_epi16(wide[0], sums[4 * i + 2 * p]);
      wide[1] = _mm256_add_epi16(wide[1], sums[4 * i + 2 * p + 1]);
    }
  }

  __m256i Parity(int64_t pixel) const { return _mm256_set1_epi32(parity[pixel - pixel_begin]); }
};

// The class computes the dot products of one batch of pixel pairs, as unsigned 16-bit numbers. If kRelu is true, a RELU
// follows, and there are no padding corrections. If kWhole is true, each pair has two pixels, and the window is a
// single block of nibbles.
template <bool kRelu, bool kWhole>
struct PairDots {
  // An unsigned 16-bit number n in the mantissa of the float 2^23 gives 2^23 + n, and a subtraction of 2^23 leaves
  // exactly n. The bias is added to dot products so that none of them is negative.
  static constexpr int32_t kBias = kRelu ? 0 : 32768;

  static __m256i Clamp(int32_t value) {
    return _mm256_set1_epi16(static_cast<int16_t>(Min(Max(value, -kBias), 65535 - kBias) + kBias));
  }

  // Calls write(index, channel, pixels, dots) for each pixel pair and vector of channels. `index` is the place of the
  // first output, `pixels` is 1 or 2. The call dots(half, pixel) returns the dot products of 16 channels, plus the
  // constant kBias. To get the first or the last 8 of these channels in order, unpack the low or the high halves of the
  // vector's 128-bit lanes.
  template <typename Write>
  __attribute__((always_inline)) static void ForEach(const BconvTask& task, const SummedPairs& pairs, int32_t channel,
                                                     int32_t count, Write write) {
    const __m256i bias_16 = _mm256_set1_epi16(static_cast<int16_t>(kBias));
    const __m256i clamp_min = Clamp(task.clamp_min), clamp_max = Clamp(task.clamp_max);
    // The local copy of `pairs` can stay in registers, because no store can modify it.
    const SummedPairs all = pairs;
    const int64_t stride = task.output_channels;
    const int32_t vectors = count / kVectorChannels;
    const bool corrects = !kRelu && task.corrections != nullptr;
    int64_t index = all.pixel_begin * stride + task.first_channel + channel;
    const ByteSums* bytes = all.batch;
    const __m256i* sums = all.sums;
    for (int64_t pixel = all.pixel_begin; pixel < all.pixel_end;
         pixel += 2, index += 2 * stride, bytes += all.vectors) {
      const __m256i parity[2] = {_mm256_add_epi16(all.Parity(pixel), bias_16),
                                 _mm256_add_epi16(all.Parity(pixel + 1), bias_16)};
      const bool is_pair = kWhole || pixel + 1 < all.pixel_end;
      const int32_t* corrections[2] = {};
      if (corrects) {
        corrections[0] = CorrectionsOf(task, pixel) + channel;
        if (is_pair) corrections[1] = CorrectionsOf(task, pixel + 1) + channel;
      }
      for (int32_t vector = 0; vector < vectors; ++vector) {
        const __m256i pixel_bytes[2] = {bytes[vector].even, bytes[vector].Pixel1()};
        const auto dots = [&](int half, int p) __attribute__((always_inline)) {
          const __m256i compensation = all.compensation[2 * vector + half];
          __m256i sum = half == 0 ? FourTimesEven(pixel_bytes[p]) : FourTimesOdd(pixel_bytes[p]);
          if (!kWhole && sums != nullptr) sum = _mm256_add_epi16(sum, sums[4 * vector + 2 * p + half]);
          sum = _mm256_add_epi16(sum, parity[p]);
          if (corrects) {
            const int32_t* const values = corrections[p] + vector * kVectorChannels + half * 16;
            // The corrections are packed within 128-bit lanes, so that they are in the same order as the sums.
            sum = _mm256_add_epi16(sum, _mm256_packs_epi32(EightLanes::Load(values), EightLanes::Load(values + 8)));
          }
          return kRelu ? _mm256_subs_epu16(sum, compensation)
                       : _mm256_min_epu16(_mm256_max_epu16(_mm256_sub_epi16(sum, compensation), clamp_min), clamp_max);
        };
        write(index + vector * kVectorChannels, channel + vector * kVectorChannels, is_pair ? 2 : 1, dots);
      }
      if (!kWhole && sums != nullptr) sums += 4 * all.vectors;
    }
  }
};

}  // namespace
}  // namespace litebnn
