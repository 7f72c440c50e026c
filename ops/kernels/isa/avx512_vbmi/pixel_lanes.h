// The other way round, for few channels and many pixels: the tables are those of four channels' weights, and one
// permutation looks up 64 pixels that lie side by side in the frame. Where tables are made of pixels, each serves one
// lookup for every 64 channels; these are made once for all pixels.
//
// The input's chunks are the indices then. They lie in planes: a plane has a chunk of each tap of the frame, so that a
// window's chunk is the one of the window before it a byte further on. Lanes go through the frame in its own order,
// and what comes of those between two rows of output is left alone.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/isa/avx2/intrinsics.h"
#include "kernels/isa/avx512_vbmi/chunks.h"
#include "kernels/isa/avx512_vbmi/inner_loop.h"
#include "kernels/isa/avx512_vbmi/strips.h"
#include "kernels/isa/isa.h"

namespace litebnn {
// Nothing in here may be shared with files compiled for other CPUs.
namespace {

constexpr int32_t kQuads = kVectorChannels / 4;
constexpr int32_t kBlockLanes = kMaxVectors * 64;
// Shorter filters gain less than the outputs' way back to pixels takes, and the tables of longer ones would leave no
// room in the L2 cache.
constexpr int32_t kMinQuadWords = 54, kMaxQuadWords = 96;
constexpr int32_t kMaxPlanes = 256 << 10;
constexpr int32_t kMaxPositions = 8192;

// What one thread needs, but for the tables.
struct PixelLanesMemory {
  // A byte for each of 64 channels, as ByteSums has them.
  alignas(64) uint8_t low[kBlockLanes][kVectorChannels], high[kBlockLanes][kVectorChannels];
  alignas(64) uint8_t planes[kMaxPlanes];
  alignas(64) uint8_t odd[kMaxPositions];  // odd chunks of each tap of the frame
  alignas(64) int16_t window_odd[kBlockLanes];
  alignas(64) int32_t excess[kVectorChannels];
  int32_t offsets[kMaxQuadWords * 6];  // of a window's chunks in the planes
  int32_t taps[kMaxQuadWords];         // of a window, in taps of the frame
};

size_t QuadTablesBytes(int32_t words) { return static_cast<size_t>(words) * 6 * kQuads * kTableBytes; }

bool AreQuadWords(int32_t words) { return words >= kMinQuadWords && words <= kMaxQuadWords; }

// The sums of 64 channels are made, whether there are so many or not; and more of them are better looked up at once.
bool FillsPixelTables(int32_t channels) { return channels > kVectorChannels / 2 && channels <= kVectorChannels; }

// Looks up windows of pixels that lie side by side, 64 to a vector, in the tables of four channels.
template <int kPixelVectors>
struct PixelLookups {
  static constexpr int kVectors = kPixelVectors;
  const uint8_t* tables;
  const uint8_t* planes;
  const int32_t* offsets;

  void StartRun(int32_t) {}
  void Advance(int32_t chunks) {
    tables += chunks * kTableBytes;
    offsets += chunks;
  }
  // There is one.
  PixelLookups Group(int) const { return *this; }
  static constexpr int SumOf(int, int, int v) { return v; }
  __attribute__((always_inline)) void Next(__m512i* found) {
    const __m512i table = _mm512_load_si512(tables);
    const uint8_t* const at = planes + *offsets;
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) found[v] = _mm512_permutexvar_epi8(_mm512_loadu_si512(at + 64 * v), table);
    Advance(1);
  }
};

template <int kVectors>
__attribute__((noinline)) void SumPixels(const uint8_t* tables, const uint8_t* planes, const int32_t* offsets,
                                         int32_t chunks, ByteSums& sums) {
  SumLookups<1>(PixelLookups<kVectors>{tables, planes, offsets}, 1, chunks, sums);
}

// Makes a pixel's 16 bytes of the sums of four times four channels, for 64 pixels; the pixels are kVectorChannels
// apart.
__attribute__((noinline)) void TransposeSums(const __m512i (*quads)[kLanePixels], uint8_t* pixels) {
  __m512i words[kLanePixels][4];
#pragma GCC unroll 4
  for (int quad = 0; quad < 4; ++quad) {
    const __m512i* const sums = quads[quad];
    const __m512i low[2] = {_mm512_unpacklo_epi8(sums[0], sums[1]), _mm512_unpackhi_epi8(sums[0], sums[1])};
    const __m512i high[2] = {_mm512_unpacklo_epi8(sums[2], sums[3]), _mm512_unpackhi_epi8(sums[2], sums[3])};
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      words[2 * half][quad] = _mm512_unpacklo_epi16(low[half], high[half]);
      words[2 * half + 1][quad] = _mm512_unpackhi_epi16(low[half], high[half]);
    }
  }
  // Each 128 bits have pixels of their own.
  const auto store = [pixels](int first, __m512i of_four) __attribute__((always_inline)) {
    uint8_t* const at = pixels + first * kVectorChannels;
    constexpr int kApart = 16 * kVectorChannels;
    _mm_store_si128(reinterpret_cast<__m128i*>(at), _mm512_castsi512_si128(of_four));
    _mm_store_si128(reinterpret_cast<__m128i*>(at + kApart), _mm512_extracti32x4_epi32(of_four, 1));
    _mm_store_si128(reinterpret_cast<__m128i*>(at + 2 * kApart), _mm512_extracti32x4_epi32(of_four, 2));
    _mm_store_si128(reinterpret_cast<__m128i*>(at + 3 * kApart), _mm512_extracti32x4_epi32(of_four, 3));
  };
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const __m512i* const word = words[i];
    const __m512i low[2] = {_mm512_unpacklo_epi32(word[0], word[1]), _mm512_unpackhi_epi32(word[0], word[1])};
    const __m512i high[2] = {_mm512_unpacklo_epi32(word[2], word[3]), _mm512_unpackhi_epi32(word[2], word[3])};
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      store(4 * i + 2 * half, _mm512_unpacklo_epi64(low[half], high[half]));
      store(4 * i + 2 * half + 1, _mm512_unpackhi_epi64(low[half], high[half]));
    }
  }
}

