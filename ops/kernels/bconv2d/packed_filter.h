// A filter in the order of the ISA that computes with it, and the constants of its output channels: all that stays when
// the input is resized.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/isa/isa.h"
#include "kernels/platform/aligned_buffer.h"

namespace litebnn {

struct PackedFilter {
  // `filter` is as Bconv2d::Create takes it. False where memory ran out.
  bool Pack(const Isa& isa, const Bconv2dSpec& spec, const uint32_t* filter);

  size_t bytes() const {
    return weights.bytes() + multiplier.bytes() + bias.bytes() + threshold.bytes() + tap_sums.bytes();
  }
  const uint8_t* GroupWeights(int32_t group) const {
    return weights.data() + group_weights_bytes * static_cast<size_t>(group);
  }

  int32_t taps = 0, tap_words = 0;  // words of one group
  // A channel's words are runs of words that lie side by side in a frame too.
  int32_t runs = 0, run_words = 0;
  int32_t words = 0;               // runs * run_words
  int32_t depth = 0;               // real channels times taps
  int32_t group_channels = 0;      // output channels of a group
  int32_t padded_channels = 0;     // the same, up to a whole number of the ISA's tiles
  int32_t parameters = 0;          // groups * padded_channels
  size_t group_weights_bytes = 0;  // a multiple of the alignment
  AlignedBuffer<uint8_t> weights;
  AlignedBuffer<float> multiplier, bias;  // [groups, padded_channels], divided by an int8 output's scale
  AlignedBuffer<int32_t> threshold;       // [groups, padded_channels]
  // With zero padding only, [filter_height, filter_width, groups, padded_channels]: what the taps up to this one, in
  // both dimensions, add where they are padding and should count half their channels.
  AlignedBuffer<int32_t> tap_sums;

 private:
  bool Allocate(const Isa& isa, const Bconv2dSpec& spec);
  void SetParameters(const Bconv2dSpec& spec, int32_t channel, int32_t slot);
  // Makes sums over taps of what `tap_sums` has of each.
  void SumTaps(int32_t filter_width);
};

}  // namespace litebnn
