// The functions pack signs: 32 at a time with an ISA's vectors (lanes.h), and one by one in rows of fewer than 32
// values.
#pragma once

#include <cstdint>

#include "kernels/isa/shared/arithmetic.h"
#include "kernels/kernels.h"

namespace litebnn {
// Functions have internal linkage here, so that the linker does not merge copies that are compiled for different CPUs.
namespace {

// Packs rows of values; a value below `limit` becomes a 1 bit. pack_word(values) returns the bits of 32 values.
template <typename T, typename PackWord>
inline void PackRows(const T* input, int64_t rows, int32_t channels, T limit, uint32_t* output, PackWord pack_word) {
  const int32_t words = channels / kBitsPerWord, tail = channels % kBitsPerWord;
  if (tail == 0) {
    for (int64_t word = 0; word < rows * words; ++word, input += kBitsPerWord) output[word] = pack_word(input);
    return;
  }
  for (int64_t row = 0; row < rows; ++row) {
    for (int32_t word = 0; word < words; ++word, input += kBitsPerWord) *output++ = pack_word(input);
    // The row's tail (fewer than 32 values) is packed together with values before it, which the previous word contains
    // already. The shift removes the bits of the values before the tail.
    uint32_t bits = words > 0 ? pack_word(input + tail - kBitsPerWord) >> (kBitsPerWord - tail) : 0;
    for (int32_t i = 0; words == 0 && i < tail; ++i) bits |= static_cast<uint32_t>(input[i] < limit) << i;
    *output++ = bits;
    input += tail;
  }
}

template <typename Lanes>
inline void PackFloat32Signs(const float* input, int64_t rows, int32_t channels, uint32_t* output) {
  // The argument is a lambda, because the compiler might not inline the call of a function through a pointer.
  const auto pack_word = [](const float* values) { return Lanes::BitsBelowZero(values); };
  PackRows(input, rows, channels, 0.0f, output, pack_word);
}

// Returns the packed signs of input * multiplier + addend for `count` values, 1 to 32.
template <typename Lanes>
__attribute__((always_inline)) inline uint32_t AffineBitsBelowZero(const float* input, const float* multiplier,
                                                                   const float* addend, int32_t count) {
  typename Lanes::Bits bits = {};
  for (int32_t i = (count - 1) / Lanes::kLanes * Lanes::kLanes; i >= 0; i -= Lanes::kLanes) {
    const int32_t lanes = Min(Lanes::kLanes, count - i);
    const auto product = Lanes::Multiply(Lanes::LoadFirst(input + i, lanes), Lanes::LoadFirst(multiplier + i, lanes));
    bits = Lanes::AppendBelowZero(bits, Lanes::Add(product, Lanes::LoadFirst(addend + i, lanes)));
  }
  // The mask clears the bits of unused lanes, because the values in these lanes are undefined.
  return Lanes::ToWord(bits) & ~0u >> (kBitsPerWord - count);
}

// Packs kWords * 32 channels of all rows. The channels' multipliers and addends stay in registers from row to row.
template <typename Lanes, int kWords>
inline void PackAffineWords(const float* input, const float* multiplier, const float* addend, int64_t rows,
                            int32_t channels, uint32_t* output, int64_t output_words) {
  constexpr int kVectors = kBitsPerWord / Lanes::kLanes;
  typename Lanes::Floats multipliers[kWords * kVectors], addends[kWords * kVectors];
#pragma GCC unroll 8
  for (int v = 0; v < kWords * kVectors; ++v) {
    multipliers[v] = Lanes::Load(multiplier + v * Lanes::kLanes);
    addends[v] = Lanes::Load(addend + v * Lanes::kLanes);
  }
  for (; rows > 0; --rows, input += channels, output += output_words) {
#pragma GCC unroll 8
    for (int word = 0; word < kWords; ++word) {
      typename Lanes::Bits bits = {};
#pragma GCC unroll 8
      for (int v = (word + 1) * kVectors - 1; v >= word * kVectors; --v) {
        const auto product = Lanes::Multiply(Lanes::Load(input + v * Lanes::kLanes), multipliers[v]);
        bits = Lanes::AppendBelowZero(bits, Lanes::Add(product, addends[v]));
      }
      output[word] = Lanes::ToWord(bits);
    }
  }
}

template <typename Lanes>
inline void PackAffineSigns(const float* input, const float* multiplier, const float* addend, int64_t rows,
                            int32_t channels, uint32_t* output, int64_t output_words) {
  // The registers have room for the multipliers and addends of kWords words (32 channels each). If fewer words than
  // kWords remain, they are packed one by one.
  constexpr int32_t kWords = Lanes::kLanes > 8 ? 2 : 1;
  int32_t c = 0;
  for (; c <= channels - kWords * kBitsPerWord; c += kWords * kBitsPerWord, output += kWords) {
    PackAffineWords<Lanes, kWords>(input + c, multiplier + c, addend + c, rows, channels, output, output_words);
  }
  for (; c <= channels - kBitsPerWord; c += kBitsPerWord, ++output) {
    PackAffineWords<Lanes, 1>(input + c, multiplier + c, addend + c, rows, channels, output, output_words);
  }
  for (int64_t row = 0; c < channels && row < rows; ++row) {
    output[row * output_words] =
        AffineBitsBelowZero<Lanes>(input + row * channels + c, multiplier + c, addend + c, channels - c);
  }
}

template <typename Lanes>
inline void PackInt8Signs(const int8_t* input, int64_t rows, int32_t channels, int32_t zero_point, uint32_t* output) {
  const auto limit = static_cast<int8_t>(zero_point);
  const auto pack_word = [limit](const int8_t* values) { return Lanes::BitsBelow(values, limit); };
  PackRows(input, rows, channels, limit, output, pack_word);
}

template <typename Lanes>
inline void PackInt8Comparisons(const int8_t* input, int64_t rows, int32_t channels, const int8_t* thresholds,
                                const uint32_t* inverted, uint32_t* output) {
  const int32_t words = channels / kBitsPerWord, tail = channels % kBitsPerWord;
  for (; rows > 0; --rows, input += channels) {
    for (int32_t word = 0; word < words; ++word) {
      const int32_t first = word * kBitsPerWord;
      *output++ = Lanes::BitsBelow(input + first, thresholds + first) ^ inverted[word];
    }
    if (tail == 0) continue;
    // The row's tail (fewer than 32 values) is packed together with values before it, which the previous word contains
    // already. The shift removes the bits of the values before the tail.
    const int32_t last = channels - kBitsPerWord;
    uint32_t bits = words > 0 ? Lanes::BitsBelow(input + last, thresholds + last) >> (kBitsPerWord - tail) : 0;
    for (int32_t i = 0; words == 0 && i < tail; ++i) bits |= static_cast<uint32_t>(input[i] < thresholds[i]) << i;
    *output++ = bits ^ inverted[words];
  }
}

}  // namespace
}  // namespace litebnn
