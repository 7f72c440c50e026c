// Lowers a binary convolution to what isa.h describes, the same way for every ISA.
#include <algorithm>
#include <limits>
#include <new>

#include "kernels/isa/isa.h"
#include "kernels/platform/aligned_buffer.h"
#include "kernels/platform/thread_pool.h"

namespace litebnn {
namespace {

// More than any sensible model needs for one padded image; a hostile dilation asks for more.
constexpr int64_t kMaxFrameBytes = int64_t{1} << 30;
constexpr int64_t kMaxCorrections = int64_t{1} << 28;

int32_t RoundUp(int32_t value, int32_t multiple) { return (value + multiple - 1) / multiple * multiple; }

uint32_t Popcount(uint32_t bits) { return static_cast<uint32_t>(__builtin_popcount(bits)); }

struct Range {
  int32_t begin, end;
  bool operator==(const Range& other) const { return begin == other.begin && end == other.end; }
};

// The taps of one filter dimension that fall inside the input, for one output position.
Range InsideTaps(int32_t position, int32_t stride, int32_t dilation, int32_t pad, int32_t filter, int32_t input) {
  const int64_t first = static_cast<int64_t>(position) * stride - pad;
  const int64_t begin = first >= 0 ? 0 : (-first + dilation - 1) / dilation;
  const int64_t end = first >= input ? 0 : (input - first + dilation - 1) / dilation;
  const auto clipped_begin = static_cast<int32_t>(std::min<int64_t>(begin, filter));
  const auto clipped_end = static_cast<int32_t>(std::min<int64_t>(end, filter));
  return {clipped_begin, std::max(clipped_begin, clipped_end)};
}

// Output positions of one dimension, grouped by which taps they have.
struct TapClasses {
  AlignedBuffer<int32_t> index;  // [positions], class of each
  AlignedBuffer<Range> ranges;   // [count]
  int32_t count = 0;

  bool Build(int32_t positions, int32_t stride, int32_t dilation, int32_t pad, int32_t filter, int32_t input) {
    if (!index.Allocate(static_cast<size_t>(positions)) || !ranges.Allocate(static_cast<size_t>(positions))) {
      return false;
    }
    count = 0;
    for (int32_t position = 0; position < positions; ++position) {
      const Range range = InsideTaps(position, stride, dilation, pad, filter, input);
      // Classes come in runs, but a middle position may also return to an earlier one.
      int32_t known = count - 1;
      while (known >= 0 && !(ranges.data()[known] == range)) --known;
      if (known < 0) {
        known = count;
        ranges.data()[count++] = range;
      }
      index.data()[position] = known;
    }
    return true;
  }
};

class Bconv2dImpl final : public Bconv2d {
 public:
  Bconv2dImpl(const Isa& isa, const Bconv2dSpec& spec) : isa_(isa), spec_(spec) {}

  bool Pack(const uint32_t* filter);
  bool Resize(const Bconv2dGeometry& geometry) override;
  size_t WorkspaceBytes(int num_threads) const override {
    return frame_bytes_ + static_cast<size_t>(num_threads) * thread_scratch_bytes_;
  }
  size_t OwnedBytes() const override {
    return weights_.bytes() + multiplier_.bytes() + bias_.bytes() + threshold_.bytes() + run_offsets_.bytes() +
           tap_popcounts_.bytes() + corrections_.bytes() + row_correction_.bytes() + column_correction_.bytes();
  }
  void Run(ThreadPool& pool, const uint32_t* input, const float* addend, void* output, void* workspace) const override;

 private:
  struct Invocation;

  bool Lower();
  bool BuildCorrections();
  size_t OutputPixelBytes() const;
  void StageRows(const Invocation& invocation, int64_t begin, int64_t end) const;
  void ComputePixels(const Invocation& invocation, int thread, int64_t begin, int64_t end) const;
  void ComputeTiles(const Invocation& invocation, int thread, int64_t begin, int64_t end) const;
  BconvTask TaskOf(const Invocation& invocation, int thread, int32_t group) const;

  int32_t taps() const { return spec_.filter_height * spec_.filter_width; }
  int32_t group_channels() const { return spec_.channels_out / spec_.groups; }
  int32_t padded_channels() const { return RoundUp(group_channels(), isa_.tile_channels); }
  int32_t pixel_words() const { return PackedWords(spec_.channels_in); }

  const Isa& isa_;
  Bconv2dSpec spec_;
  Bconv2dGeometry geometry_ = {};

