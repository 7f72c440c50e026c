// The offsets of the lookup tables (inner_loop.h) for the windows of pairs of output pixels.
//
// A table belongs to a nibble of both pixels of a pair. Where output pixels beside each other form pairs, the offsets
// of a row of input are made once, each for a word and the one that is as far to its right as the second window, and
// every pair of windows finds its own among them. Elsewhere each pair gets a copy of its own.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/isa/avx2/inner_loop.h"
#include "kernels/isa/avx2/lanes.h"
#include "kernels/isa/isa.h"
#include "kernels/isa/shared/arithmetic.h"
#include "kernels/isa/shared/pixel_walk.h"

namespace litebnn {
// Nothing in here may be shared with files compiled for other CPUs.
namespace {

constexpr int32_t kNibblesPerWord = 8;
// Words whose odd nibbles are counted together.
constexpr int32_t kStepWords = 8;
// Bytes that may be written behind what is made of some words.
constexpr int32_t kSlack = kStepWords * kNibblesPerWord * static_cast<int32_t>(sizeof(uint16_t));
// Runs whose odd nibbles a byte can count.
constexpr int32_t kMaxRuns = 127;
constexpr int32_t kMaxBlockPixels = 448;
// What is kept of a block goes through the L2 cache.
constexpr int32_t kTableOffsetsBytes = 160 << 10;

__m256i LowNibbles(__m256i bytes) { return _mm256_and_si256(bytes, _mm256_set1_epi8(0x0F)); }
__m256i HighNibbles(__m256i bytes) { return LowNibbles(_mm256_srli_epi16(bytes, 4)); }

// Counts the odd nibbles of each byte.
__m256i OddNibbles(__m256i bytes) {
  const __m256i is_odd = _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 1, 0, 1, 0, 0, 1, 1, 0, 0, 1, 0, 1, 1, 0));
  return _mm256_add_epi8(_mm256_shuffle_epi8(is_odd, LowNibbles(bytes)),
                         _mm256_shuffle_epi8(is_odd, HighNibbles(bytes)));
}

// Writes the offsets of two pixels' words: of each word the low nibbles of its bytes, then the high ones. Returns sums
// of odd nibbles: those of pixel 0 in the low halves of 64 bits, those of pixel 1 in the high ones.
__attribute__((always_inline)) inline __m256i WriteTableOffsets(const uint8_t* source0, const uint8_t* source1,
                                                                int32_t words, uint16_t* offsets) {
  const __m256i steps = _mm256_set1_epi16(static_cast<int16_t>(kTableStep | 16 * kTableStep << 8));
  const __m256i zero = _mm256_setzero_si256(), pixel0_bytes = _mm256_set1_epi16(0xFF);
  __m256i odd_sums = zero;
  for (; words > 0; words -= 4, source0 += 4 * sizeof(uint32_t), source1 += 4 * sizeof(uint32_t)) {
    const __m128i mask = _mm256_castsi256_si128(EightLanes::First(words));
    const __m128i words0 = _mm_maskload_epi32(reinterpret_cast<const int*>(source0), mask);
    const __m128i words1 = _mm_maskload_epi32(reinterpret_cast<const int*>(source1), mask);
    const __m256i bytes =
        _mm256_or_si256(_mm256_cvtepu8_epi16(words0), _mm256_slli_epi16(_mm256_cvtepu8_epi16(words1), 8));
    const __m256i low = _mm256_maddubs_epi16(steps, LowNibbles(bytes));
    const __m256i high = _mm256_maddubs_epi16(steps, HighNibbles(bytes));
    const __m256i even = _mm256_unpacklo_epi64(low, high), odd = _mm256_unpackhi_epi64(low, high);
    auto* vectors = reinterpret_cast<__m256i*>(offsets);
    _mm256_storeu_si256(vectors, _mm256_permute2x128_si256(even, odd, 0x20));
    _mm256_storeu_si256(vectors + 1, _mm256_permute2x128_si256(even, odd, 0x31));
    offsets += 4 * kNibblesPerWord;
    const __m256i odd_nibbles = OddNibbles(bytes);
    const __m256i odd0 = _mm256_sad_epu8(_mm256_and_si256(odd_nibbles, pixel0_bytes), zero);
    const __m256i odd1 = _mm256_sad_epu8(_mm256_srli_epi16(odd_nibbles, 8), zero);
    odd_sums = _mm256_add_epi32(odd_sums, _mm256_or_si256(odd0, _mm256_slli_epi64(odd1, 32)));
  }
  return odd_sums;
}

// Twice a number of odd nibbles, in both halves.
int32_t TwiceInHalves(int32_t odd) { return odd * 2 * 0x10001; }

// What a block of output pixels is given.
struct TableOffsetsMemory {
  alignas(64) const uint16_t* pairs[kMaxBlockPixels / 2];  // the offset for the first nibble of a pair's windows
  alignas(64) int32_t odd[kMaxBlockPixels];                // twice the odd nibbles of a window, in both halves
  alignas(64) uint16_t offsets[kTableOffsetsBytes / sizeof(uint16_t)];
};

