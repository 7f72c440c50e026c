// The offsets of the lookup tables (lookup_tables.h) for the windows of pairs of output pixels.
//
// A table belongs to a nibble of both pixels of a pair. Where output pixels beside each other form pairs, the offsets
// of a row of input are made once, each for a word and the one that is as far to its right as the second window, and
// every pair of windows finds its own among them. Elsewhere each pair gets a copy of its own.
#pragma once

#include <cstdint>

#include "kernels/isa/isa.h"
#include "kernels/isa/shared/arithmetic.h"
#include "kernels/isa/shared/lookup_tables.h"
#include "kernels/isa/shared/pixel_walk.h"

namespace litebnn {
// Every ISA's file has its own copy, compiled for its own CPU.
namespace {

// Runs whose odd nibbles a byte can count.
constexpr int32_t kMaxRuns = 127;
constexpr int32_t kMaxBlockPixels = 448;
// Pairs that a tile may take beyond those that there are.
constexpr int32_t kSparePairs = 3;
// What is kept of a block goes through the L2 cache.
constexpr int32_t kTableOffsetsBytes = 160 << 10;

// What a block of output pixels is given.
template <typename Offset>
struct TableOffsetsMemory {
  // The offset for the first nibble of a pair's windows.
  alignas(64) const Offset* pairs[kMaxBlockPixels / 2 + kSparePairs];
  alignas(64) int32_t odd[kMaxBlockPixels];  // twice the odd nibbles of a window, in both halves
  alignas(64) Offset offsets[kTableOffsetsBytes / sizeof(Offset)];
};

// A window's number of odd nibbles as kernels want it: twice, in both halves.
int32_t TwiceInHalves(int32_t odd) { return odd * 2 * 0x10001; }

// Makes the offsets for the output pixels that one thread computes, block by block. What depends on an ISA's vectors is
// asked of `Step`:
//   Offset             what tells a table
//   OddSums            counts of odd nibbles of two pixels: None(), Add(other), Totals(int32_t[2])
//   Write(source0, source1, words, offsets)
//                      writes the offsets of two pixels' words and returns their OddSums
//   CountOdd(source, words, counts)
//                      counts the odd nibbles of a row of words, in as much memory
//   SumOdd(counts, row_bytes, rows, words, before)
//                      sums such counts up over `rows` rows, and writes what is in front of each word and behind all
//   kWritesShortWindows
//                      whether there is WriteShortWindows<words>(windows, offsets, odd), which writes the offsets and,
//                      as TableOffsetsMemory has them, the odd nibbles of 2 * kWords / words windows of 2 or 4 words
// All may write as much as for kWords words beyond the last one.
template <typename Step>
class TableOffsets {
 public:
  using Offset = typename Step::Offset;
  using Memory = TableOffsetsMemory<Offset>;

  // The longest windows that it takes.
  static constexpr int32_t MaxWords() { return (kTableOffsetsBytes - kSlack) / kWordOffsetsBytes; }

  // For output pixels [first, last), of which the first is even.
  TableOffsets(const BconvTask& task, int64_t first, int64_t last, Memory& memory)
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
    const int64_t staged_bytes = row_bytes() + row_offsets() * static_cast<int64_t>(sizeof(Offset));
    const int64_t rows = (kTableOffsetsBytes - row_bytes() - 3 * kSlack) / staged_bytes;
    if (rows < task.runs) return;
    shared_ = true;
    block_rows_ = Min((rows - task.runs) / step_rows_ + 1, kMaxBlockPixels / row_pixels);
    odd_before_ = reinterpret_cast<int32_t*>(memory.offsets);
    row_odd_ = reinterpret_cast<uint8_t*>(odd_before_) + row_bytes() + kSlack;
    row_offsets_ = reinterpret_cast<Offset*>(row_odd_ + rows * row_bytes() + kSlack);
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
    const int64_t most = by_rows ? block_rows_ : shared_ ? kMaxBlockPixels / 2 : MaxWindowPairs();
    const int64_t first_unit = pixel / unit, units = (last + unit - 1) / unit - first_unit;
    const int64_t blocks = (units + most - 1) / most;
    return Min((first_unit + (units + blocks - 1) / blocks) * unit, last);
  }

  void Write(int64_t first, int64_t last) const { shared_ ? WriteRows(first, last) : WriteWindows(first, last); }

 private:
  static constexpr int32_t kWordOffsetsBytes = kNibblesPerWord * static_cast<int32_t>(sizeof(Offset));
  // Bytes that may be written behind what is made of some words.
  static constexpr int32_t kSlack = Step::kWords * kWordOffsetsBytes;

  // Pairs that have copies of their own in a block, at most.
  int32_t MaxWindowPairs() const {
    return Min((kTableOffsetsBytes - kSlack) / (words_ * kWordOffsetsBytes), kMaxBlockPixels / 2);
  }

  ptrdiff_t row_offsets() const { return row_words_ * ptrdiff_t{kNibblesPerWord}; }
  ptrdiff_t row_bytes() const { return row_words_ * static_cast<ptrdiff_t>(sizeof(uint32_t)); }

