// The 64-bit NEON instruction set for cores with a fast TBL: popcounts are computed by table lookups (sum_lookups.h).
// The table offsets of a block of pixels are computed once (table_offsets.h). Then each tile of channels is computed
// for all pixel pairs of the block. The weights of a tile are unpacked once, as many nibbles at a time as fit the L1
// cache.
#include "kernels/isa/isa.h"

#if defined(__aarch64__)

#include "kernels/isa/neon64_tbl/sum_lookups.h"
#include "kernels/isa/neon64_tbl/table_offsets.h"
#include "kernels/isa/shared/float_pixels.h"
#include "kernels/isa/shared/int8/max_window.h"
#include "kernels/isa/shared/long_filters.h"
#include "kernels/isa/shared/lookup_weights.h"
#include "kernels/isa/shared/neon64.h"
#include "kernels/isa/shared/nibble_plan.h"
#include "kernels/isa/shared/output.h"
#include "kernels/platform/arm_cpu.h"

namespace litebnn {
namespace {

using Offsets = TableOffsets<OffsetsTraits>;
static_assert(kMaxWords <= Offsets::MaxWords());
// The constant is the number of bytes of weights that are unpacked at a time. It has room for 288 nibbles per channel,
// those of a 3x3 filter over 128 input channels.
constexpr int32_t kUnpackedBytes = 288 * kTileChannels;

struct ChannelOrder {
  static constexpr int32_t Byte(int32_t lane) { return lane; }
  static constexpr int32_t Compensation(int32_t lane) { return lane; }
};

// ChannelConstants has the constants of the channels in one vector.
struct ChannelConstants {
  uint16x8_t compensation[2];  // less the depth
  float32x4_t multiplier[4], bias[4];
};

// Scratch is the memory in which one thread keeps intermediate results.
struct Scratch {
  alignas(64) ChannelConstants constants[kTileSums];
  alignas(64) WideSums sums[kMaxBlockPixels / 2 * kTileSums];  // sums over all blocks of nibbles but the last
  alignas(64) uint8_t weights[kUnpackedBytes];                 // [nibbles][vectors][kVectorChannels], one nibble a byte
  Offsets::Memory offsets;
  PiecesMemory pieces;
};

size_t ScratchBytes(int32_t) { return sizeof(Scratch); }

// Multiplies the byte sums of a pixel's table lookups by four, as the dot product needs them, and widens them to 16
// bits. If kHasBefore is true, the function adds the sums in `before`, which earlier blocks of nibbles gave.
template <bool kHasBefore>
__attribute__((always_inline)) inline void Widen(uint8x16_t bytes, const uint16x8_t* before, uint16x8_t* wide) {
  if (kHasBefore) {
    const uint8x16_t four = vdupq_n_u8(4);
    wide[0] = vmlal_u8(before[0], vget_low_u8(bytes), vget_low_u8(four));
    wide[1] = vmlal_high_u8(before[1], bytes, four);
  } else {
    wide[0] = vshll_n_u8(vget_low_u8(bytes), 2);
    wide[1] = vshll_high_n_u8(bytes, 2);
  }
}

// TileOfChannels describes the channels of a tile. The constants are their multipliers, biases and compensations.
struct TileOfChannels {
  const BconvTask& task;
  const ChannelConstants* constants;  // [vectors]
  int32_t channel, channels;
  int32_t vectors, pairs;  // vectors * pairs is 8
  bool has_before;         // true if there is more than one block of nibbles
};

// SummedTile has the sums of table lookups of one tile of pixels and channels.
struct SummedTile {
  const ByteSums* bytes;   // sums over the last block of nibbles, [pairs][vectors]
  const WideSums* before;  // sums over the earlier blocks; unused if there is one block
  const int32_t* parity;   // [pixels], twice the odd-parity nibbles of each window
  int64_t pixel;
};

// Writes the float or int8 outputs of whole tiles. It supports RELU and no activation, which are the most common cases.
template <bool kRelu, bool kHasBefore, typename Epilogue>
struct FloatWriter {
  const TileOfChannels tile;
  const Epilogue epilogue{tile.task};
  using Value = typename Epilogue::Value;
  const int64_t stride = tile.task.output_channels;
  Value* const outputs = static_cast<Value*>(tile.task.output);

