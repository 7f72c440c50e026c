// An image times a gate, through a PRELU and added to another image, each of which may be left out: by itself, or as
// what a convolution does with its output.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/kernels.h"
#include "tflite/ops/broadcast_sum.h"

namespace litebnn {

// More than any network has. Where there are no slopes, whose number the file limits, there is a one for each channel.
constexpr int32_t kMaxOnes = 1 << 20;

class GatedSum {
 public:
  static constexpr size_t kNone = std::numeric_limits<size_t>::max();

  // The positions of the node's inputs other than the image.
  struct Roles {
    size_t gate = kNone, alpha = kNone, addend = kNone;
    bool rectifies_product = false;
    bool follows_convolution = false;  // which adds by itself where there is nothing else to do
  };

  explicit GatedSum(const Roles& roles) : roles_(roles) {}

  // The node's output has the shape of the image, of four dimensions at most, and gets that of the result. False after
  // an error has been reported.
  bool Resize(const Node& node);

  bool gates() const { return has_gate_ || has_alpha_; }
  // Whether a convolution that writes the image can do it all, if it takes a gate.
  bool is_finish() const;
  Bconv2dFinish FinishOf(const void* const* inputs) const;
  // Whether the result may take the addend's memory. It may always take that of an image of its shape.
  bool overwrites_addend() const { return sum_.has_addend() && sum_.computed_bytes() == 0; }

  size_t WorkspaceBytes() const { return gates() ? sum_.computed_bytes() : 0; }
  size_t OwnedBytes() const { return ones_.size() * sizeof(float); }
  void Run(const Isa& isa, ThreadPool& pool, const float* image, const void* const* inputs, float* output,
           void* workspace) const;

 private:
  bool ReadOperands(const Node& node);

  const float* GateOf(const void* const* inputs) const { return has_gate_ ? Find(inputs, roles_.gate) : ones_.data(); }
  const float* SlopeOf(const void* const* inputs) const {
    return has_alpha_ ? Find(inputs, roles_.alpha) : ones_.data();
  }
  const float* AddendOf(const void* const* inputs) const {
    return sum_.has_addend() ? Find(inputs, roles_.addend) : nullptr;
  }
  static const float* Find(const void* const* inputs, size_t position) {
    return static_cast<const float*>(inputs[position]);
  }

  const Roles roles_;
  bool has_gate_ = false, has_alpha_ = false, is_image_whole_ = false;
  std::vector<float> ones_;  // in the place of a gate or slopes that are left out
  GatedImages images_ = {};
  FusedSum sum_;
};

}  // namespace litebnn
