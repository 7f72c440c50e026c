// AVX2: sums of table lookups (inner_loop.h). For a block of pixels the windows become offsets of tables once; then for
// each tile of channels and each block of nibbles the weights are unpacked once, and all pairs of pixels use them.
#include "kernels/x86_cpu.h"

#if LITEBNN_X86

#include <immintrin.h>

#include <cstring>

#include "kernels/avx2/inner_loop.h"
#include "kernels/avx2/quantize.h"
#include "kernels/output.h"
#include "kernels/pixel_walk.h"
#include "kernels/table.h"

namespace litebnn {
namespace {

constexpr int32_t kTileVectors = 4;
constexpr int32_t kTileChannels = kTileVectors * kVectorChannels;
constexpr int32_t kNibblesPerWord = 8;
// Pixels that share one unpacking of a block's weights. Their sums, those weights and the tables fit the L1 cache.
constexpr int32_t kBlockPixels = 64;
// More would overflow the 16 bit sums.
constexpr int32_t kMaxWords = 65535 / kBitsPerWord;

// Nibbles are numbered in the order in which Interleave finds them: of each run, 16 bytes at a time, their low nibbles,
// then their high ones; what is left over in the same way by 8 and by 4 bytes.
struct NibblePlan {
  explicit NibblePlan(int32_t words) : nibbles(words * kNibblesPerWord) {
    const int32_t blocks = (nibbles + kBlockNibbles - 1) / kBlockNibbles;
    // PairSums is at its best with multiples of six.
    block = ((nibbles + blocks - 1) / blocks + 5) / 6 * 6;
  }

  int32_t nibbles;
  int32_t block;  // of all blocks but the last
};

// The largest group that the next of `words` words begins.
constexpr int32_t NibbleGroup(int32_t words) { return words >= 4 ? 4 : words >= 2 ? 2 : 1; }

int32_t Vectors(int32_t channels) { return (channels + kVectorChannels - 1) / kVectorChannels; }

size_t PackedWeightsBytes(int32_t channels, int32_t words) {
  return static_cast<size_t>(Vectors(channels)) * static_cast<size_t>(words * kNibblesPerWord / 2) * kVectorChannels;
}

// [tiles of kTileChannels][nibbles / 2][vectors of the tile][kVectorChannels] bytes of two nibbles.
void PackWeights(const uint32_t* filter, int32_t channels, int32_t runs, int32_t run_words, uint8_t* packed) {
  const int32_t words = runs * run_words;
  const NibblePlan plan(words);
  std::memset(packed, 0, PackedWeightsBytes(channels, words));
  for (int32_t channel = 0; channel < channels; ++channel) {
    const int32_t first = channel / kTileChannels * kTileChannels;
    const int32_t vectors = std::min(kTileVectors, Vectors(channels - first));
    uint8_t* tile = packed + static_cast<ptrdiff_t>(first) * (plan.nibbles / 2);
    // Even bytes of a vector become the 16 bit sums of its first 16 channels, odd bytes those of its last 16.
    const int32_t vector = (channel - first) / kVectorChannels, lane = channel % kVectorChannels;
    const int32_t byte = vector * kVectorChannels + lane % 16 * 2 + lane / 16;
    int32_t nibble = 0;
    const auto store = [&](uint8_t value) {
      tile[static_cast<ptrdiff_t>(nibble / 2) * vectors * kVectorChannels + byte] |=
          static_cast<uint8_t>(value << (nibble % 2 * 4));
      ++nibble;
    };
    const uint32_t* source = filter + static_cast<int64_t>(channel) * words;
    for (int32_t run = 0; run < runs; ++run) {
      for (int32_t left = run_words, count; left > 0; left -= count, source += count) {
        count = NibbleGroup(left);
        for (int32_t high = 0; high < 2; ++high) {
          for (int32_t i = 0; i < count * 4; ++i) {
            store(static_cast<uint8_t>(source[i / 4] >> (i % 4 * 8 + high * 4) & 15u));
          }
        }
      }
    }
  }
}

// Parts of one thread's scratch.
struct Scratch {
  Scratch(void* memory, int32_t words) : bytes(static_cast<uint8_t*>(memory)) {
    sums = Take<uint16_t>(kBlockPixels * kTileChannels);
    weights = Take<uint8_t>(kBlockNibbles * kTileChannels);
    tables = Take<uint16_t>(kBlockPixels / 2 * static_cast<size_t>(TablesStride(words)));
  }
  // Room for the whole vectors that Interleave writes.
  static int32_t TablesStride(int32_t words) { return (words * kNibblesPerWord + 31) / 32 * 32 + 32; }

