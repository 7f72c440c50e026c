// Lowers an int8 convolution to the interface in isa.h, in the same way for every ISA. The values of a window's row are
// contiguous, and are read in steps of four bytes that may span pixels. For example, seven pixels of three channels are
// 21 bytes, which take six steps.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "kernels/isa/isa.h"
#include "kernels/platform/aligned_buffer.h"
#include "kernels/platform/thread_pool.h"

namespace litebnn {
namespace {

// The limit for the magnitude of sums: the function Requantize requires that they stay below it.
constexpr int64_t kMaxSum = 1 << 29;
// The upper limit for the bytes of a padded image.
constexpr double kMaxFrameBytes = 1 << 30;
// Kernels read several bytes of a frame (a padded image) at a time, so they may read up to this many bytes past its
// end.
constexpr size_t kSlack = 64;
// Estimated cycles per output in addition to its multiply-adds, and per value that is copied into the padded frame.
constexpr double kCyclesPerOutput = 0.3, kCyclesPerValue = 0.1;

class LoweredInt8Conv2d final : public Int8Conv2d {
 public:
  LoweredInt8Conv2d(const Int8ConvKernel& kernel, const Int8Conv2dSpec& spec) : kernel_(kernel), spec_(spec) {}

  bool Pack() {
    const int32_t lanes = kernel_.vector_channels;
    const int32_t step_taps = kInt8StepBytes / kernel_.tap_bytes, row_taps = spec_.filter_width * group_channels_in();
    task_.filter_height = spec_.filter_height;
    task_.steps = (row_taps + step_taps - 1) / step_taps;
    task_.vector_bytes = ptrdiff_t{spec_.filter_height} * task_.steps * lanes * kInt8StepBytes;
    group_vectors_ = (group_channels_out() + lanes - 1) / lanes;
    const auto vectors = static_cast<size_t>(spec_.groups) * static_cast<size_t>(group_vectors_);
    const size_t padded = vectors * static_cast<size_t>(lanes);
    if (!weights_.Allocate(vectors * static_cast<size_t>(task_.vector_bytes)) || !scales_.Allocate(padded) ||
        !integers_.Allocate(3 * padded) || !floats_.Allocate(2 * padded)) {
      return false;
    }
    task_.weights = weights_.data();
    task_.scales = scales_.data();
    task_.bias = integers_.data();
    task_.multiplier = integers_.data() + padded;
    task_.shift = integers_.data() + 2 * padded;
    task_.float_multiplier = floats_.data();
    task_.nudge = floats_.data() + padded;
    for (int32_t channel = 0; channel < spec_.channels_out; ++channel)
      PackChannel(channel, row_taps, step_taps, padded);
    task_.zero_point = spec_.output_zero_point;
    task_.output_min = spec_.output_min;
    task_.output_max = spec_.output_max;
    task_.channels = group_channels_out();
    task_.output_channels = spec_.channels_out;
    // The pointers to the caller's arrays are cleared, because the caller may free these arrays after Create.
    spec_.filter = nullptr;
    spec_.bias = nullptr;
    spec_.scales = nullptr;
    return true;
  }

  bool Resize(const Bconv2dGeometry& geometry) override {
    geometry_ = geometry;
    frame_height_ = int64_t{geometry.output_height - 1} * spec_.stride_height + spec_.filter_height;
    const int64_t width = int64_t{geometry.output_width - 1} * spec_.stride_width + spec_.filter_width;
    row_values_ = width * group_channels_in();
    const double bytes = static_cast<double>(frame_height_) * static_cast<double>(row_values_) * kernel_.tap_bytes;
    if (bytes > kMaxFrameBytes) return false;
    task_.frame_row = static_cast<ptrdiff_t>(row_values_ * kernel_.tap_bytes);
    task_.row_stride = geometry.output_height == 1 ? 0 : task_.frame_row * spec_.stride_height;
    // If there is only one row or one pixel, the stride to the next one is never used. It is then set to 0, because a
    // large stride might not fit in 32 bits.
    task_.pixel_stride =
        geometry.output_width == 1 ? 0 : ptrdiff_t{spec_.stride_width} * group_channels_in() * kernel_.tap_bytes;
    task_.output_width = geometry.output_width;
    return true;
  }

  size_t WorkspaceBytes() const override { return FrameBytes() + kSlack; }
  size_t OwnedBytes() const override {
    return weights_.bytes() + scales_.bytes() + integers_.bytes() + floats_.bytes();
  }

