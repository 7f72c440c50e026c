// AVX2: sums of table lookups (inner_loop.h). For a block of pixels the windows become places of tables once; then for
// each tile of channels and each block of nibbles the weights are unpacked once, and all pairs of pixels use them.
#include "kernels/x86_cpu.h"

#if LITEBNN_X86

#include <immintrin.h>

#include <cstring>

#include "kernels/avx2/inner_loop.h"
#include "kernels/avx2/quantize.h"
#include "kernels/max_window.h"
#include "kernels/output.h"
#include "kernels/pixel_walk.h"
#include "kernels/table.h"

namespace litebnn {
namespace {

constexpr int32_t kTileVectors = 4;
constexpr int32_t kTileChannels = kTileVectors * kVectorChannels;
constexpr int32_t kNibblesPerWord = 8;
// Pixels that share one unpacking of a block's weights, at most. What is kept of them goes through the L2 cache.
constexpr int32_t kMaxBlockPixels = 224;
constexpr int32_t kMaxPlacesBytes = 160 << 10;
// Four times what is looked up and twice the odd nibbles of a window, at most 10 a nibble, fit 16 bits.
constexpr int32_t kMaxWords = 65535 / (10 * kNibblesPerWord);

// Nibbles are numbered in the order in which WindowPlaces finds them: of each run, 16 bytes at a time, their low
// nibbles, then their high ones; what is left over in the same way by 8 and by 4 bytes.
struct NibblePlan {
  explicit NibblePlan(int32_t words) : nibbles(words * kNibblesPerWord) {
    const int32_t blocks = (nibbles + kMaxBlockNibbles - 1) / kMaxBlockNibbles;
    // Of an even number of whole groups.
    constexpr int32_t kGroups = 2 * kGroupNibbles;
    static_assert(kMaxBlockNibbles % kGroups == 0);
    block = ((nibbles + blocks - 1) / blocks + kGroups - 1) / kGroups * kGroups;
  }

  int32_t nibbles;
  int32_t block;  // of all blocks but the last
};

// The largest group that the next of `words` words begins.
constexpr int32_t NibbleGroup(int32_t words) { return words >= 4 ? 4 : words >= 2 ? 2 : 1; }

// Of the tile that the next of `channels` channels begin: 1, 2 or 4, as TileSums wants it.
int32_t Vectors(int32_t channels) {
  return channels <= kVectorChannels ? 1 : channels <= 3 * kVectorChannels ? 2 : kTileVectors;
}

size_t VectorBytes(int32_t words) {
  return kVectorChannels * (sizeof(uint16_t) + static_cast<size_t>(words * kNibblesPerWord / 2));
}

size_t PackedWeightsBytes(int32_t channels, int32_t words) {
  return static_cast<size_t>((channels + kVectorChannels - 1) / kVectorChannels) * VectorBytes(words);
}

// Where channel `lane` of 32 is in a vector of bytes: even bytes become the 16 bit sums of the first 16 channels, odd
// bytes those of the last, and unpacking such a vector's low or high half within 128 bits gives 8 channels in order.
constexpr int32_t ByteOfChannel(int32_t lane) {
  return lane % 8 / 4 * 16 + lane % 16 / 8 * 8 + lane % 4 * 2 + lane / 16;
}

// Calls visit(value of a nibble) in their order.
template <typename Visit>
void ForEachNibble(const uint32_t* source, int32_t runs, int32_t run_words, Visit visit) {
  for (int32_t run = 0; run < runs; ++run) {
    for (int32_t left = run_words, count; left > 0; left -= count, source += count) {
      count = NibbleGroup(left);
      for (int32_t high = 0; high < 2; ++high) {
        for (int32_t i = 0; i < count * 4; ++i) {
          visit(static_cast<int32_t>(source[i / 4] >> (i % 4 * 8 + high * 4) & 15u));
        }
      }
    }
  }
}

// Tiles: [vectors][2][16] excesses of 16 bits, then [nibbles / 2][vectors][kVectorChannels] bytes of two nibbles. With
// E, what a dot product's lookups sum up to, and the odd nibbles of its window and filter, it is depth - 8 * nibbles +
// 4 * E + 2 * odd(window) - 2 * odd(filter). The excess is 8 * nibbles + 2 * odd(filter).
void PackWeights(const uint32_t* filter, int32_t channels, int32_t runs, int32_t run_words, uint8_t* packed) {
  const int32_t words = runs * run_words;
  std::memset(packed, 0, PackedWeightsBytes(channels, words));
  uint8_t* tile = packed;
  for (int32_t first = 0, vectors; first < channels; first += vectors * kVectorChannels) {
    vectors = Vectors(channels - first);
    auto* excesses = reinterpret_cast<uint16_t*>(tile);
    uint8_t* weights = tile + vectors * kVectorChannels * static_cast<int32_t>(sizeof(uint16_t));
    tile += static_cast<size_t>(vectors) * VectorBytes(words);
    for (int32_t channel = first; channel < std::min(channels, first + vectors * kVectorChannels); ++channel) {
      const int32_t vector = (channel - first) / kVectorChannels, lane = channel % kVectorChannels;
      const int32_t byte = vector * kVectorChannels + ByteOfChannel(lane);
      int32_t nibble = 0, odd = 0;
      ForEachNibble(filter + static_cast<int64_t>(channel) * words, runs, run_words, [&](int32_t value) {
        weights[static_cast<ptrdiff_t>(nibble / 2) * vectors * kVectorChannels + byte] |=
            static_cast<uint8_t>(value << (nibble % 2 * 4));
        odd += IsOdd(value);
        ++nibble;
      });
      excesses[vector * kVectorChannels + ByteOfChannel(lane) % 2 * 16 + ByteOfChannel(lane) / 2] =
          static_cast<uint16_t>(8 * nibble + 2 * odd);
    }
  }
}

// Pairs of pixels whose sums are made between two writings of outputs, so that the stores go on behind the next sums.
constexpr int32_t kStepPairs = 8;

// The byte sums of a pair of pixels and a vector of channels, as TileSums has them.
struct ByteSums {
  __m256i even, odd;

