#include "tests/kernels/bconv2d_reference.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace litebnn {

int32_t SameOutput(int32_t input, int32_t stride) { return (input + stride - 1) / stride; }

int32_t PadBefore(int32_t input, int32_t output, int32_t filter, int32_t stride, int32_t dilation) {
  return std::max((output - 1) * stride + (filter - 1) * dilation + 1 - input, 0) / 2;
}

std::string Describe(const BconvCase& c) {
  const auto text = [](int32_t value) { return std::to_string(value); };
  return "batch " + text(c.batch) + ", input " + text(c.height) + "x" + text(c.width) + "x" + text(c.channels_in) +
         ", output channels " + text(c.channels_out) + ", groups " + text(c.groups) + ", filter " +
         text(c.filter_height) + "x" + text(c.filter_width) + ", stride " + text(c.stride_height) + "x" +
         text(c.stride_width) + ", dilation " + text(c.dilation_height) + "x" + text(c.dilation_width) +
         (!c.same          ? ", valid"
          : c.zero_padding ? ", same-zero"
                           : ", same-one") +
         ", activation " + text(static_cast<int32_t>(c.activation)) + ", output type " +
         text(static_cast<int32_t>(c.output_type)) + (c.with_multiplier ? "" : ", no multiplier") +
         (c.with_bias ? "" : ", no bias") + (c.with_addend ? ", addend" : "") + (c.rectify_sum ? " rectified" : "") +
         ", gates " + text(c.gates) + ", seed " + std::to_string(c.seed);
}

std::vector<uint32_t> RandomPacked(std::mt19937& random, int64_t rows, int32_t channels) {
  std::vector<uint32_t> words;
  words.reserve(static_cast<size_t>(rows * PackedWords(channels)));
  for (int64_t row = 0; row < rows; ++row) {
    for (int32_t first = 0; first < channels; first += kBitsPerWord) {
      const int32_t count = std::min(kBitsPerWord, channels - first);
      const auto word = static_cast<uint32_t>(random());
      words.push_back(count == kBitsPerWord ? word : word & ((1u << count) - 1u));
    }
  }
  return words;
}

bool MakeBconvData(const BconvCase& c, BconvData* data) {
  std::mt19937 random(c.seed);
  Bconv2dGeometry& g = data->geometry;
  g = {c.batch, c.height, c.width, 0, 0, 0, 0};
  if (c.same) {
    g.output_height = SameOutput(c.height, c.stride_height);
    g.output_width = SameOutput(c.width, c.stride_width);
    g.pad_top = PadBefore(c.height, g.output_height, c.filter_height, c.stride_height, c.dilation_height);
    g.pad_left = PadBefore(c.width, g.output_width, c.filter_width, c.stride_width, c.dilation_width);
  } else {
    const int32_t spare_height = c.height - (c.filter_height - 1) * c.dilation_height - 1;
    const int32_t spare_width = c.width - (c.filter_width - 1) * c.dilation_width - 1;
    if (spare_height < 0 || spare_width < 0) return false;
    g.output_height = spare_height / c.stride_height + 1;
    g.output_width = spare_width / c.stride_width + 1;
  }
  const int32_t group_channels = c.channels_in / c.groups;
  const int32_t taps = c.filter_height * c.filter_width;
  data->input = RandomPacked(random, int64_t{c.batch} * c.height * c.width, c.channels_in);
  data->filter = RandomPacked(random, int64_t{c.channels_out} * taps, group_channels);
  const int32_t depth = taps * group_channels;
  std::uniform_real_distribution<float> multiplier(-2.0f, 2.0f), bias(-30.0f, 30.0f);
  std::uniform_int_distribution<int32_t> threshold(-2, depth + 2);
  for (int32_t o = 0; o < c.channels_out; ++o) {
    data->multiplier.push_back(multiplier(random));
    data->bias.push_back(bias(random));
    // Most random thresholds are near half the number of bits in a window, as most sums are. Some thresholds make the
    // output of a channel constant.
    const auto kind = random() % 8;
    data->threshold.push_back(kind == 0   ? INT32_MIN
                              : kind == 1 ? INT32_MAX
                              : kind < 4  ? threshold(random)
                                          : depth / 2 + static_cast<int32_t>(random() % 9) - 4);
  }
  const int64_t outputs = int64_t{g.batch} * g.output_height * g.output_width * c.channels_out;
  for (int64_t i = 0; c.with_addend && i < outputs; ++i) data->addend.push_back(bias(random));
  for (int32_t i = 0; i < c.gates * c.channels_out; ++i) data->gate.push_back(multiplier(random));
  for (int32_t i = 0; c.gates > 0 && i < c.channels_out; ++i) data->slope.push_back(multiplier(random));
  data->spec = {c.channels_in,
                c.channels_out,
                c.groups,
                c.filter_height,
                c.filter_width,
                c.stride_height,
                c.stride_width,
                c.dilation_height,
                c.dilation_width,
                c.same && c.zero_padding,
                c.activation,
                c.output_type,
                c.with_multiplier ? data->multiplier.data() : nullptr,
                c.with_bias ? data->bias.data() : nullptr,
                data->threshold.data(),
                0.75f,
                static_cast<int32_t>(random() % 21) - 10,
                int64_t{c.height} * c.width};
  return true;
}

