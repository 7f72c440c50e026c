// Packing of signs: 32 at a time by an ISA's lanes (lanes.h), rows of fewer one by one.
#pragma once

#include <cstdint>

#include "kernels/isa/shared/arithmetic.h"
#include "kernels/kernels.h"

namespace litebnn {
// Every ISA's file has its own copy, compiled for its own CPU.
namespace {

// Bit 1 is for values below `limit`; pack_word(values) gives the bits of 32.
template <typename T, typename PackWord>
inline void PackRows(const T* input, int64_t rows, int32_t channels, T limit, uint32_t* output, PackWord pack_word) {
  const int32_t words = channels / kBitsPerWord, tail = channels % kBitsPerWord;
  if (tail == 0) {
    for (int64_t word = 0; word < rows * words; ++word, input += kBitsPerWord) output[word] = pack_word(input);
    return;
  }
  for (int64_t row = 0; row < rows; ++row) {
    for (int32_t word = 0; word < words; ++word, input += kBitsPerWord) *output++ = pack_word(input);
    // The row's last 32 values have those of the word before too.
    uint32_t bits = words > 0 ? pack_word(input + tail - kBitsPerWord) >> (kBitsPerWord - tail) : 0;
    for (int32_t i = 0; words == 0 && i < tail; ++i) bits |= static_cast<uint32_t>(input[i] < limit) << i;
    *output++ = bits;
    input += tail;
  }
}

template <typename Lanes>
inline void PackFloat32Signs(const float* input, int64_t rows, int32_t channels, uint32_t* output) {
  // Not the function itself, which may be called by a pointer.
  const auto pack_word = [](const float* values) { return Lanes::BitsBelowZero(values); };
  PackRows(input, rows, channels, 0.0f, output, pack_word);
}

// The bits of `count` values, 1 to 32.
template <typename Lanes>
__attribute__((always_inline)) inline uint32_t AffineBitsBelowZero(const float* input, const float* multiplier,
                                                                   const float* addend, int32_t count) {
  typename Lanes::Bits bits = {};
  for (int32_t i = (count - 1) / Lanes::kLanes * Lanes::kLanes; i >= 0; i -= Lanes::kLanes) {
    const int32_t lanes = Min(Lanes::kLanes, count - i);
    const auto product = Lanes::Multiply(Lanes::LoadFirst(input + i, lanes), Lanes::LoadFirst(multiplier + i, lanes));
    bits = Lanes::AppendBelowZero(bits, Lanes::Add(product, Lanes::LoadFirst(addend + i, lanes)));
  }
  // The last lanes of a tail hold anything.
  return Lanes::ToWord(bits) & ~0u >> (kBitsPerWord - count);
}

template <typename Lanes>
inline void PackAffineSigns(const float* input, const float* multiplier, const float* addend, int64_t rows,
                            int32_t channels, uint32_t* output) {
  const int32_t whole = channels / kBitsPerWord * kBitsPerWord;
  for (int64_t row = 0; row < rows; ++row, input += channels) {
    for (int32_t i = 0; i < whole; i += kBitsPerWord) {
      *output++ = AffineBitsBelowZero<Lanes>(input + i, multiplier + i, addend + i, kBitsPerWord);
    }
    if (whole == channels) continue;
    *output++ = AffineBitsBelowZero<Lanes>(input + whole, multiplier + whole, addend + whole, channels - whole);
  }
}

template <typename Lanes>
inline void PackInt8Signs(const int8_t* input, int64_t rows, int32_t channels, int32_t zero_point, uint32_t* output) {
  const auto limit = static_cast<int8_t>(zero_point);
  const auto pack_word = [limit](const int8_t* values) { return Lanes::BitsBelow(values, limit); };
  PackRows(input, rows, channels, limit, output, pack_word);
}

}  // namespace
}  // namespace litebnn
