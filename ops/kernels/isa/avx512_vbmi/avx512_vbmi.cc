// The AVX-512 instruction set with VBMI: popcounts are computed by table lookups (inner_loop.h). Tables are made for
// four pixels at a time (strips.h). The weights of all channels are indices into these tables.
#include "kernels/platform/x86_cpu.h"

#if LITEBNN_X86

#include "kernels/isa/avx512/lanes.h"
#include "kernels/isa/avx512/levels.h"
#include "kernels/isa/avx512_vbmi/chunks.h"
#include "kernels/isa/avx512_vbmi/inner_loop.h"
#include "kernels/isa/avx512_vbmi/strips.h"
#include "kernels/isa/avx512_vbmi/tile_weights.h"
#include "kernels/isa/isa.h"
#include "kernels/isa/shared/output.h"

namespace litebnn {
namespace {

constexpr int32_t kTileChannels = kMaxVectors * kVectorChannels;

// Scratch is the memory in which one thread keeps intermediate results.
struct Scratch {
  LaneTables lanes;
  ByteSums sums;
  alignas(64) int32_t dots[kLanePixels][kTileChannels];
};

size_t ScratchBytes(int32_t) { return sizeof(Scratch); }

// A BreakEven is for one kind of CPU. If at least `vectors` vectors of channels use the same table, its lookups save
// the time for making it. The numbers were measured with bench/kernels. docs/decisions.md has the times.
struct BreakEven {
  bool counts_bits_fast;
  int64_t vectors;
};
constexpr BreakEven kBreakEvens[] = {
    {true, 28},  // AMD Zen 5
    {false, 6},  // an Intel server CPU
};

int64_t BreakEvenVectors() {
  const BreakEven* row = kBreakEvens;
  while (row->counts_bits_fast != CpuCountsBitsFast()) ++row;
  return row->vectors;
}

// Chooses between popcounts by VPOPCNTD (avx512) and by table lookups. Making tables pays off if windows share them, or
// if many channels use them.
const Isa* Better(const Bconv2dSpec& spec) {
  // A lookup serves four output pixels. In layers of one or two output pixels, at least half of it would be wasted.
  if (spec.output_pixels == 1 || spec.output_pixels == 2) return &kAvx512Isa;
  const int32_t channels = spec.channels_out / spec.groups;
  const int64_t tap_tables = Chunks(PackedWords(spec.channels_in / spec.groups));
  const int64_t step = Min(spec.stride_width, spec.filter_width);
  const int64_t taps = int64_t{spec.filter_height} * spec.filter_width;
  const bool shares = taps * tap_tables <= kMaxChunks;
  const int64_t tables_of_two = (spec.filter_width + step) * spec.filter_height * tap_tables;
  const bool shares_rows = shares && spec.stride_height == spec.dilation_height_factor && spec.filter_height > 1;
  const bool shares_columns = shares && spec.groups == 1 && spec.dilation_width_factor == 1 &&
                              tables_of_two <= int64_t{kMaxSharedTables} * Vectors(channels);
  const int64_t new_rows = shares_rows ? 1 : spec.filter_height;
  const int64_t new_columns = shares_columns ? step : spec.filter_width;
  static const int64_t table_vectors = BreakEvenVectors();
  const bool pays = table_vectors * kVectorChannels * new_rows * new_columns < channels * taps;
  return taps > 1 && pays ? nullptr : &kAvx512Isa;
}

// LanePixels has the output pixels that are computed in four lanes. For each pixel, it also counts the chunks of its
// window, groups of six bits, that have an odd number of ones. The count is doubled, as the dot product needs it.
struct LanePixels {
  int32_t count;
  int64_t pixel[kLanePixels];
  int32_t twice_parity[kLanePixels];
};

// Multiplies the sums of pixel p in 16 channels by four, and adds them to `dots`. The 16 sums are every fourth byte of
// vector `sum`, from byte `quarter` on.
template <bool kFitsByte>
__attribute__((always_inline)) inline __m512i AddSums(__m512i dots, const ByteSums& sums, int p, int32_t sum,
                                                      int quarter) {
  dots = _mm512_dpbusd_epi32(dots, sums.low[p][sum], _mm512_set1_epi32(4 << 8 * quarter));
  if (kFitsByte) return dots;
  return _mm512_dpbusd_epi32(dots, sums.high[p][sum], _mm512_set1_epi32(4 * 16 << 8 * quarter));
}

// Writes float outputs of four pixels in groups of 16 channels. The sums of the pixels begin at vector `sum` of
// the array `sums`. If kPlain is true, there are no padding corrections and no upper clamp.
template <bool kFitsByte, bool kPlain, typename Epilogue>
void WriteFloats(const BconvTask& task, const TileWeights& tile, const LanePixels& lanes, const ByteSums& sums,
                 int32_t sum) {
  const Epilogue epilogue(task);
  // Floats represent all dot products and bounds exactly, so only the scaling rounds.
  const __m512 clamp_min = _mm512_set1_ps(static_cast<float>(task.clamp_min));
  const __m512 clamp_max = _mm512_set1_ps(static_cast<float>(task.clamp_max));
  const float* multiplier = task.multiplier + tile.channel;
  const float* bias = task.bias + tile.channel;
  // This local copy of `tile` can stay in registers, because no store can modify it.
  const TileWeights weights = tile;
  const uint8_t* vector = weights.vectors;
  ptrdiff_t index[kLanePixels];
  __m512i base[kLanePixels];
  const bool corrects = !kPlain && task.corrections != nullptr;
  const int32_t* corrections[kLanePixels] = {};
#pragma GCC unroll 4
  for (int p = 0; p < kLanePixels; ++p) {
    if (corrects) corrections[p] = CorrectionsOf(task, lanes.pixel[p]) + tile.channel;
    index[p] = OutputIndex(task, lanes.pixel[p], weights.channel);
    base[p] = _mm512_set1_epi32(task.depth + lanes.twice_parity[p]);
  }
  for (int32_t left = weights.channels; left > 0; left -= kVectorChannels, vector += weights.vector_bytes, ++sum) {
    const auto* compensation = reinterpret_cast<const int32_t*>(vector);
#pragma GCC unroll 4
    for (int quarter = 0; quarter < 4; ++quarter) {
      if (16 * quarter >= left) return;
      const auto channel_epilogue = epilogue(weights.channel + weights.channels - left + 16 * quarter);
#pragma GCC unroll 4
      for (int p = 0; p < kLanePixels; ++p) {
        __m512i start = _mm512_add_epi32(base[p], _mm512_load_si512(compensation + 16 * quarter));
        if (corrects) start = _mm512_add_epi32(start, _mm512_loadu_si512(corrections[p] + 16 * quarter));
        const __m512 dots = _mm512_cvtepi32_ps(AddSums<kFitsByte>(start, sums, p, sum, quarter));
        const __m512 above = _mm512_max_ps(dots, clamp_min);
        const __m512 clamped = kPlain ? above : _mm512_min_ps(above, clamp_max);
        const __m512 product = _mm512_mul_ps(clamped, _mm512_loadu_ps(multiplier + 16 * quarter));
        const __m512 value = _mm512_add_ps(product, _mm512_loadu_ps(bias + 16 * quarter));
        channel_epilogue.Store(value, index[p] + 16 * quarter);
      }
    }
    multiplier += kVectorChannels, bias += kVectorChannels;
    for (int p = 0; p < kLanePixels; ++p) {
      index[p] += kVectorChannels;
      if (corrects) corrections[p] += kVectorChannels;
    }
  }
}

// Writes int8 outputs of four pixels in groups of 64 channels. The pixels' sums begin at vector `sum` of `sums`.
template <bool kFitsByte, bool kPlain, typename Levels>
void WriteLevels(const BconvTask& task, const TileWeights& tile, const LanePixels& lanes, const ByteSums& sums,
                 int32_t sum) {
  const LevelWriter<4, kPlain, Levels> writer(task);
  for (int p = 0; p < kLanePixels; ++p) {
    const __m512i base = _mm512_set1_epi32(task.depth + lanes.twice_parity[p]);
    const int32_t* const corrections =
        kPlain || task.corrections == nullptr ? nullptr : CorrectionsOf(task, lanes.pixel[p]);
    for (int32_t done = 0, vector = 0; done < tile.channels; done += kVectorChannels, ++vector) {
      const int32_t channel = tile.channel + done;
      const auto dots = [&](int quarter) __attribute__((always_inline)) {
        const __m512i start = _mm512_add_epi32(base, tile.Compensation(vector, quarter));
        return AddSums<kFitsByte>(start, sums, p, sum + vector, quarter);
      };
      writer.Write(OutputIndex(task, lanes.pixel[p], channel), channel, Min(tile.channels - done, kVectorChannels),
                   corrections, dots);
    }
  }
}

using Writer = void (*)(const BconvTask&, const TileWeights&, const LanePixels&, const ByteSums&, int32_t);

// Returns the instance of the template WriteFloats for the task, or null if WriteFloats does not support the task.
template <bool kFitsByte>
Writer FloatWriterOf(const BconvTask& task) {
  if (task.depth > kMaxFloatDepth || task.channels % SixteenLanes::kLanes != 0) return nullptr;
  return WithFloatEpilogue<SixteenLanes>(task, [&task](auto epilogue) -> Writer {
    using Epilogue = decltype(epilogue);
    return IsPlain(task) ? WriteFloats<kFitsByte, Epilogue::kIsCommon, Epilogue>
                         : WriteFloats<kFitsByte, false, Epilogue>;
  });
}

// Returns the instance of the template WriteLevels for the task, or null if WriteLevels does not support the task.
template <bool kFitsByte>
Writer LevelWriterOf(const BconvTask& task) {
  if (HasExceptions(task)) return nullptr;
  return WithLevels<SixteenLaneLevels>(task, [&task](auto levels) -> Writer {
    using Levels = decltype(levels);
    return IsPlain(task) ? WriteLevels<kFitsByte, true, Levels> : WriteLevels<kFitsByte, false, Levels>;
  });
}

// Returns the function that writes the task's outputs from sums of table lookups, or null if there is none.
template <bool kFitsByte>
Writer WriterOf(const BconvTask& task) {
  if (task.output_type == Bconv2dOutputType::kFloat32) return FloatWriterOf<kFitsByte>(task);
  return task.output_type == Bconv2dOutputType::kInt8 ? LevelWriterOf<kFitsByte>(task) : nullptr;
}

// Adds the sums of table lookups over some chunks (groups of six bits) of a window to `dots`. In `sums`, they begin at
// the vector with the index `sum`. If `first` is true, these are the first chunks of the window, and `dots` is
// overwritten.
void AddDots(const BconvTask& task, const TileWeights& tile, const ByteSums& sums, int32_t sum, bool fits_byte,
             bool first, int32_t (&dots)[kLanePixels][kTileChannels]) {
  const __m512i depth = _mm512_set1_epi32(task.depth);
  for (int p = 0; p < kLanePixels; ++p) {
    for (int32_t vector = 0; vector < Vectors(tile.channels); ++vector) {
      for (int quarter = 0; quarter < 4; ++quarter) {
        int32_t* const at = dots[p] + vector * kVectorChannels + 16 * quarter;
        const __m512i start =
            first ? _mm512_add_epi32(depth, tile.Compensation(vector, quarter)) : _mm512_load_si512(at);
        _mm512_store_si512(at, fits_byte ? AddSums<true>(start, sums, p, sum + vector, quarter)
                                         : AddSums<false>(start, sums, p, sum + vector, quarter));
      }
    }
  }
}

// Writes outputs of any type. The caller's `dots` lack the term for the parity of the windows, which this function adds
// to get the dot products.
void WriteAny(const BconvTask& task, const TileWeights& tile, const LanePixels& lanes,
              int32_t (&dots)[kLanePixels][kTileChannels]) {
  for (int p = 0; p < lanes.count; ++p) {
    const __m512i missing = _mm512_set1_epi32(task.depth - lanes.twice_parity[p]);
    for (int32_t i = 0; i < Vectors(tile.channels) * kVectorChannels; i += 16) {
      const __m512i twice = _mm512_sub_epi32(missing, _mm512_load_si512(dots[p] + i));
      _mm512_store_si512(dots[p] + i, _mm512_srai_epi32(twice, 1));
    }
    WriteOutputs<SixteenLanes>(task, lanes.pixel[p], tile.channel, tile.channels, dots[p]);
  }
}

// A Region is a rectangle of output pixels. If a region of one row has more columns than the output, it continues in
// the next output rows.
struct Region {
  int64_t pixel;  // the first pixel
  int64_t rows, columns;
};

// A StagedTask has a task and the shape of its windows in staged input, which consists of table offsets.
struct StagedTask {
  const BconvTask& task;
  const WindowShape shape{task};
  const Writer write = shape.chunks() <= kMaxByteChunks ? WriterOf<true>(task) : WriterOf<false>(task);
  const ptrdiff_t vector_bytes = static_cast<ptrdiff_t>(VectorBytes(shape.runs * shape.run_taps, task.tap_words));
  int32_t channel_begin, channel_end;
  Scratch& scratch = *static_cast<Scratch*>(task.scratch);

