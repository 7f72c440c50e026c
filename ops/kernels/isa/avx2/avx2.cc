// AVX2: popcounts by table lookups (inner_loop.h). The table offsets of a block of pixels are computed once
// (table_offsets.h). Then each tile of channels is computed for all pixel pairs of the block. Its weights are unpacked
// once, as many nibbles at a time as fit the L1 cache.
#include "kernels/platform/x86_cpu.h"

#if LITEBNN_X86

#include <immintrin.h>

#include "kernels/isa/avx2/inner_loop.h"
#include "kernels/isa/avx2/lanes.h"
#include "kernels/isa/avx2/table_offsets.h"
#include "kernels/isa/avx2/weights.h"
#include "kernels/isa/isa.h"
#include "kernels/isa/shared/float_pixels.h"
#include "kernels/isa/shared/long_filters.h"
#include "kernels/isa/shared/nibble_plan.h"
#include "kernels/isa/shared/output.h"
#include "kernels/isa/shared/pack_signs.h"

namespace litebnn {
namespace {

using Offsets = TableOffsets<OffsetsTraits>;
static_assert(kMaxWords <= Offsets::MaxWords());
// Bytes of weights that are unpacked at a time, enough for one block of nibbles of a full tile.
constexpr int32_t kUnpackedBytes = kMaxBlockNibbles * kTileChannels;

// Number of pixel pairs that are summed before their outputs are written. The CPU then overlaps stores with the next
// sums.
constexpr int32_t kBatchPairs = 8;

// Returns four times the even or the odd bytes of a vector, as 16-bit values.
__m256i FourTimesEven(__m256i bytes) { return _mm256_maddubs_epi16(bytes, _mm256_set1_epi16(4)); }
__m256i FourTimesOdd(__m256i bytes) { return _mm256_maddubs_epi16(bytes, _mm256_set1_epi16(4 << 8)); }

// The sums of lookups of a pixel pair in one vector of channels, in the format of TileSums.
struct ByteSums {
  __m256i even, odd;

  // Returns the sums of pixel 1, one byte per channel, like those of pixel 0 in `even`. FourTimesOdd(even) costs
  // nothing here, because callers compute it too.
  __m256i Pixel1() const { return _mm256_sub_epi16(odd, _mm256_slli_epi16(FourTimesOdd(even), 2)); }
};

// Scratch memory of one thread.
struct Scratch {
  alignas(64) ByteSums batch[kBatchPairs * kTileVectors];  // [pairs of a batch][vectors]
  alignas(64) __m256i compensation[kTileVectors * 2];      // [vectors][2], minus the depth
  // [pixel pairs][vectors][pixels][2], four times the sums of lookups over all blocks of nibbles but the last.
  alignas(64) __m256i sums[kMaxBlockPixels / 2 * kTileVectors * 4];
  alignas(64) uint8_t weights[kUnpackedBytes];  // [nibbles][vectors][kVectorChannels], one nibble a byte
  Offsets::Memory offsets;
  PiecesMemory pieces;
};

size_t ScratchBytes(int32_t) { return sizeof(Scratch); }

// Sums the lookups of `count` pixel pairs, whose table offsets are at `pairs`. `sums` gets [count][4 / kPairs vectors].
template <int kPairs>
void SumPairs(const uint16_t* const* pairs, int32_t count, const NibbleBlock& block, const uint8_t* weights,
              ByteSums* sums) {
  for (int32_t pair = 0; pair < count; pair += kPairs, sums += 4) {
    const uint16_t* offsets[kPairs];
    // If fewer than kPairs pairs are left, the last pair is summed several times.
#pragma GCC unroll 4
    for (int p = 0; p < kPairs; ++p) offsets[p] = pairs[Min(pair + p, count - 1)];
    const TileSums<kPairs> tile(offsets, block.pieces, block.count, weights);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      _mm256_store_si256(&sums[i].even, tile.even[i]);
      _mm256_store_si256(&sums[i].odd, tile.odd[i]);
    }
  }
}

// Adds a batch's sums over one block of nibbles to `sums`. If the block is the window's first one, stores them there.
void KeepSums(const ByteSums* batch, int32_t count, bool first, __m256i* sums) {
  const auto keep = [first](__m256i value, __m256i* sum) { *sum = first ? value : _mm256_add_epi16(*sum, value); };
  for (int32_t i = 0; i < count; ++i, sums += 4) {
    const __m256i pixel0 = batch[i].even, pixel1 = batch[i].Pixel1();
    keep(FourTimesEven(pixel0), sums);
    keep(FourTimesOdd(pixel0), sums + 1);
    keep(FourTimesEven(pixel1), sums + 2);
    keep(FourTimesOdd(pixel1), sums + 3);
  }
}

// The sums of lookups for a batch of pixel pairs in one channel tile.
struct SummedPairs {
  const ByteSums* batch;        // sums over the last block of nibbles, [pairs][vectors]
  const __m256i* sums;          // sums over the earlier blocks; null if there is one block
  const int32_t* parity;        // [pixels], twice the odd-parity nibbles of each window
  const __m256i* compensation;  // [vectors][2], minus the depth
  int32_t vectors;
  int64_t pixel_begin, pixel_end;

