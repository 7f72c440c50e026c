// The file has the NEON operations that compute the offsets of the lookup tables (shared/table_offsets.h).
#pragma once

#include <arm_neon.h>

#include <cstdint>
#include <cstring>

#include "kernels/isa/shared/table_offsets.h"

namespace litebnn {
// Functions have internal linkage here, so that the linker does not merge copies that are compiled for different CPUs.
namespace {

struct OffsetsTraits {
  // Table offsets have 32 bits, so that one LDP instruction loads two of them into registers that are used as addresses
  // unchanged.
  using Offset = uint32_t;
  static constexpr int32_t kWords = 8;
  static constexpr bool kWritesShortWindows = false;

  struct ParitySums {
    uint16x8_t pixel0, pixel1;

    void Add(ParitySums other) {
      pixel0 = vaddq_u16(pixel0, other.pixel0);
      pixel1 = vaddq_u16(pixel1, other.pixel1);
    }
    void Totals(int32_t* totals) const {
      totals[0] = static_cast<int32_t>(vaddlvq_u16(pixel0));
      totals[1] = static_cast<int32_t>(vaddlvq_u16(pixel1));
    }
  };
  static ParitySums None() { return {vdupq_n_u16(0), vdupq_n_u16(0)}; }

  // Loads the first `words` of four words; the other words are zeros.
  static uint8x16_t LoadFirst(const uint8_t* source, int32_t words) {
    if (words >= 4) return vld1q_u8(source);
    uint8_t bytes[16] = {};
    if (words <= 0) return vld1q_u8(bytes);
    std::memcpy(bytes, source, static_cast<size_t>(words) * sizeof(uint32_t));
    return vld1q_u8(bytes);
  }

  // Returns for each byte the number of its nibbles that have odd parity.
  static uint8x16_t NibbleParities(uint8x16_t bytes) {
    constexpr uint8_t kNibbleParity[16] = {0, 1, 1, 0, 1, 0, 0, 1, 1, 0, 0, 1, 0, 1, 1, 0};
    const uint8x16_t nibble_parity = vld1q_u8(kNibbleParity);
    return vaddq_u8(vqtbl1q_u8(nibble_parity, vandq_u8(bytes, vdupq_n_u8(15))),
                    vqtbl1q_u8(nibble_parity, vshrq_n_u8(bytes, 4)));
  }

  // Writes the table offsets of 16 pairs of nibbles (one nibble of each of two pixels), in groups of four. Each group
  // starts eight offsets after the previous one.
  __attribute__((always_inline)) static void WriteQuads(uint8x16_t pairs, uint32_t* offsets) {
    const uint16x8_t low = vshll_n_u8(vget_low_u8(pairs), 4), high = vshll_high_n_u8(pairs, 4);
    static_assert(sizeof(kLookupTables.data[0]) == 16, "a table is 16 bytes");
    vst1q_u32(offsets, vmovl_u16(vget_low_u16(low)));
    vst1q_u32(offsets + kNibblesPerWord, vmovl_high_u16(low));
    vst1q_u32(offsets + 2 * kNibblesPerWord, vmovl_u16(vget_low_u16(high)));
    vst1q_u32(offsets + 3 * kNibblesPerWord, vmovl_high_u16(high));
  }

  __attribute__((always_inline)) static ParitySums Write(const uint8_t* source0, const uint8_t* source1, int32_t words,
                                                         uint32_t* offsets) {
    ParitySums parity = None();
    for (; words > 0; words -= 4, source0 += sizeof(uint8x16_t), source1 += sizeof(uint8x16_t)) {
      const uint8x16_t pixel0 = LoadFirst(source0, words), pixel1 = LoadFirst(source1, words);
      WriteQuads(vsliq_n_u8(pixel0, pixel1, 4), offsets);
      WriteQuads(vsriq_n_u8(pixel1, pixel0, 4), offsets + 4);
      offsets += 4 * kNibblesPerWord;
      parity.pixel0 = vpadalq_u8(parity.pixel0, NibbleParities(pixel0));
      parity.pixel1 = vpadalq_u8(parity.pixel1, NibbleParities(pixel1));
    }
    return parity;
  }

  // Counts the odd-parity nibbles of each word, and writes one 16-bit count per word.
  static void CountParity(const uint8_t* source, int32_t words, uint8_t* counts) {
    for (; words > 0; words -= kWords, source += 2 * sizeof(uint8x16_t), counts += sizeof(uint16x8_t)) {
      const uint8x16_t low = NibbleParities(LoadFirst(source, words));
      const uint8x16_t high = NibbleParities(LoadFirst(source + sizeof(uint8x16_t), words - 4));
      vst1q_u16(reinterpret_cast<uint16_t*>(counts), vpaddlq_u8(vpaddq_u8(low, high)));
    }
  }

  static void SumParity(const uint8_t* counts, ptrdiff_t row_bytes, int32_t rows, int32_t words, int32_t* before) {
    const uint32x4_t zero = vdupq_n_u32(0);
    uint32x4_t sum_before = zero;
    // The lambda stores inclusive prefix sums of four words' counts of odd-parity nibbles.
    const auto store_sums = [&](uint32x4_t parity) {
      parity = vaddq_u32(parity, vextq_u32(zero, parity, 3));
      parity = vaddq_u32(vaddq_u32(parity, vextq_u32(zero, parity, 2)), sum_before);
      vst1q_s32(before, vreinterpretq_s32_u32(parity));
      before += 4;
      sum_before = vdupq_laneq_u32(parity, 3);
    };
    *before++ = 0;
    for (; words > 0; words -= kWords, counts += sizeof(uint16x8_t)) {
      const uint8_t* row = counts;
      uint16x8_t parity = vld1q_u16(reinterpret_cast<const uint16_t*>(row));
      for (int32_t i = 1; i < rows; ++i)
        parity = vaddq_u16(parity, vld1q_u16(reinterpret_cast<const uint16_t*>(row += row_bytes)));
      store_sums(vmovl_u16(vget_low_u16(parity)));
      store_sums(vmovl_high_u16(parity));
    }
  }
};

}  // namespace
}  // namespace litebnn