  // As `even` has those of pixel 0.
  __m256i Pixel1() const {
    const __m256i on_top = _mm256_srli_epi16(_mm256_and_si256(even, _mm256_set1_epi16(-256)), 4);
    return _mm256_sub_epi16(odd, on_top);
  }
};

// Parts of one thread's scratch.
struct Scratch {
  Scratch(void* memory, int32_t words) : bytes(static_cast<uint8_t*>(memory)) {
    step = Take<ByteSums>(kStepPairs * kTileVectors);
    excess = Take<__m256i>(kTileVectors * 2);
    sums = Take<__m256i>(static_cast<size_t>(BlockPixels(words) / 2 * kTileVectors * 4));
    weights = Take<uint8_t>(kMaxBlockNibbles * kTileChannels);
    odd = Take<int32_t>(static_cast<size_t>(BlockPixels(words)));
    places = Take<uint16_t>(static_cast<size_t>(BlockPixels(words) / 2 * PlacesStride(words)));
  }
  // Room for the whole vectors that WindowPlaces writes.
  static int32_t PlacesStride(int32_t words) { return (words * kNibblesPerWord + 31) / 32 * 32 + 32; }
  static int32_t BlockPixels(int32_t words) {
    const int32_t pairs = kMaxPlacesBytes / (PlacesStride(words) * static_cast<int32_t>(sizeof(uint16_t)));
    return std::min(2 * pairs, kMaxBlockPixels);
  }

  template <typename T>
  T* Take(size_t count) {
    T* part = reinterpret_cast<T*>(bytes + used);
    used += (count * sizeof(T) + 63) / 64 * 64;
    return part;
  }

  uint8_t* bytes;
  size_t used = 0;
  ByteSums* step;    // [pairs of a step][vectors]
  __m256i* excess;   // [vectors][2], less the depth
  __m256i* sums;     // [pixel pairs][vectors][pixels][2], of all blocks but the last, four times what was looked up
  uint8_t* weights;  // [nibbles][vectors][kVectorChannels], one nibble a byte
  int32_t* odd;      // [pixels], twice the odd nibbles of its window, in both halves
  uint16_t* places;  // [pixel pairs][nibbles], place of each nibble's table
};

size_t ScratchBytes(int32_t words) { return Scratch(nullptr, words).used; }

// Places of the tables for the windows of a block's pixel pairs, and how many of their nibbles are odd.
class WindowPlaces {
 public:
  explicit WindowPlaces(const BconvTask& task)
      : task_(task),
        mask_(_mm256_set1_epi8(0x0F)),
        steps_(_mm256_set1_epi16(static_cast<int16_t>(kTablePlaces | 16 * kTablePlaces << 8))),
        is_odd_(_mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 1, 0, 1, 0, 0, 1, 1, 0, 0, 1, 0, 1, 1, 0))),
        counts_fit_((task.run_words / 4 + 2) * task.runs <= 127) {}

