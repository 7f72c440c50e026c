#include "kernels/bconv2d/packed_filter.h"

namespace litebnn {

bool PackedFilter::Pack(const Isa& isa, const Bconv2dSpec& spec, const uint32_t* filter) {
  may_tie = !isa.reads_may_tie;
  if (!Allocate(isa, spec)) return false;
  const int32_t channels = spec.channels_in / spec.groups;
  for (int32_t group = 0; group < spec.groups; ++group) {
    const int32_t first = group * group_channels;
    const uint32_t* group_filter = filter + int64_t{first} * words;
    isa.pack_weights(group_filter, group_channels, taps, tap_words,
                     weights.data() + group_weights_bytes * static_cast<size_t>(group));
    for (int32_t channel = 0; channel < group_channels; ++channel) {
      const int32_t slot = group * padded_channels + channel;
      SetParameters(spec, first + channel, slot);
      const uint32_t* tap_filter = group_filter + int64_t{channel} * words;
      for (int32_t tap = 0; spec.zero_padding && tap < taps; ++tap, tap_filter += tap_words) {
        // The kernels compute each padded tap as if its input were +1, which adds channels - 2 * popcount(weights) to
        // the dot product. With zero padding the tap must add 0, so its correction is 2 * popcount(weights) - channels.
        int32_t popcount = 0;
        for (int32_t word = 0; word < tap_words; ++word) popcount += __builtin_popcount(tap_filter[word]);
        tap_sums.data()[int64_t{tap} * parameters + slot] = popcount - (channels - popcount);
      }
    }
  }
  if (spec.zero_padding) SumTaps(spec.filter_width);
  return true;
}

void PackedFilter::SumTaps(int32_t filter_width) {
  const auto add_tap = [this](int32_t tap, int32_t to) {
    const int32_t* source = tap_sums.data() + int64_t{tap} * parameters;
    int32_t* sums = tap_sums.data() + int64_t{to} * parameters;
    for (int32_t slot = 0; slot < parameters; ++slot) sums[slot] += source[slot];
  };
  for (int32_t tap = 0; tap < taps; ++tap) {
    if (tap % filter_width > 0) add_tap(tap - 1, tap);
  }
  for (int32_t tap = filter_width; tap < taps; ++tap) add_tap(tap - filter_width, tap);
}

bool PackedFilter::Allocate(const Isa& isa, const Bconv2dSpec& spec) {
  taps = spec.filter_height * spec.filter_width;
  tap_words = PackedWords(spec.channels_in / spec.groups);
  words = tap_words * taps;
  // If the taps of a filter row are contiguous in the frame, the whole row is one run.
  const bool rows_are_runs = spec.groups == 1 && (spec.dilation_width_factor == 1 || spec.filter_width == 1);
  runs = rows_are_runs ? spec.filter_height : taps;
  run_words = words / runs;
  depth = taps * (spec.channels_in / spec.groups);
  group_channels = spec.channels_out / spec.groups;
  padded_channels = (group_channels + isa.tile_channels - 1) / isa.tile_channels * isa.tile_channels;
  parameters = spec.groups * padded_channels;
  group_weights_bytes = AlignUp(isa.packed_weights_bytes(group_channels, taps, tap_words));
  const auto count = static_cast<size_t>(parameters);
  return weights.Allocate(group_weights_bytes * static_cast<size_t>(spec.groups)) && multiplier.Allocate(count) &&
         bias.Allocate(count) && threshold.Allocate(count) &&
         (!spec.zero_padding || tap_sums.Allocate(static_cast<size_t>(taps) * count));
}

void PackedFilter::SetParameters(const Bconv2dSpec& spec, int32_t channel, int32_t slot) {
  if (spec.output_type == Bconv2dOutputType::kBitpacked) {
    threshold.data()[slot] = spec.output_threshold[channel];
    return;
  }
  const float scale = spec.output_type == Bconv2dOutputType::kInt8 ? spec.output_scale : 1.0f;
  const float* multipliers = spec.post_activation_multiplier;
  const float* biases = spec.post_activation_bias;
  multiplier.data()[slot] = (multipliers == nullptr ? 1.0f : multipliers[channel]) / scale;
  bias.data()[slot] = (biases == nullptr ? 0.0f : biases[channel]) / scale;
  if (spec.output_type == Bconv2dOutputType::kInt8 && !may_tie) {
    may_tie = MayTie(multiplier.data()[slot], bias.data()[slot], depth, spec.output_zero_point);
  }
}

}  // namespace litebnn
