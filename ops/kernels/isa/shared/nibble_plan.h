// The file splits a window into blocks of nibbles whose lookup sums fit bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/isa/shared/arithmetic.h"
#include "kernels/isa/shared/lookup_tables.h"

namespace litebnn {
// Functions have internal linkage here, so that the linker does not merge copies that are compiled for different CPUs.
namespace {

// The number of words in the longest window whose dot products fit 16 bits. Each nibble adds at most 10 to a dot
// product: four times a lookup (at most 2), and twice a parity (at most 1).
constexpr int32_t kMaxWords = 65535 / (10 * kNibblesPerWord);

// A NibbleBlock is a part of a window: consecutive nibbles, few enough for the sums of their table lookups to fit
// bytes. The block is a list of pieces. A piece is a number of nibbles whose table offsets (numbers that select lookup
// tables) are adjacent elements of one array.
struct NibbleBlock {
  // A window consists of runs (contiguous words), and a piece is a run or a part of one. If there are several runs,
  // each has at least two words. Only the first and the last piece of a block may be shorter than a run.
  Piece pieces[kMaxBlockNibbles / (2 * kNibblesPerWord) + 2];
  int32_t count;
};

// A NibblePlan describes a window that consists of `runs` runs (contiguous words), and splits it into blocks of
// nibbles.
struct NibblePlan {
  NibblePlan(int32_t runs, int32_t run_nibbles, ptrdiff_t run_stride) : nibbles(runs * run_nibbles) {
    const int32_t count = (nibbles + kMaxBlockNibbles - 1) / kMaxBlockNibbles;
    const auto round_up = [](int32_t value, int32_t unit) { return (value + unit - 1) / unit * unit; };
    block = round_up((nibbles + count - 1) / count, 2);
    // Each byte of packed weights has two nibbles. Therefore a block must have an even number of nibbles: it consists
    // of whole runs, or of an even number of groups of seven nibbles.
    const int32_t units[] = {run_nibbles, 2 * kGroupNibbles};
    for (const int32_t unit : units) {
      if (round_up(block, unit) > kMaxBlockNibbles) continue;
      block = round_up(block, unit);
      break;
    }
    for (int32_t i = 0; i * block < nibbles; ++i) {
      blocks[i].count = 0;
      const int32_t end = Min((i + 1) * block, nibbles);
      for (int32_t nibble = i * block, piece; nibble < end; nibble += piece) {
        const int32_t in_run = nibble % run_nibbles;
        piece = Min(end - nibble, run_nibbles - in_run);
        blocks[i].pieces[blocks[i].count++] = {nibble / run_nibbles * run_stride + in_run, piece};
      }
    }
  }

  int32_t nibbles;
  int32_t block;  // nibbles of each block but the last
  NibbleBlock blocks[(kMaxWords * kNibblesPerWord + kMaxBlockNibbles - 1) / kMaxBlockNibbles];
};

}  // namespace
}  // namespace litebnn