  template <typename T>
  T* Take(size_t count) {
    T* part = reinterpret_cast<T*>(bytes + used);
    used += (count * sizeof(T) + 63) / 64 * 64;
    return part;
  }

  uint8_t* bytes;
  size_t used = 0;
  uint16_t* sums;    // [pixels][kTileChannels]
  uint8_t* weights;  // [nibbles][vectors][kVectorChannels], one nibble a byte
  uint16_t* tables;  // [pixel pairs][nibbles], offset of each nibble's table
};

size_t ScratchBytes(int32_t words) { return Scratch(nullptr, words).used; }

void StoreTableOffsets(__m128i pairs, uint16_t* offsets) {
  const __m256i wide = _mm256_slli_epi16(_mm256_cvtepu8_epi16(pairs), 4);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(offsets), wide);
}

// Table offsets for the windows of two pixels.
void Interleave(const BconvTask& task, const uint8_t* window0, const uint8_t* window1, uint16_t* offsets) {
  const __m128i low_mask = _mm_set1_epi8(0x0F);
  const __m128i high_mask = _mm_set1_epi8(static_cast<char>(0xF0));
  const auto low_nibbles = [&](__m128i a, __m128i b) {
    return _mm_or_si128(_mm_and_si128(a, low_mask), _mm_and_si128(_mm_slli_epi16(b, 4), high_mask));
  };
  const auto high_nibbles = [&](__m128i a, __m128i b) {
    return _mm_or_si128(_mm_and_si128(_mm_srli_epi16(a, 4), low_mask), _mm_and_si128(b, high_mask));
  };
  for (int32_t run = 0; run < task.runs; ++run) {
    const uint8_t* source0 = window0 + task.run_offsets[run];
    const uint8_t* source1 = window1 + task.run_offsets[run];
    int32_t left = task.run_words;
    for (; left >= 4; left -= 4, source0 += 16, source1 += 16, offsets += 32) {
      const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(source0));
      const __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(source1));
      StoreTableOffsets(low_nibbles(a, b), offsets);
      StoreTableOffsets(high_nibbles(a, b), offsets + 16);
    }
    if (left >= 2) {
      const __m128i a = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(source0));
      const __m128i b = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(source1));
      StoreTableOffsets(_mm_unpacklo_epi64(low_nibbles(a, b), high_nibbles(a, b)), offsets);
      left -= 2;
      source0 += 8;
      source1 += 8;
      offsets += 16;
    }
    if (left == 1) {
      const __m128i a = _mm_loadu_si32(source0), b = _mm_loadu_si32(source1);
      StoreTableOffsets(_mm_unpacklo_epi32(low_nibbles(a, b), high_nibbles(a, b)), offsets);
      offsets += 8;
    }
  }
}

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

// Adds the popcounts of `nibbles` nibbles, at most kBlockNibbles, to the sums of `pairs` pixel pairs.
template <int kVectors, bool kFirst>
void Accumulate(const uint16_t* offsets, int32_t offsets_stride, int64_t pairs, const uint8_t* weights, int32_t nibbles,
                uint16_t* sums) {
  const __m256i low_byte = _mm256_set1_epi16(0xFF);
  for (int64_t pair = 0; pair < pairs; ++pair) {
    PairSums<kVectors> pair_sums;
    pair_sums.Add(offsets, weights, nibbles);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const __m256i even = pair_sums.even[v];
      const __m256i pixel0_last = _mm256_srli_epi16(even, 8);
      const __m256i pixel1 = _mm256_sub_epi16(pair_sums.odd[v], _mm256_slli_epi16(pixel0_last, 4));
      const auto add = [&](int32_t index, __m256i value) {
        auto* sum = reinterpret_cast<__m256i*>(sums + index);
        _mm256_store_si256(sum, kFirst ? value : _mm256_add_epi16(_mm256_load_si256(sum), value));
      };
      add(v * kVectorChannels, _mm256_and_si256(even, low_byte));
      add(v * kVectorChannels + 16, pixel0_last);
      add(v * kVectorChannels + kTileChannels, _mm256_and_si256(pixel1, low_byte));
      add(v * kVectorChannels + kTileChannels + 16, _mm256_srli_epi16(pixel1, 8));
    }
    offsets += offsets_stride;
    sums += 2 * kTileChannels;
  }
}

