// Averages of int8 windows, for AVX2 and AVX-512.
#include "kernels/platform/x86_cpu.h"

#if LITEBNN_X86

#include "kernels/isa/avx2/intrinsics.h"
#include "kernels/isa/isa.h"
#include "kernels/isa/shared/arithmetic.h"

namespace litebnn {
namespace {

// Divides the sums of a window's taps by their number, and rounds halves away from zero.
class Average {
 public:
  explicit Average(int64_t count)
      : half_(_mm256_set1_epi16(static_cast<int16_t>(count / 2))),
        is_power_of_two_((count & (count - 1)) == 0),
        last_(_mm256_set1_epi16(static_cast<int16_t>(count - 1))),
        shift_(_mm_cvtsi32_si128(__builtin_ctz(static_cast<unsigned>(count)))),
        count_(_mm256_set1_ps(static_cast<float>(count))) {}

  __m256i operator()(__m256i sums) const {
    // The constant `half_` gets the sign of each sum, so that truncating the quotient rounds the average.
    const __m256i sign = _mm256_srai_epi16(sums, 15);
    const __m256i rounded = _mm256_add_epi16(sums, _mm256_sub_epi16(_mm256_xor_si256(half_, sign), sign));
    if (is_power_of_two_) {
      return _mm256_sra_epi16(_mm256_add_epi16(rounded, _mm256_and_si256(sign, last_)), shift_);
    }
    const __m256i low = Divide(_mm256_castsi256_si128(rounded)), high = Divide(_mm256_extracti128_si256(rounded, 1));
    return _mm256_permute4x64_epi64(_mm256_packs_epi32(low, high), _MM_SHUFFLE(3, 1, 2, 0));
  }

 private:
  // If two integers below 2^24 are divided as floats, the quotient truncates to the same integer as the exact quotient.
  __m256i Divide(__m128i values) const {
    return _mm256_cvttps_epi32(_mm256_div_ps(_mm256_cvtepi32_ps(_mm256_cvtepi16_epi32(values)), count_));
  }

  const __m256i half_;
  const bool is_power_of_two_;
  const __m256i last_;  // the number of taps, less 1
  const __m128i shift_;
  const __m256 count_;
};

// Computes the averages of kVectors vectors of 16 channels, whose first one is `channel`.
template <int kVectors>
__attribute__((always_inline)) inline void AverageChannels(const Int8Window& window, int32_t channel,
                                                           const Average& average, int8_t* output) {
  __m256i sums[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) sums[v] = _mm256_setzero_si256();
  for (int64_t y = 0; y < window.rows; ++y) {
    const int8_t* tap = window.first + y * window.row_stride + channel;
    for (int64_t x = 0; x < window.columns; ++x, tap += window.channels) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        const __m128i levels = _mm_loadu_si128(reinterpret_cast<const __m128i*>(tap + 16 * v));
        sums[v] = _mm256_add_epi16(sums[v], _mm256_cvtepi8_epi16(levels));
      }
    }
  }
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    const __m256i averages = average(sums[v]);
    const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(averages), _mm256_extracti128_si256(averages, 1));
    const __m128i clamped = _mm_min_epi8(_mm_max_epi8(bytes, _mm_set1_epi8(window.least)), _mm_set1_epi8(window.most));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(output + channel + 16 * v), clamped);
  }
}

}  // namespace

void Avx2AverageInt8Window(const Int8Window& window, int8_t* output) {
  constexpr int32_t kLanes = 16;
  const Average average(window.rows * window.columns);
  int32_t channel = 0;
  for (; channel <= window.channels - 4 * kLanes; channel += 4 * kLanes) {
    AverageChannels<4>(window, channel, average, output);
  }
  for (; channel <= window.channels - kLanes; channel += kLanes) {
    AverageChannels<1>(window, channel, average, output);
  }
  const auto count = static_cast<int32_t>(window.rows * window.columns);
  for (; channel < window.channels; ++channel) {
    int32_t sum = 0;
    for (int64_t y = 0; y < window.rows; ++y) {
      const int8_t* tap = window.first + y * window.row_stride + channel;
      for (int64_t x = 0; x < window.columns; ++x, tap += window.channels) sum += *tap;
    }
    const int32_t level = (sum > 0 ? sum + count / 2 : sum - count / 2) / count;
    output[channel] = static_cast<int8_t>(Min(Max(level, int32_t{window.least}), int32_t{window.most}));
  }
}

}  // namespace litebnn

#endif  // LITEBNN_X86
