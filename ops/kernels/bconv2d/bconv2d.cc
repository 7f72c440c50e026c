// Lowers a binary convolution to the interface in isa.h, in the same way for every ISA.
#include <limits>
#include <new>

#include "kernels/bconv2d/frame.h"
#include "kernels/bconv2d/packed_filter.h"
#include "kernels/bconv2d/padding_corrections.h"
#include "kernels/bconv2d/schedule.h"
#include "kernels/isa/isa.h"
#include "kernels/platform/thread_pool.h"

namespace litebnn {
namespace {

// Estimated cycles per output value, apart from its multiply-adds, and per byte that is copied into the padded input
// image (the frame).
constexpr double kCyclesPerOutput = 0.5, kCyclesPerStagedByte = 0.06;

// A gate (a multiplication by a factor per channel) is fused only if a group's channels are a multiple of this number.
// Every ISA computes such groups in whole tiles; for a partial tile, a separate pass over the outputs is faster.
constexpr int32_t kGatedChannels = 64;

size_t OutputPixelBytes(const Bconv2dSpec& spec) {
  const bool is_bits = spec.output_type == Bconv2dOutputType::kBitpacked;
  const auto values = static_cast<size_t>(is_bits ? PackedWords(spec.channels_out) : spec.channels_out);
  return spec.output_type == Bconv2dOutputType::kInt8 ? values : values * sizeof(uint32_t);
}

void SetClamps(Activation activation, BconvTask& task) {
  constexpr int32_t kLowest = std::numeric_limits<int32_t>::min(), kHighest = std::numeric_limits<int32_t>::max();
  task.clamp_min = activation == Activation::kNone ? kLowest : activation == Activation::kReluN1To1 ? -1 : 0;
  task.clamp_max = activation == Activation::kReluN1To1 ? 1 : activation == Activation::kRelu6 ? 6 : kHighest;
}

EpilogueKind KindOf(Bconv2dOutputType output_type, const Bconv2dEpilogue& epilogue) {
  if (output_type == Bconv2dOutputType::kBitpacked) return EpilogueKind::kBits;
  if (output_type == Bconv2dOutputType::kInt8) {
    return epilogue.int8_addend == nullptr ? EpilogueKind::kInt8 : EpilogueKind::kInt8Add;
  }
  if (epilogue.gate != nullptr) return EpilogueKind::kGateAndAdd;
  if (epilogue.addend == nullptr) return EpilogueKind::kNone;
  return epilogue.rectify_sum ? EpilogueKind::kAddAndRectify : EpilogueKind::kAdd;
}

class LoweredBconv2d final : public Bconv2d {
 public:
  LoweredBconv2d(const Isa& isa, const Bconv2dSpec& spec) : isa_(isa), spec_(spec) {}

  bool Pack(const uint32_t* filter) {
    const bool packed = filter_.Pack(isa_, spec_, filter);
    // The pointers to the caller's arrays are cleared, because the caller may free these arrays after Create.
    spec_.post_activation_multiplier = spec_.post_activation_bias = nullptr;
    spec_.output_threshold = nullptr;
    return packed;
  }

  bool Resize(const Bconv2dGeometry& geometry) override {
    geometry_ = Flatten(spec_, geometry);
    joins_images_ = geometry_.batch < geometry.batch;
    if (!frame_.Resize(isa_, spec_, geometry_, filter_.runs)) return false;
    if (CorrectsPadding() && !corrections_.Build(spec_, geometry_, filter_)) return false;
    SetTask();
    return true;
  }

  const Isa& isa() const override { return isa_; }
  size_t WorkspaceBytes(int num_threads) const override {
    return frame_.FrameBytes() + static_cast<size_t>(num_threads) * ThreadScratchBytes();
  }
  size_t OwnedBytes() const override { return filter_.bytes() + frame_.run_offsets.bytes() + corrections_.bytes(); }

  bool adds_int8() const override { return isa_.adds_int8; }
  bool gates() const override { return isa_.gates && !joins_images_ && filter_.group_channels % kGatedChannels == 0; }