size_t OutputBytes(const BconvCase& c, const Bconv2dGeometry& g) {
  const size_t pixels = static_cast<size_t>(g.batch) * static_cast<size_t>(g.output_height * g.output_width);
  switch (c.output_type) {
    case Bconv2dOutputType::kFloat32:
      return pixels * static_cast<size_t>(c.channels_out) * sizeof(float);
    case Bconv2dOutputType::kInt8:
      return pixels * static_cast<size_t>(c.channels_out);
    case Bconv2dOutputType::kBitpacked:
      return pixels * static_cast<size_t>(PackedWords(c.channels_out)) * sizeof(uint32_t);
  }
  return 0;
}

namespace {

// Returns twice the popcount sum of each pixel and output channel. The sum is doubled because a tap in zero padding
// counts as half its channels, which may not be an integer.
std::vector<int32_t> ReferenceDoubleSums(const BconvCase& c, const BconvData& data) {
  const Bconv2dGeometry& g = data.geometry;
  const int32_t group_channels = c.channels_in / c.groups, group_outputs = c.channels_out / c.groups;
  const int32_t words = PackedWords(c.channels_in), group_words = PackedWords(group_channels);
  const std::vector<uint32_t> padding(static_cast<size_t>(words), 0);
  std::vector<int32_t> sums;
  for (int32_t b = 0; b < g.batch; ++b) {
    for (int32_t oy = 0; oy < g.output_height; ++oy) {
      for (int32_t ox = 0; ox < g.output_width; ++ox) {
        for (int32_t o = 0; o < c.channels_out; ++o) {
          int32_t sum = 0;
          for (int32_t ky = 0; ky < c.filter_height; ++ky) {
            for (int32_t kx = 0; kx < c.filter_width; ++kx) {
              const int32_t y = oy * c.stride_height + ky * c.dilation_height - g.pad_top;
              const int32_t x = ox * c.stride_width + kx * c.dilation_width - g.pad_left;
              const bool inside = y >= 0 && y < c.height && x >= 0 && x < c.width;
              if (!inside && data.spec.zero_padding) {
                sum += group_channels;
                continue;
              }
              const int64_t position = (int64_t{b} * c.height + y) * c.width + x;
              const uint32_t* pixel =
                  (inside ? data.input.data() + position * words : padding.data()) + o / group_outputs * group_words;
              const uint32_t* filter =
                  data.filter.data() + ((int64_t{o} * c.filter_height + ky) * c.filter_width + kx) * group_words;
              for (int32_t i = 0; i < group_words; ++i) sum += 2 * __builtin_popcount(pixel[i] ^ filter[i]);
            }
          }
          sums.push_back(sum);
        }
      }
    }
  }
  return sums;
}

// Returns ReferenceDoubleSums, computed once for each shape, input and filter. All ISAs and output types share these
// sums. In an emulator, computing them takes as long as the convolution that is tested.
const std::vector<int32_t>& KnownDoubleSums(const BconvCase& c, const BconvData& data) {
  static std::map<std::vector<uint32_t>, std::vector<int32_t>> known;
  std::vector<uint32_t> key;
  for (const int32_t part : {data.geometry.batch, c.height, c.width, c.channels_in, c.channels_out, c.groups,
                             c.filter_height, c.filter_width, c.stride_height, c.stride_width, c.dilation_height,
                             c.dilation_width, data.geometry.output_height, data.geometry.output_width,
                             data.geometry.pad_top, data.geometry.pad_left, int32_t{data.spec.zero_padding}}) {
    key.push_back(static_cast<uint32_t>(part));
  }
  key.insert(key.end(), data.input.begin(), data.input.end());
  key.insert(key.end(), data.filter.begin(), data.filter.end());
  std::vector<int32_t>& sums = known[std::move(key)];
  if (sums.empty()) sums = ReferenceDoubleSums(c, data);
  return sums;
}

}  // namespace