using AccumulateFunction = void (*)(const uint16_t*, int32_t, int64_t, const uint8_t*, int32_t, uint16_t*);
// [is the first block][vectors - 1]
constexpr AccumulateFunction kAccumulate[2][kTileVectors] = {
    {Accumulate<1, false>, Accumulate<2, false>, Accumulate<3, false>, Accumulate<4, false>},
    {Accumulate<1, true>, Accumulate<2, true>, Accumulate<3, true>, Accumulate<4, true>}};

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

// Float outputs of some pixels, 16 channels at a time: what most convolutions need, with the channels' constants in
// registers. `finish` is given a value and the place of its output.
template <typename Finish>
void WriteFloats(const BconvTask& task, int64_t pixel_begin, int64_t pixel_end, int32_t channel, int32_t count,
                 const uint16_t* sums, Finish finish) {
  const __m256i depth = _mm256_set1_epi16(static_cast<int16_t>(task.depth));
  const __m256i clamp_min = _mm256_set1_epi16(static_cast<int16_t>(std::max(task.clamp_min, INT16_MIN)));
  const __m256i clamp_max = _mm256_set1_epi16(static_cast<int16_t>(std::min(task.clamp_max, INT16_MAX)));
  float* const outputs = static_cast<float*>(task.output);
  const int64_t stride = task.output_channels;
  for (int32_t i = channel; i < channel + count; i += 16, sums += 16) {
    const __m256 multiplier[2] = {_mm256_loadu_ps(task.multiplier + i), _mm256_loadu_ps(task.multiplier + i + 8)};
    const __m256 bias[2] = {_mm256_loadu_ps(task.bias + i), _mm256_loadu_ps(task.bias + i + 8)};
    const uint16_t* pixel_sums = sums;
    int64_t index = pixel_begin * stride + task.first_channel + i;
    for (int64_t pixel = pixel_begin; pixel < pixel_end; ++pixel, pixel_sums += kTileChannels, index += stride) {
      const __m256i sum = _mm256_load_si256(reinterpret_cast<const __m256i*>(pixel_sums));
      const __m256i dot = _mm256_sub_epi16(depth, _mm256_add_epi16(sum, sum));
      const __m256i clamped = _mm256_min_epi16(_mm256_max_epi16(dot, clamp_min), clamp_max);
      const __m256 low = _mm256_cvtepi32_ps(_mm256_cvtepi16_epi32(_mm256_castsi256_si128(clamped)));
      const __m256 high = _mm256_cvtepi32_ps(_mm256_cvtepi16_epi32(_mm256_extracti128_si256(clamped, 1)));
      const __m256 low_value = _mm256_add_ps(_mm256_mul_ps(low, multiplier[0]), bias[0]);
      const __m256 high_value = _mm256_add_ps(_mm256_mul_ps(high, multiplier[1]), bias[1]);
      _mm256_storeu_ps(outputs + index, finish(low_value, index));
      _mm256_storeu_ps(outputs + index + 8, finish(high_value, index + 8));
    }
  }
}

void WriteSimpleFloats(const BconvTask& task, int64_t pixel_begin, int64_t pixel_end, int32_t channel, int32_t count,
                       const uint16_t* sums) {
  const float* const addend = task.addend;
  const auto add = [addend](__m256 value, int64_t index) {
    return _mm256_add_ps(value, _mm256_loadu_ps(addend + index));
  };
  if (addend == nullptr) {
    WriteFloats(task, pixel_begin, pixel_end, channel, count, sums, [](__m256 value, int64_t) { return value; });
  } else if (!task.rectify_sum) {
    WriteFloats(task, pixel_begin, pixel_end, channel, count, sums, add);
  } else {
    WriteFloats(task, pixel_begin, pixel_end, channel, count, sums,
                [add](__m256 value, int64_t index) { return _mm256_max_ps(add(value, index), _mm256_setzero_ps()); });
  }
}

