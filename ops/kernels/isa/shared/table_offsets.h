// The file computes the offsets of the lookup tables (lookup_tables.h) for pairs of output pixels.
//
// The nibbles of two pixels select one table, so output pixels are computed in pairs. If the windows of adjacent pixels
// overlap, the offsets of an input row are computed once for all windows that read the row. An offset combines a nibble
// of a window with the corresponding nibble of the next pixel's window. If windows do not overlap, each pair gets its
// own offsets.
#pragma once

#include <cstdint>

#include "kernels/isa/isa.h"
#include "kernels/isa/shared/arithmetic.h"
#include "kernels/isa/shared/lookup_tables.h"
#include "kernels/isa/shared/pixel_walk.h"

namespace litebnn {
// Functions have internal linkage here, so that the linker does not merge copies that are compiled for different CPUs.
namespace {

// The largest number of runs (rows of a window) whose odd-parity nibbles are counted. Each byte of a run adds 0, 1 or 2
// to a counter of one byte, which must hold the sum for all runs.
constexpr int32_t kMaxRuns = 127;
constexpr int32_t kMaxBlockPixels = 448;
// The largest number of copies of the last pixel pair at the end of a block. The copies fill the last tile.
constexpr int32_t kSparePairs = 3;
// The bytes of memory for the table offsets of a block of pixels, few enough to stay in the L2 cache.
constexpr int32_t kTableOffsetsBytes = 160 << 10;

// TableOffsetsMemory has data of a block of output pixels. The data are the offsets of the lookup tables that the
// pixels' windows select, and each window's number of odd-parity nibbles.
template <typename Offset>
struct TableOffsetsMemory {
  // The array `pairs` has the address of each pair's first offset.
  alignas(64) const Offset* pairs[kMaxBlockPixels / 2 + kSparePairs];
  alignas(64) int32_t parity[kMaxBlockPixels];  // twice the odd-parity nibbles of each window, in both 16-bit halves
  alignas(64) Offset offsets[kTableOffsetsBytes / sizeof(Offset)];
};

// Returns the number of odd-parity nibbles in a window, times two, in both 16-bit halves of the result. Kernels add the
// number in this form.
int32_t TwiceInHalves(int32_t parity) { return parity * 2 * 0x10001; }

// The class computes the table offsets of the output pixels of one thread, block by block. The operations that depend
// on the ISA's vectors are in `Traits`, which has the following members:
//   Offset             type of a table's offset
//   ParitySums         counts of odd-parity nibbles of two pixels: None(), Add(other), Totals(int32_t[2])
//   Write(source0, source1, words, offsets)
//                      writes the offsets of two pixels' words and returns their ParitySums
//   CountParity(source, words, counts)
//                      counts the odd-parity nibbles of a row of words; writes at most a byte per byte of words
//   SumParity(counts, row_bytes, rows, words, before)
//                      adds the results of CountParity over `rows` rows and writes prefix sums, [words + 1]
//   kWritesShortWindows
//                      true if the traits have WriteShortWindows<words>(windows, offsets, parity), which writes the
//                      offsets and `parity` (see TableOffsetsMemory) of 2 * kWords / words windows of 2 or 4 words
// Each function of `Traits` that writes results may write up to kWords of them past the end of its output.
template <typename Traits>
class TableOffsets {
 public:
  using Offset = typename Traits::Offset;
  using Memory = TableOffsetsMemory<Offset>;

  // Returns the number of words in the longest supported window.
  static constexpr int32_t MaxWords() { return (kTableOffsetsBytes - kSlack) / kWordOffsetsBytes; }

