// The AVX2 instruction set: popcounts are computed by table lookups (inner_loop.h). The table offsets of a block of
// pixels are computed once (table_offsets.h). Then each tile of channels is computed for all pixel pairs of the block.
// The weights of a tile are unpacked once, as many nibbles at a time as fit the L1 cache.
#include "kernels/isa/shared/int8/max_window.h"
#include "kernels/platform/x86_cpu.h"

#if LITEBNN_X86

#include <immintrin.h>

#include "kernels/isa/avx2/inner_loop.h"
#include "kernels/isa/avx2/lanes.h"
#include "kernels/isa/avx2/outputs.h"
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
// The constant is the number of bytes of weights that are unpacked at a time. They are the weights of a full tile of
// channels for kMaxBlockNibbles nibbles (4-bit parts) of the filter.
constexpr int32_t kUnpackedBytes = kMaxBlockNibbles * kTileChannels;

// The number of pixel pairs in a batch. The sums of a whole batch are computed before its outputs are written. The CPU
// can then write these outputs while it computes the next sums.
constexpr int32_t kBatchPairs = 8;

// The memory in which one thread keeps intermediate results.
struct Scratch {
  alignas(64) ByteSums batch[kBatchPairs * kTileVectors];  // [pairs of a batch][vectors]
  alignas(64) __m256i compensation[kTileVectors * 2];      // [vectors][2], minus the depth
  // The sums of table lookups over a window, without its last block of nibbles, whose sums stay in `batch`. Each sum is
  // multiplied by four, as the dot product needs it, and has 16 bits. The layout is [pixel pairs][vectors][2
  // pixels][even bytes, odd bytes].
  alignas(64) __m256i sums[kMaxBlockPixels / 2 * kTileVectors * 4];
  alignas(64) uint8_t weights[kUnpackedBytes];  // [nibbles][vectors][kVectorChannels], one nibble a byte
  Offsets::Memory offsets;
  PiecesMemory pieces;
};

size_t ScratchBytes(int32_t) { return sizeof(Scratch); }

// Sums the table lookups of `count` pixel pairs, kPairs pairs at a time, so that the sums fill four vectors. `pairs`
// points to the table offsets of each pair. The layout of `sums` is [count][4 / kPairs vectors of channels].
template <int kPairs>
void SumPairs(const uint16_t* const* pairs, int32_t count, const NibbleBlock& block, const uint8_t* weights,
              ByteSums* sums) {
  for (int32_t pair = 0; pair < count; pair += kPairs, sums += 4) {
    const uint16_t* offsets[kPairs];
    // The tile has kPairs pixel pairs. If fewer are left, the loop fills the tile with copies of the last pair.
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

// Adds the lookup sums of one block of nibbles, which `batch` has for a batch of pixel pairs, to `sums`. For a window's
// first block, the function overwrites `sums` instead.
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

// Computes one tile of channels for a block of pixels, whose table offsets are already in `scratch`.
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
      // If the weights for all nibbles of a window are unpacked at once, all batches of pixels use the same memory for
      // sums. This memory then stays in the L1 cache.
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
    .max_int8_window = MaxInt8Window,
    .average_int8_window = Avx2AverageInt8Window,
    .gate_pixels = GatePixels<EightLanes>,
    .tile_pixels = 2,
    .tile_channels = kTileChannels,
    .macs_per_cycle = 330,
    .packed_weights_bytes = PackedWeightsBytes,
    .pack_weights = PackWeights<VectorOrder>,
    .scratch_bytes = ScratchBytes,
    .bconv = Bconv,
    .reads_may_tie = true,
    .int8_conv = Avx2Int8Conv,
};

}  // namespace litebnn

#endif  // LITEBNN_X86