  int32_t tap_words_ = 0;    // of one group
  int32_t group_words_ = 0;  // words of one output channel's filter: runs_ times run_words_
  int32_t runs_ = 0, run_words_ = 0;
  size_t group_weights_bytes_ = 0;
  AlignedBuffer<uint8_t> weights_;
  // [groups, padded_channels]
  AlignedBuffer<float> multiplier_, bias_;
  AlignedBuffer<int32_t> threshold_;
  AlignedBuffer<int32_t> tap_popcounts_;  // [taps, groups, padded_channels], same-zero only

  bool windows_are_pixels_ = false, in_place_ = false, corrects_padding_ = false;
  int32_t frame_height_ = 0, frame_width_ = 0;
  AlignedBuffer<ptrdiff_t> run_offsets_;
  size_t frame_bytes_ = 0, thread_scratch_bytes_ = 0;
  AlignedBuffer<int32_t> corrections_;  // [row classes, column classes, groups, padded_channels]
  AlignedBuffer<int32_t> row_correction_, column_correction_;
};

struct Bconv2dImpl::Invocation {
  const Bconv2dImpl& conv;
  const uint32_t* image;
  uint8_t* frame;
  const uint8_t* staged;
  uint8_t* output;
  const float* addend;
  uint8_t* scratch;
};

bool Bconv2dImpl::Pack(const uint32_t* filter) {
  tap_words_ = PackedWords(spec_.channels_in / spec_.groups);
  group_words_ = tap_words_ * taps();
  // A filter row is one run where its taps lie side by side.
  const bool rows_are_runs = spec_.groups == 1 && (spec_.dilation_width_factor == 1 || spec_.filter_width == 1);
  runs_ = rows_are_runs ? spec_.filter_height : taps();
  run_words_ = group_words_ / runs_;
  group_weights_bytes_ = AlignUp(isa_.packed_weights_bytes(group_channels(), group_words_));
  const auto parameters = static_cast<size_t>(spec_.groups) * static_cast<size_t>(padded_channels());
  const bool packed_output = spec_.output_type == Bconv2dOutputType::kBitpacked;
  const bool allocated = weights_.Allocate(group_weights_bytes_ * static_cast<size_t>(spec_.groups)) &&
                         multiplier_.Allocate(parameters) && bias_.Allocate(parameters) &&
                         threshold_.Allocate(parameters) &&
                         (!spec_.zero_padding || tap_popcounts_.Allocate(static_cast<size_t>(taps()) * parameters)) &&
                         run_offsets_.Allocate(static_cast<size_t>(taps()));
  if (!allocated) return false;

  const float scale = spec_.output_type == Bconv2dOutputType::kInt8 ? spec_.output_scale : 1.0f;
  for (int32_t group = 0; group < spec_.groups; ++group) {
    const int32_t first = group * group_channels();
    const uint32_t* group_filter = filter + static_cast<int64_t>(first) * group_words_;
    isa_.pack_weights(group_filter, group_channels(), runs_, run_words_,
                      weights_.data() + static_cast<size_t>(group) * group_weights_bytes_);
    for (int32_t channel = 0; channel < group_channels(); ++channel) {
      const int32_t slot = group * padded_channels() + channel;
      if (packed_output) {
        threshold_.data()[slot] = spec_.output_threshold[first + channel];
      } else {
        const float* multiplier = spec_.post_activation_multiplier;
        const float* bias = spec_.post_activation_bias;
        multiplier_.data()[slot] = (multiplier == nullptr ? 1.0f : multiplier[first + channel]) / scale;
        bias_.data()[slot] = (bias == nullptr ? 0.0f : bias[first + channel]) / scale;
      }
      if (!spec_.zero_padding) continue;
      const uint32_t* word = group_filter + static_cast<int64_t>(channel) * group_words_;
      for (int32_t tap = 0; tap < taps(); ++tap) {
        uint32_t sum = 0;
        for (int32_t i = 0; i < tap_words_; ++i) sum += Popcount(*word++);
        tap_popcounts_.data()[static_cast<size_t>(tap) * parameters + static_cast<size_t>(slot)] =
            static_cast<int32_t>(sum);
      }
    }
  }
  // Resize works them out anew; what the caller's pointers point at may go.
  spec_.post_activation_multiplier = spec_.post_activation_bias = nullptr;
  spec_.output_threshold = nullptr;
  return true;
}

bool Bconv2dImpl::Resize(const Bconv2dGeometry& geometry) {
  geometry_ = geometry;
  windows_are_pixels_ = taps() == 1 && spec_.stride_height == 1 && spec_.stride_width == 1 &&
                        geometry.output_height == geometry.input_height &&
                        geometry.output_width == geometry.input_width;
  // One long row has no ends for the kernels to stop at.
  if (windows_are_pixels_) {
    const int32_t pixels = geometry.batch * geometry.input_height * geometry.input_width;
    geometry_ = {1, 1, pixels, 1, pixels, 0, 0};
  }
  return Lower();
}

bool Bconv2dImpl::Lower() {
  const Bconv2dGeometry& geometry = geometry_;
  const int64_t window_height = static_cast<int64_t>(spec_.filter_height - 1) * spec_.dilation_height_factor + 1;
  const int64_t window_width = static_cast<int64_t>(spec_.filter_width - 1) * spec_.dilation_width_factor + 1;
  const int64_t height = static_cast<int64_t>(geometry.output_height - 1) * spec_.stride_height + window_height;
  const int64_t width = static_cast<int64_t>(geometry.output_width - 1) * spec_.stride_width + window_width;

  const bool has_padding =
      geometry.pad_top != 0 || geometry.pad_left != 0 || height > geometry.input_height || width > geometry.input_width;
  // Where nothing is read twice a kernel stages what it needs, when it needs it.
  in_place_ = !has_padding && (isa_.stage == nullptr || (windows_are_pixels_ && spec_.groups == 1));
  corrects_padding_ = spec_.zero_padding && has_padding;
  const auto pixel_bytes = static_cast<int64_t>(isa_.staged_word_bytes) * pixel_words();
  if (in_place_) {
    frame_height_ = geometry.input_height;
    frame_width_ = geometry.input_width;
    frame_bytes_ = 0;
  } else {
    if (height > kMaxFrameBytes || width > kMaxFrameBytes / height || pixel_bytes > kMaxFrameBytes / (height * width)) {
      return false;
    }
    frame_height_ = static_cast<int32_t>(height);
    frame_width_ = static_cast<int32_t>(width);
    frame_bytes_ = AlignUp(static_cast<size_t>(height * width * pixel_bytes));
  }
  thread_scratch_bytes_ = isa_.scratch_bytes == nullptr ? 0 : AlignUp(isa_.scratch_bytes(group_words_));

  const int32_t runs_in_row = runs_ / spec_.filter_height;
  for (int32_t run = 0; run < runs_; ++run) {
    const int64_t y = static_cast<int64_t>(run / runs_in_row) * spec_.dilation_height_factor;
    const int64_t x = static_cast<int64_t>(run % runs_in_row) * spec_.dilation_width_factor;
    run_offsets_.data()[run] = static_cast<ptrdiff_t>((y * frame_width_ + x) * pixel_bytes);
  }
  return !corrects_padding_ || BuildCorrections();
}

bool Bconv2dImpl::BuildCorrections() {
  TapClasses rows, columns;
  if (!rows.Build(geometry_.output_height, spec_.stride_height, spec_.dilation_height_factor, geometry_.pad_top,
                  spec_.filter_height, geometry_.input_height) ||
      !columns.Build(geometry_.output_width, spec_.stride_width, spec_.dilation_width_factor, geometry_.pad_left,
                     spec_.filter_width, geometry_.input_width)) {
    return false;
  }
  const int32_t parameters = spec_.groups * padded_channels();
  const int64_t count = static_cast<int64_t>(rows.count) * columns.count;
  if (count > kMaxCorrections / parameters || !corrections_.Allocate(static_cast<size_t>(count * parameters)) ||
      !row_correction_.Allocate(static_cast<size_t>(geometry_.output_height)) ||
      !column_correction_.Allocate(static_cast<size_t>(geometry_.output_width))) {
    return false;
  }
  // The kernels see a tap in the padding as +1: it adds its filter's popcount, where it should add half its channels.
  const int32_t channels = spec_.channels_in / spec_.groups;
  for (int32_t row = 0; row < rows.count; ++row) {
    const Range y = rows.ranges.data()[row];
    for (int32_t column = 0; column < columns.count; ++column) {
      const Range x = columns.ranges.data()[column];
      int32_t* correction = corrections_.data() + static_cast<int64_t>(row * columns.count + column) * parameters;
      for (int32_t tap = 0; tap < taps(); ++tap) {
        const int32_t tap_y = tap / spec_.filter_width, tap_x = tap % spec_.filter_width;
        if (tap_y >= y.begin && tap_y < y.end && tap_x >= x.begin && tap_x < x.end) continue;
        const int32_t* popcounts = tap_popcounts_.data() + static_cast<int64_t>(tap) * parameters;
        for (int32_t i = 0; i < parameters; ++i) correction[i] += 2 * popcounts[i] - channels;
      }
    }
  }
  for (int32_t row = 0; row < geometry_.output_height; ++row) {
    row_correction_.data()[row] = rows.index.data()[row] * columns.count * parameters;
  }
  for (int32_t column = 0; column < geometry_.output_width; ++column) {
    column_correction_.data()[column] = columns.index.data()[column] * parameters;
  }
  return true;
}

size_t Bconv2dImpl::OutputPixelBytes() const {
  switch (spec_.output_type) {
    case Bconv2dOutputType::kFloat32:
      return static_cast<size_t>(spec_.channels_out) * sizeof(float);
    case Bconv2dOutputType::kInt8:
      return static_cast<size_t>(spec_.channels_out);
    case Bconv2dOutputType::kBitpacked:
      return static_cast<size_t>(PackedWords(spec_.channels_out)) * sizeof(uint32_t);
  }
  return 0;
}

void Bconv2dImpl::StageRows(const Invocation& invocation, int64_t begin, int64_t end) const {
  const size_t pixel_bytes = isa_.staged_word_bytes * static_cast<size_t>(pixel_words());
  const int32_t left = std::min(geometry_.pad_left, frame_width_);
  const int32_t inside = std::min(geometry_.input_width, frame_width_ - left);
  const int32_t right = frame_width_ - left - inside;
  const int64_t inside_words = static_cast<int64_t>(inside) * pixel_words();
  for (int64_t y = begin; y < end; ++y) {
    uint8_t* row = invocation.frame + static_cast<size_t>(y) * static_cast<size_t>(frame_width_) * pixel_bytes;
    const int64_t input_y = y - geometry_.pad_top;
    if (input_y < 0 || input_y >= geometry_.input_height) {
      std::memset(row, 0, static_cast<size_t>(frame_width_) * pixel_bytes);
      continue;
    }
    std::memset(row, 0, static_cast<size_t>(left) * pixel_bytes);
    row += static_cast<size_t>(left) * pixel_bytes;
    const uint32_t* words = invocation.image + input_y * geometry_.input_width * pixel_words();
    if (isa_.stage == nullptr) {
      std::memcpy(row, words, static_cast<size_t>(inside_words) * sizeof(uint32_t));
    } else {
      isa_.stage(words, inside_words, row);
    }
    row += static_cast<size_t>(inside) * pixel_bytes;
    std::memset(row, 0, static_cast<size_t>(right) * pixel_bytes);
  }
}

BconvTask Bconv2dImpl::TaskOf(const Invocation& invocation, int thread, int32_t group) const {
  const auto pixel_bytes = static_cast<ptrdiff_t>(isa_.staged_word_bytes) * pixel_words();
  const int32_t first_parameter = group * padded_channels();
  BconvTask task = {};
  task.input = invocation.staged + static_cast<ptrdiff_t>(isa_.staged_word_bytes) * tap_words_ * group;
  task.is_staged = isa_.stage == nullptr || !in_place_;
  task.row_stride = pixel_bytes * frame_width_ * spec_.stride_height;
  task.pixel_stride = pixel_bytes * spec_.stride_width;
  task.run_offsets = run_offsets_.data();
  task.runs = runs_;
  task.run_words = run_words_;
  task.output_width = geometry_.output_width;
  task.weights = weights_.data() + group_weights_bytes_ * static_cast<size_t>(group);
  task.depth = taps() * (spec_.channels_in / spec_.groups);
  task.channels = group_channels();
  task.multiplier = multiplier_.data() + first_parameter;
  task.bias = bias_.data() + first_parameter;
  task.threshold = threshold_.data() + first_parameter;
  constexpr int32_t kLowest = std::numeric_limits<int32_t>::min(), kHighest = std::numeric_limits<int32_t>::max();
  const Activation activation = spec_.activation;
  task.clamp_min = activation == Activation::kNone ? kLowest : activation == Activation::kReluN1To1 ? -1 : 0;
  task.clamp_max = activation == Activation::kReluN1To1 ? 1 : activation == Activation::kRelu6 ? 6 : kHighest;
  task.zero_point = spec_.output_zero_point;
  if (corrects_padding_) {
    task.corrections = corrections_.data() + first_parameter;
    task.row_correction = row_correction_.data();
    task.column_correction = column_correction_.data();
  }
  task.output_type = spec_.output_type;
  task.output = invocation.output;
  task.addend = invocation.addend;
  task.rectify_sum = spec_.rectify_sum;
  task.output_channels = spec_.channels_out;
  task.first_channel = group * group_channels();
  task.scratch = invocation.scratch + static_cast<size_t>(thread) * thread_scratch_bytes_;
  return task;
}

void Bconv2dImpl::ComputePixels(const Invocation& invocation, int thread, int64_t begin, int64_t end) const {
  for (int32_t group = 0; group < spec_.groups; ++group) {
    isa_.bconv(TaskOf(invocation, thread, group), begin, end, 0, group_channels());
  }
}

// Tiles of channels, over all groups.
void Bconv2dImpl::ComputeTiles(const Invocation& invocation, int thread, int64_t begin, int64_t end) const {
  const int64_t pixels = static_cast<int64_t>(geometry_.output_height) * geometry_.output_width;
  const int32_t tiles_in_group = padded_channels() / isa_.tile_channels;
  for (int64_t tile = begin; tile < end;) {
    const auto group = static_cast<int32_t>(tile / tiles_in_group);
    const auto first = static_cast<int32_t>(tile % tiles_in_group);
    const auto last = static_cast<int32_t>(std::min<int64_t>(tiles_in_group, first + end - tile));
    isa_.bconv(TaskOf(invocation, thread, group), 0, pixels, first * isa_.tile_channels,
               std::min(last * isa_.tile_channels, group_channels()));
    tile += last - first;
  }
}

void Bconv2dImpl::Run(ThreadPool& pool, const uint32_t* input, const float* addend, void* output,
                      void* workspace) const {
  const int64_t pixels = static_cast<int64_t>(geometry_.output_height) * geometry_.output_width;
  const int64_t image_words = static_cast<int64_t>(geometry_.input_height) * geometry_.input_width * pixel_words();
  const int64_t tiles = static_cast<int64_t>(padded_channels() / isa_.tile_channels) * spec_.groups;
  // Threads share the pixels, or the channels where that splits clearly more evenly, as then each goes through the
  // whole input. Groups may share a word of packed output, which one thread has to write.
  const auto longest_share = [&pool](int64_t count, int64_t grain) {
    const int64_t grains = (count + grain - 1) / grain, threads = pool.num_threads();
    return static_cast<double>((grains + threads - 1) / threads * grain) / static_cast<double>(count);
  };
  const bool words_are_shared =
      spec_.output_type == Bconv2dOutputType::kBitpacked && spec_.groups > 1 && group_channels() % kBitsPerWord != 0;
  const bool by_channels = !words_are_shared && longest_share(tiles, 1) < 0.9 * longest_share(pixels, isa_.tile_pixels);

  auto* bytes = static_cast<uint8_t*>(workspace);
  Invocation invocation{*this, nullptr, bytes, nullptr, static_cast<uint8_t*>(output), addend, bytes + frame_bytes_};
  for (int32_t image = 0; image < geometry_.batch; ++image) {
    invocation.image = input + image * image_words;
    invocation.staged = in_place_ ? reinterpret_cast<const uint8_t*>(invocation.image) : invocation.frame;
    if (!in_place_) {
      pool.ParallelFor(
          frame_height_, 1,
          [](void* context, int, int64_t begin, int64_t end) {
            const auto& self = *static_cast<Invocation*>(context);
            self.conv.StageRows(self, begin, end);
          },
          &invocation);
    }
    if (by_channels) {
      pool.ParallelFor(
          tiles, 1,
          [](void* context, int thread, int64_t begin, int64_t end) {
            const auto& self = *static_cast<Invocation*>(context);
            self.conv.ComputeTiles(self, thread, begin, end);
          },
          &invocation);
    } else {
      pool.ParallelFor(
          pixels, isa_.tile_pixels,
          [](void* context, int thread, int64_t begin, int64_t end) {
            const auto& self = *static_cast<Invocation*>(context);
            self.conv.ComputePixels(self, thread, begin, end);
          },
          &invocation);
    }
    invocation.output += static_cast<size_t>(pixels) * OutputPixelBytes();
    if (addend != nullptr) invocation.addend += pixels * spec_.channels_out;
  }
}

}  // namespace

std::unique_ptr<Bconv2d> Bconv2d::Create(const Isa& isa, const Bconv2dSpec& spec, const uint32_t* filter) {
  const int32_t words = PackedWords(spec.channels_in / spec.groups) * spec.filter_height * spec.filter_width;
  const Isa& able = words <= isa.max_words ? isa : kPortableIsa;
  std::unique_ptr<Bconv2dImpl> conv(new (std::nothrow) Bconv2dImpl(able, spec));
  if (conv == nullptr || !conv->Pack(filter)) return nullptr;
  return conv;
}

}  // namespace litebnn
