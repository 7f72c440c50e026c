// The file makes the lookup tables of four output pixels, and chooses the pixels that are computed together.
//
// A lookup table has a byte for each of the 64 values of six filter bits. The byte has two bits for each of four output
// pixels: half the number of matches with six bits of the pixel's input window. The four pixels belong to four blocks
// of the output image, each of which is computed row by row. Adjacent windows share the tables of the taps that they
// have in common, so most tables are made only once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/isa/avx2/intrinsics.h"
#include "kernels/isa/avx512_vbmi/chunks.h"
#include "kernels/isa/avx512_vbmi/inner_loop.h"
#include "kernels/isa/isa.h"

namespace litebnn {
// Functions have internal linkage here, so that the linker does not merge copies that are compiled for different CPUs.
namespace {

// The largest number of tables, for each vector of channels, that are kept for the next windows. With a larger limit,
// fewer tables would be made twice, but they would not stay in the L1 cache.
constexpr int32_t kMaxSharedTables = 360;
// The largest number of lookup tables in memory at a time. A window needs a table for each of its chunks (six bits of
// the input). The limit is above kMaxChunks, the limit for one window, so that adjacent long windows can share tables.
constexpr int32_t kMaxTables = 2048;
static_assert(kMaxTables >= kMaxChunks, "");

// A WindowShape describes the taps of a window, and the taps that adjacent windows share.
struct WindowShape {
  int32_t runs, run_taps, tap_chunks;
  ptrdiff_t tap_bytes;
  int32_t stride_taps;  // taps from one window to the next in a row if they overlap, otherwise 0
  bool rows_overlap;    // true if run r + 1 of a window is run r of the window below

  explicit WindowShape(const BconvTask& task)
      : runs(task.runs),
        run_taps(task.run_words / task.tap_words),
        tap_chunks(Chunks(task.tap_words)),
        tap_bytes(static_cast<ptrdiff_t>(StagedBytes(task.tap_words))),
        stride_taps(task.pixel_stride < run_taps * tap_bytes ? static_cast<int32_t>(task.pixel_stride / tap_bytes) : 0),
        rows_overlap(runs > 1) {
    for (int32_t run = 0; run < runs; ++run) {
      rows_overlap = rows_overlap && task.run_offsets[run] == run * task.row_stride;
    }
  }

  int32_t run_chunks() const { return run_taps * tap_chunks; }
  int64_t chunks() const { return int64_t{runs} * run_chunks(); }
  // Returns the number of taps that `columns` adjacent windows read of one input row.
  int64_t row_taps(int64_t columns) const { return (columns - 1) * stride_taps + run_taps; }
};

// A Block is the shape of the block of output pixels that one lane computes.
struct Block {
  int64_t rows, columns;
  // After as many groups of four blocks as possible, one to three blocks may remain. True if the four lanes then
  // compute pixels of the same remaining block, so that none of them is idle.
  bool splits_remainder;
};

constexpr Block kPixel = {1, 1, false};

// Chooses the shape of the blocks into which `rows` rows of output pixels are split; each of four lanes computes one
// block at a time. The windows of a larger block share more lookup tables. Smaller blocks leave fewer of the four lanes
// idle at the end.
Block BestBlock(const WindowShape& shape, int64_t rows, int64_t width, int32_t vectors) {
  // Making one table takes about as long as this many lookups.
  constexpr int64_t kTableLookups = 3;
  const auto cost_of_lanes = [&](int64_t lane_rows, int64_t columns) {
    const int64_t made_rows = shape.rows_overlap ? lane_rows + shape.runs - 1 : lane_rows * shape.runs;
    return lane_rows * columns * shape.chunks() * vectors +
           kTableLookups * made_rows * shape.row_taps(columns) * shape.tap_chunks;
  };
  const int64_t most_tables = Min(kMaxSharedTables * vectors, kMaxTables);
  Block best = kPixel;
  int64_t best_cost = INT64_MAX;
  const int64_t most_columns = shape.stride_taps == 0 ? 1 : width, most_bands = shape.rows_overlap ? rows : 1;
  for (int64_t columns = 1; columns <= most_columns; ++columns) {
    if (columns > 1 && shape.runs * shape.row_taps(columns) * shape.tap_chunks > most_tables) break;
    if (width % columns != 0) continue;
    for (int64_t bands = 1; bands <= most_bands; ++bands) {
      if (rows % bands != 0) continue;
      const int64_t lane_rows = rows / bands, lanes = bands * (width / columns), remainder = lanes % kLanePixels;
      const int64_t lanes_cost = cost_of_lanes(lane_rows, columns), together = remainder > 0 ? lanes_cost : 0;
      const int64_t apart = remainder * ((lane_rows * columns + kLanePixels - 1) / kLanePixels) * cost_of_lanes(1, 1);
      const int64_t cost = lanes / kLanePixels * lanes_cost + Min(together, apart);
      // If several shapes of blocks cost the same time, the widest is chosen, because the inner loop computes two
      // horizontally adjacent windows at once.
      if (cost <= best_cost) best = {lane_rows, columns, apart < together}, best_cost = cost;
    }
  }
  return best;
}

// Makes one lookup table for each of `chunks` chunks (groups of six bits), by combining constant tables for the chunks
// of four lanes' pixels. The pointer staged[lane] leads to the offsets of a lane's constant tables in kLookupTables.
// The function is not inlined, so that it has enough registers.
__attribute__((noinline)) void MakeTables(const uint8_t* const* staged, int32_t chunks, uint8_t* tables) {
  const uint8_t* lanes[kLanePixels] = {staged[0], staged[1], staged[2], staged[3]};
  // The lambda makes the tables of up to four chunks. It loads the offsets of these chunks by one instruction, because
  // loads are the bottleneck.
  const auto make = [&](auto offsets_type, int count) __attribute__((always_inline)) {
    decltype(offsets_type) offsets[kLanePixels];
#pragma GCC unroll 4
    for (int p = 0; p < kLanePixels; ++p) {
      std::memcpy(&offsets[p], lanes[p], sizeof(offsets[p]));
      lanes[p] += sizeof(offsets[p]);
    }
#pragma GCC unroll 4
    for (int chunk = 0; chunk < count; ++chunk, tables += kTableBytes) {
      const auto part = [&](int p) {
        return _mm512_load_si512(kLookupTables.data[p % 2] + static_cast<uint16_t>(offsets[p] >> 16 * chunk));
      };
      const __m512i high = _mm512_slli_epi16(_mm512_or_si512(part(2), part(3)), 4);
      _mm512_store_si512(tables, _mm512_ternarylogic_epi32(high, part(0), part(1), 0xFE));
    }
  };
  for (; chunks >= 4; chunks -= 4) make(uint64_t{}, 4);
  for (; chunks > 0; --chunks) make(uint16_t{}, 1);
}

// LaneTables has the lookup tables for four lanes, each of which computes one output pixel. For each tap, it also has
// the number of chunks (six bits of the input) with odd parity.
struct LaneTables {
  static constexpr int32_t kMaxTaps = kMaxTables / Chunks(1);
  // The layout of `tables` is [rows of the input][taps of a row of windows][chunks]. The array is a ring buffer of
  // input rows, in which a new row replaces the oldest row.
  alignas(64) uint8_t tables[kMaxTables][kTableBytes];
  alignas(64) int32_t parity[kMaxTaps][kLanePixels];  // number of odd-parity chunks of each tap
  const uint8_t* runs[kMaxTaps];                      // tables of the current window's runs

