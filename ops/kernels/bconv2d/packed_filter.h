// A filter and its channel constants, in the layout of the ISA that computes the convolution. The packed filter stays
// the same when the input is resized.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/isa/isa.h"
#include "kernels/platform/aligned_buffer.h"

namespace litebnn {

struct PackedFilter {
  // Repacks `filter`, whose layout is described at Bconv2d::Create. Returns false if memory ran out.
  bool Pack(const Isa& isa, const Bconv2dSpec& spec, const uint32_t* filter);

  size_t bytes() const {
    return weights.bytes() + multiplier.bytes() + bias.bytes() + threshold.bytes() + tap_sums.bytes();
  }
  const uint8_t* GroupWeights(int32_t group) const {
    return weights.data() + group_weights_bytes * static_cast<size_t>(group);
  }

  int32_t taps = 0, tap_words = 0;  // tap_words: words of one tap in one group
  // A window consists of `runs` runs. Each run is `run_words` words that are contiguous in memory.
  int32_t runs = 0, run_words = 0;
  int32_t words = 0;               // runs * run_words
  int32_t depth = 0;               // taps * input channels of a group, without padding bits
  int32_t group_channels = 0;      // output channels of a group
  int32_t padded_channels = 0;     // group_channels, rounded up to whole tiles of the ISA
  int32_t parameters = 0;          // groups * padded_channels
  bool may_tie = true;             // false if no value is halfway between two int8 outputs
  size_t group_weights_bytes = 0;  // a multiple of the alignment
  AlignedBuffer<uint8_t> weights;
  AlignedBuffer<float> multiplier, bias;  // [groups, padded_channels], divided by an int8 output's scale
  AlignedBuffer<int32_t> threshold;       // [groups, padded_channels]
  // Two-dimensional prefix sums over the taps' zero-padding corrections; a tap's correction is 2 * popcount - channels.
  // The shape is [filter_height, filter_width, groups, padded_channels]. Empty without zero padding.
  AlignedBuffer<int32_t> tap_sums;

 private:
  bool Allocate(const Isa& isa, const Bconv2dSpec& spec);
  void SetParameters(const Bconv2dSpec& spec, int32_t channel, int32_t slot);
  // Replaces the corrections of single taps in `tap_sums` by their two-dimensional prefix sums.
  void SumTaps(int32_t filter_width);
};

// True if dot * multiplier + bias, computed in floats, may be a tie between two levels of an int8 output with this zero
// point. `dot` is any integer whose magnitude is at most `depth`. Values that are clamped to the levels are no ties.
bool MayTie(float multiplier, float bias, int32_t depth, int32_t zero_point);

}  // namespace litebnn
