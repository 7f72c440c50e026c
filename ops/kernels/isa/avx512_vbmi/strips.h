// The lookup tables of four output pixels at a time, and which pixels go together.
//
// A table serves a chunk of the input of four pixels, the lanes. Each lane walks through a block of output pixels, row
// by row; windows beside and below each other share their taps' tables, so that most are made once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/isa/avx2/intrinsics.h"
#include "kernels/isa/avx512_vbmi/chunks.h"
#include "kernels/isa/avx512_vbmi/inner_loop.h"
#include "kernels/isa/isa.h"

namespace litebnn {
// Nothing in here may be shared with files compiled for other CPUs.
namespace {

// Tables that several windows in a row share, for each vector of channels that looks up in them: few stay in the L1
// cache, and many are read from the L2 cache the less often.
constexpr int32_t kMaxSharedTables = 360;

// How windows are made of taps, and which they share.
struct WindowShape {
  int32_t runs, run_taps, tap_chunks;
  ptrdiff_t tap_bytes;
  int32_t step_taps;  // from a window to the one beside it, where they overlap, or 0
  bool rows_overlap;  // run r + 1 of a window is run r of the one below

  explicit WindowShape(const BconvTask& task)
      : runs(task.runs),
        run_taps(task.run_words / task.tap_words),
        tap_chunks(Chunks(task.tap_words)),
        tap_bytes(static_cast<ptrdiff_t>(StagedBytes(task.tap_words))),
        step_taps(task.pixel_stride < run_taps * tap_bytes ? static_cast<int32_t>(task.pixel_stride / tap_bytes) : 0),
        rows_overlap(runs > 1) {
    for (int32_t run = 0; run < runs; ++run) {
      rows_overlap = rows_overlap && task.run_offsets[run] == run * task.row_stride;
    }
  }

  int32_t run_chunks() const { return run_taps * tap_chunks; }
  int64_t chunks() const { return int64_t{runs} * run_chunks(); }
  // Of `columns` windows beside each other.
  int64_t row_taps(int64_t columns) const { return (columns - 1) * step_taps + run_taps; }
};

// A lane's output pixels.
struct Block {
  int64_t rows, columns;
  // Whether lanes that are left over, fewer than four, are computed a pixel a lane.
  bool splits_rest;
};

constexpr Block kPixel = {1, 1, false};

// The best blocks for that many rows of output: larger ones share more, smaller ones fill the last four lanes better.
Block BestBlock(const WindowShape& shape, int64_t rows, int64_t width, int32_t vectors) {
  // A table takes about as long as three lookups.
  constexpr int64_t kTableLookups = 3;
  const auto cost_of_lanes = [&](int64_t lane_rows, int64_t columns) {
    const int64_t made_rows = shape.rows_overlap ? lane_rows + shape.runs - 1 : lane_rows * shape.runs;
    return lane_rows * columns * shape.chunks() * vectors +
           kTableLookups * made_rows * shape.row_taps(columns) * shape.tap_chunks;
  };
  const int64_t most_tables = Min(kMaxSharedTables * vectors, kMaxChunks);
  Block best = kPixel;
  int64_t best_cost = INT64_MAX;
  const int64_t most_columns = shape.step_taps == 0 ? 1 : width, most_bands = shape.rows_overlap ? rows : 1;
  for (int64_t columns = 1; columns <= most_columns; ++columns) {
    if (columns > 1 && shape.runs * shape.row_taps(columns) * shape.tap_chunks > most_tables) break;
    if (width % columns != 0) continue;
    for (int64_t bands = 1; bands <= most_bands; ++bands) {
      if (rows % bands != 0) continue;
      const int64_t lane_rows = rows / bands, lanes = bands * (width / columns), rest = lanes % kLanePixels;
      const int64_t lanes_cost = cost_of_lanes(lane_rows, columns), together = rest > 0 ? lanes_cost : 0;
      const int64_t apart = rest * ((lane_rows * columns + kLanePixels - 1) / kLanePixels) * cost_of_lanes(1, 1);
      const int64_t cost = lanes / kLanePixels * lanes_cost + Min(together, apart);
      if (cost < best_cost) best = {lane_rows, columns, apart < together}, best_cost = cost;
    }
  }
  return best;
}

// What four lanes look up in.
struct LaneTables {
  // [runs][taps of a row of windows][chunks]; a row of input takes the place of the one that no window needs any more.
  alignas(64) uint8_t tables[kMaxChunks][kTableBytes];
  alignas(64) int32_t odd[kMaxChunks][kLanePixels];  // odd chunks of each tap
  const uint8_t* runs[kMaxChunks];                   // of a window

  // The tables of some chunks of each lane, from table `first` on.
  void Write(const uint8_t* const* staged, int32_t chunks, int64_t first) {
    const uint16_t* offsets[kLanePixels];
    for (int p = 0; p < kLanePixels; ++p) offsets[p] = reinterpret_cast<const uint16_t*>(staged[p]);
    const auto part = [&](int p, int32_t chunk) {
      return _mm512_load_si512(kLookupTables.data[p % 2] + offsets[p][chunk]);
    };
#pragma GCC unroll 4
    for (int32_t chunk = 0; chunk < chunks; ++chunk) {
      const __m512i high = _mm512_slli_epi16(_mm512_or_si512(part(2, chunk), part(3, chunk)), 4);
      const __m512i table = _mm512_ternarylogic_epi32(high, part(0, chunk), part(1, chunk), 0xFE);
      _mm512_store_si512(tables[first + chunk], table);
    }
  }

  // The tables of a row of taps that is at `staged` in each lane, as the slot's.
  void WriteRow(const WindowShape& shape, const uint8_t* const* staged, int64_t row_taps, int64_t slot) {
    const uint8_t* tap[kLanePixels] = {staged[0], staged[1], staged[2], staged[3]};
    for (int64_t i = slot * row_taps; i < (slot + 1) * row_taps; ++i) {
      Write(tap, shape.tap_chunks, i * shape.tap_chunks);
      for (int p = 0; p < kLanePixels; ++p) {
        odd[i][p] = OddOf(tap[p], shape);
        tap[p] += shape.tap_bytes;
      }
    }
  }

  static int32_t OddOf(const uint8_t* tap, const WindowShape& shape) {
    return reinterpret_cast<const uint16_t*>(tap)[shape.tap_chunks];
  }

  // Finds the runs of the window that begins with slot `first` and tap `tap`; `twice_odd`: of its odd chunks.
  void FindWindow(const WindowShape& shape, int64_t row_taps, int32_t first, int64_t tap,
                  int32_t (&twice_odd)[kLanePixels]) {
    __m128i sum = _mm_setzero_si128();
    for (int32_t run = 0, slot = first; run < shape.runs; ++run, ++slot) {
      if (slot == shape.runs) slot = 0;
      const int64_t begin = slot * row_taps + tap;
      runs[run] = tables[begin * shape.tap_chunks];
      for (int32_t i = 0; i < shape.run_taps; ++i) {
        sum = _mm_add_epi32(sum, _mm_load_si128(reinterpret_cast<const __m128i*>(odd[begin + i])));
      }
    }
    _mm_storeu_si128(reinterpret_cast<__m128i*>(twice_odd), _mm_add_epi32(sum, sum));
  }
};

}  // namespace
}  // namespace litebnn