  __attribute__((always_inline)) void operator()(const SummedTile& summed) const {
    // Local copies can stay in registers, because no store can modify them.
    const FloatWriter self = *this;
    const ByteSums* bytes = summed.bytes;
    const WideSums* before = summed.before;
    const int32_t* parity = summed.parity;
    Value* pixel = self.outputs + OutputIndex(tile.task, summed.pixel, tile.channel);
    const int64_t pixel_stride = self.stride;
    for (int32_t pair = self.tile.pairs; pair > 0; --pair, pixel += 2 * pixel_stride) {
      const uint16x8_t parities[2] = {vreinterpretq_u16_s32(vld1q_dup_s32(parity)),
                                      vreinterpretq_u16_s32(vld1q_dup_s32(parity + 1))};
      parity += 2;
      Value* pixels[2] = {pixel, pixel + pixel_stride};
      int32_t channel = self.tile.channel;
      const ChannelConstants* constants = self.tile.constants;
      const ChannelConstants* const end = constants + self.tile.vectors;
      // The number of vectors is even, so the loop writes two vectors at a time.
      for (; constants != end; constants += 2, bytes += 2, before += 2, channel += 2 * kVectorChannels) {
        self.WriteVector<0>(*bytes, *before, *constants, parities, channel, pixels);
        self.WriteVector<1>(bytes[1], before[1], constants[1], parities, channel, pixels);
        pixels[0] += 2 * kVectorChannels;
        pixels[1] += 2 * kVectorChannels;
      }
    }
  }

  // FourEpilogues has the epilogues for a vector of sixteen channels: four objects, each for four channels.
  struct FourEpilogues {
    typename Epilogue::Channels of[4];
  };
  __attribute__((always_inline)) FourEpilogues EpiloguesOf(int32_t first) const {
    return {{epilogue(first), epilogue(first + 4), epilogue(first + 8), epilogue(first + 12)}};
  }

  template <int kVector>
  __attribute__((always_inline)) void WriteVector(const ByteSums& bytes, const WideSums& before,
                                                  const ChannelConstants& constants, const uint16x8_t* parities,
                                                  int32_t first, Value* const* pixels) const {
    // The values are copied to local variables, which can stay in registers, because stores to the output cannot modify
    // them.
    const ChannelConstants channels = constants;
    const FourEpilogues epilogues = EpiloguesOf(first + kVector * kVectorChannels);
    const uint8x16_t sums[2] = {bytes.Pixel0(), bytes.pixel1};
#pragma GCC unroll 2
    for (int p = 0; p < 2; ++p) {
      uint16x8_t wide[2];
      Widen<kHasBefore>(sums[p], before.pixels[p], wide);
      WriteHalf<kVector, 0>(vaddq_u16(wide[0], parities[p]), channels, epilogues, pixels[p]);
      WriteHalf<kVector, 1>(vaddq_u16(wide[1], parities[p]), channels, epilogues, pixels[p]);
    }
  }