  // Sets `wide` to four times a pixel's sums in 32 channels, 16 channels in each vector.
  void Sums(int64_t pixel, int32_t vector, __m256i* wide) const {
    const int64_t i = (pixel - pixel_begin) / 2 * vectors + vector, p = (pixel - pixel_begin) % 2;
    const __m256i bytes = p == 0 ? batch[i].even : batch[i].Pixel1();
    wide[0] = FourTimesEven(bytes);
    wide[1] = FourTimesOdd(bytes);
    if (sums != nullptr) {
      wide[0] = _mm256_add_epi16(wide[0], sums[4 * i + 2 * p]);
      wide[1] = _mm256_add_epi16(wide[1], sums[4 * i + 2 * p + 1]);
    }
  }

  __m256i Parity(int64_t pixel) const { return _mm256_set1_epi32(parity[pixel - pixel_begin]); }
};

// Writes float or int8 outputs of whole vectors of channels. The flag kRelu is for a RELU without corrections, kWhole
// for whole pixel pairs and one block of nibbles. Outputs are written in memory order, which suits the caches best. Not
// inlined, because the caller would run out of registers.
template <bool kRelu, bool kWhole, typename Epilogue>
__attribute__((noinline)) void WriteFloats(const BconvTask& task, const SummedPairs& pairs, int32_t channel,
                                           int32_t count, Epilogue epilogue) {
  // An unsigned 16-bit number n in the mantissa of the float 2^23 gives 2^23 + n, and a subtraction of 2^23 leaves
  // exactly n. A bias makes negative numbers unsigned.
  constexpr int32_t kBias = kRelu ? 0 : 32768;
  constexpr float kTwoTo23 = 8388608.0f;
  __m256i two_to_23 = _mm256_set1_epi16(0x4B00);
  // This statement hides the constant from Clang, which would otherwise use one more shuffle per output vector to
  // unpack.
  __asm__("" : "+x"(two_to_23));
  const __m256i bias_16 = _mm256_set1_epi16(static_cast<int16_t>(kBias));
  const __m256 base = _mm256_set1_ps(kTwoTo23 + static_cast<float>(kBias));
  const auto clamp = [](int32_t value) {
    return _mm256_set1_epi16(static_cast<int16_t>(Min(Max(value, -kBias), 65535 - kBias) + kBias));
  };
  const __m256i clamp_min = clamp(task.clamp_min), clamp_max = clamp(task.clamp_max);
  // The local copy can stay in registers, because no store can modify it.
  const SummedPairs all = pairs;
  const float* const multipliers = task.multiplier + channel;
  const float* const biases = task.bias + channel;
  const int64_t stride = task.output_channels;
  const int32_t vectors = count / kVectorChannels;
  const bool corrects = !kRelu && task.corrections != nullptr;
  int64_t index = all.pixel_begin * stride + task.first_channel + channel;
  const ByteSums* bytes = all.batch;
  const __m256i* sums = all.sums;
  for (int64_t pixel = all.pixel_begin; pixel < all.pixel_end; pixel += 2, index += 2 * stride, bytes += all.vectors) {
    const __m256i parity[2] = {_mm256_add_epi16(all.Parity(pixel), bias_16),
                               _mm256_add_epi16(all.Parity(pixel + 1), bias_16)};
    const bool is_pair = kWhole || pixel + 1 < all.pixel_end;
    const int32_t* corrections[2] = {};
    if (corrects) {
      corrections[0] = CorrectionsOf(task, pixel) + channel;
      if (is_pair) corrections[1] = CorrectionsOf(task, pixel + 1) + channel;
    }
    for (int32_t vector = 0; vector < vectors; ++vector) {
      const __m256i pixel_bytes[2] = {bytes[vector].even, bytes[vector].Pixel1()};
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
        const int32_t at = vector * kVectorChannels + half * 16;
        const __m256i compensation = all.compensation[2 * vector + half];
        const __m256 multiplier[2] = {_mm256_loadu_ps(multipliers + at), _mm256_loadu_ps(multipliers + at + 8)};
        const __m256 bias[2] = {_mm256_loadu_ps(biases + at), _mm256_loadu_ps(biases + at + 8)};
#pragma GCC unroll 2
        for (int p = 0; p < 2; ++p) {
          if (p == 1 && !is_pair) break;
          __m256i sum = half == 0 ? FourTimesEven(pixel_bytes[p]) : FourTimesOdd(pixel_bytes[p]);
          if (!kWhole && sums != nullptr) sum = _mm256_add_epi16(sum, sums[4 * vector + 2 * p + half]);
          sum = _mm256_add_epi16(sum, parity[p]);
          if (corrects) {
            const auto load = [&](int32_t i) { return EightLanes::Load(corrections[p] + at + i); };
            // Packing within 128-bit lanes gives the corrections the order of the sums.
            sum = _mm256_add_epi16(sum, _mm256_packs_epi32(load(0), load(8)));
          }
          const __m256i dot =
              kRelu ? _mm256_subs_epu16(sum, compensation)
                    : _mm256_min_epu16(_mm256_max_epu16(_mm256_sub_epi16(sum, compensation), clamp_min), clamp_max);
          const __m256 dots[2] = {_mm256_sub_ps(_mm256_castsi256_ps(_mm256_unpacklo_epi16(dot, two_to_23)), base),
                                  _mm256_sub_ps(_mm256_castsi256_ps(_mm256_unpackhi_epi16(dot, two_to_23)), base)};
          const int64_t place = index + p * stride + at;
          const __m256 low = _mm256_add_ps(_mm256_mul_ps(dots[0], multiplier[0]), bias[0]);
          const __m256 high = _mm256_add_ps(_mm256_mul_ps(dots[1], multiplier[1]), bias[1]);
          StorePair<EightLanes>(epilogue, channel + at, low, high, place);
        }
      }
    }
    if (!kWhole && sums != nullptr) sums += 4 * all.vectors;
  }
}