  const uint8_t* Window(int64_t pixel) const {
    const int64_t row = pixel / task.output_width, column = pixel % task.output_width;
    return task.input + row * task.row_stride + column * task.pixel_stride;
  }

  // Splits all channels into tiles, and calls body(tile) for each. A tile has as many channels as the inner loop can
  // compute for `windows` adjacent windows.
  template <typename Body>
  void ForEachTile(int32_t windows, Body body) const {
    for (int32_t channel = channel_begin; channel < channel_end;) {
      const TileWeights tile(task, vector_bytes, channel, channel_end, windows);
      body(tile);
      channel += tile.channels;
    }
  }

  void WriteSums(const TileWeights& tile, const LanePixels& lanes, int32_t sum) const {
    if (write != nullptr && lanes.count == kLanePixels) return write(task, tile, lanes, scratch.sums, sum);
    AddDots(task, tile, scratch.sums, sum, shape.chunks() <= kMaxByteChunks, true, scratch.dots);
    WriteAny(task, tile, lanes, scratch.dots);
  }

  // Computes four blocks of output pixels at the same time. Each block takes one of four lanes, which are two bits of
  // every byte in the lookup tables. `windows` has the address of the window of each block's first pixel. The
  // indices of these first pixels are in `first_lanes`.
  void Blocks(const uint8_t* const* windows, const LanePixels& first_lanes, const Block& block) const {
    const int64_t row_taps = shape.row_taps(block.columns);
    const ptrdiff_t window_bytes = ptrdiff_t{shape.stride_taps} * shape.tap_chunks * kTableBytes;
    // Each of the four lanes, one per block of pixels, computes two adjacent windows at a time.
    LanePixels lanes[kMaxWindows] = {first_lanes, first_lanes};
    for (int64_t& pixel : lanes[1].pixel) ++pixel;
    const auto move_lanes = [&](int64_t pixels) {
      for (LanePixels& of_window : lanes) {
        for (int64_t& pixel : of_window.pixel) pixel += pixels;
      }
    };
    int32_t first_slot = 0;
    for (int64_t y = 0; y < block.rows; ++y) {
      const bool shares = y > 0 && shape.rows_overlap;
      for (int32_t run = shares ? shape.runs - 1 : 0; run < shape.runs; ++run) {
        const uint8_t* staged[kLanePixels];
        for (int p = 0; p < kLanePixels; ++p) staged[p] = windows[p] + y * task.row_stride + task.run_offsets[run];
        scratch.lanes.WriteRow(shape, staged, row_taps, shares ? first_slot : run);
      }
      if (shares && ++first_slot == shape.runs) first_slot = 0;
      for (int64_t x = 0; x < block.columns;) {
        const auto together = static_cast<int32_t>(Min<int64_t>(kMaxWindows, block.columns - x));
        scratch.lanes.FindRuns(shape, row_taps, first_slot, x * shape.stride_taps);
        for (int32_t window = 0; window < together; ++window) {
          scratch.lanes.FindTwiceParity(shape, row_taps, (x + window) * shape.stride_taps, lanes[window].twice_parity);
        }
        ForEachTile(together, [&](const TileWeights& tile) {
          tile.Sum(scratch.lanes.runs, shape.runs, shape.run_chunks(), 0, together, window_bytes, scratch.sums);
          for (int32_t window = 0; window < together; ++window) {
            WriteSums(tile, lanes[window], window * Vectors(tile.channels));
          }
        });
        x += together;
        move_lanes(together);
      }
      move_lanes(task.output_width - block.columns);
    }
  }