  // The constructor plans the table offsets of the output pixels [first, last). `first` must be even.
  TableOffsets(const BconvTask& task, int64_t first, int64_t last, Memory& memory)
      : task_(task), memory_(memory), words_(task.runs * task.run_words) {
    constexpr auto kWordBytes = static_cast<ptrdiff_t>(sizeof(uint32_t));
    // Windows share the table offsets of an input row only if the windows overlap. Otherwise half of the row's offsets
    // would be unused. If windows overlap, a window has one run (contiguous words) in each input row that it reads.
    if (task.run_words * kWordBytes <= task.pixel_stride) return;
    input_row_bytes_ = task.runs > 1 ? task.run_offsets[1] : task.row_stride;
    const int64_t width = task.output_width;
    const bool is_one_row = first / width == (last - 1) / width;
    const bool has_whole_pairs = width % 2 == 0 || is_one_row;
    if (!has_whole_pairs || task.row_stride % input_row_bytes_ != 0 || task.runs > kMaxRuns) return;

    stride_rows_ = task.row_stride / input_row_bytes_;
    pixel_words_ = static_cast<int32_t>(task.pixel_stride / kWordBytes);
    const int64_t row_pixels = Min<int64_t>(width, kMaxBlockPixels);
    row_words_ = static_cast<int32_t>(row_pixels - 1) * pixel_words_ + task.run_words;
    // One block of memory holds the counts of odd-parity nibbles and the table offsets of all input rows that a block
    // of pixels reads. The offsets come last, because the code writes past their end.
    const int64_t staged_bytes = row_bytes() + row_offsets() * static_cast<int64_t>(sizeof(Offset));
    const int64_t rows = (kTableOffsetsBytes - row_bytes() - 3 * kSlack) / staged_bytes;
    if (rows < task.runs) return;
    shared_ = true;
    block_rows_ = Min((rows - task.runs) / stride_rows_ + 1, kMaxBlockPixels / row_pixels);
    parity_before_ = reinterpret_cast<int32_t*>(memory.offsets);
    row_parity_ = reinterpret_cast<uint8_t*>(parity_before_) + row_bytes() + kSlack;
    row_offsets_ = reinterpret_cast<Offset*>(row_parity_ + rows * row_bytes() + kSlack);
  }

  // The functions runs(), run_nibbles() and run_stride() describe the layout of a window's table offsets.
  int32_t runs() const { return shared_ ? task_.runs : 1; }
  int32_t run_nibbles() const { return words_ / runs() * kNibblesPerWord; }
  ptrdiff_t run_stride() const { return shared_ ? row_offsets() : 0; }

  // Returns the end of the block of pixels that begins at `pixel`. The blocks up to `last` have nearly equal sizes. If
  // overlapping windows share table offsets, a block consists of whole rows, or of a part of one row if rows are long.
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
  // The functions of `Traits` may write this many bytes past the end of the offsets.
  static constexpr int32_t kSlack = Traits::kWords * kWordOffsetsBytes;

  // Returns the maximum number of pixel pairs in a block, for the case that each pair has its own offsets.
  int32_t MaxWindowPairs() const {
    return Min((kTableOffsetsBytes - kSlack) / (words_ * kWordOffsetsBytes), kMaxBlockPixels / 2);
  }

  ptrdiff_t row_offsets() const { return row_words_ * ptrdiff_t{kNibblesPerWord}; }
  ptrdiff_t row_bytes() const { return row_words_ * static_cast<ptrdiff_t>(sizeof(uint32_t)); }

  // Calls write(windows, i) for each group of kCount windows, where first + i is the first pixel of the group. If the
  // last group has too few windows, it gets copies of the last window.
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

  // Writes the offsets of several short windows together, because a single short window would not fill a vector.
  template <int32_t kWindowWords>
  void WriteShortWindows(int64_t first, int64_t last) const {
    constexpr int kWindows = 2 * Traits::kWords / kWindowWords;
    Offset* offsets = memory_.offsets;
    ForEachWindows<kWindows>(first, last, [&](const uint8_t* const* windows, int64_t i) {
      Traits::template WriteShortWindows<kWindowWords>(windows, offsets, memory_.parity + i);
      for (int64_t pair = i / 2; pair < (i + kWindows) / 2; ++pair, offsets += kWindowWords * kNibblesPerWord) {
        memory_.pairs[pair] = offsets;
      }
    });
  }