void WriteAny(const BconvTask& task, const SummedPairs& pairs, int32_t channel, int32_t count) {
  const __m256i depth = _mm256_set1_epi16(static_cast<int16_t>(task.depth));
  for (int64_t pixel = pairs.pixel_begin; pixel < pairs.pixel_end; ++pixel) {
    const __m256i parity_and_depth = _mm256_sub_epi16(pairs.Parity(pixel), depth);
    // The popcounts of one pixel, in channel order.
    alignas(32) uint16_t sums[kTileChannels];
    for (int32_t vector = 0; vector < pairs.vectors; ++vector) {
      __m256i wide[2];
      pairs.Sums(pixel, vector, wide);
      for (int half = 0; half < 2; ++half) {
        const __m256i sum = _mm256_add_epi16(wide[half], parity_and_depth);
        const __m256i popcounts = _mm256_srli_epi16(_mm256_sub_epi16(pairs.compensation[2 * vector + half], sum), 1);
        _mm256_store_si256(reinterpret_cast<__m256i*>(sums + vector * kVectorChannels + half * 16),
                           _mm256_permute4x64_epi64(popcounts, _MM_SHUFFLE(3, 1, 2, 0)));
      }
    }
    WriteOutputs<EightLanes>(task, pixel, channel, count, sums);
  }
}

void WritePairs(const BconvTask& task, const SummedPairs& pairs, int32_t channel, int32_t count) {
  if (task.epilogue_kind == EpilogueKind::kBits || count % kVectorChannels != 0) {
    return WriteAny(task, pairs, channel, count);
  }
  const bool relu = task.clamp_min == 0 && task.clamp_max == INT32_MAX && task.corrections == nullptr;
  const bool whole = pairs.sums == nullptr && (pairs.pixel_end - pairs.pixel_begin) % 2 == 0;
  if (relu && whole && task.epilogue_kind == EpilogueKind::kNone) {
    return WriteFloats<true, true>(task, pairs, channel, count, Epilogue<EightLanes, EpilogueKind::kNone>(task));
  }
  WithEpilogue<EightLanes>(task, [&](auto epilogue) {
    relu ? WriteFloats<decltype(epilogue)::kIsCommon, false>(task, pairs, channel, count, epilogue)
         : WriteFloats<false, false>(task, pairs, channel, count, epilogue);
  });
}