  void Run(ThreadPool& pool, const int8_t* input, int8_t* output, void* workspace) const override {
    const int64_t rows = geometry_.output_height, row_outputs = int64_t{geometry_.output_width} * group_channels_out();
    const double depth = static_cast<double>(task_.filter_height) * task_.steps * kInt8StepBytes / kernel_.tap_bytes;
    const double row_cycles = static_cast<double>(row_outputs) * (depth / kernel_.macs_per_cycle + kCyclesPerOutput);
    auto* const frame = static_cast<uint8_t*>(workspace);
    std::memset(frame + FrameBytes(), 0, kSlack);
    Int8ConvTask task = task_;
    task.frame = frame;
    for (int32_t image = 0; image < geometry_.batch; ++image) {
      const LoopSize frame_rows = {frame_height_, 1, kCyclesPerValue * static_cast<double>(row_values_)};
      for (int32_t group = 0; group < spec_.groups; ++group) {
        const int8_t* const first = input + ptrdiff_t{group} * group_channels_in();
        ParallelFor(pool, frame_rows, [&](int, int64_t begin, int64_t end) { Stage(first, begin, end, frame); });
        SetGroup(group, &task);
        task.output = output + ptrdiff_t{group} * group_channels_out();
        ParallelFor(pool, {rows, 1, row_cycles},
                    [&](int, int64_t begin, int64_t end) { kernel_.rows(task, begin, end); });
      }
      input += int64_t{geometry_.input_height} * geometry_.input_width * spec_.channels_in;
      output += rows * geometry_.output_width * spec_.channels_out;
    }
  }

 private:
  int32_t group_channels_in() const { return spec_.channels_in / spec_.groups; }
  int32_t group_channels_out() const { return spec_.channels_out / spec_.groups; }

  // Sets the weights and channel constants of `task` to those of one group of a grouped convolution.
  void SetGroup(int32_t group, Int8ConvTask* task) const {
    const ptrdiff_t vector = ptrdiff_t{group} * group_vectors_, first = vector * kernel_.vector_channels;
    task->weights = task_.weights + vector * task_.vector_bytes;
    task->scales = task_.scales + first;
    task->bias = task_.bias + first;
    task->multiplier = task_.multiplier + first;
    task->shift = task_.shift + first;
    task->float_multiplier = task_.float_multiplier + first;
    task->nudge = task_.nudge + first;
  }

  size_t FrameBytes() const { return static_cast<size_t>(frame_height_ * task_.frame_row); }

  // Repacks a channel's filter. Sets the channel's bias, which also compensates for the input's zero point and for the
  // offset that the kernel adds to input values.
  void PackChannel(int32_t channel, int32_t row_taps, int32_t step_taps, size_t padded) {
    const int32_t lanes = kernel_.vector_channels;
    const int8_t* weight = spec_.filter + ptrdiff_t{channel} * spec_.filter_height * row_taps;
    // The channel's index in the packed weights, in which each group is padded to whole vectors of channels.
    const int32_t padded_channel =
        channel / group_channels_out() * group_vectors_ * lanes + channel % group_channels_out();
    uint8_t* const vector = weights_.data() + padded_channel / lanes * task_.vector_bytes;
    const int32_t lane_taps = kernel_.lane_taps;
    const auto lane_bytes = static_cast<size_t>(lane_taps * kernel_.tap_bytes);
    const size_t row_groups = static_cast<size_t>(task_.steps) * static_cast<size_t>(step_taps / lane_taps);
    int32_t sum = 0;
    for (int32_t y = 0; y < spec_.filter_height; ++y) {
      uint8_t* lane = vector + (static_cast<size_t>(y) * row_groups * static_cast<size_t>(lanes) +
                                static_cast<size_t>(padded_channel % lanes)) *
                                   lane_bytes;
      for (int32_t tap = 0; tap < row_taps; tap += lane_taps) {
        const int32_t count = std::min(lane_taps, row_taps - tap);
        for (int32_t i = 0; i < count; ++i, ++weight) {
          sum += *weight;
          if (kernel_.tap_bytes == 1) {
            lane[i] = static_cast<uint8_t>(*weight);
          } else {
            reinterpret_cast<int16_t*>(lane)[i] = *weight;
          }
        }
        lane += static_cast<size_t>(lanes) * lane_bytes;
      }
    }
    const auto slot = static_cast<size_t>(padded_channel);
    FixedPoint& scale = scales_.data()[slot];
    ToFixedPoint(spec_.scales[channel], &scale);
    const FloatScale floats = ToFloat(scale);
    integers_.data()[slot] =
        (spec_.bias == nullptr ? 0 : spec_.bias[channel]) - sum * (spec_.input_zero_point + kernel_.offset);
    integers_.data()[padded + slot] = scale.multiplier;
    integers_.data()[2 * padded + slot] = scale.shift;
    floats_.data()[slot] = floats.multiplier;
    floats_.data()[padded + slot] = floats.nudge;
  }