  // `odd`: of each pixel, twice its odd nibbles in both halves. The last pair's second pixel may not be there.
  void Write(int64_t first_pixel, int64_t last_pixel, uint16_t* places, ptrdiff_t stride, int32_t* odd) const {
    WindowWalk walk(task_, first_pixel);
    const WindowPlaces self = *this;
    for (int64_t pixel = first_pixel; pixel < last_pixel; pixel += 2, places += stride, odd += 2) {
      const uint8_t* window0 = walk.Next();
      const uint8_t* window1 = pixel + 1 < last_pixel ? walk.Next() : window0;
      _mm_storel_epi64(reinterpret_cast<__m128i*>(odd), self.WritePair(window0, window1, places));
    }
  }

 private:
  // A multiple of what NibbleGroup takes.
  static constexpr int32_t kPieceWords = 256;

  __attribute__((always_inline)) __m128i WritePair(const uint8_t* window0, const uint8_t* window1,
                                                   uint16_t* places) const {
    __m256i total = _mm256_setzero_si256();
    // One byte for each byte of the windows; pixel 0 in even bytes, pixel 1 in odd ones.
    __m256i count = _mm256_setzero_si256();
    // Read once: the compiler has to take any store for one into the task.
    const ptrdiff_t* const run_offsets = task_.run_offsets;
    const int32_t runs = task_.runs, run_words = task_.run_words;
    for (int32_t run = 0; run < runs; ++run) {
      const uint8_t* source0 = window0 + run_offsets[run];
      const uint8_t* source1 = window1 + run_offsets[run];
      int32_t words = run_words;
      if (!counts_fit_) {
        total = _mm256_add_epi32(total, PixelSums(count));
        count = _mm256_setzero_si256();
        for (; words > kPieceWords; words -= kPieceWords) {
          places = WritePiece(source0, source1, kPieceWords, places, &count);
          total = _mm256_add_epi32(total, PixelSums(count));
          count = _mm256_setzero_si256();
          source0 += kPieceWords * sizeof(uint32_t);
          source1 += kPieceWords * sizeof(uint32_t);
        }
      }
      places = WritePiece(source0, source1, words, places, &count);
    }
    total = _mm256_add_epi32(total, PixelSums(count));
    const __m128i halves = _mm_add_epi32(_mm256_castsi256_si128(total), _mm256_extracti128_si256(total, 1));
    const __m128i pixels = _mm_add_epi32(halves, _mm_unpackhi_epi64(halves, halves));
    return _mm_shufflelo_epi16(_mm_add_epi16(pixels, pixels), _MM_SHUFFLE(2, 2, 0, 0));
  }

  // Sums of even and of odd bytes, side by side in each 64 bits.
  static __m256i PixelSums(__m256i bytes) {
    const __m256i zero = _mm256_setzero_si256();
    const __m256i even = _mm256_sad_epu8(_mm256_and_si256(bytes, _mm256_set1_epi16(0xFF)), zero);
    return _mm256_or_si256(even, _mm256_slli_epi64(_mm256_sad_epu8(_mm256_srli_epi16(bytes, 8), zero), 32));
  }

  // `bytes` alternates between the pixels. Writes places of the low nibbles, and of the high ones `distance` after
  // them.
  __attribute__((always_inline)) void WriteGroup(__m256i bytes, uint16_t* places, int32_t distance,
                                                 __m256i* count) const {
    const __m256i low = _mm256_and_si256(bytes, mask_), high = _mm256_and_si256(_mm256_srli_epi16(bytes, 4), mask_);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(places), _mm256_maddubs_epi16(steps_, low));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(places + distance), _mm256_maddubs_epi16(steps_, high));
    *count = _mm256_add_epi8(*count, _mm256_shuffle_epi8(is_odd_, low));
    *count = _mm256_add_epi8(*count, _mm256_shuffle_epi8(is_odd_, high));
  }

  __attribute__((always_inline)) uint16_t* WritePiece(const uint8_t* source0, const uint8_t* source1, int32_t words,
                                                      uint16_t* places, __m256i* count) const {
    for (int32_t left = words / 4; left > 0; --left, source0 += 16, source1 += 16, places += 32) {
      const __m256i a = _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(source0)));
      const __m256i b = _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(source1)));
      WriteGroup(_mm256_or_si256(a, _mm256_slli_epi16(b, 8)), places, 16, count);
    }
    if ((words & 2) != 0) {
      const __m128i a = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(source0));
      const __m128i b = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(source1));
      WriteGroup(_mm256_zextsi128_si256(_mm_unpacklo_epi8(a, b)), places, 8, count);
      source0 += 8;
      source1 += 8;
      places += 16;
    }
    if ((words & 1) != 0) {
      const __m128i a = _mm_loadu_si32(source0), b = _mm_loadu_si32(source1);
      WriteGroup(_mm256_zextsi128_si256(_mm_unpacklo_epi8(a, b)), places, 4, count);
      places += 8;
    }
    return places;
  }

  const BconvTask& task_;
  const __m256i mask_, steps_, is_odd_;
  // Whether a byte can count the odd nibbles that fall to it of all runs.
  const bool counts_fit_;
};