  // Calls write(windows, i) with the windows of kCount pixels from first + i on, for all pixels. Those of pixels behind
  // the last one are some that can be read.
  template <int kCount, typename Write>
  __attribute__((always_inline)) void ForEachWindows(int64_t first, int64_t last, Write write) const {
    WindowWalk walk{task_, first};
    const uint8_t* windows[kCount];
    for (int64_t i = 0; i < last - first; i += kCount) {
      if (walk.left_in_row > kCount) {
        walk.Next<kCount>(windows);
      } else {
        for (int64_t j = 0; j < kCount; ++j) windows[j] = i + j < last - first ? walk.Next() : windows[j - 1];
      }
      write(windows, i);
    }
  }

  // Where a window is short, each pair by itself would cost what is done for whole vectors.
  template <int32_t kWindowWords>
  void WriteShortWindows(int64_t first, int64_t last) const {
    constexpr int kWindows = 2 * Step::kWords / kWindowWords;
    Offset* offsets = memory_.offsets;
    ForEachWindows<kWindows>(first, last, [&](const uint8_t* const* windows, int64_t i) {
      Step::template WriteShortWindows<kWindowWords>(windows, offsets, memory_.odd + i);
      for (int64_t pair = i / 2; pair < (i + kWindows) / 2; ++pair, offsets += kWindowWords * kNibblesPerWord) {
        memory_.pairs[pair] = offsets;
      }
    });
  }

  void WriteWindows(int64_t first, int64_t last) const {
    if constexpr (Step::kWritesShortWindows) {
      if (words_ == 2 && task_.runs == 1) return WriteShortWindows<2>(first, last);
      if (words_ == 4 && task_.runs == 1) return WriteShortWindows<4>(first, last);
    }
    Offset* offsets = memory_.offsets;
    ForEachWindows<2>(first, last, [&](const uint8_t* const* windows, int64_t i) {
      memory_.pairs[i / 2] = offsets;
      auto odd = Step::None();
      for (int32_t run = 0; run < task_.runs; ++run, offsets += task_.run_words * kNibblesPerWord) {
        const ptrdiff_t offset = task_.run_offsets[run];
        odd.Add(Step::Write(windows[0] + offset, windows[1] + offset, task_.run_words, offsets));
      }
      int32_t totals[2];
      odd.Totals(totals);
      memory_.odd[i] = TwiceInHalves(totals[0]);
      memory_.odd[i + 1] = TwiceInHalves(totals[1]);
    });
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
      Offset* offsets = row_offsets_ + row * row_offsets();
      const int32_t both_words = Min(Max(words - pixel_words_, 0), pair_words);
      Step::Write(source, source + task_.pixel_stride, both_words, offsets);
      if (both_words < pair_words) {
        const uint8_t* alone = source + both_words * static_cast<ptrdiff_t>(sizeof(uint32_t));
        Step::Write(alone, alone, pair_words - both_words, offsets + both_words * kNibblesPerWord);
      }
      Step::CountOdd(source, words, row_odd_ + row * row_bytes());
    }
    for (int64_t row = first_row; row <= last_row; ++row) {
      const int64_t begin = Max(first, row * width), end = Min(last, (row + 1) * width);
      const int64_t staged = (row - first_row) * step_rows_, column = begin - row * width - first_column;
      const Offset* offsets = row_offsets_ + staged * row_offsets();
      for (int64_t i = 0; i < end - begin; i += 2) {
        memory_.pairs[(begin - first + i) / 2] = offsets + (column + i) * pixel_words_ * kNibblesPerWord;
      }
      // A window's rows are summed up before its columns, as neighbouring windows share those.
      Step::SumOdd(row_odd_ + staged * row_bytes(), row_bytes(), task_.runs, words, odd_before_);
      const int32_t* window = odd_before_ + column * pixel_words_;
      for (int64_t i = 0; i < end - begin; ++i, window += pixel_words_) {
        memory_.odd[begin - first + i] = TwiceInHalves(window[task_.run_words] - window[0]);
      }
    }
  }

  const BconvTask& task_;
  Memory& memory_;
  const int32_t words_;
  bool shared_ = false;
  // What follows is for offsets that are shared.
  ptrdiff_t input_row_bytes_ = 0;
  int64_t step_rows_ = 0;          // rows of input from a row of output to the next
  int32_t pixel_words_ = 0;        // words of input from an output pixel to the next
  int32_t row_words_ = 0;          // words of a row that is staged
  int64_t block_rows_ = 0;         // rows of output in a block, at most
  int32_t* odd_before_ = nullptr;  // [row_words_ + 1], odd nibbles of a window's rows in front of each word
  uint8_t* row_odd_ = nullptr;     // [staged rows][row_bytes], odd nibbles of each byte
  Offset* row_offsets_ = nullptr;  // [staged rows][row_offsets]
};

}  // namespace
}  // namespace litebnn