  void Run(ThreadPool& pool, const uint32_t* input, const Bconv2dEpilogue& epilogue, void* output,
           void* workspace) const override {
    const int64_t pixels = int64_t{geometry_.output_height} * geometry_.output_width;
    const int64_t image_words =
        int64_t{geometry_.input_height} * geometry_.input_width * PackedWords(spec_.channels_in);
    const Schedule schedule(isa_, spec_, filter_, geometry_, pool.num_threads());
    const LoopSize chunks = {schedule.count(), schedule.grain(),
                             Cycles(pixels) / static_cast<double>(schedule.count())};
    auto* const frame = static_cast<uint8_t*>(workspace);
    uint8_t* const scratch = frame + frame_.FrameBytes();
    auto* image_output = static_cast<uint8_t*>(output);
    BconvTask image_task = task_;
    image_task.epilogue_kind = KindOf(spec_.output_type, epilogue);
    image_task.epilogue = epilogue;
    for (int32_t image = 0; image < geometry_.batch; ++image, input += image_words) {
      if (!frame_.in_place) {
        const LoopSize rows = {frame_.height, 1, kCyclesPerStagedByte * static_cast<double>(frame_.RowBytes())};
        ParallelFor(pool, rows, [&](int, int64_t begin, int64_t end) { frame_.StageRows(input, begin, end, frame); });
      }
      image_task.input = frame_.in_place ? reinterpret_cast<const uint8_t*>(input) : frame;
      image_task.output = image_output;
      ParallelFor(pool, chunks, [&](int thread, int64_t begin, int64_t end) {
        schedule.ForEachChunk(begin, end, [&](const Chunk& chunk) {
          BconvTask task = GroupTask(image_task, chunk.group);
          task.scratch = scratch + static_cast<size_t>(thread) * ThreadScratchBytes();
          isa_.bconv(task, chunk.pixel_begin, chunk.pixel_end, chunk.channel_begin, chunk.channel_end);
        });
      });
      image_output += static_cast<size_t>(pixels) * OutputPixelBytes(spec_);
      if (epilogue.gate != nullptr) image_task.epilogue.gate += epilogue.gate_stride;
      if (epilogue.addend != nullptr) image_task.epilogue.addend += pixels * spec_.channels_out;
      if (epilogue.int8_addend != nullptr) image_task.epilogue.int8_addend += pixels * spec_.channels_out;
    }
  }

 private:
  // Estimated cycles that one core needs for `pixels` output pixels in all channels.
  double Cycles(int64_t pixels) const {
    const double outputs = static_cast<double>(pixels) * spec_.channels_out;
    return outputs * (filter_.depth / isa_.macs_per_cycle + kCyclesPerOutput);
  }
  bool CorrectsPadding() const { return spec_.zero_padding && frame_.has_padding; }
  size_t ThreadScratchBytes() const {
    return isa_.scratch_bytes == nullptr ? 0 : AlignUp(isa_.scratch_bytes(filter_.words));
  }

  void SetTask() {
    task_ = {};
    task_.is_staged = isa_.stage == nullptr || !frame_.in_place;
    task_.row_stride = static_cast<ptrdiff_t>(frame_.RowBytes()) * spec_.stride_height;
    task_.pixel_stride = static_cast<ptrdiff_t>(frame_.pixel_bytes) * spec_.stride_width;
    task_.run_offsets = frame_.run_offsets.data();
    task_.runs = filter_.runs;
    task_.run_words = filter_.run_words;
    task_.tap_words = filter_.tap_words;
    task_.output_width = geometry_.output_width;
    task_.depth = filter_.depth;
    task_.channels = filter_.group_channels;
    SetClamps(spec_.activation, task_);
    task_.zero_point = spec_.output_zero_point;
    task_.may_tie = filter_.may_tie;
    if (CorrectsPadding()) {
      task_.row_correction = corrections_.row_offsets.data();
      task_.column_correction = corrections_.column_offsets.data();
    }
    task_.output_type = spec_.output_type;
    task_.output_channels = spec_.channels_out;
  }

  BconvTask GroupTask(const BconvTask& image_task, int32_t group) const {
    const int32_t slot = group * filter_.padded_channels;
    BconvTask task = image_task;
    task.input += static_cast<ptrdiff_t>(frame_.tap_bytes) * group;
    task.weights = filter_.GroupWeights(group);
    task.multiplier = filter_.multiplier.data() + slot;
    task.bias = filter_.bias.data() + slot;
    task.threshold = filter_.threshold.data() + slot;
    if (CorrectsPadding()) task.corrections = corrections_.values.data() + slot;
    task.first_channel = group * filter_.group_channels;
    if (task.epilogue.gate != nullptr) {
      task.epilogue.gate += task.first_channel;
      task.epilogue.slope += task.first_channel;
    }
    return task;
  }

  const Isa& isa_;
  Bconv2dSpec spec_;
  Bconv2dGeometry geometry_ = {};
  bool joins_images_ = false;  // the batch is computed as one image, which rules out a gate per image
  PackedFilter filter_;
  Frame frame_;
  PaddingCorrections corrections_;
  BconvTask task_ = {};  // common to all images and groups
};

}  // namespace

std::unique_ptr<Bconv2d> Bconv2d::Create(const Isa& isa, const Bconv2dSpec& spec, const uint32_t* filter) {
  const Isa* const better = isa.better == nullptr ? nullptr : isa.better(spec);
  std::unique_ptr<LoweredBconv2d> conv(new (std::nothrow) LoweredBconv2d(better == nullptr ? isa : *better, spec));
  if (conv == nullptr || !conv->Pack(filter)) return nullptr;
  return conv;
}

}  // namespace litebnn