// `nibbles` is even.
void UnpackWeights(const uint8_t* packed, int32_t nibbles, int32_t vectors, uint8_t* weights) {
  const __m256i mask = _mm256_set1_epi8(0x0F);
  for (int32_t nibble = 0; nibble < nibbles; nibble += 2) {
    for (int32_t vector = 0; vector < vectors; ++vector) {
      const __m256i both = _mm256_load_si256(reinterpret_cast<const __m256i*>(packed));
      packed += kVectorChannels;
      auto* low = reinterpret_cast<__m256i*>(weights + (nibble * vectors + vector) * kVectorChannels);
      _mm256_store_si256(low, _mm256_and_si256(both, mask));
      _mm256_store_si256(low + vectors, _mm256_and_si256(_mm256_srli_epi16(both, 4), mask));
    }
  }
}

// Sums of `pairs` pixel pairs: [pairs][4 / kPairs vectors].
template <int kPairs>
void SumPairs(const uint16_t* places, ptrdiff_t places_stride, int32_t pairs, const uint8_t* weights, int32_t nibbles,
              ByteSums* sums) {
  constexpr int kVectors = TileSums<kPairs>::kVectors;
  for (int32_t pair = 0; pair < pairs; pair += kPairs, sums += 4) {
    const uint16_t* pair_places[kPairs];
    // Where there are too few, the last one stands in.
#pragma GCC unroll 4
    for (int p = 0; p < kPairs; ++p) pair_places[p] = places + std::min(pair + p, pairs - 1) * places_stride;
    const TileSums<kPairs> tile(pair_places, weights, nibbles);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      _mm256_store_si256(&sums[i].even, tile.even[i]);
      _mm256_store_si256(&sums[i].odd, tile.odd[i]);
    }
  }
  static_assert(kVectors * kPairs == 4);
}

// Four times a vector's even or odd bytes.
__m256i FourEven(__m256i bytes) { return _mm256_maddubs_epi16(bytes, _mm256_set1_epi16(4)); }
__m256i FourOdd(__m256i bytes) { return _mm256_maddubs_epi16(bytes, _mm256_set1_epi16(4 << 8)); }

// Adds the sums of a step to those of the blocks before it, or starts them.
void KeepSums(const ByteSums* step, int32_t count, bool first, __m256i* sums) {
  const auto keep = [first](__m256i value, __m256i* sum) { *sum = first ? value : _mm256_add_epi16(*sum, value); };
  for (int32_t i = 0; i < count; ++i, sums += 4) {
    const __m256i pixel0 = step[i].even, pixel1 = step[i].Pixel1();
    keep(FourEven(pixel0), sums);
    keep(FourOdd(pixel0), sums + 1);
    keep(FourEven(pixel1), sums + 2);
    keep(FourOdd(pixel1), sums + 3);
  }
}

__m256i LoadInts(const int32_t* values) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values)); }

// One pixel's outputs of one tile of channels. The vectors do what output.h does, in the same order.
template <bool kCorrected>
class OutputTile {
 public:
  OutputTile(const BconvTask& task, int32_t channel, int32_t count)
      : task_(task),
        multiplier_(task.multiplier + channel),
        bias_(task.bias + channel),
        threshold_(task.threshold + channel),
        channel_(channel),
        count_(count) {}

  void Float32(const uint16_t* sums, const int32_t* corrections, int64_t index) const {
    float* const output = static_cast<float*>(task_.output) + index;
    int32_t vectors;
    if (task_.addend == nullptr) {
      vectors = ForEachEight(sums, corrections, [&](int32_t i, __m256 value) { _mm256_storeu_ps(output + i, value); });
    } else {
      const float* const addend = task_.addend + index;
      const auto add = [addend](int32_t i, __m256 value) { return _mm256_add_ps(value, _mm256_loadu_ps(addend + i)); };
      vectors = !task_.rectify_sum
                    ? ForEachEight(sums, corrections,
                                   [&](int32_t i, __m256 value) { _mm256_storeu_ps(output + i, add(i, value)); })
                    : ForEachEight(sums, corrections, [&](int32_t i, __m256 value) {
                        _mm256_storeu_ps(output + i, _mm256_max_ps(add(i, value), _mm256_setzero_ps()));
                      });
    }
    for (int32_t i = vectors; i < count_; ++i) {
      const float value = FloatOutput(task_, channel_ + i, sums[i], Correction(corrections, i));
      output[i] = FloatSum(task_, index + i, value);
    }
  }

