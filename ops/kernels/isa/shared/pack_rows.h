// What packing signs has in common for all ISAs: whole words by `pack_word`, a row's last channels one by one.
#pragma once

#include <cstdint>

#include "kernels/kernels.h"

namespace litebnn {
// Every ISA's file has its own copy, compiled for its own CPU.
namespace {

// pack_word(values) gives the bits of 32 values; is_minus_one(value) is true for a value whose bit is 1.
template <typename T, typename PackWord, typename IsMinusOne>
inline void PackRows(const T* input, int64_t rows, int32_t channels, uint32_t* output, PackWord pack_word,
                     IsMinusOne is_minus_one) {
  const int32_t tail = channels % kBitsPerWord;
  if (tail == 0) {
    const int64_t words = rows * (channels / kBitsPerWord);
    for (int64_t word = 0; word < words; ++word, input += kBitsPerWord) output[word] = pack_word(input);
    return;
  }
  for (int64_t row = 0; row < rows; ++row) {
    for (int32_t word = 0; word < channels / kBitsPerWord; ++word, input += kBitsPerWord) *output++ = pack_word(input);
    uint32_t bits = 0;
    for (int32_t i = 0; i < tail; ++i) bits |= static_cast<uint32_t>(is_minus_one(input[i])) << i;
    *output++ = bits;
    input += tail;
  }
}

}  // namespace
}  // namespace litebnn