// Computes one channel tile of a block of pixels, whose offsets have been written to `scratch`.
void BconvTile(const BconvTask& task, const NibblePlan& plan, Scratch& scratch, int64_t first_pixel, int64_t last_pixel,
               int32_t channel, int32_t channels) {
  const int32_t vectors = TileChannels(channels) / kVectorChannels;
  const auto sum_pairs = vectors == 1 ? SumPairs<4> : vectors == 2 ? SumPairs<2> : SumPairs<1>;
  const size_t unit_bytes = UnitBytes(task.runs * task.run_words);
  const uint8_t* tile = task.weights + static_cast<size_t>(channel / kVectorChannels) * unit_bytes;
  const auto* compensation = reinterpret_cast<const __m256i*>(tile);
  const __m256i depth = _mm256_set1_epi16(static_cast<int16_t>(task.depth));
  for (int32_t i = 0; i < 2 * vectors; ++i) scratch.compensation[i] = _mm256_sub_epi16(compensation[i], depth);
  const uint8_t* packed = reinterpret_cast<const uint8_t*>(compensation + 2 * vectors);

  const auto pairs = static_cast<int32_t>((last_pixel - first_pixel + 1) / 2);
  const int32_t nibble_bytes = vectors * kVectorChannels;
  const int32_t unpacked_nibbles = kUnpackedBytes / nibble_bytes / plan.block * plan.block;
  for (int32_t unpacked = 0; unpacked < plan.nibbles; unpacked += unpacked_nibbles) {
    const int32_t unpacked_end = Min(unpacked + unpacked_nibbles, plan.nibbles);
    UnpackWeights(packed, unpacked_end - unpacked, vectors, scratch.weights);
    packed += static_cast<ptrdiff_t>(unpacked_nibbles / 2) * nibble_bytes;
    for (int32_t pair = 0; pair < pairs; pair += kBatchPairs) {
      const int32_t batch_pairs = Min(kBatchPairs, pairs - pair);
      // If all nibbles are unpacked at once, all batches use the same memory for sums, which then stays in the L1
      // cache.
      __m256i* sums = scratch.sums + (unpacked_nibbles >= plan.nibbles ? 0 : ptrdiff_t{pair} * vectors * 4);
      for (int32_t nibble = unpacked; nibble < unpacked_end; nibble += plan.block) {
        const uint8_t* weights = scratch.weights + (nibble - unpacked) * nibble_bytes;
        const NibbleBlock& block = plan.blocks[nibble / plan.block];
        sum_pairs(scratch.offsets.pairs + pair, batch_pairs, block, weights, scratch.batch);
        if (nibble + plan.block < plan.nibbles) KeepSums(scratch.batch, batch_pairs * vectors, nibble == 0, sums);
      }
      if (unpacked_end < plan.nibbles) continue;
      SummedPairs summed = {};
      summed.batch = scratch.batch;
      summed.sums = plan.block >= plan.nibbles ? nullptr : sums;
      summed.parity = scratch.offsets.parity + 2 * pair;
      summed.compensation = scratch.compensation;
      summed.vectors = vectors;
      summed.pixel_begin = first_pixel + 2 * pair;
      summed.pixel_end = Min(summed.pixel_begin + 2 * kBatchPairs, last_pixel);
      WritePairs(task, summed, channel, channels);
    }
  }
}

void BconvShort(const BconvTask& task, int64_t pixel_begin, int64_t pixel_end, int32_t channel_begin,
                int32_t channel_end) {
  Scratch& scratch = *static_cast<Scratch*>(task.scratch);
  const Offsets offsets(task, pixel_begin, pixel_end, scratch.offsets);
  const NibblePlan plan(offsets.runs(), offsets.run_nibbles(), offsets.run_stride());
  for (int64_t pixel = pixel_begin, block_end; pixel < pixel_end; pixel = block_end) {
    block_end = offsets.BlockEnd(pixel, pixel_end);
    offsets.Write(pixel, block_end);
    for (int32_t channel = channel_begin, channels; channel < channel_end; channel += channels) {
      channels = TileChannels(task.channels - channel);
      BconvTile(task, plan, scratch, pixel, block_end, channel, Min(channels, channel_end - channel));
    }
  }
}

void Bconv(const BconvTask& task, int64_t pixel_begin, int64_t pixel_end, int32_t channel_begin, int32_t channel_end) {
  if (task.runs * task.run_words <= kMaxWords) {
    return BconvShort(task, pixel_begin, pixel_end, channel_begin, channel_end);
  }
  BconvLong<EightLanes>(task, pixel_begin, pixel_end, channel_begin, channel_end,
                        static_cast<Scratch*>(task.scratch)->pieces, BconvShort);
}

}  // namespace

const Isa kAvx2Isa = {
    .name = "avx2",
    .available = CpuHasAvx2,
    .pack_float32_signs = PackFloat32Signs<EightLanes>,
    .pack_int8_signs = PackInt8Signs<EightLanes>,
    .pack_int8_comparisons = PackInt8Comparisons<EightLanes>,
    .pack_affine_signs = PackAffineSigns<EightLanes>,
    .max_window = MaxWindow<EightLanes>,
    .gate_pixels = GatePixels<EightLanes>,
    .tile_pixels = 2,
    .tile_channels = kTileChannels,
    .macs_per_cycle = 330,
    .packed_weights_bytes = PackedWeightsBytes,
    .pack_weights = PackWeights<VectorOrder>,
    .scratch_bytes = ScratchBytes,
    .bconv = Bconv,
    .int8_conv = Avx2Int8Conv,
};

}  // namespace litebnn

#endif  // LITEBNN_X86