  void Int8(const uint16_t* sums, const int32_t* corrections, int8_t* output) const {
    const __m256 low = _mm256_set1_ps(static_cast<float>(-128 - task_.zero_point));
    const __m256 high = _mm256_set1_ps(static_cast<float>(127 - task_.zero_point));
    const __m256 half = _mm256_set1_ps(0x1.fffffep-2f), sign = _mm256_set1_ps(-0.0f);
    const __m256i zero_point = _mm256_set1_epi32(task_.zero_point);
    const int32_t vectors = ForEachEight(sums, corrections, [&](int32_t i, __m256 value) {
      const __m256 bounded = _mm256_min_ps(_mm256_max_ps(value, low), high);
      const __m256 away = _mm256_add_ps(bounded, _mm256_or_ps(_mm256_and_ps(bounded, sign), half));
      const __m256i rounded = _mm256_add_epi32(_mm256_cvttps_epi32(away), zero_point);
      const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(rounded), _mm256_extracti128_si256(rounded, 1));
      _mm_storel_epi64(reinterpret_cast<__m128i*>(output + i), _mm_packs_epi16(words, words));
    });
    for (int32_t i = vectors; i < count_; ++i) {
      output[i] = Int8Output(task_, channel_ + i, sums[i], Correction(corrections, i));
    }
  }

  void Bits(const uint16_t* sums, const int32_t* corrections, uint32_t* output) const {
    for (int32_t i = 0; i < count_; i += kBitsPerWord) {
      const int32_t bits = std::min(kBitsPerWord, count_ - i);
      uint32_t word = 0;
      int32_t bit = 0;
      for (; bit + 8 <= bits; bit += 8) word |= Compare(sums, corrections, i + bit) << bit;
      for (; bit < bits; ++bit) {
        const int32_t at = i + bit;
        word |= static_cast<uint32_t>(BitOutput(task_, channel_ + at, sums[at], Correction(corrections, at))) << bit;
      }
      StoreBits(output, task_.first_channel + channel_ + i, bits, word);
    }
  }

 private:
  int32_t Correction(const int32_t* corrections, int32_t i) const { return kCorrected ? corrections[i] : 0; }

  // Calls store(i, values of channels i to i + 7) for all whole vectors and returns how many channels they hold.
  template <typename Store>
  int32_t ForEachEight(const uint16_t* sums, const int32_t* corrections, Store store) const {
    // Read once: the compiler has to take any store for one into the task.
    const float* const multiplier = multiplier_;
    const float* const bias = bias_;
    const auto scale = [&](int32_t i, __m256i dot) {
      const __m256 product = _mm256_mul_ps(_mm256_cvtepi32_ps(dot), _mm256_loadu_ps(multiplier + i));
      store(i, _mm256_add_ps(product, _mm256_loadu_ps(bias + i)));
    };
    int32_t i = 0;
    const __m256i depth = _mm256_set1_epi32(task_.depth);
    const __m256i clamp_min = _mm256_set1_epi32(task_.clamp_min), clamp_max = _mm256_set1_epi32(task_.clamp_max);
    for (const int32_t end = count_ - 7; i < end; i += 8) {
      __m256i dot = _mm256_sub_epi32(depth, _mm256_slli_epi32(LoadSums(sums + i), 1));
      if (kCorrected) dot = _mm256_add_epi32(dot, LoadInts(corrections + i));
      scale(i, _mm256_min_epi32(_mm256_max_epi32(dot, clamp_min), clamp_max));
    }
    return i;
  }

  uint32_t Compare(const uint16_t* sums, const int32_t* corrections, int32_t i) const {
    __m256i sum = LoadSums(sums + i);
    if (kCorrected) {
      // Halves of even numbers, exact in either direction.
      sum = _mm256_sub_epi32(sum, _mm256_srai_epi32(LoadInts(corrections + i), 1));
    }
    const __m256i above = _mm256_cmpgt_epi32(sum, LoadInts(threshold_ + i));
    return static_cast<uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(above)));
  }

  static __m256i LoadSums(const uint16_t* sums) {
    return _mm256_cvtepu16_epi32(_mm_load_si128(reinterpret_cast<const __m128i*>(sums)));
  }

  const BconvTask& task_;
  // Of the tile's first channel.
  const float* const multiplier_;
  const float* const bias_;
  const int32_t* const threshold_;
  const int32_t channel_, count_;
};