// Pairs that have copies of their own in a block, at most.
int32_t MaxWindowPairs(int32_t words) {
  const int32_t pair_bytes = words * kNibblesPerWord * static_cast<int32_t>(sizeof(uint16_t));
  return Min((kTableOffsetsBytes - kSlack) / pair_bytes, kMaxBlockPixels / 2);
}

// Makes the offsets for the output pixels that one thread computes, block by block.
class TableOffsets {
 public:
  // For output pixels [first, last), of which the first is even.
  TableOffsets(const BconvTask& task, int64_t first, int64_t last, TableOffsetsMemory& memory)
      : task_(task), memory_(memory), words_(task.runs * task.run_words) {
    constexpr auto kWordBytes = static_cast<ptrdiff_t>(sizeof(uint32_t));
    // Where windows do not overlap, half of a row's offsets would be for nothing. Where they do, a run is all that a
    // window has of a row of input.
    if (task.run_words * kWordBytes <= task.pixel_stride) return;
    input_row_bytes_ = task.runs > 1 ? task.run_offsets[1] : task.row_stride;
    const int64_t width = task.output_width;
    const bool is_one_row = first / width == (last - 1) / width;
    const bool has_whole_pairs = width % 2 == 0 || is_one_row;
    if (!has_whole_pairs || task.row_stride % input_row_bytes_ != 0 || task.runs > kMaxRuns) return;

    step_rows_ = task.row_stride / input_row_bytes_;
    pixel_words_ = static_cast<int32_t>(task.pixel_stride / kWordBytes);
    const int64_t row_pixels = Min<int64_t>(width, kMaxBlockPixels);
    row_words_ = static_cast<int32_t>(row_pixels - 1) * pixel_words_ + task.run_words;
    // What is made of a row lies in the same memory, its offsets last, as they are written beyond their end.
    const int64_t staged_bytes = row_bytes() + row_offsets() * static_cast<int64_t>(sizeof(uint16_t));
    const int64_t rows = (kTableOffsetsBytes - row_bytes() - 3 * kSlack) / staged_bytes;
    if (rows < task.runs) return;
    shared_ = true;
    block_rows_ = Min((rows - task.runs) / step_rows_ + 1, kMaxBlockPixels / row_pixels);
    odd_before_ = reinterpret_cast<int32_t*>(memory.offsets);
    row_odd_ = reinterpret_cast<uint8_t*>(odd_before_) + row_bytes() + kSlack;
    row_offsets_ = reinterpret_cast<uint16_t*>(row_odd_ + rows * row_bytes() + kSlack);
  }

  // How a window lies in the offsets.
  int32_t runs() const { return shared_ ? task_.runs : 1; }
  int32_t run_nibbles() const { return words_ / runs() * kNibblesPerWord; }
  ptrdiff_t run_stride() const { return shared_ ? row_offsets() : 0; }

  // The end of the block that begins at `pixel`, of nearly equal ones up to `last`. Shared offsets are those of whole
  // rows, or of a part of one where rows are long.
  int64_t BlockEnd(int64_t pixel, int64_t last) const {
    const int64_t width = task_.output_width;
    const bool by_rows = shared_ && width <= kMaxBlockPixels;
    if (shared_ && !by_rows) last = Min(last, (pixel / width + 1) * width);
    const int64_t unit = by_rows ? width : 2;
    const int64_t most = by_rows ? block_rows_ : shared_ ? kMaxBlockPixels / 2 : MaxWindowPairs(words_);
    const int64_t first_unit = pixel / unit, units = (last + unit - 1) / unit - first_unit;
    const int64_t blocks = (units + most - 1) / most;
    return Min((first_unit + (units + blocks - 1) / blocks) * unit, last);
  }

  void Write(int64_t first, int64_t last) const { shared_ ? WriteRows(first, last) : WriteWindows(first, last); }

 private:
  ptrdiff_t row_offsets() const { return row_words_ * ptrdiff_t{kNibblesPerWord}; }
  ptrdiff_t row_bytes() const { return row_words_ * static_cast<ptrdiff_t>(sizeof(uint32_t)); }

  void WriteWindows(int64_t first, int64_t last) const {
    WindowWalk walk{task_, first};
    uint16_t* offsets = memory_.offsets;
    for (int64_t i = 0; i < last - first; i += 2) {
      const uint8_t* windows[2] = {walk.Next(), nullptr};
      // The last pair's second pixel may not be there.
      windows[1] = first + i + 1 < last ? walk.Next() : windows[0];
      memory_.pairs[i / 2] = offsets;
      __m256i odd = _mm256_setzero_si256();
      for (int32_t run = 0; run < task_.runs; ++run, offsets += task_.run_words * kNibblesPerWord) {
        const ptrdiff_t offset = task_.run_offsets[run];
        odd = _mm256_add_epi32(odd,
                               WriteTableOffsets(windows[0] + offset, windows[1] + offset, task_.run_words, offsets));
      }
      __m128i sums = _mm_add_epi32(_mm256_castsi256_si128(odd), _mm256_extracti128_si256(odd, 1));
      sums = _mm_add_epi32(sums, _mm_unpackhi_epi64(sums, sums));
      memory_.odd[i] = TwiceInHalves(_mm_cvtsi128_si32(sums));
      memory_.odd[i + 1] = TwiceInHalves(_mm_extract_epi32(sums, 1));
    }
  }

