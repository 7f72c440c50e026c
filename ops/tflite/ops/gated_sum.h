// A GatedSum multiplies an image by a gate, applies PRELU, and adds another image; each of the three operations is
// optional. The operations run as a separate op, or as the epilogue of a convolution.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/kernels.h"
#include "tflite/ops/broadcast_sum.h"

namespace litebnn {

// The largest number of channels if PRELU's slopes are left out; no known network has more. A vector of ones then
// replaces the slopes. Without the limit, a small model file could make this vector huge.
constexpr int32_t kMaxOnes = 1 << 20;

// The position of an operand that is left out.
constexpr size_t kNoInput = std::numeric_limits<size_t>::max();

class GatedSum {
 public:
  // The positions of the operands among the node's inputs, the image not included.
  struct Roles {
    size_t gate = kNoInput, alpha = kNoInput, addend = kNoInput;
    bool rectifies_product = false;
    bool follows_convolution = false;  // the convolution can add in its epilogue if there is nothing else to do
  };

  explicit GatedSum(const Roles& roles) : roles_(roles) {}

  // Sets the shape of the node's output to that of the result. Before the call, the output must have the shape of the
  // image, with at most four dimensions. Returns false after reporting an error.
  bool Resize(const Node& node);

  bool gates() const { return has_gate_ || has_alpha_; }
  // True if the epilogue of the convolution that writes the image can do all operations of this GatedSum. The caller
  // must also check whether the convolution supports gates.
  bool is_epilogue() const;
  Bconv2dEpilogue EpilogueOf(const void* const* inputs) const;
  // True if the result, image * gate + addend, may overwrite the addend in memory. It may always overwrite the image if
  // both have the same shape.
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
  bool has_gate_ = false, has_alpha_ = false, has_full_image_ = false;
  std::vector<float> ones_;  // replaces a gate or slopes that are left out
  GatedImages images_ = {};
  FusedSum sum_;
};

}  // namespace litebnn