// Some pixel pairs of one tile of channels, all looked up.
struct SummedPairs {
  const ByteSums* step;   // of the last block, [pairs][vectors]
  const __m256i* sums;    // of the blocks before it, null where there are none
  const int32_t* odd;     // [pixels]
  const __m256i* excess;  // [vectors][2], less the depth
  int32_t vectors;
  int64_t pixel_begin, pixel_end;

  // Of 32 channels, 16 a vector.
  void Sums(int64_t pixel, int32_t vector, __m256i* wide) const {
    const int64_t i = (pixel - pixel_begin) / 2 * vectors + vector, p = (pixel - pixel_begin) % 2;
    const __m256i bytes = p == 0 ? step[i].even : step[i].Pixel1();
    wide[0] = FourEven(bytes);
    wide[1] = FourOdd(bytes);
    if (sums != nullptr) {
      wide[0] = _mm256_add_epi16(wide[0], sums[4 * i + 2 * p]);
      wide[1] = _mm256_add_epi16(wide[1], sums[4 * i + 2 * p + 1]);
    }
  }

  __m256i Odd(int64_t pixel) const { return _mm256_set1_epi32(odd[pixel - pixel_begin]); }
};

// Float outputs of whole vectors of channels: what most convolutions need. kRelu: negative dot products are clamped,
// and nothing else. `finish` is given a value and the place of its output. Outputs are written in the order in which
// they are in memory, which the caches like best.
template <bool kRelu, typename Finish>
void WriteFloats(const BconvTask& task, const SummedPairs& pairs, int32_t channel, int32_t count, Finish finish) {
  // Unsigned 16 bit numbers become floats as the last bits of 2^23, with which the difference to it is exact. Negative
  // numbers are told by a bias.
  constexpr int32_t kBias = kRelu ? 0 : 32768;
  constexpr float kTwoTo23 = 8388608.0f;
  const __m256i two_to_23 = _mm256_set1_epi16(0x4B00), bias_16 = _mm256_set1_epi16(static_cast<int16_t>(kBias));
  const __m256 base = _mm256_set1_ps(kTwoTo23 + static_cast<float>(kBias));
  const auto clamp = [](int32_t value) {
    return _mm256_set1_epi16(static_cast<int16_t>(std::min(std::max(value, -kBias), 65535 - kBias) + kBias));
  };
  const __m256i clamp_min = clamp(task.clamp_min), clamp_max = clamp(task.clamp_max);
  // Read once: the compiler has to take any store for one into these.
  const SummedPairs all = pairs;
  const float* const multipliers = task.multiplier + channel;
  const float* const biases = task.bias + channel;
  const int64_t stride = task.output_channels;
  float* const outputs = static_cast<float*>(task.output);
  const int32_t vectors = count / kVectorChannels;
  int64_t index = all.pixel_begin * stride + task.first_channel + channel;
  const ByteSums* bytes = all.step;
  const __m256i* sums = all.sums;
  for (int64_t pixel = all.pixel_begin; pixel < all.pixel_end; pixel += 2, index += 2 * stride, bytes += all.vectors) {
    const __m256i odd[2] = {_mm256_add_epi16(all.Odd(pixel), bias_16), _mm256_add_epi16(all.Odd(pixel + 1), bias_16)};
    const bool is_pair = pixel + 1 < all.pixel_end;
    for (int32_t vector = 0; vector < vectors; ++vector) {
      const __m256i of_pixels[2] = {bytes[vector].even, bytes[vector].Pixel1()};
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
        const int32_t at = vector * kVectorChannels + half * 16;
        const __m256i excess = all.excess[2 * vector + half];
        const __m256 multiplier[2] = {_mm256_loadu_ps(multipliers + at), _mm256_loadu_ps(multipliers + at + 8)};
        const __m256 bias[2] = {_mm256_loadu_ps(biases + at), _mm256_loadu_ps(biases + at + 8)};
#pragma GCC unroll 2
        for (int p = 0; p < 2; ++p) {
          if (p == 1 && !is_pair) break;
          __m256i sum = half == 0 ? FourEven(of_pixels[p]) : FourOdd(of_pixels[p]);
          if (sums != nullptr) sum = _mm256_add_epi16(sum, sums[4 * vector + 2 * p + half]);
          sum = _mm256_add_epi16(sum, odd[p]);
          const __m256i dot =
              kRelu ? _mm256_subs_epu16(sum, excess)
                    : _mm256_min_epu16(_mm256_max_epu16(_mm256_sub_epi16(sum, excess), clamp_min), clamp_max);
          const __m256 dots[2] = {_mm256_sub_ps(_mm256_castsi256_ps(_mm256_unpacklo_epi16(dot, two_to_23)), base),
                                  _mm256_sub_ps(_mm256_castsi256_ps(_mm256_unpackhi_epi16(dot, two_to_23)), base)};
          const int64_t place = index + p * stride + at;
          const __m256 low = _mm256_add_ps(_mm256_mul_ps(dots[0], multiplier[0]), bias[0]);
          const __m256 high = _mm256_add_ps(_mm256_mul_ps(dots[1], multiplier[1]), bias[1]);
          _mm256_storeu_ps(outputs + place, finish(low, place));
          _mm256_storeu_ps(outputs + place + 8, finish(high, place + 8));
        }
      }
    }
    if (sums != nullptr) sums += 4 * all.vectors;
  }
}