std::vector<uint8_t> ReferenceBconv(const BconvCase& c, const BconvData& data) {
  const std::vector<int32_t>& double_sums = KnownDoubleSums(c, data);
  const int32_t depth = c.filter_height * c.filter_width * (c.channels_in / c.groups);
  std::vector<uint8_t> output(OutputBytes(c, data.geometry), 0);
  for (size_t i = 0; i < double_sums.size(); ++i) {
    const size_t o = i % static_cast<size_t>(c.channels_out), pixel = i / static_cast<size_t>(c.channels_out);
    if (c.output_type == Bconv2dOutputType::kBitpacked) {
      const bool bit = double_sums[i] / 2 > data.threshold[o];
      auto* words =
          reinterpret_cast<uint32_t*>(output.data()) + pixel * static_cast<size_t>(PackedWords(c.channels_out));
      words[o / 32] |= static_cast<uint32_t>(bit) << (o % 32);
      continue;
    }
    int32_t y = depth - double_sums[i];
    if (c.activation == Activation::kRelu) y = std::max(y, 0);
    if (c.activation == Activation::kReluN1To1) y = std::min(std::max(y, -1), 1);
    if (c.activation == Activation::kRelu6) y = std::min(std::max(y, 0), 6);
    const float scale = c.output_type == Bconv2dOutputType::kInt8 ? data.spec.output_scale : 1.0f;
    const float multiplier = (c.with_multiplier ? data.multiplier[o] : 1.0f) / scale;
    const float bias = (c.with_bias ? data.bias[o] : 0.0f) / scale;
    const float product = static_cast<float>(y) * multiplier;
    const float value = product + bias;
    if (c.output_type == Bconv2dOutputType::kFloat32) {
      float finished = value;
      if (c.gates > 0) {
        const size_t image = i / (double_sums.size() / static_cast<size_t>(c.batch));
        finished *= data.gate[(c.gates == 1 ? 0 : image * static_cast<size_t>(c.channels_out)) + o];
        if (finished < 0.0f) finished *= data.slope[o];
      }
      float sum = data.addend.empty() ? finished : finished + data.addend[i];
      // The comparison with 0 also turns a NaN into 0, as the ops do.
      if (c.rectify_sum && !(sum > 0.0f)) sum = 0.0f;
      reinterpret_cast<float*>(output.data())[i] = sum;
    } else {
      const float rounded = std::round(value) + static_cast<float>(data.spec.output_zero_point);
      reinterpret_cast<int8_t*>(output.data())[i] = static_cast<int8_t>(std::min(std::max(rounded, -128.0f), 127.0f));
    }
  }
  return output;
}

}  // namespace litebnn