  // Makes the lookup tables for the taps of one row of the input, and stores them in row `slot` of the ring buffer. A
  // table combines the taps of four lanes, which compute four blocks of output pixels. For each lane, `staged` has the
  // address of the table offsets of its row.
  void WriteRow(const WindowShape& shape, const uint8_t* const* staged, int64_t row_taps, int64_t slot) {
    const uint8_t* tap[kLanePixels] = {staged[0], staged[1], staged[2], staged[3]};
    for (int64_t i = slot * row_taps; i < (slot + 1) * row_taps; ++i) {
      MakeTables(tap, shape.tap_chunks, tables[i * shape.tap_chunks]);
      // Each lane has a number of odd-parity chunks (six bits) for this tap. The numbers of all four lanes are stored
      // as one vector, because FindTwiceParity loads them as one vector. A vector load stalls after several narrower
      // stores to its address.
      const __m128i lane_parities = _mm_setr_epi32(ParityOf(tap[0], shape), ParityOf(tap[1], shape),
                                                   ParityOf(tap[2], shape), ParityOf(tap[3], shape));
      _mm_store_si128(reinterpret_cast<__m128i*>(parity[i]), lane_parities);
      for (const uint8_t*& lane : tap) lane += shape.tap_bytes;
    }
  }

  static int32_t ParityOf(const uint8_t* tap, const WindowShape& shape) {
    return reinterpret_cast<const uint16_t*>(tap)[shape.tap_chunks];
  }

  // Sets `runs` to the addresses of the lookup tables of one window, one address for each run (adjacent taps of an
  // input row). The window begins at row `first` of the ring buffer of input rows, and at tap `tap` of the row.
  void FindRuns(const WindowShape& shape, int64_t row_taps, int32_t first, int64_t tap) {
    for (int32_t run = 0, slot = first; run < shape.runs; ++run, ++slot) {
      if (slot == shape.runs) slot = 0;
      runs[run] = tables[(slot * row_taps + tap) * shape.tap_chunks];
    }
  }

  // Computes twice the number of chunks (six bits) with odd parity in one window of each lane. The window begins at
  // tap `tap` of each input row in the ring buffer.
  void FindTwiceParity(const WindowShape& shape, int64_t row_taps, int64_t tap,
                       int32_t (&twice_parity)[kLanePixels]) const {
    __m128i sum = _mm_setzero_si128();
    for (int32_t run = 0; run < shape.runs; ++run, tap += row_taps) {
      for (int32_t i = 0; i < shape.run_taps; ++i) {
        sum = _mm_add_epi32(sum, _mm_load_si128(reinterpret_cast<const __m128i*>(parity[tap + i])));
      }
    }
    _mm_storeu_si128(reinterpret_cast<__m128i*>(twice_parity), _mm_add_epi32(sum, sum));
  }
};

}  // namespace
}  // namespace litebnn