template <bool kRelu>
void WriteFloats(const BconvTask& task, const SummedPairs& pairs, int32_t channel, int32_t count) {
  const float* const addend = task.addend;
  const auto add = [addend](__m256 value, int64_t index) {
    return _mm256_add_ps(value, _mm256_loadu_ps(addend + index));
  };
  if (task.addend == nullptr) {
    WriteFloats<kRelu>(task, pairs, channel, count, [](__m256 value, int64_t) { return value; });
  } else if (!task.rectify_sum) {
    WriteFloats<kRelu>(task, pairs, channel, count, add);
  } else {
    WriteFloats<kRelu>(task, pairs, channel, count, [add](__m256 value, int64_t index) {
      return _mm256_max_ps(add(value, index), _mm256_setzero_ps());
    });
  }
}

template <bool kCorrected>
void WriteAny(const BconvTask& task, const SummedPairs& pairs, int32_t channel, int32_t count) {
  const OutputTile<kCorrected> tile(task, channel, count);
  const __m256i depth = _mm256_set1_epi16(static_cast<int16_t>(task.depth));
  for (int64_t pixel = pairs.pixel_begin; pixel < pairs.pixel_end; ++pixel) {
    const __m256i odd_and_depth = _mm256_sub_epi16(pairs.Odd(pixel), depth);
    // Popcounts, in the order of the channels.
    alignas(32) uint16_t sums[kTileChannels];
    for (int32_t vector = 0; vector < pairs.vectors; ++vector) {
      __m256i wide[2];
      pairs.Sums(pixel, vector, wide);
      for (int half = 0; half < 2; ++half) {
        const __m256i sum = _mm256_add_epi16(wide[half], odd_and_depth);
        const __m256i popcounts = _mm256_srli_epi16(_mm256_sub_epi16(pairs.excess[2 * vector + half], sum), 1);
        _mm256_store_si256(reinterpret_cast<__m256i*>(sums + vector * kVectorChannels + half * 16),
                           _mm256_permute4x64_epi64(popcounts, _MM_SHUFFLE(3, 1, 2, 0)));
      }
    }
    const int32_t* corrections = kCorrected ? CorrectionsOf(task, pixel) + channel : nullptr;
    const int64_t index = pixel * task.output_channels + task.first_channel + channel;
    switch (task.output_type) {
      case Bconv2dOutputType::kFloat32:
        tile.Float32(sums, corrections, index);
        break;
      case Bconv2dOutputType::kInt8:
        tile.Int8(sums, corrections, static_cast<int8_t*>(task.output) + index);
        break;
      case Bconv2dOutputType::kBitpacked:
        tile.Bits(sums, corrections, static_cast<uint32_t*>(task.output) + pixel * PackedWords(task.output_channels));
        break;
    }
  }
}

void WriteOutputs(const BconvTask& task, const SummedPairs& pairs, int32_t channel, int32_t count) {
  if (task.corrections != nullptr) return WriteAny<true>(task, pairs, channel, count);
  if (task.output_type != Bconv2dOutputType::kFloat32 || count % kVectorChannels != 0) {
    return WriteAny<false>(task, pairs, channel, count);
  }
  const bool relu = task.clamp_min == 0 && task.clamp_max == INT32_MAX;
  return relu ? WriteFloats<true>(task, pairs, channel, count) : WriteFloats<false>(task, pairs, channel, count);
}