template <bool kCorrected>
void WriteOutputs(const BconvTask& task, int64_t pixel_begin, int64_t pixel_end, int32_t channel, int32_t count,
                  const uint16_t* sums) {
  if (!kCorrected && task.output_type == Bconv2dOutputType::kFloat32 && task.depth <= INT16_MAX && count % 16 == 0) {
    return WriteSimpleFloats(task, pixel_begin, pixel_end, channel, count, sums);
  }
  const OutputTile<kCorrected> tile(task, channel, count);
  for (int64_t pixel = pixel_begin; pixel < pixel_end; ++pixel, sums += kTileChannels) {
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

void Bconv(const BconvTask& task, int64_t pixel_begin, int64_t pixel_end, int32_t channel_begin, int32_t channel_end) {
  const int32_t words = task.runs * task.run_words;
  const auto write = task.corrections == nullptr ? WriteOutputs<false> : WriteOutputs<true>;
  const NibblePlan plan(words);
  const Scratch scratch(task.scratch, words);
  const int32_t stride = Scratch::TablesStride(words);
  const int64_t blocks = (pixel_end - pixel_begin + kBlockPixels - 1) / kBlockPixels;
  for (int64_t block = 0; block < blocks; ++block) {
    // Blocks of nearly equal size, each of whole pairs but the last.
    const int64_t pairs_in_all = (pixel_end - pixel_begin + 1) / 2;
    const int64_t first_pixel = pixel_begin + pairs_in_all * block / blocks * 2;
    const int64_t last_pixel = std::min(pixel_begin + pairs_in_all * (block + 1) / blocks * 2, pixel_end);
    const int64_t pairs = (last_pixel - first_pixel + 1) / 2;
    WindowWalk walk(task, first_pixel);
    for (int64_t pair = 0; pair < pairs; ++pair) {
      const uint8_t* window0 = walk.Next();
      const uint8_t* window1 = first_pixel + 2 * pair + 1 < last_pixel ? walk.Next() : window0;
      Interleave(task, window0, window1, scratch.tables + pair * stride);
    }
    for (int32_t channel = channel_begin; channel < channel_end; channel += kTileChannels) {
      const int32_t vectors = std::min(kTileVectors, Vectors(task.channels - channel));
      const uint8_t* packed = task.weights + static_cast<ptrdiff_t>(channel) * (plan.nibbles / 2);
      const int32_t count = std::min(kTileChannels, channel_end - channel);
      for (int32_t nibble = 0; nibble < plan.nibbles; nibble += plan.block) {
        const int32_t nibbles = std::min(plan.block, plan.nibbles - nibble);
        UnpackWeights(packed, nibbles, vectors, scratch.weights);
        packed += static_cast<ptrdiff_t>(nibbles / 2) * vectors * kVectorChannels;
        const AccumulateFunction accumulate = kAccumulate[nibble == 0][vectors - 1];
        const uint16_t* tables = scratch.tables + nibble;
        if (nibble + nibbles < plan.nibbles) {
          accumulate(tables, stride, pairs, scratch.weights, nibbles, scratch.sums);
          continue;
        }
        // Writing outputs as soon as they are there lets the stores go on behind the next sums.
        constexpr int64_t kStep = 4;
        for (int64_t pair = 0; pair < pairs; pair += kStep) {
          uint16_t* sums = scratch.sums + pair * 2 * kTileChannels;
          accumulate(tables + pair * stride, stride, std::min(kStep, pairs - pair), scratch.weights, nibbles, sums);
          const int64_t pixel = first_pixel + 2 * pair;
          write(task, pixel, std::min(pixel + 2 * kStep, last_pixel), channel, count, sums);
        }
      }
    }
  }
}

}  // namespace

const Kernels kAvx2Kernels = {
    "avx2",  CpuHasAvx2,         QuantizeFloat32Avx2, QuantizeInt8Avx2, 2,     kTileChannels, sizeof(uint32_t),
    nullptr, PackedWeightsBytes, PackWeights,         ScratchBytes,     Bconv, kMaxWords,
};

}  // namespace litebnn

#endif  // LITEBNN_X86
