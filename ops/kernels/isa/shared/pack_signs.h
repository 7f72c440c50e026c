// The functions pack signs: 32 at a time with an ISA's vectors (lanes.h), and one by one in rows of fewer than 32
// values.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/isa/shared/arithmetic.h"
#include "kernels/kernels.h"

namespace litebnn {
// Functions have internal linkage here, so that the linker does not merge copies that are compiled for different CPUs.
namespace {

// Packs rows of 1 to 31 values. pack_word(values) returns the bits of 32 values, so it also reads the rows after this
// one. In the last rows, and on an ISA without vectors, is_below(values, i) gives the bit of value `i`. The bits in
// `inverted` are inverted.
template <typename Lanes, typename T, typename PackWord, typename IsBelow>
inline void PackShortRows(const T* input, int64_t rows, int32_t channels, uint32_t inverted, uint32_t* output,
                          int64_t output_words, PackWord pack_word, IsBelow is_below) {
  const uint32_t used = ~0u >> (kBitsPerWord - channels);
  for (; rows > 0; --rows, input += channels, output += output_words) {
    uint32_t bits = 0;
    if (Lanes::kLanes > 1 && rows * channels >= kBitsPerWord) {
      bits = pack_word(input) & used;
    } else {
      for (int32_t i = channels; i-- > 0;) bits = bits << 1 | static_cast<uint32_t>(is_below(input, i));
    }
    *output = bits ^ inverted;
  }
}

// Packs rows of values; a value below `limit` becomes a 1 bit. pack_word(values) returns the bits of 32 values.
template <typename Lanes, typename T, typename PackWord>
inline void PackRows(const T* input, int64_t rows, int32_t channels, T limit, uint32_t* output, PackWord pack_word) {
  const int32_t words = channels / kBitsPerWord, tail = channels % kBitsPerWord;
  if (tail == 0) {
    for (int64_t word = 0; word < rows * words; ++word, input += kBitsPerWord) output[word] = pack_word(input);
    return;
  }
  if (words == 0) {
    const auto is_below = [limit](const T* values, int32_t i) { return values[i] < limit; };
    return PackShortRows<Lanes>(input, rows, channels, 0, output, 1, pack_word, is_below);
  }
  for (int64_t row = 0; row < rows; ++row) {
    for (int32_t word = 0; word < words; ++word, input += kBitsPerWord) *output++ = pack_word(input);
    // The row's tail (fewer than 32 values) is packed together with values before it, which the previous word contains
    // already. The shift removes the bits of the values before the tail.
    *output++ = pack_word(input + tail - kBitsPerWord) >> (kBitsPerWord - tail);
    input += tail;
  }
}

template <typename Lanes>
inline void PackFloat32Signs(const float* input, int64_t rows, int32_t channels, uint32_t* output) {
  // The argument is a lambda, because the compiler might not inline the call of a function through a pointer.
  const auto pack_word = [](const float* values) { return Lanes::BitsBelowZero(values); };
  PackRows<Lanes>(input, rows, channels, 0.0f, output, pack_word);
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
  PackRows<Lanes>(input, rows, channels, limit, output, pack_word);
}

template <typename Lanes>
inline void PackInt8Comparisons(const int8_t* input, int64_t rows, int32_t channels, const int8_t* thresholds,
                                const uint32_t* inverted, uint32_t* output, int64_t output_words) {
  const int32_t words = channels / kBitsPerWord, tail = channels % kBitsPerWord;
  if (words == 0 && tail > 0) {
    // The thresholds are copied, because vectors would read past their end.
    int8_t padded[kBitsPerWord] = {};
    std::memcpy(padded, thresholds, static_cast<size_t>(tail));
    const auto pack_word = [&padded](const int8_t* values) { return Lanes::BitsBelow(values, padded); };
    const auto is_below = [&padded](const int8_t* values, int32_t i) { return values[i] < padded[i]; };
    return PackShortRows<Lanes>(input, rows, channels, *inverted, output, output_words, pack_word, is_below);
  }
  for (; rows > 0; --rows, input += channels, output += output_words) {
    for (int32_t word = 0; word < words; ++word) {
      const int32_t first = word * kBitsPerWord;
      output[word] = Lanes::BitsBelow(input + first, thresholds + first) ^ inverted[word];
    }
    if (tail == 0) continue;
    // The row's tail is packed together with values before it, as in PackRows.
    const int32_t last = channels - kBitsPerWord;
    const uint32_t bits = Lanes::BitsBelow(input + last, thresholds + last) >> (kBitsPerWord - tail);
    output[words] = bits ^ inverted[words];
  }
}

}  // namespace
}  // namespace litebnn