  void WriteWindows(int64_t first, int64_t last) const {
    if constexpr (Traits::kWritesShortWindows) {
      if (words_ == 2 && task_.runs == 1) return WriteShortWindows<2>(first, last);
      if (words_ == 4 && task_.runs == 1) return WriteShortWindows<4>(first, last);
    }
    Offset* offsets = memory_.offsets;
    ForEachWindows<2>(first, last, [&](const uint8_t* const* windows, int64_t i) {
      memory_.pairs[i / 2] = offsets;
      auto parity = Traits::None();
      for (int32_t run = 0; run < task_.runs; ++run, offsets += task_.run_words * kNibblesPerWord) {
        const ptrdiff_t offset = task_.run_offsets[run];
        parity.Add(Traits::Write(windows[0] + offset, windows[1] + offset, task_.run_words, offsets));
      }
      int32_t totals[2];
      parity.Totals(totals);
      memory_.parity[i] = TwiceInHalves(totals[0]);
      memory_.parity[i + 1] = TwiceInHalves(totals[1]);
    });
  }

  void WriteRows(int64_t first, int64_t last) const {
    const int64_t width = task_.output_width, first_row = first / width, last_row = (last - 1) / width;
    const int64_t first_column = first_row == last_row ? first % width : 0;
    const int64_t pixels = first_row == last_row ? last - first : width;
    const int64_t staged_rows = (last_row - first_row) * stride_rows_ + task_.runs;
    // The variable `words` is the number of words of an input row that the pixels' windows read.
    const auto words = static_cast<int32_t>((pixels - 1) * pixel_words_) + task_.run_words;
    const int32_t pair_words = words - (pixels % 2 == 0 ? pixel_words_ : 0);
    const uint8_t* source = task_.input + first_row * task_.row_stride + first_column * task_.pixel_stride;
    for (int64_t row = 0; row < staged_rows; ++row, source += input_row_bytes_) {
      Offset* offsets = row_offsets_ + row * row_offsets();
      const int32_t both_words = Min(Max(words - pixel_words_, 0), pair_words);
      Traits::Write(source, source + task_.pixel_stride, both_words, offsets);
      if (both_words < pair_words) {
        const uint8_t* alone = source + both_words * static_cast<ptrdiff_t>(sizeof(uint32_t));
        Traits::Write(alone, alone, pair_words - both_words, offsets + both_words * kNibblesPerWord);
      }
      Traits::CountParity(source, words, row_parity_ + row * row_bytes());
    }
    for (int64_t row = first_row; row <= last_row; ++row) {
      const int64_t begin = Max(first, row * width), end = Min(last, (row + 1) * width);
      const int64_t staged = (row - first_row) * stride_rows_, column = begin - row * width - first_column;
      const Offset* offsets = row_offsets_ + staged * row_offsets();
      for (int64_t i = 0; i < end - begin; i += 2) {
        memory_.pairs[(begin - first + i) / 2] = offsets + (column + i) * pixel_words_ * kNibblesPerWord;
      }
      // SumParity adds up the odd-parity nibbles of the input rows that a row of windows reads, and writes prefix sums
      // over the columns. The number of odd-parity nibbles in a window is then a difference of two prefix sums.
      Traits::SumParity(row_parity_ + staged * row_bytes(), row_bytes(), task_.runs, words, parity_before_);
      const int32_t* window = parity_before_ + column * pixel_words_;
      for (int64_t i = 0; i < end - begin; ++i, window += pixel_words_) {
        memory_.parity[begin - first + i] = TwiceInHalves(window[task_.run_words] - window[0]);
      }
    }
  }

  const BconvTask& task_;
  Memory& memory_;
  const int32_t words_;
  bool shared_ = false;
  // All members from here to the end of the class are used only if windows share offsets.
  ptrdiff_t input_row_bytes_ = 0;
  int64_t stride_rows_ = 0;           // input rows from one output row to the next
  int32_t pixel_words_ = 0;           // input words from one output pixel to the next
  int32_t row_words_ = 0;             // words of a staged row
  int64_t block_rows_ = 0;            // maximum output rows in a block
  int32_t* parity_before_ = nullptr;  // [row_words_ + 1], prefix sums of the parities of a window's rows
  uint8_t* row_parity_ = nullptr;     // [staged rows][row_bytes], odd-parity nibbles per byte
  Offset* row_offsets_ = nullptr;     // [staged rows][row_offsets]
};

}  // namespace
}  // namespace litebnn