void Bconv(const BconvTask& task, int64_t pixel_begin, int64_t pixel_end, int32_t channel_begin, int32_t channel_end) {
  const int32_t words = task.runs * task.run_words;
  const NibblePlan plan(words);
  const Scratch scratch(task.scratch, words);
  const int32_t stride = Scratch::PlacesStride(words);
  const WindowPlaces window_places(task);
  const __m256i depth = _mm256_set1_epi16(static_cast<int16_t>(task.depth));
  const int32_t block_pixels = Scratch::BlockPixels(words);
  const int64_t blocks = (pixel_end - pixel_begin + block_pixels - 1) / block_pixels;
  for (int64_t block = 0; block < blocks; ++block) {
    // Blocks of nearly equal size, each of whole pairs but the last.
    const int64_t pairs_in_all = (pixel_end - pixel_begin + 1) / 2;
    const int64_t first_pixel = pixel_begin + pairs_in_all * block / blocks * 2;
    const int64_t last_pixel = std::min(pixel_begin + pairs_in_all * (block + 1) / blocks * 2, pixel_end);
    const auto pairs = static_cast<int32_t>((last_pixel - first_pixel + 1) / 2);
    window_places.Write(first_pixel, last_pixel, scratch.places, stride, scratch.odd);
    for (int32_t channel = channel_begin, vectors; channel < channel_end; channel += vectors * kVectorChannels) {
      vectors = Vectors(task.channels - channel);
      const auto sum_pairs = vectors == 1 ? SumPairs<4> : vectors == 2 ? SumPairs<2> : SumPairs<1>;
      const uint8_t* tile = task.weights + static_cast<size_t>(channel / kVectorChannels) * VectorBytes(words);
      const auto* excess = reinterpret_cast<const __m256i*>(tile);
      for (int32_t i = 0; i < 2 * vectors; ++i) scratch.excess[i] = _mm256_sub_epi16(excess[i], depth);
      const uint8_t* packed = reinterpret_cast<const uint8_t*>(excess + 2 * vectors);
      const int32_t count = std::min(vectors * kVectorChannels, channel_end - channel);
      for (int32_t nibble = 0; nibble < plan.nibbles; nibble += plan.block) {
        const int32_t nibbles = std::min(plan.block, plan.nibbles - nibble);
        UnpackWeights(packed, nibbles, vectors, scratch.weights);
        packed += static_cast<ptrdiff_t>(nibbles / 2) * vectors * kVectorChannels;
        for (int32_t pair = 0; pair < pairs; pair += kStepPairs) {
          const int32_t step_pairs = std::min(kStepPairs, pairs - pair);
          __m256i* sums = scratch.sums + static_cast<ptrdiff_t>(pair) * vectors * 4;
          sum_pairs(scratch.places + pair * stride + nibble, stride, step_pairs, scratch.weights, nibbles,
                    scratch.step);
          if (nibble + nibbles < plan.nibbles) {
            KeepSums(scratch.step, step_pairs * vectors, nibble == 0, sums);
            continue;
          }
          const int64_t pixel = first_pixel + 2 * pair;
          const SummedPairs summed = {scratch.step,
                                      nibble == 0 ? nullptr : sums,
                                      scratch.odd + 2 * pair,
                                      scratch.excess,
                                      vectors,
                                      pixel,
                                      std::min<int64_t>(pixel + 2 * kStepPairs, last_pixel)};
          WriteOutputs(task, summed, channel, count);
        }
      }
    }
  }
}

struct EightFloats {
  using Vector = __m256;
  static constexpr int32_t kCount = 8;
  static Vector Set(float value) { return _mm256_set1_ps(value); }
  static Vector Load(const float* values) { return _mm256_loadu_ps(values); }
  static void Store(Vector vector, float* values) { _mm256_storeu_ps(values, vector); }
  static Vector Larger(Vector a, Vector b) { return _mm256_max_ps(a, b); }
};

}  // namespace

const Kernels kAvx2Kernels = {
    "avx2",           CpuHasAvx2, QuantizeFloat32Avx2, QuantizeInt8Avx2, MaxWindow<EightFloats>, 2,     kTileChannels,
    sizeof(uint32_t), nullptr,    PackedWeightsBytes,  PackWeights,      ScratchBytes,           Bconv, kMaxWords,
};

}  // namespace litebnn

#endif  // LITEBNN_X86