  // Computes windows whose sums do not fit ByteSums. Each tap is summed in pieces, and the sums of the pieces are added
  // to 32-bit dot products.
  void LongWindows(const uint8_t* const* windows, LanePixels lanes) const {
    ForEachTile(1, [&](const TileWeights& tile) {
      for (int p = 0; p < kLanePixels; ++p) lanes.twice_parity[p] = 0;
      int64_t done = 0;
      for (int32_t tap = 0; tap < shape.runs * shape.run_taps; ++tap) {
        const ptrdiff_t offset = task.run_offsets[tap / shape.run_taps] + tap % shape.run_taps * shape.tap_bytes;
        const uint8_t* staged[kLanePixels];
        for (int p = 0; p < kLanePixels; ++p) {
          staged[p] = windows[p] + offset;
          lanes.twice_parity[p] += 2 * LaneTables::ParityOf(staged[p], shape);
        }
        for (int32_t chunk = 0, piece; chunk < shape.tap_chunks; chunk += piece, done += piece) {
          piece = Min(shape.tap_chunks - chunk, kMaxChunks);
          const uint8_t* const run = scratch.lanes.tables[0];
          MakeTables(staged, piece, scratch.lanes.tables[0]);
          tile.Sum(&run, 1, piece, done, 1, 0, scratch.sums);
          AddDots(task, tile, scratch.sums, 0, piece <= kMaxByteChunks, done == 0, scratch.dots);
          for (const uint8_t*& lane : staged) lane += piece * static_cast<ptrdiff_t>(sizeof(uint16_t));
        }
      }
      WriteAny(task, tile, lanes, scratch.dots);
    });
  }