  // Writes rows [begin, end) of the frame, which is the padded image with the input channels of one group. The
  // argument `image` points to the group's first channel in pixel 0.
  void Stage(const int8_t* image, int64_t begin, int64_t end, uint8_t* frame) const {
    const int64_t channels = group_channels_in();
    const int64_t left = std::min<int64_t>(geometry_.pad_left * channels, row_values_);
    const int64_t inside = std::min(geometry_.input_width * channels, row_values_ - left);
    for (int64_t y = begin; y < end; ++y) {
      uint8_t* const row = frame + y * task_.frame_row;
      const int64_t input_y = y - geometry_.pad_top;
      if (input_y < 0 || input_y >= geometry_.input_height) {
        Fill(row, 0, row_values_);
        continue;
      }
      Fill(row, 0, left);
      const int8_t* const pixels = image + input_y * geometry_.input_width * spec_.channels_in;
      // A whole row of the image is copied at once if there is one group of channels. With several groups, each pixel
      // is copied separately, because a group's channels are contiguous only within a pixel.
      const int64_t count = spec_.groups == 1 ? inside : channels;
      for (int64_t i = 0; i < inside; i += count) {
        Copy(pixels + i * spec_.groups, count, row + (left + i) * kernel_.tap_bytes);
      }
      Fill(row, left + inside, row_values_);
    }
  }

  void Fill(uint8_t* row, int64_t begin, int64_t end) const {
    const auto padding = static_cast<int16_t>(spec_.input_zero_point + kernel_.offset);
    if (kernel_.tap_bytes == 1) {
      std::memset(row + begin, padding, static_cast<size_t>(end - begin));
      return;
    }
    for (int64_t i = begin; i < end; ++i) reinterpret_cast<int16_t*>(row)[i] = padding;
  }

  void Copy(const int8_t* values, int64_t count, uint8_t* row) const {
    const int32_t offset = kernel_.offset;
    if (kernel_.tap_bytes == 1) {
      for (int64_t i = 0; i < count; ++i) row[i] = static_cast<uint8_t>(values[i] + offset);
      return;
    }
    auto* const wide = reinterpret_cast<int16_t*>(row);
    for (int64_t i = 0; i < count; ++i) wide[i] = static_cast<int16_t>(values[i] + offset);
  }

  const Int8ConvKernel& kernel_;
  Int8Conv2dSpec spec_;
  Bconv2dGeometry geometry_ = {};
  int64_t frame_height_ = 0, row_values_ = 0;
  int32_t group_vectors_ = 0;  // vectors of output channels of a group
  AlignedBuffer<uint8_t> weights_;
  AlignedBuffer<FixedPoint> scales_;
  AlignedBuffer<int32_t> integers_;  // [3][padded channels]
  AlignedBuffer<float> floats_;      // [2][padded channels]
  Int8ConvTask task_ = {};
};

}  // namespace

bool Int8Conv2d::Supports(const Int8Conv2dSpec& spec) {
  const int64_t depth = int64_t{spec.filter_height} * spec.filter_width * (spec.channels_in / spec.groups);
  // An output is the sum of `depth` products. A product of an input value and a weight is at most 256 * 128, so the
  // following limit for `depth` keeps every sum within kMaxSum.
  if (depth > kMaxSum / (256 * 128)) return false;
  for (int32_t channel = 0; channel < spec.channels_out; ++channel) {
    const int8_t* const weights = spec.filter + channel * depth;
    // The loop has no branches, so that compilers vectorize it.
    int32_t magnitudes = 0, least = 0;
    for (int64_t i = 0; i < depth; ++i) {
      magnitudes += std::abs(int32_t{weights[i]});
      least = std::min(least, int32_t{weights[i]});
    }
    const int64_t bias = spec.bias == nullptr ? 0 : std::abs(int64_t{spec.bias[channel]});
    FixedPoint scale;
    if (least < -127 || bias + int64_t{256} * magnitudes >= kMaxSum || !ToFixedPoint(spec.scales[channel], &scale))
      return false;
  }
  return true;
}

std::unique_ptr<Int8Conv2d> Int8Conv2d::Create(const Isa& isa, const Int8Conv2dSpec& spec) {
  std::unique_ptr<LoweredInt8Conv2d> conv(new (std::nothrow) LoweredInt8Conv2d(isa.int8_conv(), spec));
  if (conv == nullptr || !conv->Pack()) return nullptr;
  return conv;
}

}  // namespace litebnn