  void WriteRows(int64_t first, int64_t last) const {
    const int64_t width = task_.output_width, first_row = first / width, last_row = (last - 1) / width;
    const int64_t first_column = first_row == last_row ? first % width : 0;
    const int64_t pixels = first_row == last_row ? last - first : width;
    const int64_t staged_rows = (last_row - first_row) * step_rows_ + task_.runs;
    // Up to the last pair's second pixel, which may not be there.
    const auto words = static_cast<int32_t>((pixels - 1) * pixel_words_) + task_.run_words;
    const int32_t pair_words = words - (pixels % 2 == 0 ? pixel_words_ : 0);
    const uint8_t* source = task_.input + first_row * task_.row_stride + first_column * task_.pixel_stride;
    for (int64_t row = 0; row < staged_rows; ++row, source += input_row_bytes_) {
      uint16_t* offsets = row_offsets_ + row * row_offsets();
      const int32_t both_words = Min(Max(words - pixel_words_, 0), pair_words);
      WriteTableOffsets(source, source + task_.pixel_stride, both_words, offsets);
      if (both_words < pair_words) {
        const uint8_t* alone = source + both_words * static_cast<ptrdiff_t>(sizeof(uint32_t));
        WriteTableOffsets(alone, alone, pair_words - both_words, offsets + both_words * kNibblesPerWord);
      }
      auto* odd = reinterpret_cast<__m256i*>(row_odd_ + row * row_bytes());
      for (int32_t word = 0; word < words; word += kStepWords) {
        const auto* rest = reinterpret_cast<const int*>(source) + word;
        _mm256_storeu_si256(odd++, OddNibbles(_mm256_maskload_epi32(rest, EightLanes::First(words - word))));
      }
    }
    for (int64_t row = first_row; row <= last_row; ++row) {
      const int64_t begin = Max(first, row * width), end = Min(last, (row + 1) * width);
      const int64_t staged = (row - first_row) * step_rows_, column = begin - row * width - first_column;
      const uint16_t* offsets = row_offsets_ + staged * row_offsets();
      for (int64_t i = 0; i < end - begin; i += 2) {
        memory_.pairs[(begin - first + i) / 2] = offsets + (column + i) * pixel_words_ * kNibblesPerWord;
      }
      SumColumns(row_odd_ + staged * row_bytes(), words);
      const int32_t* window = odd_before_ + column * pixel_words_;
      for (int64_t i = 0; i < end - begin; ++i, window += pixel_words_) {
        memory_.odd[begin - first + i] = TwiceInHalves(window[task_.run_words] - window[0]);
      }
    }
  }

  // A window's rows are summed up before its columns, as neighbouring windows share those.
  void SumColumns(const uint8_t* rows, int32_t words) const {
    const __m256i ones = _mm256_set1_epi8(1);
    int32_t before = 0;
    for (int32_t word = 0; word < words; word += kStepWords, rows += sizeof(__m256i)) {
      const auto load = [&](int32_t run) {
        return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows + run * row_bytes()));
      };
      __m256i sum = load(0);
      for (int32_t run = 1; run < task_.runs; ++run) sum = _mm256_add_epi8(sum, load(run));
      alignas(32) int32_t odd[kStepWords];
      const __m256i of_words = _mm256_madd_epi16(_mm256_maddubs_epi16(sum, ones), _mm256_set1_epi16(1));
      _mm256_store_si256(reinterpret_cast<__m256i*>(odd), of_words);
      for (int32_t i = 0; i < kStepWords; ++i) {
        odd_before_[word + i] = before;
        before += odd[i];
      }
    }
    odd_before_[(words + kStepWords - 1) / kStepWords * kStepWords] = before;
  }

  const BconvTask& task_;
  TableOffsetsMemory& memory_;
  const int32_t words_;
  bool shared_ = false;
  // What follows is for offsets that are shared.
  ptrdiff_t input_row_bytes_ = 0;
  int64_t step_rows_ = 0;            // rows of input from a row of output to the next
  int32_t pixel_words_ = 0;          // words of input from an output pixel to the next
  int32_t row_words_ = 0;            // words of a row that is staged
  int64_t block_rows_ = 0;           // rows of output in a block, at most
  int32_t* odd_before_ = nullptr;    // [row_words_ + 1], odd nibbles of a window's rows in front of each word
  uint8_t* row_odd_ = nullptr;       // [staged rows][row_bytes], odd nibbles of each byte
  uint16_t* row_offsets_ = nullptr;  // [staged rows][row_offsets]
};

}  // namespace
}  // namespace litebnn