  // Computes a region of output pixels that can be divided into blocks of the shape `block`. The function is not
  // inlined, because each inlined copy would take tens of kilobytes.
  __attribute__((noinline)) void Pixels(const Region& region, const Block& block) const {
    const int64_t band_lanes = region.columns / block.columns, lane_count = region.rows / block.rows * band_lanes;
    const int64_t together = block.splits_remainder ? lane_count / kLanePixels * kLanePixels : lane_count;
    const auto first_pixel = [&](int64_t lane) {
      return region.pixel + lane / band_lanes * block.rows * task.output_width + lane % band_lanes * block.columns;
    };
    for (int64_t lane = 0; lane < together; lane += kLanePixels) {
      LanePixels lanes = {static_cast<int32_t>(Min<int64_t>(kLanePixels, together - lane)), {}, {}};
      const uint8_t* windows[kLanePixels];
      for (int p = 0; p < kLanePixels; ++p) {
        // Each of the four lanes computes one block of output pixels. If fewer than four blocks are left, the spare
        // lanes compute the last block again.
        lanes.pixel[p] = first_pixel(lane + Min(p, lanes.count - 1));
        windows[p] = Window(lanes.pixel[p]);
      }
      shape.chunks() <= kMaxChunks ? Blocks(windows, lanes, block) : LongWindows(windows, lanes);
    }
    for (int64_t lane = together; lane < lane_count; ++lane) {
      Pixels({first_pixel(lane), block.rows, block.columns}, kPixel);
    }
  }