// A convolution as it goes through the frame.
struct FrameShape {
  int32_t tap_chunks, taps, chunks;
  int64_t width, row_taps, reach;  // in taps of the frame: from a row of output to the next, and of a window
  int64_t rows;                    // of output
  int64_t plane;                   // bytes

  FrameShape(const BconvTask& task, const WindowShape& shape, int64_t row_count)
      : tap_chunks(shape.tap_chunks),
        taps(shape.runs * shape.run_taps),
        chunks(taps * tap_chunks),
        width(task.output_width),
        row_taps(task.row_stride / shape.tap_bytes),
        reach(task.run_offsets[shape.runs - 1] / shape.tap_bytes + shape.run_taps - 1),
        rows(row_count) {
    // An odd number of cache lines, so that a position's chunks do not fall on each other in the L1 cache.
    const int64_t most = Min<int64_t>(kMaxPositions, kMaxPlanes / tap_chunks);
    plane = ((Min(most, rows * row_taps + reach + kBlockLanes + 127) / 64 - 1) | 1) * 64;
  }

  // Rows of output whose windows the planes have room for, with as many lanes as may be read behind them.
  int64_t StripRows() const {
    const int64_t room = plane - kBlockLanes - reach - width;
    return room < 0 ? 0 : room / row_taps + 1;
  }

  // Whether the rows of output can be computed by lanes of pixels, and sooner than by lanes of channels.
  bool SuitPixelLanes(const BconvTask& task, int32_t channels) const {
    // Making the tables takes as long as some five lookups in each.
    constexpr int64_t kLeastPixels = 6 * 64;
    return AreQuadWords(task.runs * task.run_words) && tap_chunks <= UINT8_MAX && FillsPixelTables(channels) &&
           task.pixel_stride == static_cast<ptrdiff_t>(StagedBytes(task.tap_words)) && rows * width >= kLeastPixels &&
           width * 5 >= row_taps * 4 && StripRows() > 0;
  }
};

struct PixelLanes : FrameShape {
  PixelLanesMemory& memory;
  uint8_t* tables;  // [quads][chunks][64]

  // `scratch`: PixelLanesMemory and the tables.
  PixelLanes(const FrameShape& frame, std::byte* scratch)
      : FrameShape(frame),
        memory(*reinterpret_cast<PixelLanesMemory*>(scratch)),
        tables(reinterpret_cast<uint8_t*>(scratch) + sizeof(PixelLanesMemory)) {}

  // For 64 channels whose weights are at `vector`.
  void MakeTables(const BconvTask& task, const WindowShape& shape, const uint8_t* vector) const {
    for (int32_t tap = 0, i = 0; tap < taps; ++tap) {
      const int64_t first = task.run_offsets[tap / shape.run_taps] / shape.tap_bytes + tap % shape.run_taps;
      memory.taps[tap] = static_cast<int32_t>(first);
      for (int32_t chunk = 0; chunk < tap_chunks; ++chunk, ++i) {
        memory.offsets[i] = static_cast<int32_t>(chunk * plane + first);
      }
    }
    // The table of a chunk of the input has the odd chunks of the filter added, and this one has them taken off.
    const auto* excess = reinterpret_cast<const int32_t*>(vector);
    for (int32_t i = 0; i < kVectorChannels; ++i) memory.excess[i] = -4 * kChunkBits * chunks - excess[i];
    const uint8_t* weights = vector + kExcessBytes;
    uint8_t* table = tables;
    for (int32_t quad = 0; quad < kQuads; ++quad) {
      for (int32_t chunk = 0; chunk < chunks; ++chunk, table += kTableBytes) {
        const uint8_t* of_channel = weights + chunk * kVectorChannels + 4 * quad;
        const auto part = [&](int p) { return _mm512_load_si512(kLookupTables.data[p % 2] + of_channel[p] * 64); };
        const __m512i high = _mm512_slli_epi16(_mm512_or_si512(part(2), part(3)), 4);
        _mm512_store_si512(table, _mm512_ternarylogic_epi32(high, part(0), part(1), 0xFE));
      }
    }
  }