  // Writes eight channels of a pixel. The sums of these channels are one half of a vector of bytes.
  template <int kVector, int kHalf>
  __attribute__((always_inline)) void WriteHalf(uint16x8_t sums, const ChannelConstants& constants,
                                                const FourEpilogues& epilogues, Value* pixel) const {
    const uint16x8_t compensation = constants.compensation[kHalf];
    float32x4_t low, high;
    if (kRelu) {
      // A saturating subtraction clamps at 0, which is the RELU.
      const uint16x8_t dots = vqsubq_u16(sums, compensation);
      low = vcvtq_f32_u32(vmovl_u16(vget_low_u16(dots)));
      high = vcvtq_f32_u32(vmovl_high_u16(dots));
    } else {
      const int16x8_t dots = vreinterpretq_s16_u16(vsubq_u16(sums, compensation));
      low = vcvtq_f32_s32(vmovl_s16(vget_low_s16(dots)));
      high = vcvtq_f32_s32(vmovl_high_s16(dots));
    }
    low = vaddq_f32(vmulq_f32(low, constants.multiplier[2 * kHalf]), constants.bias[2 * kHalf]);
    high = vaddq_f32(vmulq_f32(high, constants.multiplier[2 * kHalf + 1]), constants.bias[2 * kHalf + 1]);
    constexpr int kFirst = kVector * kVectorChannels + kHalf * 8;
    const ptrdiff_t index = pixel - outputs + kFirst;
    StoreOutputs<kFirst>(epilogues.of[2 * kHalf], epilogues.of[2 * kHalf + 1], low, high, pixel, index);
  }
};

// Writes the outputs of pixel `i` of a tile. Supports all output types.
__attribute__((noinline)) void WritePixel(const TileOfChannels& tile, const SummedTile& summed, int32_t i) {
  const uint16x8_t depth = vdupq_n_u16(static_cast<uint16_t>(tile.task.depth));
  const uint16x8_t parity_and_depth = vsubq_u16(vreinterpretq_u16_s32(vdupq_n_s32(summed.parity[i])), depth);
  const int32_t p = i % 2, first = i / 2 * tile.vectors;
  uint16_t popcounts[kTileChannels];
  for (int32_t vector = 0; vector < tile.vectors; ++vector) {
    const ByteSums& sums = summed.bytes[first + vector];
    uint16x8_t wide[2];
    const uint8x16_t own = p == 0 ? sums.Pixel0() : sums.pixel1;
    tile.has_before ? Widen<true>(own, summed.before[first + vector].pixels[p], wide)
                    : Widen<false>(own, nullptr, wide);
    for (int half = 0; half < 2; ++half) {
      const uint16x8_t sum = vaddq_u16(wide[half], parity_and_depth);
      const uint16x8_t twice = vsubq_u16(tile.constants[vector].compensation[half], sum);
      vst1q_u16(popcounts + vector * kVectorChannels + half * 8, vshrq_n_u16(twice, 1));
    }
  }
  WriteOutputs<FourLanes>(tile.task, summed.pixel + i, tile.channel, tile.channels, popcounts);
}

// Lookups has the arguments of SumTiles that describe the table lookups for the unpacked weights. The unpacked weights
// belong to one tile of channels, and to one or several blocks of nibbles.
struct Lookups {
  SumLookupsCode* loop;
  const NibbleBlock *first, *last;  // blocks of nibbles whose sums go to `sums`
  const NibbleBlock* final;         // the window's last block, after which outputs are written, or null
  const uint8_t* weights;
  ptrdiff_t block_bytes;         // bytes of weights per block
  SumLookupsCode* first_ending;  // starts `sums` or adds to them; later blocks always add
  WideSums* sums;
  ptrdiff_t sums_stride;  // elements from the sums of one pixel tile to the next
};

// Computes the sums of the pixels [pixel, last_pixel), and writes the outputs after the last block of
// nibbles. `offsets.pairs` ends with copies of the last pixel pair, so that the last tile is full.
template <typename Writer>
__attribute__((noinline)) void SumTiles(const TileOfChannels& tile, const Lookups& given,
                                        const Offsets::Memory& offsets, int64_t pixel, int64_t last_pixel,
                                        const Writer& write) {
  const Lookups lookups = given;
  const int32_t tile_pixels = 2 * tile.pairs;
  const uint32_t* const* pairs = offsets.pairs;
  const int32_t* parity = offsets.parity;
  WideSums* sums = lookups.sums;
  ByteSums bytes[kTileSums];
  for (; pixel < last_pixel; pixel += tile_pixels, pairs += tile_pixels / 2, parity += tile_pixels) {
    const uint8_t* weights = lookups.weights;
    SumLookupsCode* ending = lookups.first_ending;
    for (const NibbleBlock* block = lookups.first; block != lookups.last; ++block, weights += lookups.block_bytes) {
      SumLookups(lookups.loop, ending, pairs, weights, block->pieces, block->count, sums);
      ending = litebnn_add_wide_sums;
    }
    if (lookups.final != nullptr) {
      SumLookups(lookups.loop, litebnn_store_sums, pairs, weights, lookups.final->pieces, lookups.final->count, bytes);
      const SummedTile summed = {bytes, sums, parity, pixel};
      if (pixel + tile_pixels <= last_pixel) {
        write(summed);
      } else {
        for (int32_t i = 0; pixel + i < last_pixel; ++i) WritePixel(tile, summed, i);
      }
    }
    sums += lookups.sums_stride;
  }
}

// TileLoops has the assembly functions for tiles of 1, 2 and 4 pixel pairs.
struct TileLoops {
  SumLookupsCode* sum_lookups;
  UnpackWeights* unpack_weights;
};
constexpr TileLoops kTileLoops[] = {
    {litebnn_sum_lookups_1, litebnn_unpack_weights_8},
    {litebnn_sum_lookups_2, litebnn_unpack_weights_4},
    {litebnn_sum_lookups_4, litebnn_unpack_weights_2},
};

// Computes one tile of channels for a block of pixels, whose table offsets are already in `scratch`.
template <typename Writer>
void BconvTile(const TileOfChannels& tile, const NibblePlan& plan, Scratch& scratch, int64_t first_pixel,
               int64_t last_pixel, const uint8_t* packed, const Writer& write) {
  const int32_t nibble_bytes = tile.vectors * kVectorChannels;
  const int32_t unpacked_nibbles = kUnpackedBytes / nibble_bytes / plan.block * plan.block;
  const TileLoops& loops = kTileLoops[tile.pairs / 2];
  Lookups lookups = {};
  lookups.loop = loops.sum_lookups;
  lookups.weights = scratch.weights;
  lookups.block_bytes = plan.block * nibble_bytes;
  lookups.sums = scratch.sums;
  // If the weights of a whole window are unpacked at once, each tile of pixels is finished before the next one begins.
  // All tiles then use the same memory for sums, which stays in the L1 cache.
  lookups.sums_stride = unpacked_nibbles >= plan.nibbles ? 0 : kTileSums;
  for (int32_t unpacked = 0; unpacked < plan.nibbles; unpacked += unpacked_nibbles) {
    const int32_t unpacked_end = Min(unpacked + unpacked_nibbles, plan.nibbles);
    loops.unpack_weights(packed, unpacked_end - unpacked, scratch.weights);
    packed += static_cast<ptrdiff_t>(unpacked_nibbles / 2) * nibble_bytes;
    const bool ends = unpacked_end == plan.nibbles;
    lookups.first = plan.blocks + unpacked / plan.block;
    lookups.last = plan.blocks + (unpacked_end + plan.block - 1) / plan.block - ends;
    lookups.final = ends ? lookups.last : nullptr;
    lookups.first_ending = unpacked == 0 ? litebnn_start_wide_sums : litebnn_add_wide_sums;
    SumTiles(tile, lookups, scratch.offsets, first_pixel, last_pixel, write);
  }
}

// Calls body(writer), where `writer` is the function object that writes the outputs of this task. The call
// writer(summed) writes the outputs of a whole tile.
template <typename Body>
void WithWriter(const TileOfChannels& tile, Body body) {
  const BconvTask& task = tile.task;
  const bool relu = task.clamp_min == 0 && task.clamp_max == INT32_MAX, linear = task.clamp_min == INT32_MIN;
  if (task.epilogue_kind == EpilogueKind::kBits || HasExceptions(task) || task.corrections != nullptr ||
      !(relu || linear) || tile.channels != tile.vectors * kVectorChannels) {
    return body([&](const SummedTile& summed) {
      for (int32_t i = 0; i < 2 * tile.pairs; ++i) WritePixel(tile, summed, i);
    });
  }
  WithPairEpilogue(task, [&](auto epilogue) {
    using Epilogue = decltype(epilogue);
    if (tile.has_before) {
      relu ? body(FloatWriter<true, true, Epilogue>{tile}) : body(FloatWriter<false, true, Epilogue>{tile});
    } else {
      relu ? body(FloatWriter<true, false, Epilogue>{tile}) : body(FloatWriter<false, false, Epilogue>{tile});
    }
  });
}

// Sets the constants of a channel tile. The compensations, which are constant terms of the channels' dot products, come
// from the array `packed`. Returns the address after them, where the tile's packed weights begin.
const uint8_t* SetConstants(const TileOfChannels& tile, const uint8_t* packed, ChannelConstants* constants) {
  const BconvTask& task = tile.task;
  const float *multiplier = task.multiplier + tile.channel, *bias = task.bias + tile.channel;
  const auto* compensation = reinterpret_cast<const uint16_t*>(packed);
  const uint16x8_t depth = vdupq_n_u16(static_cast<uint16_t>(task.depth));
  for (int32_t vector = 0; vector < tile.vectors; ++vector, ++constants) {
    for (int i = 0; i < 2; ++i, compensation += 8)
      constants->compensation[i] = vsubq_u16(vld1q_u16(compensation), depth);
    for (int i = 0; i < 4; ++i, multiplier += 4) constants->multiplier[i] = vld1q_f32(multiplier);
    for (int i = 0; i < 4; ++i, bias += 4) constants->bias[i] = vld1q_f32(bias);
  }
  return reinterpret_cast<const uint8_t*>(compensation);
}

void BconvShort(const BconvTask& task, int64_t pixel_begin, int64_t pixel_end, int32_t channel_begin,
                int32_t channel_end) {
  Scratch& scratch = *static_cast<Scratch*>(task.scratch);
  const Offsets offsets(task, pixel_begin, pixel_end, scratch.offsets);
  const NibblePlan plan(offsets.runs(), offsets.run_nibbles(), offsets.run_stride());
  const size_t unit_bytes = UnitBytes(task.runs * task.run_words);
  for (int64_t pixel = pixel_begin, block_end; pixel < pixel_end; pixel = block_end) {
    block_end = offsets.BlockEnd(pixel, pixel_end);
    offsets.Write(pixel, block_end);
    // The last tile of pixel pairs must be full, so the last pair is repeated.
    const uint32_t** const pairs_end = scratch.offsets.pairs + (block_end - pixel + 1) / 2;
    for (int i = 0; i < kSparePairs; ++i) pairs_end[i] = pairs_end[-1];
    for (int32_t channel = channel_begin, channels; channel < channel_end; channel += channels) {
      channels = TileChannels(task.channels - channel);
      const int32_t vectors = channels / kVectorChannels;
      const TileOfChannels tile = {task,
                                   scratch.constants,
                                   channel,
                                   Min(channels, channel_end - channel),
                                   vectors,
                                   kTileSums / vectors,
                                   plan.block < plan.nibbles};
      const uint8_t* packed = task.weights + static_cast<size_t>(channel / kUnitChannels) * unit_bytes;
      packed = SetConstants(tile, packed, scratch.constants);
      WithWriter(tile, [&](const auto& writer) { BconvTile(tile, plan, scratch, pixel, block_end, packed, writer); });
    }
  }
}

void Bconv(const BconvTask& task, int64_t pixel_begin, int64_t pixel_end, int32_t channel_begin, int32_t channel_end) {
  if (task.runs * task.run_words <= kMaxWords) {
    return BconvShort(task, pixel_begin, pixel_end, channel_begin, channel_end);
  }
  BconvLong<FourLanes>(task, pixel_begin, pixel_end, channel_begin, channel_end,
                       static_cast<Scratch*>(task.scratch)->pieces, BconvShort);
}

// This ISA is used for windows of at least this many words. For fewer words, computing table offsets takes longer than
// counting bits, as a table in docs/decisions.md shows. For more than kMaxWords words, the offsets would have to be
// computed again for each tile of channels.
constexpr int32_t kMinWords = 3;

const Isa* Better(const Bconv2dSpec& spec) {
  const int32_t words = PackedWords(spec.channels_in / spec.groups) * spec.filter_height * spec.filter_width;
  return words < kMinWords || words > kMaxWords ? &kNeon64Isa : nullptr;
}

bool Available() { return true; }
bool CpuHasFastLookups() { return CpuCores() == ArmCores::kLookups; }

}  // namespace

const Isa kNeon64TblIsa = {
    .name = "neon64_tbl",
    .available = Available,
    .pack_float32_signs = PackFloat32SignsByFours,
    .pack_int8_signs = PackInt8Signs<FourLanes>,
    .pack_int8_comparisons = PackInt8Comparisons<FourLanes>,
    .pack_affine_signs = PackAffineSigns<FourLanes>,
    .max_window = MaxWindow<FourLanes>,
    .max_int8_window = MaxInt8Window,
    .gate_pixels = GatePixels<FourLanes>,
    .tile_pixels = 2,
    .tile_channels = kTileChannels,
    .macs_per_cycle = 119,
    .packed_weights_bytes = PackedWeightsBytes,
    .pack_weights = PackWeights<ChannelOrder>,
    .scratch_bytes = ScratchBytes,
    .bconv = Bconv,
    .better = Better,
    .int8_conv = Neon64Int8Conv,
    .suits = CpuHasFastLookups,
};

}  // namespace litebnn

#endif  // __aarch64__