  void AllPixels(int64_t begin, int64_t end) const {
    const int64_t width = task.output_width, first_row = (begin + width - 1) / width, row_end = end / width;
    const bool shares = (shape.rows_overlap || shape.stride_taps > 0) && shape.chunks() <= kMaxChunks;
    if (!shares || first_row >= row_end) return Pixels({begin, 1, end - begin}, kPixel);
    Pixels({begin, 1, first_row * width - begin}, kPixel);
    Pixels({first_row * width, row_end - first_row, width},
           BestBlock(shape, row_end - first_row, width, Vectors(channel_end - channel_begin)));
    Pixels({row_end * width, 1, end - row_end * width}, kPixel);
  }
};

void Bconv(const BconvTask& task, int64_t pixel_begin, int64_t pixel_end, int32_t channel_begin, int32_t channel_end) {
  StagedTask{.task = task, .channel_begin = channel_begin, .channel_end = channel_end}.AllPixels(pixel_begin,
                                                                                                 pixel_end);
}

}  // namespace

const Isa kAvx512VbmiIsa = {
    .name = "avx512_vbmi",
    .available = CpuHasAvx512Vbmi,
    .pack_float32_signs = Avx512PackFloat32Signs,
    .pack_int8_signs = Avx512PackInt8Signs,
    .pack_int8_comparisons = Avx512PackInt8Comparisons,
    .pack_affine_signs = Avx512PackAffineSigns,
    .max_window = Avx512MaxWindow,
    .max_int8_window = Avx512MaxInt8Window,
    .average_int8_window = Avx2AverageInt8Window,
    .gate_pixels = Avx512GatePixels,
    .tile_pixels = kLanePixels,
    .tile_channels = kVectorChannels,
    .macs_per_cycle = 600,
    .staged_bytes = StagedBytes,
    .stage = Stage,
    .packed_weights_bytes = PackedWeightsBytes,
    .pack_weights = PackWeights,
    .scratch_bytes = ScratchBytes,
    .bconv = Bconv,
    .reads_may_tie = true,
    .better = Better,
    .int8_conv = Avx512Int8Conv,
};

}  // namespace litebnn

#endif  // LITEBNN_X86