  // The planes of `count` taps of the frame, from `staged` on.
  void MakePlanes(const uint8_t* staged, int64_t count) const {
    const int64_t length = (tap_chunks + 1) * static_cast<int64_t>(sizeof(uint16_t));
    alignas(64) uint8_t bytes[64];
    for (int chunk = 0; chunk < 8; ++chunk) {
      // Two vectors have four chunks each of eight taps, in 16 bits.
      for (int tap = 0; tap < 8; ++tap)
        bytes[8 * chunk + tap] = static_cast<uint8_t>(chunk / 4 * 64 + 8 * tap + chunk % 4 * 2);
    }
    const __m512i order = _mm512_load_si512(bytes), counting = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);
    const __m512i of_taps = _mm512_mullo_epi64(counting, _mm512_set1_epi64(length));
    const __m512i of_planes = _mm512_mullo_epi64(counting, _mm512_set1_epi64(plane));
    const auto gather = [&](int64_t tap, int32_t chunk) {
      const auto are_there =
          static_cast<__mmask8>(chunk < tap_chunks ? FirstBits(static_cast<int32_t>(Min<int64_t>(count - tap, 8))) : 0);
      const uint8_t* const at = staged + tap * length + chunk * static_cast<int64_t>(sizeof(uint16_t));
      // Offsets count tables of 64 bytes.
      return _mm512_srli_epi16(_mm512_mask_i64gather_epi64(_mm512_setzero_si512(), are_there, of_taps, at, 1),
                               kChunkBits);
    };
    for (int64_t tap = 0; tap < count; tap += 8) {
      for (int32_t chunk = 0; chunk < tap_chunks; chunk += 8) {
        const __m512i chunks_of_taps = _mm512_permutex2var_epi8(gather(tap, chunk), order, gather(tap, chunk + 4));
        const auto are_there = static_cast<__mmask8>(FirstBits(Min(tap_chunks - chunk, 8)));
        _mm512_mask_i64scatter_epi64(memory.planes + chunk * plane + tap, are_there, of_planes, chunks_of_taps, 1);
      }
    }
    for (int64_t tap = 0; tap < count; ++tap) {
      memory.odd[tap] = static_cast<uint8_t>(reinterpret_cast<const uint16_t*>(staged + tap * length)[tap_chunks]);
    }
  }

  // The sums of the windows of lanes [first, first + count), at most kBlockLanes; low and high as in ByteSums.
  void Sum(int64_t first, int64_t count) const {
    const auto vectors = static_cast<int>((count + 63) / 64);
    // Three are as many as four, of which the last is not used.
    constexpr decltype(&SumPixels<1>) kSumPixels[kMaxVectors] = {SumPixels<1>, SumPixels<2>, SumPixels<4>,
                                                                 SumPixels<4>};
    for (int32_t quad = 0; quad < kQuads; quad += 4) {
      ByteSums sums[4];
      for (int q = 0; q < 4; ++q) {
        const uint8_t* const table = tables + (quad + q) * int64_t{chunks} * kTableBytes;
        kSumPixels[vectors - 1](table, memory.planes + first, memory.offsets, chunks, sums[q]);
      }
      for (int v = 0; v < vectors; ++v) {
        __m512i quads[4][kLanePixels];
        const auto transpose = [&](auto part, uint8_t (*to)[kVectorChannels]) {
          for (int q = 0; q < 4; ++q) {
            for (int channel = 0; channel < 4; ++channel) quads[q][channel] = (sums[q].*part)[channel][v];
          }
          TransposeSums(quads, to[64 * v] + 4 * quad);
        };
        transpose(&ByteSums::low, memory.low);
        if (chunks > kMaxByteChunks) transpose(&ByteSums::high, memory.high);
      }
    }
    for (int lane = 0; lane < vectors * 64; lane += 32) {
      __m512i sum = _mm512_setzero_si512();
      for (int32_t tap = 0; tap < taps; ++tap) {
        const auto* odd = reinterpret_cast<const __m256i*>(memory.odd + first + lane + memory.taps[tap]);
        sum = _mm512_add_epi16(sum, _mm512_cvtepu8_epi16(_mm256_loadu_si256(odd)));
      }
      _mm512_store_si512(memory.window_odd + lane, sum);
    }
  }
};

}  // namespace
}  // namespace litebnn
