// The file declares the sum of two int8 images, as the runtime's own ADD computes it. The sum is a separate op, or is
// fused into a convolution's epilogue.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/kernels.h"
#include "tflite/ops/broadcast_sum.h"

namespace litebnn {

class FusedInt8Sum {
 public:
  // Prepares for adding the input at `position` to an image with the quantization `first`. Resizes the node's output
  // from the image's shape to the sum's shape. Returns false after reporting an error.
  bool Resize(const Node& node, const Int8Grid& first, size_t position);
  // True if a convolution that writes one of the images can do the addition in its epilogue.
  bool is_epilogue() const { return has_floats_ && is_alike_; }
  // True if the result may be written to the memory of either operand.
  bool is_alike() const { return is_alike_; }
  Bconv2dEpilogue EpilogueOf(const void* addend) const;
  void Run(ThreadPool& pool, const int8_t* image, const void* addend, int8_t* output) const;

 private:
  bool is_set_ = false, has_floats_ = false, is_alike_ = false;
  Int8Sum sum_;
  FloatSum floats_ = {};
  BroadcastSum broadcast_;
};

}  // namespace litebnn
